//! A word that threads wait for until it is another, each by a bit of its own, so that those to be woken can be named.

#[cfg(all(target_os = "linux", not(any(loom, miri, tenon_portable))))]
mod linux;
#[cfg(any(not(target_os = "linux"), loom, miri, tenon_portable))]
mod portable;

#[cfg(all(target_os = "linux", not(any(loom, miri, tenon_portable))))]
pub(crate) use linux::{FutexWord, WAITERS_MAX};
#[cfg(any(not(target_os = "linux"), loom, miri, tenon_portable))]
pub(crate) use portable::{FutexWord, WAITERS_MAX};

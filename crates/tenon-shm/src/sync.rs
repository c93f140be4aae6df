//! The one door to atomics for what two processes share, so that loom can try every order in which they
//! may be seen. What one end has for itself is in ordinary atomics.

#[cfg(loom)]
pub use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop as spin,
    sync::atomic::{Ordering, fence},
};

#[cfg(not(loom))]
pub use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop as spin,
    sync::atomic::{Ordering, fence},
};

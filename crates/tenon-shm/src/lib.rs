//! Memory that two processes share, and how they come by it: the bytes of a connection lie in a
//! segment of memory that both have mapped, and pass from one process to the other without a system
//! call. `docs/shm.md` specifies all of it.
//!
//! The other process is not trusted. It may write into the segment whatever it likes and whenever it
//! likes, so nothing in there is believed: each end keeps its own copy of its own cursors, holds those of
//! the peer against them, and copies bytes out before anybody looks at them. All access is by atomic
//! operations, for which a writer that does not keep to any rule is no undefined behaviour but merely
//! another value.
//!
//! From the lowest: [`Segment`] is the memory, [`End`] one end of a pair of rings of bytes in it, and
//! [`invite`] and [`join`] are how a server and a client come by theirs over a Unix socket. Who waits,
//! and on what, is decided above.
#![allow(
    unexpected_cfgs,
    reason = "`--cfg loom` is how the tests of orders are compiled, and is nobody's feature"
)]

mod annex;
mod end;
mod layout;
mod ring;
mod sync;

#[cfg(not(loom))]
mod hello;
#[cfg(not(loom))]
mod rendezvous;
#[cfg(not(loom))]
mod segment;

pub use end::{End, Side};
pub use layout::{Sizes, SizesError};
pub use ring::Violation;

#[cfg(not(loom))]
pub use hello::{HELLO, HelloError, Refusal};
#[cfg(not(loom))]
pub use rendezvous::{Greeting, JoinError, Joined, User, invite, join, refuse};
#[cfg(not(loom))]
pub use segment::{Segment, Unfit};

/// The atomics that the memory of an [`End`] is made of: under loom its own.
pub use sync::AtomicU64;

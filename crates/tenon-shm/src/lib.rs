//! Memory that two processes share, and how they come by it: the bytes of a connection lie in a
//! segment of memory that both have mapped, and pass from one process to the other without a system
//! call. `docs/shm.md` specifies all of it.
//!
//! The other process is not trusted. It may write into the segment whatever it likes and whenever it likes, so nothing
//! in there is believed: each end keeps its own copy of its own cursors, holds those of the peer against them, and
//! copies bytes out before they are looked at. All access is by atomic operations, for which a writer that does not
//! keep to any rule is no undefined behaviour but merely another value.
//!
//! From the lowest: [`Segment`] is the memory, [`RingEndpoint`] one end of a pair of rings of bytes in it, and
//! [`invite`] and [`join`] are how a server and a client come by theirs over a Unix socket. The layer above decides
//! which thread waits, and on what.
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

pub use end::{ConnectionRole, RingEndpoint};
pub use layout::{RingSizesError, Sizes};
pub use ring::RingViolation;

#[cfg(not(loom))]
pub use hello::{HELLO, HelloError, JoinRefusal};
#[cfg(not(loom))]
pub use rendezvous::{HelloBuffer, JoinError, Joined, invite, join, refuse};
#[cfg(not(loom))]
pub use segment::{Segment, SegmentError};

/// The atomics that the memory of an [`RingEndpoint`] is made of: under loom its own.
pub use sync::AtomicU64;

//! Sockets of systems other than Linux: TCP and UDP, by calls that every system has. What stands here has its like in
//! `linux`, by the same names; what a system does not have is a type without values.

mod absent;
mod listener;
#[cfg(any(windows, tenon_portable))]
pub(crate) mod poller;
mod socket;

pub(crate) use absent::{SegmentationOffload, ShmStream, connect_path};
pub use absent::{Ticks, User, XdpCounters, XdpDatagramSocket};
pub use listener::Listener;
pub(crate) use socket::DeadlineSocket;

//! Sockets of systems other than Linux: TCP and UDP, by calls that every system has. `linux` has the same items under the
//! same names; a transport that only Linux has is a type without values here.

mod absent;
mod listener;
#[cfg(any(windows, tenon_portable))]
pub(crate) mod poller;
mod socket;

pub(crate) use absent::{SegmentationOffload, ShmStream, connect_path};
pub use absent::{Ticks, User, XdpCounters, XdpDatagramSocket};
pub use listener::Listener;
pub(crate) use socket::DeadlineSocket;

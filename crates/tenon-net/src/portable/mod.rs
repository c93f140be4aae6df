//! Sockets of systems other than Linux: TCP and UDP, by calls that every system has. `linux` has the same items under the
//! same names; a transport that only Linux has is a type without values here.

#![cfg_attr(
    not(feature = "udp"),
    allow(
        dead_code,
        unused_imports,
        reason = "what datagrams need is not left out alone here"
    )
)]

mod absent;
mod listener;
#[cfg(any(windows, tenon_portable))]
pub(crate) mod poller;
mod socket;

pub(crate) use absent::{SegmentationOffload, connect_path};
pub use absent::{Ticks, User};
pub use listener::Listener;
pub(crate) use socket::DeadlineSocket;

pub(crate) use crate::absent::shm::{ShmConnection, ShmStream};
pub use crate::absent::xdp::{XdpCarrier, XdpCounters, XdpDatagramSocket};

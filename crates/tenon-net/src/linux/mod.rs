//! Sockets of Linux. `portable` has the same items for other systems, under the same names.

mod listener;
#[cfg(all(feature = "udp", feature = "account"))]
mod packet_costs;
#[cfg(feature = "udp")]
mod segments;
#[cfg(feature = "shm")]
mod shm;
mod socket;
mod spare;
#[cfg(feature = "udp")]
#[cfg_attr(not(feature = "account"), path = "no_stamps.rs")]
mod stamps;
mod ticks;
mod timeout;
mod user;
#[cfg(feature = "xdp")]
mod xdp;

#[cfg(not(feature = "shm"))]
use crate::absent::shm;
#[cfg(not(feature = "xdp"))]
use crate::absent::xdp;

pub use listener::Listener;
#[cfg(feature = "udp")]
pub(crate) use segments::SegmentationOffload;
pub(crate) use shm::{ShmConnection, ShmStream};
pub(crate) use socket::{DeadlineSocket, connect_path};
pub(crate) use spare::LentDescriptor;
pub use ticks::Ticks;
pub use user::User;
pub use xdp::{XdpCarrier, XdpCounters, XdpDatagramSocket};

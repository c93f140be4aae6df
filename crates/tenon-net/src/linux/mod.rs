//! Sockets of Linux. `portable` has the same items for other systems, under the same names.

mod listener;
mod packet_costs;
mod segments;
mod shm;
mod socket;
mod spare;
mod stamps;
mod ticks;
mod timeout;
mod xdp;

pub use listener::Listener;
pub(crate) use segments::SegmentationOffload;
pub(crate) use shm::ShmStream;
pub(crate) use socket::{DeadlineSocket, connect_path};
pub(crate) use spare::LentDescriptor;
pub use tenon_shm::User;
pub use tenon_xdp::XdpCounters;
pub use ticks::Ticks;
pub use xdp::XdpDatagramSocket;

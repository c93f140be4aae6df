//! Transports: where a peer is ([`Address`]) and the sockets that lead there, TCP, Unix and
//! UDP, shared memory beside them, and UDP past the kernel.
//!
//! Everything is blocking with a deadline or not blocking at all, by the method that is called;
//! no socket carries a hidden mode. One conformance suite (`tests/conformance.rs`) holds for all.

mod address;
mod carrier;
mod connected;
mod datagram;
mod happy_eyeballs;
mod listener;
mod liveness;
mod poller;
mod segments;
mod shm;
mod socket;
mod spare;
mod stream;
mod ticks;
mod timeout;
mod train;
mod unix_wait;
mod until;
mod xdp;

pub use address::{Address, AddressError, Endpoint, Host, Protocol, Transport};
pub use carrier::Carrier;
pub use connected::ConnectedSocket;
pub use datagram::DatagramSocket;
pub use happy_eyeballs::{AttemptSchedule, FailedAttempts, interleave_families};
pub use listener::{Accepted, Listener};
pub use liveness::Liveness;
pub use poller::{PollEvent, PollRegistry, PollWaker, Poller, Watch};
pub use socket::{Ready, is_deadline};
pub use stream::Stream;
pub use tenon_shm::User;
pub use tenon_xdp::XdpCounters;
pub use ticks::Ticks;
pub use train::{Came, Train};
pub use until::Until;
pub use xdp::XdpDatagramSocket;

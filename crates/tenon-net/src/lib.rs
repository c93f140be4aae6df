//! Transports: where a peer is ([`Address`]) and the sockets that lead there, TCP, Unix and
//! UDP, shared memory beside them, and UDP past the kernel.
//!
//! Everything is blocking with a deadline or not blocking at all, by the method that is called;
//! no socket carries a hidden mode. One conformance suite (`tests/conformance.rs`) holds for all.
//!
//! The features `udp`, `shm` and `xdp` are the transports that a program may leave out. In their places are types without
//! values then (`absent`), so nothing above depends on which there are. With `account` and `udp` the kernel stamps datagrams
//! ([`FollowedPackets`]).
//!
//! Linux has all of it. Other systems have TCP and UDP, by the module `portable`, which Linux can be made to use as well
//! (`--cfg tenon_portable`), so that it is tested.

#![cfg_attr(
    any(
        not(all(feature = "udp", feature = "shm", feature = "xdp")),
        not(target_os = "linux"),
        tenon_portable
    ),
    allow(
        clippy::useless_conversion,
        unreachable_code,
        reason = "where a part is left out are types without values"
    )
)]

#[macro_use]
pub mod fd;

#[cfg(any(
    not(all(feature = "udp", feature = "shm", feature = "xdp")),
    not(target_os = "linux"),
    tenon_portable
))]
#[macro_use]
mod absent;
mod accepted;
mod address;
mod carrier;
mod connected;
#[cfg(feature = "udp")]
mod datagram;
mod happy_eyeballs;
#[cfg(all(target_os = "linux", not(tenon_portable)))]
mod linux;
mod liveness;
mod monotonic;
#[cfg(any(
    not(all(feature = "udp", feature = "account")),
    not(target_os = "linux"),
    tenon_portable
))]
mod no_packet_costs;
mod packet_stamps;
mod pair;
mod poll_event;
#[cfg(not(any(windows, tenon_portable)))]
mod poller;
#[cfg(any(not(target_os = "linux"), tenon_portable))]
mod portable;
mod protocol;
mod socket;
mod stream;
mod train;
mod transport;
mod unix_wait;
mod until;

#[cfg(any(not(target_os = "linux"), tenon_portable))]
use portable as system;
// Where modules are looked at without regard to the system, this is the one that counts.
#[cfg(all(target_os = "linux", not(tenon_portable)))]
use linux as system;

#[cfg(not(feature = "udp"))]
use absent::datagram;

pub use accepted::{Accepted, BACKLOG, ExcessConnection};
pub use address::{Address, AddressError, Endpoint, Host};
pub use carrier::Carrier;
pub use connected::ConnectedSocket;
pub use datagram::DatagramSocket;
pub use happy_eyeballs::{AttemptSchedule, FailedAttempts, interleave_families};
pub use liveness::Liveness;
pub use monotonic::monotonic_nanos;
pub use packet_stamps::{FollowedPackets, PacketCosts, PacketStamps};
pub use pair::{PairedSocket, send_paired, socket_pair};
pub use poll_event::{PollEvent, Watch};
#[cfg(not(any(windows, tenon_portable)))]
pub use poller::{PollRegistry, PollWaker, Poller};
#[cfg(any(windows, tenon_portable))]
pub use portable::poller::{PollRegistry, PollWaker, Poller};
pub use protocol::Protocol;
pub use socket::{Ready, is_deadline};
pub use stream::Stream;
pub use system::{Listener, Ticks, User, XdpCounters, XdpDatagramSocket};
pub use train::{PacketTrain, ReceivedTrain};
pub use transport::Transport;
pub use until::Until;

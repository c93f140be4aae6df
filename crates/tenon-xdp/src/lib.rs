//! Datagrams of UDP straight on Ethernet, past the kernel's stack (AF_XDP): the frames lie in memory that the
//! process shares with the kernel, and a filter at the interface brings there what is for a socket of ours.
//!
//! [`XdpSocket`] is such a socket. Everything else of the host goes on as before: the filter leaves to the kernel
//! what is not plain UDP for a port that is taken here, ARP and ICMP included. `docs/xdp.md` in the repository
//! says how it works and what it asks for.

mod bpf;
mod checksum;
mod filter;
mod headers;
mod interface;
mod kernel_socket;
mod memory;
mod neighbours;
mod netlink;
mod privileges;
mod ring;
mod socket;
mod train;

pub use headers::{
    EthernetEndpoint, FrameError, FrameHeaderTemplate, HEADERS, MacAddress, ReceivedDatagram,
    UdpChecksum, read,
};
pub use privileges::check_privileges;
pub use socket::{XdpCounters, XdpSocket};
pub use train::{OutgoingDatagrams, ReceivedDatagrams};

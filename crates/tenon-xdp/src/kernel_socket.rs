//! The kernel's socket that stands beside one of AF_XDP, with the same address and port.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use socket2::{SockFilter, SockRef};

use crate::headers::UdpChecksum;

/// Bytes of received datagrams that the kernel keeps until they are read. Where it may not be so much it is less.
const KEPT: usize = 1 << 20;

/// A socket's filter, in classic BPF, that drops datagrams without a checksum. It sees a datagram from its header of
/// UDP on.
const DROP_WITHOUT_CHECKSUM: [SockFilter; 4] = [
    // ldh [6], the checksum; jeq #0.
    SockFilter::new(0x28, 0, 0, 6),
    SockFilter::new(0x15, 0, 1, 0),
    // ret #0; ret #-1.
    SockFilter::new(0x06, 0, 0, 0),
    SockFilter::new(0x06, 0, 0, u32::MAX),
];

/// Opens a socket at `at`; port 0 takes any free port. It keeps to `checksum` from its first datagram on.
///
/// # Errors
/// `AddrInUse`; what the system reports.
pub(crate) fn open(at: SocketAddrV4, checksum: UdpChecksum) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    set_socket_recv_buffer_size(&socket, KEPT)?;
    if checksum == UdpChecksum::Required {
        SockRef::from(&socket).attach_filter(&DROP_WITHOUT_CHECKSUM)?;
    }
    net::bind(&socket, &at)?;
    Ok(socket.into())
}

//! The kernel's socket that stands beside one of AF_XDP, with the same address and port.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::UdpGroSegment;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use socket2::{SockFilter, SockRef};

use crate::headers::UdpChecksum;
use crate::train::ReceivedDatagrams;

/// Bytes of received datagrams that the kernel keeps until they are read: as many as the exchange has under way at most,
/// and what the kernel adds, which can be as much again. Where it may not be so much it is less.
const KEPT: usize = 4 << 20;

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

/// A socket of the kernel's.
#[derive(Debug)]
pub(crate) struct KernelSocket {
    socket: UdpSocket,
    is_connected: bool,
    /// The kernel has refused to cut what is sent.
    cannot_cut: AtomicBool,
    /// The kernel hands over together what came together.
    joins: AtomicBool,
}

impl KernelSocket {
    /// Opens a socket at `at`; port 0 takes any free port. It keeps to `checksum` from its first datagram on, and sends
    /// to and receives from `peer` alone, if there is one.
    ///
    /// # Errors
    /// `AddrInUse`; what the system reports.
    pub(crate) fn open(
        at: SocketAddrV4,
        peer: Option<SocketAddrV4>,
        checksum: UdpChecksum,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        set_socket_recv_buffer_size_force(&socket, KEPT)
            .or_else(|_| set_socket_recv_buffer_size(&socket, KEPT))?;
        if checksum == UdpChecksum::Required {
            SockRef::from(&socket).attach_filter(&DROP_WITHOUT_CHECKSUM)?;
        }
        net::bind(&socket, &at)?;
        if let Some(peer) = peer {
            net::connect(&socket, &peer)?;
        }
        Ok(Self {
            socket: socket.into(),
            is_connected: peer.is_some(),
            cannot_cut: AtomicBool::new(false),
            joins: AtomicBool::new(false),
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddrV4> {
        match self.socket.local_addr()? {
            SocketAddr::V4(at) => Ok(at),
            SocketAddr::V6(_) => unreachable!("it was bound to an address of IPv4"),
        }
    }

    /// Sends a datagram.
    pub(crate) fn send(&self, data: &[u8], to: SocketAddrV4) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match self.is_connected {
            true => net::send(&self.socket, data, flags)?,
            false => net::sendto(&self.socket, data, flags, &to)?,
        };
        Ok(())
    }

    /// Sends datagrams of `size` bytes, the last of which may be shorter, with one system call: the kernel cuts them
    /// where they leave this host (UDP_SEGMENT). None if it does not do that here.
    pub(crate) fn send_all(
        &self,
        all: &[u8],
        size: usize,
        to: SocketAddrV4,
    ) -> Option<io::Result<()>> {
        if self.cannot_cut.load(Relaxed) {
            return None;
        }
        let size = u16::try_from(size).ok()?;
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let to = (!self.is_connected).then(|| SockaddrIn::from(to));
        let pieces = [IoSlice::new(all)];
        match sendmsg(
            self.socket.as_raw_fd(),
            &pieces,
            &control,
            flags,
            to.as_ref(),
        ) {
            Ok(_) => Some(Ok(())),
            Err(Errno::ENOPROTOOPT | Errno::EOPNOTSUPP) => {
                self.cannot_cut.store(true, Relaxed);
                None
            }
            // Not on the way to this peer: its packets are shorter, or are encrypted, or the card does not know how.
            Err(Errno::EINVAL | Errno::EIO | Errno::EMSGSIZE) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Has the kernel hand over together what comes together (UDP_GRO), from now on.
    pub(crate) fn join(&self) {
        let is_first = !self.joins.swap(true, Relaxed);
        if is_first && setsockopt(&self.socket, UdpGroSegment, &true).is_err() {
            tracing::debug!("the kernel hands over datagrams one by one");
        }
    }

    /// Receives what is there.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `ConnectionRefused` when a datagram met a closed port.
    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        if self.joins.load(Relaxed) {
            return self.receive_joined(room);
        }
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let (_, length, from) = net::recvfrom(&self.socket, room, flags)?;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        Ok(ReceivedDatagrams::one(length, from))
    }

    fn receive_joined(&self, room: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let mut control = cmsg_space!(i32);
        // Room for nothing is no room.
        control.resize(control.capacity(), 0);
        let mut pieces = [IoSliceMut::new(room)];
        let fd = self.socket.as_raw_fd();
        let received = recvmsg::<SockaddrIn>(fd, &mut pieces, Some(&mut control), flags)?;
        let size = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::UdpGroSegments(bytes) => usize::try_from(bytes).ok(),
            _ => None,
        });
        let from = received.address.ok_or(io::ErrorKind::InvalidData)?;
        let from = SocketAddrV4::from(from).into();
        let length = received.bytes;
        let size = size.filter(|size| *size > 0).unwrap_or(length);
        Ok(ReceivedDatagrams { length, size, from })
    }

    /// Ends receiving: a thread that waits is woken.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        Ok(net::shutdown(&self.socket, Shutdown::Both)?)
    }
}

impl AsFd for KernelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

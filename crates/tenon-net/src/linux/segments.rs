//! What stands beside the data of datagrams. Several of one length with one system call: the system cuts what is sent
//! (UDP_SEGMENT), and hands over together what came together (UDP_GRO). And the time at which a datagram came.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::UdpGroSegment;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, Timestamps, recvmsg, sendmsg,
    setsockopt,
};

use super::socket::DeadlineSocket;
use super::stamps;
use crate::packet_stamps::{FollowedPackets, PacketStamps};
use crate::socket::{ReceiveMode, of_receiving};
use crate::train::{PacketTrain, ReceivedTrain};

/// Receives that each brought one datagram before no more than one is expected again.
const SINGLE_MAX: u32 = 256;

/// State of sending and receiving several datagrams of a socket at once.
#[derive(Debug, Default)]
pub(crate) struct SegmentationOffload {
    /// The system has refused to cut, whatever the destination.
    is_refused: AtomicBool,
    /// The system hands over together what came together, and is to be asked how it is to be cut.
    is_expecting: AtomicBool,
    /// The system has refused to hand over anything together.
    is_never: AtomicBool,
    /// Receives in a row that brought one datagram.
    singles: AtomicU32,
    /// The kernel stamps the datagrams that come.
    is_followed: AtomicBool,
    /// The time of the datagram that was received last, as [`PacketStamps`] has it; 0 for none.
    received: AtomicU64,
}

impl SegmentationOffload {
    /// Returns whether the system cuts, as far as is known.
    pub(crate) fn may_cut(&self) -> bool {
        !self.is_refused.load(Relaxed)
    }

    /// Sends a train with one system call; none if the system does not do that here. `to` is none of a socket
    /// that is connected.
    pub(crate) fn send(
        &self,
        socket: &DeadlineSocket,
        train: PacketTrain<'_>,
        to: Option<SocketAddr>,
    ) -> Option<io::Result<usize>> {
        let size = u16::try_from(train.size).ok()?;
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let pieces = [IoSlice::new(train.bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let to = to.map(SockaddrStorage::from);
        let sent =
            uninterrupted(|| sendmsg(socket.as_raw_fd(), &pieces, &control, flags, to.as_ref()));
        match sent {
            // The ways of systems to say that they cannot.
            Err(Errno::ENOPROTOOPT | Errno::EOPNOTSUPP) => {
                self.is_refused.store(true, Relaxed);
                None
            }
            // Those to say that they cannot on this way: its packets are shorter, or are encrypted, or its network card
            // does not know how. On the way to another peer they may.
            Err(Errno::EINVAL | Errno::EIO | Errno::EMSGSIZE) => {
                let is_the_only_way = to.is_none();
                if is_the_only_way {
                    self.is_refused.store(true, Relaxed);
                }
                None
            }
            sent => Some(sent.map_err(io::Error::from)),
        }
    }

    /// Has the kernel stamp these datagrams from now on.
    pub(crate) fn follow(
        &self,
        socket: &DeadlineSocket,
        followed: FollowedPackets,
    ) -> io::Result<()> {
        stamps::set_stamping(socket, followed)?;
        let is_followed = followed != FollowedPackets::None;
        let was_followed = self.is_followed.swap(is_followed, Relaxed);
        if is_followed {
            // From now on it is to be asked what stands beside the data.
            self.is_expecting.store(true, Relaxed);
        } else if was_followed {
            self.received.store(0, Relaxed);
            self.expect_no_more(socket);
        }
        Ok(())
    }

    /// Returns the time of the datagram that was received last, and of the one that was sent last before it.
    pub(crate) fn take_stamps(&self, socket: &DeadlineSocket) -> PacketStamps {
        let received = self.received_stamp();
        PacketStamps {
            received,
            ..stamps::take_sent(socket.as_fd(), received)
        }
    }

    /// Returns the times of the datagram that was sent last.
    pub(crate) fn take_sent(&self, socket: &DeadlineSocket) -> PacketStamps {
        stamps::take_sent(socket.as_fd(), None)
    }

    /// Returns the time of the datagram that was received last.
    pub(crate) fn received_stamp(&self) -> Option<u64> {
        Some(self.received.load(Relaxed)).filter(|nanos| *nanos > 0)
    }

    /// Returns whether datagrams may come together, or with their times.
    #[inline]
    pub(crate) fn is_expecting(&self) -> bool {
        self.is_expecting.load(Relaxed)
    }

    /// Datagrams are about to come one behind the other.
    pub(crate) fn expect(&self, socket: &DeadlineSocket) {
        self.singles.store(0, Relaxed);
        if self.is_expecting() && !self.is_followed.load(Relaxed) || self.is_never.load(Relaxed) {
            return;
        }
        match setsockopt(socket, UdpGroSegment, &true) {
            Ok(()) => self.is_expecting.store(true, Relaxed),
            Err(_) => self.is_never.store(true, Relaxed),
        }
    }

    /// Receives what is there, or waits for it as `mode` says, and returns the address of the
    /// sender.
    pub(crate) fn receive(
        &self,
        socket: &DeadlineSocket,
        room: &mut [u8],
        mode: ReceiveMode,
    ) -> io::Result<(ReceivedTrain, Option<SocketAddr>)> {
        let flags = match mode {
            ReceiveMode::NonBlocking => MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC,
            ReceiveMode::Blocking => MsgFlags::MSG_TRUNC,
        };
        let mut control = cmsg_space!(i32, Timestamps);
        // Room for nothing is no room.
        control.resize(control.capacity(), 0);
        let mut pieces = [IoSliceMut::new(room)];
        let received =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut pieces, Some(&mut control), flags);
        let received = received.map_err(of_receiving)?;
        let mut size = None;
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::UdpGroSegments(bytes) => size = usize::try_from(bytes).ok(),
                ControlMessageOwned::ScmTimestampsns(times) => {
                    let nanos = stamps::software_nanos(&times).unwrap_or(0);
                    self.received.store(nanos, Relaxed);
                }
                _ => {}
            }
        }
        let (length, from) = (received.bytes, received.address);
        let size = size.filter(|size| *size > 0).unwrap_or(length);
        let came = ReceivedTrain { length, size };
        self.count(socket, came);
        Ok((came, from.as_ref().and_then(socket_address)))
    }

    fn count(&self, socket: &DeadlineSocket, came: ReceivedTrain) {
        if came.size < came.length || self.is_followed.load(Relaxed) {
            return self.singles.store(0, Relaxed);
        }
        let singles = self.singles.load(Relaxed) + 1;
        self.singles.store(singles, Relaxed);
        // What was put together before is not told apart any more: it is lost, as it may be anywhere. So few
        // come here that it is seldom.
        if singles >= SINGLE_MAX {
            self.expect_no_more(socket);
        }
    }

    /// Expects one datagram at a time again.
    fn expect_no_more(&self, socket: &DeadlineSocket) {
        if self.is_never.load(Relaxed) || setsockopt(socket, UdpGroSegment, &false).is_ok() {
            self.is_expecting.store(false, Relaxed);
        }
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            done => return done,
        }
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddrV4::new(v4.ip(), v4.port()).into());
    }
    let v6 = address.as_sockaddr_in6()?;
    let ip: Ipv6Addr = v6.ip();
    Some(SocketAddrV6::new(ip, v6.port(), v6.flowinfo(), v6.scope_id()).into())
}

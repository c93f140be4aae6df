//! A socket for datagrams past the kernel's stack, with one of the kernel's beside it for what is rare.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::headers::{
    EthernetEndpoint, FrameHeaderTemplate, HEADERS, HEADERS_OF_IP, ReceivedDatagram, UdpChecksum,
    read,
};
use crate::interface::{SocketRings, XdpInterface, call_to_send, lock};
use crate::kernel_socket::KernelSocket;
use crate::memory::{FRAME_CONTENT, FrameMemory};
use crate::neighbours::NeighbourCache;
use crate::netlink::NetlinkSocket;
use crate::privileges::check_privileges;
use crate::ring::{descriptor, piece};
use crate::train::{OutgoingDatagrams, ReceivedDatagrams};

/// In vain so often is the ring looked at before the kernel's socket is.
const LOOKS_AT_RING: u32 = 4;

/// So many frames come behind the last datagram that the kernel's socket received before it is looked at so seldom again:
/// until then more are expected there.
const FRAMES_BETWEEN: u32 = 64;

/// Datagrams of a message that go in frames where the kernel copies each. It makes a packet of its own of each, which takes
/// 1.2 us on a virtual Ethernet of processors of 2025; a longer message is there earlier if it goes in one piece.
const COPIED_MAX: u32 = 2;

/// Most frames that are looked at for one that is believed.
const FRAMES_AT_A_TIME: u32 = 64;

/// A socket for datagrams of UDP with frames that go past the kernel's stack (AF_XDP).
///
/// Beside it stands a socket of the kernel's with the same address. It reserves the port, is told of ports that
/// are closed, receives what the filter leaves to the kernel (parts of a datagram, for one), and sends what the
/// kernel has yet to find a way for. Any thread may send; one at a time receives.
#[derive(Debug)]
pub struct XdpSocket {
    interface: Arc<XdpInterface>,
    number: u32,
    /// This end. All frames are from it, and for it.
    here: EthernetEndpoint,
    peer: Option<SocketAddrV4>,
    checksum: UdpChecksum,
    prototype: FrameHeaderTemplate,
    rings: Arc<SocketRings>,
    neighbours: Mutex<NeighbourCache>,
    netlink: Mutex<NetlinkSocket>,
    kernel: KernelSocket,
    /// Readable when either of the sockets is.
    poller: OwnedFd,
    looks: AtomicU32,
    /// Frames that may come before nothing is expected at the kernel's socket.
    frames_until_rare: AtomicU32,
    is_shut: AtomicBool,
    counters: AtomicCounters,
}

#[derive(Debug, Default)]
struct AtomicCounters {
    sent: AtomicU64,
    sent_by_kernel: AtomicU64,
    received: AtomicU64,
    received_by_kernel: AtomicU64,
    dropped: AtomicU64,
}

/// Counts of datagrams by their path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XdpCounters {
    /// Went out past the kernel's stack.
    pub sent: u64,
    /// Went out by the kernel's socket.
    pub sent_by_kernel: u64,
    /// Came in past the kernel's stack.
    pub received: u64,
    /// Came in by the kernel's socket.
    pub received_by_kernel: u64,
    /// Frames that came in and were not believed, or not from the peer.
    pub dropped: u64,
}

impl XdpSocket {
    /// Opens a socket that sends to and receives from `peer` alone, datagrams that keep to `checksum`. Nothing is sent
    /// yet.
    ///
    /// # Errors
    /// `PermissionDenied`, with the capabilities that are lacking; `InvalidInput` if the way to the peer is no
    /// Ethernet; `ResourceBusy` if another process has the interface.
    pub fn connect(peer: SocketAddrV4, checksum: UdpChecksum) -> io::Result<Self> {
        check_privileges()?;
        let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let kernel = KernelSocket::open(anywhere, Some(peer), checksum)?;
        let mut netlink = NetlinkSocket::open()?;
        let interface = netlink.route(*peer.ip())?.interface;
        let interface = XdpInterface::get(interface, &mut netlink).map_err(|error| {
            let is_kind = error.kind() == io::ErrorKind::InvalidInput;
            match is_kind {
                true => no_ethernet(*peer.ip(), &error),
                false => error,
            }
        })?;
        Self::new(interface, kernel, Some(peer), checksum, netlink)
    }

    /// Opens a socket that receives from everybody at `at`, an address of one of this host's interfaces, what keeps to
    /// `checksum`; port 0 takes any free port.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `AddrInUse`; `AddrNotAvailable` if no interface has the address.
    pub fn bind(at: SocketAddrV4, checksum: UdpChecksum) -> io::Result<Self> {
        check_privileges()?;
        let mut netlink = NetlinkSocket::open()?;
        let interface = netlink.interface_of(*at.ip())?;
        let kernel = KernelSocket::open(at, None, checksum)?;
        let interface = XdpInterface::get(interface, &mut netlink)?;
        Self::new(interface, kernel, None, checksum, netlink)
    }

    fn new(
        interface: Arc<XdpInterface>,
        kernel: KernelSocket,
        peer: Option<SocketAddrV4>,
        checksum: UdpChecksum,
        netlink: NetlinkSocket,
    ) -> io::Result<Self> {
        let at = kernel.address()?;
        let mac = interface.mac;
        let here = EthernetEndpoint { mac, at };
        let (number, rings) = interface.open_socket(at)?;
        let poller = poll_both(&rings.socket, &kernel)?;
        Ok(Self {
            interface,
            number,
            here,
            peer,
            checksum,
            prototype: FrameHeaderTemplate::new(here),
            rings: Arc::new(rings),
            neighbours: Mutex::default(),
            netlink: Mutex::new(netlink),
            kernel,
            poller,
            looks: AtomicU32::new(0),
            frames_until_rare: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
            counters: AtomicCounters::default(),
        })
    }

    /// Returns the address of this socket, its real port included.
    pub fn address(&self) -> SocketAddrV4 {
        self.here.at
    }

    /// Returns the name of the interface that its frames go through.
    pub fn interface(&self) -> &str {
        &self.interface.name
    }

    /// Returns the bytes of data of the largest datagram that goes past the kernel in one frame: 1472 where the
    /// interface has the usual MTU of 1500, and never more than 1750. A larger one goes by the kernel.
    pub fn frame_data_max(&self) -> usize {
        let of_interface = (self.interface.mtu as usize).saturating_sub(HEADERS_OF_IP);
        of_interface.min(FRAME_CONTENT - HEADERS)
    }

    /// Returns the counts of datagrams so far.
    pub fn counters(&self) -> XdpCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        XdpCounters {
            sent: read(&self.counters.sent),
            sent_by_kernel: read(&self.counters.sent_by_kernel),
            received: read(&self.counters.received),
            received_by_kernel: read(&self.counters.received_by_kernel),
            dropped: read(&self.counters.dropped),
        }
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; `NotConnected`; what the system reports.
    #[inline]
    pub fn try_send(&self, data: &[u8]) -> io::Result<()> {
        self.send_to(data, self.peer.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send); `InvalidInput` for an address of IPv6.
    pub fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<()> {
        match to {
            SocketAddr::V4(to) => self.send_to(data, to),
            SocketAddr::V6(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Sends datagrams to the connected peer. Says of how many bytes those are that were sent, which are one at least.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send), if not even the first was sent.
    pub fn try_send_all(&self, all: OutgoingDatagrams<'_>) -> io::Result<usize> {
        let peer = self.peer.ok_or(io::ErrorKind::NotConnected)?;
        self.send_all_to(all, peer)
    }

    /// The same to `to`.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to), if not even the first was sent.
    pub fn try_send_all_to(&self, all: OutgoingDatagrams<'_>, to: SocketAddr) -> io::Result<usize> {
        match to {
            SocketAddr::V4(to) => self.send_all_to(all, to),
            SocketAddr::V6(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn send_all_to(&self, all: OutgoingDatagrams<'_>, to: SocketAddrV4) -> io::Result<usize> {
        let size = all.size.max(1);
        let is_long = self.interface.copies && all.message_datagrams > COPIED_MAX;
        if is_long && let Some(sent) = self.kernel.send_all(all.bytes, size, to) {
            sent?;
            self.count_sent_by_kernel(all.bytes.len().div_ceil(size));
            return Ok(all.bytes.len());
        }
        let mut sent = 0;
        for data in all.bytes.chunks(size) {
            match self.put(data, to) {
                Ok(()) => sent += data.len(),
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        call_to_send(&self.rings)?;
        Ok(sent)
    }

    #[inline]
    fn send_to(&self, data: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.put(data, to)?;
        call_to_send(&self.rings)
    }

    /// Puts a datagram where the kernel finds it when it is called; sends it at once if there is no way yet.
    #[inline]
    fn put(&self, data: &[u8], to: SocketAddrV4) -> io::Result<()> {
        if data.len() > self.frame_data_max() {
            return self.send_by_kernel(data, to);
        }
        let next = lock(&self.neighbours).next(*to.ip());
        match next {
            Some(mac) => self.put_frame(data, EthernetEndpoint { mac, at: to }),
            None => {
                self.send_by_kernel(data, to)?;
                self.ask_for(*to.ip())
            }
        }
    }

    #[inline]
    fn put_frame(&self, data: &[u8], to: EthernetEndpoint) -> io::Result<()> {
        let (interface, rings) = (&*self.interface, &*self.rings);
        let Some(mut frame) = interface.take_frame() else {
            call_to_send(rings)?;
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let room = interface.frames.bytes_mut(&mut frame);
        let Some(length) = self.prototype.toward(to).write(data, room) else {
            interface.return_frame(frame);
            return Err(Errno::MSGSIZE.into());
        };
        let entry = descriptor(FrameMemory::release(frame), length as u32);
        // The ring has room for all frames that may be on their way.
        lock(&rings.outgoing).put(entry);
        self.counters.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The kernel finds the way, cuts what is too long, and knows the peer's address on the Ethernet then.
    #[cold]
    fn send_by_kernel(&self, data: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.kernel.send(data, to)?;
        self.count_sent_by_kernel(1);
        Ok(())
    }

    fn count_sent_by_kernel(&self, datagrams: usize) {
        let counter = &self.counters.sent_by_kernel;
        counter.fetch_add(datagrams as u64, Ordering::Relaxed);
    }

    /// Asks the kernel for a peer's address on the Ethernet, which it may not have yet.
    #[cold]
    fn ask_for(&self, peer: Ipv4Addr) -> io::Result<()> {
        let mut netlink = lock(&self.netlink);
        let route = netlink.route(peer)?;
        // What leaves by another interface is the kernel's to send.
        if route.interface != self.interface.number() {
            return Ok(());
        }
        if let Some(next) = netlink.neighbour(route.interface, route.next)? {
            lock(&self.neighbours).learn(peer, next, route.next == peer);
        }
        Ok(())
    }

    /// Looks up to so many times whether a frame has come, without asking the system; once, if something is expected
    /// where the system has to be asked.
    #[inline]
    pub fn look(&self, times: u32) {
        let times = match self.expects_from_kernel() {
            true => times.min(1),
            false => times,
        };
        for _ in 0..times {
            if lock(&self.rings.incoming).has_entry() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Datagrams are about to come one behind the other: those that the kernel's socket receives come together from now
    /// on, if the kernel knows how.
    pub fn expect_many(&self) {
        self.kernel.join();
    }

    /// Returns whether something may come to the kernel's socket soon, as something has lately.
    #[inline]
    fn expects_from_kernel(&self) -> bool {
        self.frames_until_rare.load(Ordering::Relaxed) > 0
    }

    /// Receives one datagram that is there, or several that came together. The kernel's socket is not looked at every
    /// time, unless something has come there lately.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `ConnectionRefused` when a datagram met a closed port.
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        if let Some(received) = self.receive_frame(room) {
            return Ok(received);
        }
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        match looks.is_multiple_of(LOOKS_AT_RING) || self.expects_from_kernel() {
            true => self.receive_by_kernel(room),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// As [`try_recv`](Self::try_recv), when this socket was found to be readable: looks at both.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    pub fn try_recv_ready(&self, room: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        if let Some(received) = self.receive_frame(room) {
            return Ok(received);
        }
        match (self.receive_by_kernel(room), self.peer) {
            // Where no socket listens, the kernel does not say so.
            (Err(error), Some(peer))
                if error.kind() == io::ErrorKind::WouldBlock
                    && self.is_shut.load(Ordering::Relaxed) =>
            {
                Ok(ReceivedDatagrams::one(0, peer.into()))
            }
            (done, _) => done,
        }
    }

    #[inline]
    fn receive_frame(&self, room: &mut [u8]) -> Option<ReceivedDatagrams> {
        let frames = &self.interface.frames;
        for _ in 0..FRAMES_AT_A_TIME {
            let entry = lock(&self.rings.incoming).take()?;
            let (address, length) = piece(entry);
            let Some((frame, offset)) = frames.take_back(address) else {
                continue;
            };
            let bytes = frames.bytes(&frame);
            let bytes = bytes
                .get(offset..)
                .and_then(|rest| rest.get(..length as usize));
            let received = self.read(bytes.unwrap_or_default(), room);
            self.interface.refill(frame);
            if received.is_some() {
                return received;
            }
        }
        None
    }

    #[inline]
    fn read(&self, frame: &[u8], room: &mut [u8]) -> Option<ReceivedDatagrams> {
        let arrived = read(frame, self.here, self.checksum).ok();
        let arrived =
            arrived.filter(|arrived| self.peer.is_none_or(|peer| peer == arrived.from.at));
        let Some(ReceivedDatagram { from, data }) = arrived else {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        lock(&self.neighbours).heard(*from.at.ip(), from.mac);
        let copied = data.len().min(room.len());
        room[..copied].copy_from_slice(&data[..copied]);
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        let expected = self.frames_until_rare.load(Ordering::Relaxed);
        if expected > 0 {
            self.frames_until_rare
                .store(expected - 1, Ordering::Relaxed);
        }
        Some(ReceivedDatagrams::one(data.len(), from.at.into()))
    }

    fn receive_by_kernel(&self, room: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        if self.interface.needs_call_to_receive() {
            // What the driver has to say is in the ring.
            let _ = rustix::net::recv(&self.rings.socket, &mut [0; 0][..], RecvFlags::DONTWAIT);
        }
        let came = self.kernel.receive(room)?;
        let datagrams = came.length.div_ceil(came.size.max(1)).max(1) as u64;
        self.counters
            .received_by_kernel
            .fetch_add(datagrams, Ordering::Relaxed);
        self.frames_until_rare
            .store(FRAMES_BETWEEN, Ordering::Relaxed);
        Ok(came)
    }

    /// Wakes the thread that waits in a receive: it receives an empty datagram.
    ///
    /// # Errors
    /// `NotConnected` for a socket that was not connected.
    pub fn shutdown(&self) -> io::Result<()> {
        self.is_shut.store(true, Ordering::Relaxed);
        self.kernel.shutdown()
    }
}

fn no_ethernet(peer: Ipv4Addr, error: &io::Error) -> io::Error {
    let message = format!(
        "the way to {peer} is no Ethernet ({error}), which xdp:// goes over; on one host use shm:// \
         or lean+udp://, or udp:// for ONC RPC"
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn poll_both(one: &OwnedFd, other: &KernelSocket) -> io::Result<OwnedFd> {
    let poller = epoll::create(CreateFlags::CLOEXEC)?;
    let nobody = EventData::new_u64(0);
    epoll::add(&poller, one, nobody, EventFlags::IN)?;
    epoll::add(&poller, other, nobody, EventFlags::IN)?;
    Ok(poller)
}

impl AsFd for XdpSocket {
    /// Returns a descriptor that is readable when something has come, to be polled and nothing else.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl AsRawFd for XdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.poller.as_raw_fd()
    }
}

impl Drop for XdpSocket {
    fn drop(&mut self) {
        let rings = Arc::clone(&self.rings);
        self.interface
            .close_socket(self.number, self.here.at, rings);
    }
}

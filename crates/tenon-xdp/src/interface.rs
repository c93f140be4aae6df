//! What all sockets of a process at one interface share: the frames and their owners, the filter, and a place in it for
//! each.
//!
//! The kernel lets the sockets at one queue of an interface have frames from one piece of memory only. So
//! sockets of one process share it, and one process at a time has an interface.

use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, xdp_mmap_offsets, xdp_options,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags,
};
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::bpf::{self, BpfMap, BpfProgram, MapKind};
use crate::filter;
use crate::headers::MacAddress;
use crate::memory::{FrameHandle, FrameMemory};
use crate::netlink::{EthernetLink, NetlinkSocket};
use crate::privileges::explain;
use crate::ring::{RingConsumer, RingProducer, piece};

/// Sockets of a process at one interface.
pub(crate) const SOCKETS_MAX: u32 = 12;

/// Frames that wait for what comes in, for each socket. It is also the most that a socket keeps until it is read.
const RECEIVING: u32 = 256;

/// Frames that are on their way out.
const SENDING_MAX: u32 = 512;

/// Frames of an interface: 7 MiB, as systems commonly grant 8 MiB that cannot be paged out.
const FRAMES: u32 = SOCKETS_MAX * RECEIVING + SENDING_MAX;

const FILL_RING: u32 = FRAMES.next_power_of_two();
const COMPLETION_RING: u32 = (2 * SENDING_MAX).next_power_of_two();

/// The queue that sockets take frames from. What comes through another, the kernel takes.
const QUEUE: u16 = 0;

/// The kernel takes an interface back some time after the last socket there was closed: when it gets round to it.
const RELEASE: Duration = Duration::from_secs(5);
const RELEASE_STEP: Duration = Duration::from_millis(2);

/// Interfaces that are remembered before those are forgotten that the process has no more.
const REMEMBERED_MAX: usize = 64;

/// Filters run where frames become packets of the kernel's, and not in the driver.
const BEHIND_THE_DRIVER: u32 = 2;

/// Identifies an interface of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InterfaceIdentity {
    network: u64,
    interface: u32,
}

/// An interface that this process has.
#[derive(Debug)]
pub(crate) struct XdpInterface {
    identity: InterfaceIdentity,
    pub(crate) name: String,
    pub(crate) mac: MacAddress,
    pub(crate) mtu: u32,
    /// The kernel copies frames, as the card does not write and read them itself.
    pub(crate) copies: bool,
    pub(crate) frames: FrameMemory,
    /// Has the frames; receives nothing itself.
    owner: OwnedFd,
    pool: Mutex<FramePool>,
    places: Mutex<SocketNumbers>,
    by_place: BpfMap,
    sockets: BpfMap,
    _program: BpfProgram,
    /// The filter runs as long as it is there.
    _link: OwnedFd,
}

/// The frames by their owner: this process, or the kernel for receiving or for sending.
#[derive(Debug)]
struct FramePool {
    free: Vec<FrameHandle>,
    fill: RingProducer<1>,
    completions: RingConsumer<1>,
    /// Frames that wait for what comes in, or hold what was not read yet; and how many are to.
    receiving: u32,
    receiving_wanted: u32,
    /// Frames that the kernel sends.
    sending: u32,
}

/// The numbers of sockets.
#[derive(Debug, Default)]
struct SocketNumbers {
    taken: [bool; SOCKETS_MAX as usize],
    /// Sockets that are gone: the kernel may still have been putting something in.
    retired: Vec<Arc<SocketRings>>,
}

/// A socket and its rings.
#[derive(Debug)]
pub(crate) struct SocketRings {
    pub(crate) socket: OwnedFd,
    pub(crate) incoming: Mutex<RingConsumer<2>>,
    pub(crate) outgoing: Mutex<RingProducer<2>>,
}

static INTERFACES: Mutex<Vec<(InterfaceIdentity, Weak<XdpInterface>)>> = Mutex::new(Vec::new());

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the network that the calling thread is in.
fn network() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|file| file.ino())
}

impl XdpInterface {
    /// Returns the interface of this number in the network of the calling thread.
    ///
    /// # Errors
    /// `InvalidInput` if it is no Ethernet; `ResourceBusy` if another process has it; `PermissionDenied`.
    pub(crate) fn get(number: u32, netlink: &mut NetlinkSocket) -> io::Result<Arc<Self>> {
        let identity = InterfaceIdentity {
            network: network()?,
            interface: number,
        };
        let mut interfaces = lock(&INTERFACES);
        let found = interfaces.iter().find(|(is, _)| *is == identity);
        let had = found.map(|(_, interface)| interface.upgrade());
        if let Some(Some(interface)) = had {
            return Ok(interface);
        }
        // One that this process had a moment ago may still be on its way out.
        let patience = match had {
            Some(_) => RELEASE,
            None => Duration::ZERO,
        };
        let interface = Arc::new(Self::open(identity, netlink, patience)?);
        // Those that are gone are remembered, as they may be on their way out.
        interfaces.retain(|(is, _)| *is != identity);
        if interfaces.len() >= REMEMBERED_MAX {
            interfaces.retain(|(_, interface)| interface.strong_count() > 0);
        }
        interfaces.push((identity, Arc::downgrade(&interface)));
        Ok(interface)
    }

    fn open(
        identity: InterfaceIdentity,
        netlink: &mut NetlinkSocket,
        patience: Duration,
    ) -> io::Result<Self> {
        let link = netlink.link(identity.interface)?;
        let by_place = BpfMap::new(MapKind::Hash, filter::KEY, SOCKETS_MAX)
            .map_err(|error| explain(error, "to make a map for the filter"))?;
        let sockets = BpfMap::new(MapKind::Sockets, 4, SOCKETS_MAX)
            .map_err(|error| explain(error, "to make a map for sockets"))?;
        let code = filter::program(by_place.descriptor(), sockets.descriptor());
        let program =
            BpfProgram::load(&code).map_err(|error| explain(error, "to load the filter"))?;
        let filtered = while_busy(patience, || run_filter(&program, identity.interface, &link))?;
        let (owner, frames, pool) = open_owner(identity.interface)
            .map_err(|error| explain(error, &format!("to share memory with {}", link.name)))?;
        let copies = !xdp_options(&owner)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(Self {
            identity,
            name: link.name,
            mac: link.mac,
            mtu: link.mtu,
            copies,
            frames,
            owner,
            pool: Mutex::new(pool),
            places: Mutex::new(SocketNumbers::default()),
            by_place,
            sockets,
            _program: program,
            _link: filtered,
        })
    }

    pub(crate) fn number(&self) -> u32 {
        self.identity.interface
    }

    /// Opens a socket that has the frames for `at` from now on. Its number says which it is.
    pub(crate) fn open_socket(&self, at: SocketAddrV4) -> io::Result<(u32, SocketRings)> {
        let mut places = lock(&self.places);
        self.clear(&mut places);
        let free = places.taken.iter().position(|taken| !taken);
        let Some(place) = free else {
            let message = format!("{} has {SOCKETS_MAX} sockets of this process", self.name);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        };
        let number = place as u32;
        let rings = self.open_rings()?;
        let value = bpf::value_of(rings.socket.as_fd());
        self.sockets.insert(&number.to_ne_bytes(), value)?;
        self.by_place.insert(&filter::key(at, QUEUE), number)?;
        places.taken[place] = true;
        self.want_frames(RECEIVING as i32);
        Ok((number, rings))
    }

    /// Closes a socket.
    pub(crate) fn close_socket(&self, number: u32, at: SocketAddrV4, rings: Arc<SocketRings>) {
        // What is not there any more need not be taken out.
        let _ = self.by_place.remove(&filter::key(at, QUEUE));
        let _ = self.sockets.remove(&number.to_ne_bytes());
        let mut places = lock(&self.places);
        self.clear(&mut places);
        places.retired.push(rings);
        if let Some(taken) = places.taken.get_mut(number as usize) {
            *taken = false;
        }
        self.want_frames(-(RECEIVING as i32));
    }

    fn open_rings(&self) -> io::Result<SocketRings> {
        let socket = open_socket()?;
        set_xdp_rx_ring_size(&socket, RECEIVING)?;
        set_xdp_tx_ring_size(&socket, SENDING_MAX)?;
        let offsets = xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let incoming = RingConsumer::map(fd, XDP_PGOFF_RX_RING, &offsets.rx, RECEIVING)?;
        let outgoing = RingProducer::map(fd, XDP_PGOFF_TX_RING, &offsets.tx, SENDING_MAX)?;
        let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
        let address = SocketAddrXdpWithSharedUmem {
            addr: SocketAddrXdp::new(flags, self.identity.interface, QUEUE.into()),
            shared_umem_fd: self.owner.as_fd(),
        };
        net::bind(&socket, &address)?;
        Ok(SocketRings {
            socket,
            incoming: Mutex::new(incoming),
            outgoing: Mutex::new(outgoing),
        })
    }

    /// Takes back the frames of sockets that are gone.
    fn clear(&self, places: &mut SocketNumbers) {
        for rings in places.retired.drain(..) {
            let _ = call_to_send(&rings);
            let mut incoming = lock(&rings.incoming);
            while let Some(entry) = incoming.take() {
                self.put_back(entry);
            }
        }
    }

    /// Returns a frame to send, if there is one.
    #[inline]
    pub(crate) fn take_frame(&self) -> Option<FrameHandle> {
        let mut pool = lock(&self.pool);
        pool.take_back_sent(&self.frames);
        if pool.sending >= SENDING_MAX {
            return None;
        }
        let frame = pool.free.pop()?;
        pool.sending += 1;
        Some(frame)
    }

    /// Takes a frame back that was to be sent and is not.
    pub(crate) fn return_frame(&self, frame: FrameHandle) {
        let mut pool = lock(&self.pool);
        pool.sending -= 1;
        pool.free.push(frame);
    }

    /// Lets the kernel have a frame again that something had come in.
    fn put_back(&self, entry: [u64; 2]) {
        if let Some((frame, _)) = self.frames.take_back(piece(entry).0) {
            self.refill(frame);
        }
    }

    /// As [`put_back`](Self::put_back).
    #[inline]
    pub(crate) fn refill(&self, frame: FrameHandle) {
        let mut pool = lock(&self.pool);
        pool.receiving -= 1;
        pool.free.push(frame);
        pool.fill();
    }

    /// Returns whether the kernel has to be called to look for frames that it may fill.
    pub(crate) fn needs_call_to_receive(&self) -> bool {
        lock(&self.pool).fill.needs_call()
    }

    fn want_frames(&self, more: i32) {
        let mut pool = lock(&self.pool);
        pool.receiving_wanted = pool.receiving_wanted.saturating_add_signed(more);
        pool.fill();
    }
}

impl FramePool {
    /// Gives the kernel frames for what comes in, until it has as many as are wanted.
    #[inline]
    fn fill(&mut self) {
        while self.receiving < self.receiving_wanted {
            let Some(frame) = self.free.pop() else { return };
            // The ring has room for all frames that there are.
            self.fill.put([FrameMemory::release(frame)]);
            self.receiving += 1;
        }
    }

    /// Takes back what has been sent.
    #[inline]
    fn take_back_sent(&mut self, frames: &FrameMemory) {
        while let Some([address]) = self.completions.take() {
            if let Some((frame, _)) = frames.take_back(address) {
                self.free.push(frame);
                self.sending -= 1;
            }
        }
    }
}

/// Does what fails as long as something is busy, until it works or patience ends.
fn while_busy<T>(patience: Duration, mut body: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match body() {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline =>
            {
                thread::sleep(RELEASE_STEP);
            }
            done => return done,
        }
    }
}

/// Has the filter run at an interface: in the driver if it can, otherwise behind it. The driver of an interface
/// without a card only copies what it hands to a filter: a round trip takes 3.6 us so, and 2.7 us behind it.
fn run_filter(program: &BpfProgram, interface: u32, link: &EthernetLink) -> io::Result<OwnedFd> {
    let name = &link.name;
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::ResourceBusy => {
            let message =
                format!("{name} has a filter already: one process at a time can have an interface");
            io::Error::new(io::ErrorKind::ResourceBusy, message)
        }
        _ => explain(error, &format!("to have the filter run at {name}")),
    };
    if link.is_virtual {
        return program.link(interface, BEHIND_THE_DRIVER).map_err(refused);
    }
    match program.link(interface, 0) {
        Ok(link) => Ok(link),
        Err(error) if is_final(error.kind()) => Err(refused(error)),
        Err(error) => {
            tracing::debug!(%error, name, "the driver does not run filters");
            program.link(interface, BEHIND_THE_DRIVER).map_err(refused)
        }
    }
}

fn is_final(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ResourceBusy | io::ErrorKind::PermissionDenied
    )
}

fn open_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::XDP, SocketType::RAW);
    net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(|error| match error {
        Errno::AFNOSUPPORT => {
            let message = "this system's kernel has no AF_XDP (CONFIG_XDP_SOCKETS)";
            io::Error::new(io::ErrorKind::Unsupported, message)
        }
        error => explain(error.into(), "to open an AF_XDP socket"),
    })
}

/// Opens the socket that has the frames of an interface.
fn open_owner(interface: u32) -> io::Result<(OwnedFd, FrameMemory, FramePool)> {
    let (frames, free) = FrameMemory::new(FRAMES)?;
    let owner = open_socket()?;
    frames.register(&owner)?;
    set_xdp_umem_fill_ring_size(&owner, FILL_RING)?;
    set_xdp_umem_completion_ring_size(&owner, COMPLETION_RING)?;
    // A socket without a ring of its own is none.
    set_xdp_rx_ring_size(&owner, 1)?;
    let offsets = xdp_mmap_offsets(&owner)?;
    let fd = owner.as_fd();
    let pool = FramePool {
        free,
        fill: RingProducer::map(fd, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, FILL_RING)?,
        completions: RingConsumer::map(
            fd,
            XDP_UMEM_PGOFF_COMPLETION_RING,
            &offsets.cr,
            COMPLETION_RING,
        )?,
        receiving: 0,
        receiving_wanted: 0,
        sending: 0,
    };
    let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    let bind = |flags| net::bind(&owner, &SocketAddrXdp::new(flags, interface, QUEUE.into()));
    // The filter runs, so no process has the interface; but the kernel takes its time to take it from the one that had.
    while_busy(RELEASE, || match bind(flags) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(Errno::BUSY.into()),
        // A driver may promise to use our frames itself, and not be able to.
        Err(_) => Ok(bind(flags | SocketAddrXdpFlags::XDP_COPY)?),
    })?;
    Ok((owner, frames, pool))
}

/// Has the kernel send what is in the ring.
pub(crate) fn call_to_send(rings: &SocketRings) -> io::Result<()> {
    // It takes 32 frames a call.
    for _ in 0..=SENDING_MAX / 32 {
        match net::send(&rings.socket, &[], SendFlags::DONTWAIT) {
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN) if lock(&rings.outgoing).pending() > 0 => {}
            // It goes out with the next call.
            Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

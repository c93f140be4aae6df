//! How two processes come by a segment: the client connects to a Unix socket, each says hello, and
//! with its hello the server hands over the memory and one end of a second socket.
//!
//! Neither waits for the other to begin, so nothing takes longer than connecting does. The server hands over what it
//! made itself and takes nothing in return; it need not trust any descriptor of a client's. The client looks at what it
//! got before it uses it. Both sockets stay: the first is the sign that the peer lives and the notifier that wakes its
//! receiver, the second wakes its sender.
//!
//! Sockets are the notifiers, and not eventfds, because an eventfd belongs to both: the peer could fill it and make
//! it blocking, and the end that notifies would sleep for ever. Whether a socket may block is said with each call.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::end::{ConnectionRole, RingEndpoint};
use crate::hello::{self, HELLO, HelloError, JoinRefusal};
use crate::layout::Sizes;
use crate::segment::{Segment, SegmentError};

/// Descriptors that a server hands over: the memory and the notifier.
const HANDED: usize = 2;

/// Descriptors that there is room for, so that too many are noticed.
const HANDED_MAX: usize = 8;

/// One end of a connection, ready for use.
#[derive(Debug)]
pub struct Joined {
    /// The rings.
    pub end: RingEndpoint<Segment>,
    /// The socket that wakes the peer's sender, and is written to, to wake the own one.
    pub notifier: OwnedFd,
}

/// Why there is no connection to a server that was reached.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The peer said something else than hello.
    #[error("the peer: {0}")]
    Hello(#[from] HelloError),
    /// The peer handed over something else than memory and a notifier.
    #[error("the peer handed over {0} descriptors and not 2")]
    Handed(usize),
    /// The descriptor in the notifier's place is none.
    #[error("the peer handed over a notifier that is no Unix socket")]
    Notifier,
    /// The descriptor in the memory's place is no memory that can be used.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The peer closed the connection without a word.
    #[error(
        "the peer closed it without an offer of shared memory; if it is no shm:// server, connect to unix://"
    )]
    Closed,
    /// The peer has not said anything in time.
    #[error(
        "the peer has not answered in time: it is stopped or busy, or is no shm:// server and waits for a call"
    )]
    Late,
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for JoinError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Makes a segment and hands it over to the client that has connected through `socket`, without waiting
/// for anything. The receiver of the end that comes back sleeps.
///
/// # Errors
/// The system is out of something; `BrokenPipe` or `ConnectionReset` if the client is gone.
pub fn invite(socket: BorrowedFd<'_>, sizes: Sizes) -> io::Result<Joined> {
    let (segment, file) = Segment::create(sizes.segment())?;
    let end = RingEndpoint::new(segment, sizes, ConnectionRole::Server);
    end.park_receiver();
    let (notifier, its_notifier) = net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let hello = hello::of_server(sizes);
    let handed = [file.as_fd(), its_notifier.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&handed)) {
        unreachable!("the space is that of so many descriptors");
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = retry_on_intr(|| net::sendmsg(socket, &[IoSlice::new(&hello)], &mut beside, flags))?;
    match sent == hello.len() {
        true => Ok(Joined { end, notifier }),
        // A socket that nothing was sent through takes more than that.
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Tells the client that has connected through `socket` that it may not, if that can be said at once.
pub fn refuse(socket: BorrowedFd<'_>, why: JoinRefusal) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // A client that is gone need not be told.
    let _ = net::send(socket, &hello::of_refusal(why), flags);
}

/// Bytes of a client's hello that have come so far.
#[derive(Debug, Default)]
pub struct HelloBuffer {
    bytes: [u8; HELLO],
    length: usize,
}

impl HelloBuffer {
    /// Takes in what has come through `socket`, without waiting. Says whether the hello is complete.
    ///
    /// # Errors
    /// `InvalidData` if it is none; `UnexpectedEof` if the client is gone.
    pub fn take_in(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let room = &mut self.bytes[self.length..];
        let received = match retry_on_intr(|| net::recv(socket, &mut *room, RecvFlags::DONTWAIT)) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, received)) => received,
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        self.length += received;
        self.judge()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn judge(&self) -> Result<bool, HelloError> {
        hello::may_be(&self.bytes[..self.length])?;
        match self.length == HELLO {
            true => hello::from_client(&self.bytes).map(|()| true),
            false => Ok(false),
        }
    }
}

/// Says hello through `socket`, which has been connected to a server, and takes over what the server hands
/// over, waiting for it until `deadline`.
///
/// # Errors
/// The server refuses, or is none, or hands over what cannot be used; `TimedOut` at the deadline.
pub fn join(socket: BorrowedFd<'_>, deadline: Instant) -> Result<Joined, JoinError> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // A server that has refused may be gone already; what it said can still be read.
    let _ = retry_on_intr(|| net::send(socket, &hello::of_client(), flags));
    let (sizes, handed) = receive_hello(socket, deadline)?;
    let [file, notifier] =
        <[OwnedFd; HANDED]>::try_from(handed).map_err(|handed| JoinError::Handed(handed.len()))?;
    if !is_unix_stream(notifier.as_fd()) {
        return Err(JoinError::Notifier);
    }
    let segment = Segment::open(file.as_fd(), sizes.segment())?;
    let end = RingEndpoint::new(segment, sizes, ConnectionRole::Client);
    Ok(Joined { end, notifier })
}

/// Returns whether waiting for `fd` and sending through it is waiting for and sending through a socket.
fn is_unix_stream(fd: BorrowedFd<'_>) -> bool {
    socket_domain(fd) == Ok(AddressFamily::UNIX) && socket_type(fd) == Ok(SocketType::STREAM)
}

/// Receives the hello of a server and what it hands over with it.
fn receive_hello(
    socket: BorrowedFd<'_>,
    deadline: Instant,
) -> Result<(Sizes, Vec<OwnedFd>), JoinError> {
    let mut hello = [0; HELLO];
    let mut handed = Vec::new();
    let mut length = 0;
    while length < HELLO {
        wait_for_bytes(socket, deadline)?;
        let received = match receive_with_descriptors(socket, &mut hello[length..], &mut handed) {
            Err(Errno::AGAIN) => continue,
            Err(Errno::CONNRESET) | Ok(0) => return Err(JoinError::Closed),
            done => done?,
        };
        length += received;
        hello::may_be(&hello[..length])?;
        if handed.len() > HANDED {
            return Err(JoinError::Handed(handed.len()));
        }
    }
    Ok((hello::from_server(&hello)?, handed))
}

fn receive_with_descriptors(
    socket: BorrowedFd<'_>,
    room: &mut [u8],
    handed: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| {
        net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut *room)],
            &mut beside,
            flags,
        )
    })?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            handed.extend(descriptors);
        }
    }
    // What did not fit is closed by the kernel, and is too much anyhow.
    match received.flags.contains(ReturnFlags::CTRUNC) {
        true => Err(Errno::TOOMANYREFS),
        false => Ok(received.bytes),
    }
}

fn wait_for_bytes(socket: BorrowedFd<'_>, deadline: Instant) -> Result<(), JoinError> {
    let mut polled = [PollFd::new(&socket, PollFlags::IN)];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(JoinError::Late);
        }
        // Rounded up, so that the last turn does not spin.
        let limit = Timespec::try_from(left + Duration::from_micros(1)).ok();
        match poll(&mut polled, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

//! A connection with its bytes in shared memory: what its threads wait for, and how its end is noticed. The memory
//! itself is the business of [`tenon_shm`].

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{self, RecvFlags, Shutdown};
use tenon_shm::{HelloBuffer, JoinError, Joined, RingEndpoint, RingViolation, Segment};
pub(crate) use tenon_shm::{JoinRefusal, Sizes as RingSizes, refuse};

use super::socket::{DeadlineSocket, connect_path, flags, is_out_of_descriptors};
use super::user::User;
use crate::Address;
use crate::socket::{Ready, poll_until};

/// Looks in vain after which the socket is looked at: a peer that was killed cannot have said so in the memory.
const LOOKS_MAX: u32 = 1 << 17;

/// Looks for room before the sender sleeps: some ten microseconds. A peer that is at it empties a quarter of
/// the ring in less, and waking up takes as long.
const LOOKS_FOR_ROOM: u32 = 256;

/// As many as there are where they mostly were in vain, as the peer waits for this processor for example.
const LOOKS_FOR_ROOM_LEAST: u32 = 8;

/// Notifications that are taken in at a time, of a peer that notifies as it should.
const NOTIFICATIONS: usize = 64;

/// As many of a peer that notifies for nothing, which may put very many into the socket at once.
const NOTIFICATIONS_IN_VAIN: usize = 16 << 10;

/// Receives of [`ShmStream::refresh`] at most: a peer that notifies without end must not keep it for ever. A peer that
/// has gone cannot have left so many notifications, as its socket does not hold them.
const REFRESH_RECEIVES_MAX: usize = 1024;

/// Deviations from a connection's normal state, a bit each.
mod unusual {
    /// The client has not said hello yet.
    pub const NO_HELLO: u32 = 1;
    /// The peer was told that the receiver sleeps.
    pub const PARKED: u32 = 1 << 1;
    /// Nothing more is to be received but what is there.
    pub const NO_RECEIVING: u32 = 1 << 2;
    /// Nothing more is to be sent.
    pub const NO_SENDING: u32 = 1 << 3;
    /// The peer is gone.
    pub const GONE: u32 = 1 << 4;
    /// The peer broke the rules.
    pub const BROKEN: u32 = 1 << 5;

    /// Bits that concern the receiving thread.
    pub const IN_RECEIVING: u32 = NO_HELLO | PARKED | NO_RECEIVING | GONE | BROKEN;
    /// Bits that end all waiting for bytes.
    pub const ENDS_RECEIVING: u32 = NO_RECEIVING | GONE | BROKEN;
    /// Bits that concern the sending thread, and end all waiting for room.
    pub const ENDS_SENDING: u32 = NO_SENDING | GONE | BROKEN;
}

/// A connection in shared memory. Threads may send and receive at the same time; one thread at a
/// time does either.
#[derive(Debug)]
pub(crate) struct ShmStream {
    end: RingEndpoint<Segment>,
    unusual: AtomicU32,
    /// Looks in vain since the socket was looked at.
    looks: AtomicU32,
    /// Looks for room before the sender sleeps.
    looks_for_room: AtomicU32,
    /// The sign that the peer lives, and the notifier that wakes the receiving thread.
    socket: DeadlineSocket,
    /// The notifier that wakes the sending thread.
    room: DeadlineSocket,
    peer: User,
    greeting: Mutex<HelloBuffer>,
    violation: OnceLock<String>,
}

/// A connection in the place where its owner has it.
pub(crate) type ShmConnection = Box<ShmStream>;

impl ShmStream {
    /// Connects to the server whose Unix socket is at `path`, and takes over what it hands over.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        Self::join(connect_path(path, deadline)?, deadline)
    }

    fn join(socket: DeadlineSocket, deadline: Instant) -> io::Result<Self> {
        let joined = tenon_shm::join(socket.as_fd(), deadline).map_err(not_joined)?;
        Self::new(socket, joined, 0)
    }

    /// Hands memory over to the client that is connected through `fd`. If no descriptors are left for that, the client
    /// is told.
    pub(crate) fn invite(fd: OwnedFd, sizes: RingSizes) -> io::Result<Self> {
        let joined = tenon_shm::invite(fd.as_fd(), sizes).inspect_err(|error| {
            if is_out_of_descriptors(error) {
                refuse(fd.as_fd(), JoinRefusal::Busy);
            }
        })?;
        let unusual = unusual::NO_HELLO | unusual::PARKED;
        Self::new(DeadlineSocket::from(fd), joined, unusual)
    }

    fn new(socket: DeadlineSocket, joined: Joined, unusual: u32) -> io::Result<Self> {
        Ok(Self {
            end: joined.end,
            unusual: AtomicU32::new(unusual),
            looks: AtomicU32::new(0),
            looks_for_room: AtomicU32::new(LOOKS_FOR_ROOM),
            peer: User::at(socket.as_fd())?,
            socket,
            room: DeadlineSocket::from(joined.notifier),
            greeting: Mutex::default(),
            violation: OnceLock::new(),
        })
    }

    /// Returns the user of the peer's process when it connected or listened.
    pub(crate) fn user(&self) -> User {
        self.peer
    }

    /// As [`Stream::try_send`](crate::Stream::try_send).
    #[inline]
    pub(crate) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.may_send()?;
        let sent = self.end.send(bytes, || notify(&self.socket));
        self.sent(sent, bytes.is_empty())
    }

    /// As [`Stream::try_send_pieces`](crate::Stream::try_send_pieces).
    pub(crate) fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.may_send()?;
        let sent = self.end.send_pieces(pieces, || notify(&self.socket));
        self.sent(sent, pieces.iter().all(|piece| piece.is_empty()))
    }

    #[inline]
    fn may_send(&self) -> io::Result<()> {
        let is_usual = self.unusual() & unusual::ENDS_SENDING == 0;
        match is_usual && !self.end.peer_receives_nothing() {
            true => Ok(()),
            false => Err(self.cannot_send()),
        }
    }

    #[cold]
    fn cannot_send(&self) -> io::Error {
        match self.violation.get() {
            Some(violation) => broken(violation),
            None => io::ErrorKind::BrokenPipe.into(),
        }
    }

    #[inline]
    fn sent(&self, sent: Result<usize, RingViolation>, is_empty: bool) -> io::Result<usize> {
        match sent {
            Ok(0) if !is_empty => Err(io::ErrorKind::WouldBlock.into()),
            Ok(sent) => Ok(sent),
            Err(violation) => Err(self.break_off(violation)),
        }
    }

    /// As [`Stream::try_recv`](crate::Stream::try_recv).
    #[inline]
    pub(crate) fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        if self.unusual() & unusual::IN_RECEIVING != 0 {
            return self.try_recv_unusually(room);
        }
        match self.receive(room)? {
            0 => self.nothing_came(room),
            received => Ok(received),
        }
    }

    /// As [`Stream::look`](crate::Stream::look).
    #[inline]
    pub(crate) fn look(&self, times: u32) {
        if !self.end.look(times) {
            let looks = self.looks.load(Ordering::Relaxed).wrapping_add(times);
            self.looks.store(looks, Ordering::Relaxed);
        }
    }

    #[inline]
    fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        let received = self.end.receive(room, || notify(&self.room));
        received.map_err(|violation| self.break_off(violation))
    }

    /// Decides what a receive returns when nothing is there.
    #[inline]
    fn nothing_came(&self, room: &mut [u8]) -> io::Result<usize> {
        if self.end.peer_sends_nothing() {
            // What it sent last may have come since.
            return self.receive(room);
        }
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        if looks >= LOOKS_MAX {
            self.looks.store(0, Ordering::Relaxed);
            self.take_in_notifications();
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    #[cold]
    fn try_recv_unusually(&self, room: &mut [u8]) -> io::Result<usize> {
        if let Some(violation) = self.violation.get() {
            return Err(broken(violation));
        }
        if self.has(unusual::NO_HELLO) && !self.take_in_hello()? {
            return match self.has(unusual::ENDS_RECEIVING) {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        if self.has(unusual::PARKED) {
            self.unpark();
            self.take_in_notifications();
        }
        match self.receive(room)? {
            0 if self.has(unusual::ENDS_RECEIVING) => Ok(0),
            0 => self.nothing_came(room),
            received => Ok(received),
        }
    }

    /// Takes in what has come of the client's hello; says whether it is complete.
    fn take_in_hello(&self) -> io::Result<bool> {
        let mut greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner);
        match greeting.take_in(self.socket.as_fd()) {
            Ok(true) => self.unset(unusual::NO_HELLO),
            Ok(false) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(self.break_off(format_args!("the peer: {error}")));
            }
            Err(_) => {
                self.set(unusual::GONE);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Empties the socket, which may say that the peer is gone.
    #[cold]
    fn take_in_notifications(&self) {
        if !self.has(unusual::NO_HELLO) {
            self.heard(try_take_in(&self.socket));
        }
    }

    /// Notes the result of receiving notifications.
    fn heard(&self, notifications: io::Result<usize>) {
        match notifications {
            // That is how a socket that is shut down here reads, too.
            Ok(0) if self.has(unusual::NO_RECEIVING) => {}
            Ok(0) => self.set(unusual::GONE),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.set(unusual::GONE),
        }
    }

    /// As [`Stream::recv_until`](crate::Stream::recv_until).
    pub(crate) fn recv_until(&self, room: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let mut was_woken = false;
        loop {
            match self.try_recv(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            // A peer that goes on ringing for nothing would keep this thread for ever.
            if was_woken && Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            was_woken = true;
            let slept = self.sleep(|notifications, peek| {
                let receive = |mode| self.socket.recv_with(notifications, peek | flags(mode));
                self.socket.receive_until(deadline.into(), receive)
            });
            if let Err(late) = slept {
                return match self.try_recv(room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(late),
                    done => done,
                };
            }
        }
    }

    /// As [`Stream::recv_within`](crate::Stream::recv_within).
    pub(crate) fn recv_within(&self, room: &mut [u8], limit: Duration) -> io::Result<usize> {
        match self.try_recv(room) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        self.socket.give_up_after(limit)?;
        self.sleep(
            |notifications, flags| match self.socket.recv_with(notifications, flags) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(notifications.len()),
                heard => heard,
            },
        )?;
        self.try_recv(room)
    }

    /// Sleeps until a notification comes, if nothing has come.
    ///
    /// # Errors
    /// `TimedOut` if that is what `sleep` reports.
    fn sleep(
        &self,
        sleep: impl FnOnce(&mut [u8], RecvFlags) -> io::Result<usize>,
    ) -> io::Result<()> {
        if !self.park() {
            return Ok(());
        }
        // A hello stays in the socket for the receive that knows it.
        let flags = match self.has(unusual::NO_HELLO) {
            true => RecvFlags::PEEK,
            false => RecvFlags::empty(),
        };
        let woken = sleep(&mut [0; NOTIFICATIONS], flags);
        self.unpark();
        let woken = match woken {
            Ok(NOTIFICATIONS) if flags.is_empty() => take_in_more(&self.socket),
            woken => woken,
        };
        match woken {
            Err(error) if crate::is_deadline(&error) => Err(error),
            heard => {
                self.heard(heard);
                Ok(())
            }
        }
    }

    /// Says that this end does not receive before the descriptor is readable. Returns whether that will be: not if
    /// there is something to receive already.
    pub(crate) fn park(&self) -> bool {
        if self.has(unusual::ENDS_RECEIVING) {
            return false;
        }
        let is_empty = self.end.park_receiver();
        self.set(unusual::PARKED);
        // Before its hello nothing is received of a client, whatever it has sent.
        if is_empty || self.has(unusual::NO_HELLO) {
            return true;
        }
        self.unpark();
        false
    }

    fn unpark(&self) {
        self.unset(unusual::PARKED);
        self.end.unpark_receiver();
    }

    /// Looks whether the peer is gone. That is known at the end of the socket, behind the hello and the notifications
    /// of the peer, so these are taken in, all that a socket holds.
    pub(crate) fn refresh(&self) {
        if self.has(unusual::NO_HELLO) && !matches!(self.take_in_hello(), Ok(true)) {
            // The next receive goes on with the hello, or reports what is wrong with it.
            return;
        }
        for _ in 0..REFRESH_RECEIVES_MAX {
            let taken = try_take_in(&self.socket);
            let may_have_more = matches!(taken, Ok(1..));
            self.heard(taken);
            if !may_have_more {
                return;
            }
        }
    }

    /// As [`Stream::wait`](crate::Stream::wait).
    pub(crate) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        if wanted.writable && self.look_for_room() {
            return Ok(Ready {
                readable: wanted.readable && self.end.has_bytes(),
                writable: true,
            });
        }
        loop {
            let ready = Ready {
                readable: wanted.readable && !self.park(),
                writable: wanted.writable && !self.park_sender(),
            };
            let waited = match ready == Ready::default() {
                true => self
                    .wait_for_notifications(wanted, deadline)
                    .map(|()| ready),
                false => Ok(ready),
            };
            if wanted.readable {
                self.unpark();
            }
            if wanted.writable {
                self.end.unpark_sender();
            }
            let heard_hello = self.has(unusual::NO_HELLO) && wanted.readable;
            match waited? {
                ready if ready != Ready::default() => return Ok(ready),
                // It is for the receiving thread.
                _ if heard_hello => {
                    return Ok(Ready {
                        readable: true,
                        writable: false,
                    });
                }
                _ => {}
            }
        }
    }

    /// Looks for a moment whether there is room, and says whether there is.
    fn look_for_room(&self) -> bool {
        let looks = self.looks_for_room.load(Ordering::Relaxed);
        let has_room = self.end.look_for_room(looks);
        let looks = match has_room {
            true => LOOKS_FOR_ROOM,
            false => LOOKS_FOR_ROOM_LEAST.max(looks / 2),
        };
        self.looks_for_room.store(looks, Ordering::Relaxed);
        has_room
    }

    /// As [`Stream::park_sender`](crate::Stream::park_sender).
    pub(crate) fn park_sender(&self) -> bool {
        !self.has(unusual::ENDS_SENDING) && self.end.park_sender()
    }

    fn wait_for_notifications(&self, wanted: Ready, deadline: Instant) -> io::Result<()> {
        let flags = |is_wanted| match is_wanted {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        let socket = PollFd::new(&self.socket, flags(wanted.readable));
        let room = PollFd::new(&self.room, flags(wanted.writable));
        match (wanted.readable, wanted.writable) {
            (true, false) => poll_until(&mut [socket], deadline)?,
            // The other socket may be shut down here, and would then seem to say something.
            (false, _) => poll_until(&mut [room], deadline)?,
            (true, true) => poll_until(&mut [socket, room], deadline)?,
        }
        if wanted.readable {
            self.take_in_notifications();
        }
        if wanted.writable {
            self.take_in_room();
        }
        Ok(())
    }

    /// As [`Stream::take_in_room`](crate::Stream::take_in_room).
    pub(crate) fn take_in_room(&self) {
        match try_take_in(&self.room) {
            Ok(0) => self.set(unusual::GONE),
            taken => self.heard(taken),
        }
    }

    /// As [`Stream::room_notifier`](crate::Stream::room_notifier).
    pub(crate) fn room_notifier(&self) -> io::Result<OwnedFd> {
        self.room.as_fd().try_clone_to_owned()
    }

    /// As [`Stream::shutdown_send`](crate::Stream::shutdown_send).
    pub(crate) fn shutdown_send(&self) {
        self.set(unusual::NO_SENDING);
        self.end.end_sending(|| notify(&self.socket));
    }

    /// As [`Stream::shutdown_recv`](crate::Stream::shutdown_recv).
    pub(crate) fn shutdown_recv(&self) -> io::Result<()> {
        self.set(unusual::NO_RECEIVING);
        self.socket.shutdown(Shutdown::Read)
    }

    /// As [`Stream::shutdown`](crate::Stream::shutdown).
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        self.set(unusual::NO_RECEIVING | unusual::NO_SENDING);
        self.end
            .close(|| notify(&self.socket), || notify(&self.room));
        net::shutdown(&self.room, Shutdown::Both)?;
        self.socket.shutdown(Shutdown::Both)
    }

    /// Ends the connection with a peer that broke the rules.
    #[cold]
    fn break_off(&self, violation: impl ToString) -> io::Error {
        let violation = self.violation.get_or_init(|| violation.to_string());
        self.set(unusual::BROKEN);
        broken(violation)
    }

    #[inline]
    fn unusual(&self) -> u32 {
        self.unusual.load(Ordering::Relaxed)
    }

    fn has(&self, what: u32) -> bool {
        self.unusual() & what != 0
    }

    fn set(&self, what: u32) {
        self.unusual.fetch_or(what, Ordering::AcqRel);
    }

    fn unset(&self, what: u32) {
        self.unusual.fetch_and(!what, Ordering::AcqRel);
    }
}

impl Drop for ShmStream {
    fn drop(&mut self) {
        // So a peer that does not sleep notices, too.
        self.end
            .close(|| notify(&self.socket), || notify(&self.room));
    }
}

impl AsFd for ShmStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Takes in the notifications that are there.
fn try_take_in(notifier: &DeadlineSocket) -> io::Result<usize> {
    match notifier.try_recv(&mut [0; NOTIFICATIONS]) {
        Ok(NOTIFICATIONS) => take_in_more(notifier),
        taken => taken,
    }
}

/// The same when there were so many that there may be many more.
#[cold]
fn take_in_more(notifier: &DeadlineSocket) -> io::Result<usize> {
    notifier.try_recv(&mut [0; NOTIFICATIONS_IN_VAIN])
}

/// Wakes the thread that waits for the other end of `notifier`. If that is full, it will wake up anyhow; if it is gone,
/// it need not.
#[cold]
fn notify(notifier: &DeadlineSocket) {
    let _ = notifier.try_send(&[1]);
}

/// Passes: clients can be handed memory here.
pub(crate) fn check_can_invite(_: &Address) -> io::Result<()> {
    Ok(())
}

fn broken(violation: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, violation.to_owned())
}

fn not_joined(error: JoinError) -> io::Error {
    let kind = match &error {
        JoinError::System(_) => io::ErrorKind::Other,
        JoinError::Late => io::ErrorKind::TimedOut,
        JoinError::Closed => io::ErrorKind::UnexpectedEof,
        JoinError::Hello(tenon_shm::HelloError::Refused(_)) => io::ErrorKind::PermissionDenied,
        JoinError::Hello(_)
        | JoinError::Handed(_)
        | JoinError::Notifier
        | JoinError::Segment(_) => io::ErrorKind::InvalidData,
    };
    match error {
        JoinError::System(error) => error,
        error => io::Error::new(kind, error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a server's end, and a client's.
    fn ends() -> (ShmStream, ShmStream) {
        let (server, client) = UnixStream::pair().unwrap();
        let joining = thread::spawn(move || {
            let socket = DeadlineSocket::from(OwnedFd::from(client));
            ShmStream::join(socket, Instant::now() + PATIENCE).unwrap()
        });
        let server = ShmStream::invite(server.into(), RingSizes::default()).unwrap();
        (server, joining.join().unwrap())
    }

    /// Rings as often as the socket takes.
    fn flood(server: &ShmStream) -> usize {
        let ring = || server.socket.try_send(&[1; 4 << 10]).ok();
        std::iter::from_fn(ring).sum()
    }

    #[test]
    fn a_peer_that_rings_for_nothing_holds_nobody_past_a_deadline() {
        let (server, client) = ends();
        let sent = flood(&server);
        assert!(sent > 2 * NOTIFICATIONS_IN_VAIN, "{sent}");
        let came = client.recv_until(&mut [0; 64], Instant::now());
        assert_eq!(came.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let left = client.socket.try_recv(&mut [0]);
        assert_eq!(left.unwrap(), 1, "it went on to the last notification");

        assert_eq!(server.try_send(b"still there").unwrap(), 11);
        let mut room = [0; 64];
        let came = client.recv_until(&mut room, Instant::now() + PATIENCE);
        assert_eq!(room[..came.unwrap()], *b"still there");
    }

    #[test]
    fn many_notifications_are_taken_in_at_once() {
        let (server, client) = ends();
        let sent = flood(&server);
        client.take_in_notifications();
        let mut left = 0;
        while let Ok(taken) = client.socket.try_recv(&mut [0; 4096]) {
            left += taken;
        }
        assert_eq!(sent - left, NOTIFICATIONS + NOTIFICATIONS_IN_VAIN);
    }

    /// A process that is killed says nothing in the memory; its socket ends, behind its notifications.
    fn kill(peer: &ShmStream) {
        net::shutdown(&peer.socket, Shutdown::Both).unwrap();
    }

    #[test]
    fn a_refresh_sees_a_peer_that_was_killed_behind_its_notifications() {
        for notifications in [
            0,
            1,
            NOTIFICATIONS,
            NOTIFICATIONS + 1,
            NOTIFICATIONS + NOTIFICATIONS_IN_VAIN + 1,
        ] {
            let (server, client) = ends();
            let mut sent = 0;
            while sent < notifications {
                sent += client
                    .socket
                    .try_send(&vec![1; notifications - sent])
                    .unwrap();
            }
            kill(&client);
            server.refresh();
            let received = server.try_recv(&mut [0; 64]);
            assert_eq!(received.unwrap(), 0, "{notifications} notifications");
        }
    }

    #[test]
    fn a_refresh_sees_a_peer_that_was_killed_in_its_hello() {
        let (ours, mut peer) = UnixStream::pair().unwrap();
        let server = ShmStream::invite(ours.into(), RingSizes::default()).unwrap();
        peer.write_all(b"\x7fshm").unwrap();
        drop(peer);
        server.refresh();
        let received = server.try_recv(&mut [0; 64]);
        assert_eq!(received.unwrap(), 0);
    }
}

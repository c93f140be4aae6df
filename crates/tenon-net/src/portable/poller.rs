//! Waits for many sockets at once by `poll`, on Windows: its completion ports report operations that were begun, and not
//! sockets that are ready.
//!
//! A socket that has been told of is not polled again before it was used: each receive, and each send that found no
//! room, has it polled once more ([`rearm`]). To a caller that is what an edge-triggered poller does: nothing that comes
//! behind a receive is missed.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use crate::poll_event::{PollEvent, Watch};
use crate::socket::{Ready, is_deadline, poll_until};

/// A wait without a limit goes on in steps of this length.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Pollers whose sockets are to be looked for when one was used.
static POLLERS: Mutex<Vec<Weak<PollState>>> = Mutex::new(Vec::new());

/// Sockets that all pollers watch.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Waits for the sockets that are registered.
#[derive(Debug)]
pub struct Poller {
    state: Arc<PollState>,
    events: Vec<PollEvent>,
}

/// Registers sockets with a [`Poller`], also while a thread waits in it.
#[derive(Debug)]
pub struct PollRegistry(Arc<PollState>);

/// Wakes the thread that waits in a [`Poller`].
#[derive(Debug)]
pub struct PollWaker(Arc<PollState>);

#[derive(Debug)]
struct PollState {
    sockets: Mutex<HashMap<RawFd, WatchedSocket>>,
    /// A socket that is connected to itself: what is sent ends the wait.
    interrupt: UdpSocket,
    /// A datagram is on its way there.
    is_interrupted: AtomicBool,
    /// The wait is to end, and not only to look at the sockets anew.
    is_woken: AtomicBool,
}

#[derive(Debug)]
struct WatchedSocket {
    /// Another descriptor of it, so that it stays what it is while it is polled.
    socket: Arc<OwnedFd>,
    token: usize,
    watch: Watch,
    /// What is polled for, and was not told of since the socket was used.
    armed: Ready,
    /// Its end was told of.
    is_over: bool,
}

impl Watch {
    fn interest(self) -> Ready {
        match self {
            Self::Receive => Ready::READABLE,
            Self::ReceiveAndSend => Ready::EITHER,
            Self::Nothing => Ready::default(),
        }
    }
}

impl Poller {
    /// Creates a poller without sockets.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        let interrupt = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        interrupt.connect(interrupt.local_addr()?)?;
        interrupt.set_nonblocking(true)?;
        let state = Arc::new(PollState {
            sockets: Mutex::default(),
            interrupt,
            is_interrupted: AtomicBool::new(false),
            is_woken: AtomicBool::new(false),
        });
        let mut pollers = POLLERS.lock().unwrap_or_else(PoisonError::into_inner);
        pollers.retain(|other| other.strong_count() > 0);
        pollers.push(Arc::downgrade(&state));
        let events = Vec::new();
        Ok(Self { state, events })
    }

    /// Returns what sockets are registered by.
    ///
    /// # Errors
    /// None on this system.
    pub fn registry(&self) -> io::Result<PollRegistry> {
        Ok(PollRegistry(Arc::clone(&self.state)))
    }

    /// Returns what ends a [`wait`](Self::wait) from another thread.
    ///
    /// # Errors
    /// None on this system.
    pub fn waker(&self) -> io::Result<PollWaker> {
        Ok(PollWaker(Arc::clone(&self.state)))
    }

    /// Waits until something happens, for no longer than `limit`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        let deadline = Instant::now() + limit.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        while self.events.is_empty() && !self.state.is_woken.swap(false, Ordering::Acquire) {
            match self.state.poll(deadline, &mut self.events) {
                Err(error) if is_deadline(&error) => break,
                polled => polled?,
            }
        }
        Ok(())
    }

    /// Returns what has happened during the last wait.
    pub fn events(&self) -> impl Iterator<Item = PollEvent> + '_ {
        self.events.iter().copied()
    }
}

impl PollState {
    fn sockets(&self) -> MutexGuard<'_, HashMap<RawFd, WatchedSocket>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread that waits look at the sockets anew.
    fn interrupt(&self) {
        if !self.is_interrupted.swap(true, Ordering::AcqRel) {
            // A socket that takes no more has something to receive.
            let _ = self.interrupt.send(&[1]);
        }
    }

    /// Waits once, until a socket is ready or the wait is interrupted.
    fn poll(&self, deadline: Instant, events: &mut Vec<PollEvent>) -> io::Result<()> {
        let sockets: Vec<_> = (self.sockets().iter())
            .filter(|(_, watched)| watched.is_polled())
            .map(|(raw, watched)| (*raw, Arc::clone(&watched.socket), watched.flags()))
            .collect();
        let mut polled: Vec<_> = (sockets.iter())
            .map(|(_, socket, flags)| PollFd::new(&**socket, *flags))
            .collect();
        polled.push(PollFd::new(&self.interrupt, PollFlags::IN));
        poll_until(&mut polled, deadline)?;
        if polled.pop().is_some_and(|one| !one.revents().is_empty()) {
            while self.interrupt.recv(&mut [0]).is_ok() {}
            // Behind the receive: an interruption in between sends nothing, and is seen by the next look.
            self.is_interrupted.store(false, Ordering::Release);
        }
        let mut watched = self.sockets();
        for ((raw, socket, _), polled) in sockets.iter().zip(&polled) {
            let found = polled.revents();
            if let Some(watched) = watched.get_mut(raw)
                && Arc::ptr_eq(&watched.socket, socket)
                && !found.is_empty()
            {
                events.extend(watched.take_event(found));
            }
        }
        Ok(())
    }
}

impl WatchedSocket {
    fn is_polled(&self) -> bool {
        !self.is_over && self.armed != Ready::default()
    }

    fn flags(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.armed.readable);
        flags.set(PollFlags::OUT, self.armed.writable);
        flags
    }

    /// Takes in what was found, and returns what is to be told of it.
    fn take_event(&mut self, found: PollFlags) -> Option<PollEvent> {
        let is_hung_up = found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        let readable = self.armed.readable && (is_hung_up || found.contains(PollFlags::IN));
        let writable = self.armed.writable && (is_hung_up || found.contains(PollFlags::OUT));
        self.armed.readable &= !readable;
        self.armed.writable &= !writable;
        self.is_over |= is_hung_up;
        (readable || writable || is_hung_up).then_some(PollEvent {
            token: self.token,
            is_readable: readable,
            is_writable: writable,
            is_read_closed: is_hung_up,
            is_hung_up,
        })
    }
}

impl PollRegistry {
    /// Registers a socket under a number, which is not `usize::MAX`. What there is to receive already counts.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn add(&self, socket: &impl AsFd, token: usize, watch: Watch) -> io::Result<()> {
        if watch == Watch::Nothing {
            return Ok(());
        }
        let fd = socket.as_fd();
        let watched = WatchedSocket {
            socket: Arc::new(fd.try_clone_to_owned()?),
            token,
            watch,
            armed: watch.interest(),
            is_over: false,
        };
        if self.0.sockets().insert(fd.as_raw_fd(), watched).is_none() {
            WATCHED.fetch_add(1, Ordering::SeqCst);
        }
        self.0.interrupt();
        Ok(())
    }

    /// Changes what a socket is watched for, which was `before`. What there is to receive or to send counts anew.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn change(
        &self,
        socket: &impl AsFd,
        token: usize,
        _before: Watch,
        watch: Watch,
    ) -> io::Result<()> {
        match watch {
            Watch::Nothing => self.remove(socket),
            watch => self.add(socket, token, watch),
        }
    }

    /// Forgets a socket. One that is closed is forgotten by itself.
    ///
    /// # Errors
    /// None on this system.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        if (self.0.sockets().remove(&socket.as_fd().as_raw_fd())).is_some() {
            WATCHED.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl PollWaker {
    /// Ends the wait that goes on, or the next one.
    pub fn wake(&self) {
        self.0.is_woken.store(true, Ordering::Release);
        self.0.interrupt();
    }
}

impl Drop for PollState {
    fn drop(&mut self) {
        let left = self.sockets().len();
        WATCHED.fetch_sub(left, Ordering::SeqCst);
    }
}

/// Has a socket that was just used polled again for what it was used for.
pub(crate) fn rearm(socket: &impl AsFd, used: Ready) {
    for_each_poller(|poller| {
        let mut sockets = poller.sockets();
        let Some(watched) = sockets.get_mut(&socket.as_fd().as_raw_fd()) else {
            return;
        };
        let (interest, armed) = (watched.watch.interest(), watched.armed);
        watched.armed.readable |= used.readable && interest.readable;
        watched.armed.writable |= used.writable && interest.writable;
        if watched.armed != armed {
            drop(sockets);
            poller.interrupt();
        }
    });
}

/// Forgets a socket that is about to be closed.
pub(crate) fn forget(socket: &impl AsFd) {
    for_each_poller(|poller| {
        if (poller.sockets().remove(&socket.as_fd().as_raw_fd())).is_some() {
            WATCHED.fetch_sub(1, Ordering::SeqCst);
        }
    });
}

fn for_each_poller(visit: impl Fn(&PollState)) {
    if WATCHED.load(Ordering::SeqCst) == 0 {
        return;
    }
    let pollers = POLLERS.lock().unwrap_or_else(PoisonError::into_inner);
    for poller in pollers.iter().filter_map(Weak::upgrade) {
        visit(&poller);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_millis(20));

    fn events(poller: &mut Poller) -> Vec<PollEvent> {
        poller.wait(SOON).unwrap();
        poller.events().collect()
    }

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn an_event_is_told_of_once_until_the_socket_was_used() {
        let mut poller = Poller::new().unwrap();
        let registry = poller.registry().unwrap();
        let (mut peer, socket) = connected();
        registry.add(&socket, 7, Watch::Receive).unwrap();
        assert!(events(&mut poller).is_empty());
        peer.write_all(b"one").unwrap();
        let [event] = events(&mut poller)[..] else {
            panic!("no event");
        };
        assert!(event.is_readable && !event.is_hung_up);
        assert_eq!(event.token, 7);
        assert!(events(&mut poller).is_empty(), "it was told of");
        rearm(&socket, Ready::READABLE);
        assert_eq!(events(&mut poller).len(), 1, "something is there still");
        let change = |before, watch| registry.change(&socket, 7, before, watch).unwrap();
        change(Watch::Receive, Watch::Receive);
        assert_eq!(events(&mut poller).len(), 1, "it counts anew");
        change(Watch::Receive, Watch::Nothing);
        rearm(&socket, Ready::READABLE);
        assert!(events(&mut poller).is_empty(), "it is not watched");
        change(Watch::Nothing, Watch::ReceiveAndSend);
        assert!(events(&mut poller)[0].is_writable);
        forget(&socket);
        rearm(&socket, Ready::EITHER);
        assert!(events(&mut poller).is_empty(), "it is closed");
    }

    #[test]
    fn the_end_of_both_directions_is_told_of_once() {
        let mut poller = Poller::new().unwrap();
        let registry = poller.registry().unwrap();
        let (peer, socket) = connected();
        registry.add(&socket, 1, Watch::Receive).unwrap();
        drop(peer);
        assert!(!events(&mut poller)[0].is_hung_up, "one direction");
        rearm(&socket, Ready::READABLE);
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(events(&mut poller)[0].is_hung_up);
        rearm(&socket, Ready::READABLE);
        assert!(events(&mut poller).is_empty(), "it is over");
    }

    #[test]
    fn a_waker_ends_the_wait() {
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker().unwrap();
        waker.wake();
        let begin = Instant::now();
        poller.wait(None).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert_eq!(poller.events().count(), 0);
    }
}

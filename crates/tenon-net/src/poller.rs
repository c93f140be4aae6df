//! Waits for many sockets at once, edge-triggered: a socket is registered once, and an event says that something has
//! changed since the last one.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

use crate::poll_event::{PollEvent, Watch};

/// The event that only [wakes](PollWaker::wake).
const WAKE: Token = Token(usize::MAX);

/// Events that are taken from the system at a time.
const EVENTS_MAX: usize = 256;

impl Watch {
    fn interest(self) -> Option<Interest> {
        Some(match self {
            Self::Receive => Interest::READABLE,
            Self::ReceiveAndSend => Interest::READABLE | Interest::WRITABLE,
            Self::Nothing => return None,
        })
    }
}

/// Waits for the sockets that are registered.
#[derive(Debug)]
pub struct Poller {
    poll: Poll,
    events: Events,
}

/// Registers sockets with a [`Poller`], also while a thread waits in it.
#[derive(Debug)]
pub struct PollRegistry(Registry);

/// Wakes the thread that waits in a [`Poller`].
#[derive(Debug)]
pub struct PollWaker(Waker);

impl Poller {
    /// Creates a poller without sockets.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_MAX),
        })
    }

    /// Returns what sockets are registered by.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn registry(&self) -> io::Result<PollRegistry> {
        Ok(PollRegistry(self.poll.registry().try_clone()?))
    }

    /// Returns what ends a [`wait`](Self::wait) from another thread.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn waker(&self) -> io::Result<PollWaker> {
        Ok(PollWaker(Waker::new(self.poll.registry(), WAKE)?))
    }

    /// Waits until something happens, for no longer than `limit`. A signal ends the wait, too.
    ///
    /// # Errors
    /// What the system reports.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, limit) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            waited => waited,
        }
    }

    /// Returns what has happened during the last wait.
    pub fn events(&self) -> impl Iterator<Item = PollEvent> + '_ {
        let events = self.events.iter().filter(|event| event.token() != WAKE);
        events.map(|event| PollEvent {
            token: event.token().0,
            is_readable: event.is_readable(),
            is_writable: event.is_writable(),
            is_read_closed: event.is_read_closed() || event.is_error(),
            is_hung_up: event.is_error() || event.is_read_closed() && event.is_write_closed(),
        })
    }
}

impl PollRegistry {
    /// Registers a socket under a number, which is not `usize::MAX`. What there is to receive already counts.
    ///
    /// # Errors
    /// The system has no room for it, or it is registered already.
    pub fn add(&self, socket: &impl AsFd, token: usize, watch: Watch) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd();
        match watch.interest() {
            Some(interest) => (self.0).register(&mut SourceFd(&fd), Token(token), interest),
            None => Ok(()),
        }
    }

    /// Changes what a socket is watched for, which was `before`. What there is to receive or to send counts anew.
    ///
    /// # Errors
    /// The system has no room for it, or it was not watched for what it is said to have been.
    pub fn change(
        &self,
        socket: &impl AsFd,
        token: usize,
        before: Watch,
        watch: Watch,
    ) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd();
        match (before, watch.interest()) {
            (Watch::Nothing, _) => self.add(socket, token, watch),
            (_, Some(interest)) => (self.0).reregister(&mut SourceFd(&fd), Token(token), interest),
            (_, None) => self.remove(socket),
        }
    }

    /// Forgets a socket. One that is closed is forgotten by itself.
    ///
    /// # Errors
    /// It is not registered.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd();
        self.0.deregister(&mut SourceFd(&fd))
    }
}

/// The descriptor of the poller, which is readable while something has happened that no wait has returned.
impl AsFd for PollRegistry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PollWaker {
    /// Ends the wait that goes on, or the next one.
    pub fn wake(&self) {
        // A waker that cannot be written to is full, and so wakes.
        let _ = self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_millis(20));

    fn events(poller: &mut Poller) -> Vec<PollEvent> {
        poller.wait(SOON).unwrap();
        poller.events().collect()
    }

    #[test]
    fn an_event_tells_of_what_has_come_once() {
        let mut poller = Poller::new().unwrap();
        let registry = poller.registry().unwrap();
        let (mut peer, socket) = UnixStream::pair().unwrap();
        registry.add(&socket, 7, Watch::Receive).unwrap();
        assert!(events(&mut poller).is_empty());
        peer.write_all(b"one").unwrap();
        let [event] = events(&mut poller)[..] else {
            panic!("no event");
        };
        assert!(event.is_readable && !event.is_hung_up);
        assert_eq!(event.token, 7);
        assert!(events(&mut poller).is_empty(), "nothing has changed");
        peer.write_all(b"two").unwrap();
        assert_eq!(events(&mut poller).len(), 1);
        let change = |before, watch| registry.change(&socket, 7, before, watch).unwrap();
        change(Watch::Receive, Watch::Receive);
        assert_eq!(events(&mut poller).len(), 1, "it counts anew");
        change(Watch::Receive, Watch::Nothing);
        peer.write_all(b"three").unwrap();
        assert!(events(&mut poller).is_empty(), "it is not watched");
        change(Watch::Nothing, Watch::Receive);
        assert_eq!(events(&mut poller).len(), 1, "it counts anew");
    }

    #[test]
    fn a_hang_up_is_seen() {
        let mut poller = Poller::new().unwrap();
        let registry = poller.registry().unwrap();
        let (peer, socket) = UnixStream::pair().unwrap();
        registry.add(&socket, 1, Watch::Receive).unwrap();
        drop(peer);
        let [event] = events(&mut poller)[..] else {
            panic!("no event");
        };
        assert!(event.is_hung_up);
    }

    /// So that an event loop can wait for a poller beside what it has of its own.
    #[test]
    fn a_poller_can_be_waited_for_by_another() {
        let mut inner = Poller::new().unwrap();
        let registry = inner.registry().unwrap();
        let (mut peer, socket) = UnixStream::pair().unwrap();
        registry.add(&socket, 1, Watch::Receive).unwrap();
        let mut outer = Poller::new().unwrap();
        let outer_registry = outer.registry().unwrap();
        outer_registry.add(&registry, 2, Watch::Receive).unwrap();
        assert!(events(&mut outer).is_empty());
        peer.write_all(b"one").unwrap();
        assert_eq!(events(&mut outer).len(), 1);
        assert_eq!(events(&mut inner).len(), 1);
        outer_registry
            .change(&registry, 2, Watch::Receive, Watch::Receive)
            .unwrap();
        assert!(
            events(&mut outer).is_empty(),
            "the inner one has told of it"
        );
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

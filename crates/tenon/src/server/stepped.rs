//! A server without threads: a program that has an event loop of its own serves whenever something has come.

use std::fmt;
#[cfg(all(unix, not(tenon_portable)))]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use tenon_core::serve::{DRAIN_ON_DROP, StartError};

use super::builder::ServerBuilder;
use super::handle::Server;
use super::state::ServerState;
use super::thread::ThreadContext;

/// A server that serves within [`step`](Self::step) and has no threads, for programs with an event loop of their own
/// (libuv, libev, epoll). [`ServerBuilder::start_stepped`] makes one; dropping it shuts the server down.
///
/// The loop watches the server's descriptor ([`AsFd`]) for something to read, level-triggered, and calls `step` when
/// there is, and when the time that [`next_timeout`](Self::next_timeout) tells is over. Handlers run within `step`, one
/// after the other: one that takes long delays the loop and all other calls, and none is handed to another thread.
/// [`Waiting`](crate::Waiting) and [`ServerLimits::threads`](crate::ServerLimits::threads) mean nothing here.
///
/// ```
/// use std::net::TcpStream;
/// use std::os::fd::AsFd;
/// use std::time::Duration;
///
/// use rustix::event::{PollFd, PollFlags, Timespec, poll};
/// use tenon::Server;
///
/// let mut server = Server::builder().listen("tcp://127.0.0.1:0")?.start_stepped()?;
/// let address = server.handle().addresses()[0].to_string();
/// let client = TcpStream::connect(address.trim_start_matches("tcp://"))?;
///
/// // An event loop waits like this, with the descriptors of all that it serves.
/// let limit = server.next_timeout().map(Timespec::try_from).transpose()?;
/// poll(&mut [PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN)], limit.as_ref())?;
/// server.step();
/// assert_eq!(server.handle().counters().connections_accepted, 1);
/// # drop(client);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SteppedServer {
    server: Arc<Server>,
    state: Arc<ServerState>,
    thread: ThreadContext,
}

impl ServerBuilder {
    /// Listens, and serves within [`SteppedServer::step`] alone. A registrar that was given is told of the services
    /// before this returns, which may block.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    pub fn start_stepped(mut self) -> Result<SteppedServer, StartError> {
        // No thread is there for a handler that could be given up.
        self.settings.limits.handler_timeout = None;
        let registrar = self.settings.take_registrar();
        let (state, poll, addresses) = self.assemble()?;
        let server = Server::new(Arc::clone(&state), addresses);
        state.scheduler.start_stepped(poll);
        if let Some(registrar) = registrar {
            server.register(&*registrar)?;
        }
        Ok(SteppedServer {
            server: Arc::new(server),
            thread: ThreadContext::of(&state),
            state,
        })
    }
}

impl SteppedServer {
    /// Serves what has come, without waiting: new connections are accepted, and every connection and port that has
    /// something to say gets a turn, of a bounded number of calls. If more is left to do, the descriptor stays readable.
    /// Returns whether the server still serves: false once it is shut down.
    pub fn step(&mut self) -> bool {
        self.state.scheduler.step(&self.state, &mut self.thread)
    }

    /// Returns the time after which [`step`](Self::step) is to be called even if the descriptor has not become
    /// readable, because of a limit on what peers may take or a packet that is to be sent again. `None` is never.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.state.scheduler.next_timeout(&self.state)
    }

    /// Returns the server as other threads may use it: for its addresses and counters, and to shut it down, which makes
    /// the descriptor readable. A shutdown waits for a step that runs meanwhile, as long as its drain allows.
    pub fn handle(&self) -> &Arc<Server> {
        &self.server
    }
}

impl Drop for SteppedServer {
    fn drop(&mut self) {
        self.server.shutdown(DRAIN_ON_DROP);
    }
}

#[cfg(all(unix, not(tenon_portable)))]
impl AsFd for SteppedServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.state.poll_registry.as_fd()
    }
}

impl fmt::Debug for SteppedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SteppedServer").field(&self.server).finish()
    }
}

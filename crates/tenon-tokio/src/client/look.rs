//! Looking for a reply within one poll: where the peer answers within some microseconds, that is several times as quick
//! as having the run time sleep and be woken.
//!
//! A look takes at most 20 us, and its end is learned as that of a thread is: a channel whose peer takes longer soon
//! does not look any more. The reader's role is given back before the poll ends. A future looks only if its call is the
//! only one in flight, if its task has made the last call of the channel too, and if the run time's thread has called over
//! this channel before: one that calls over several would keep the others waiting.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::error::ConnectionFailure;
use tenon_core::wait::{Company, LOOKS, Looking, Spinners, Spun};
use tenon_net::Stream;

use super::channel::Shared;
use super::state::{ChannelState, ReadHalf};
use super::waiters::WaiterId;
use crate::watch::WatchedSocket;

/// Longest look within one poll.
pub(crate) const LOOK_MAX: Duration = Duration::from_micros(20);

thread_local! {
    /// The channel over which this thread has called last.
    static LAST_CHANNEL: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// Whether this thread has called over this channel before; from now on it has.
#[inline]
pub(super) fn is_of_same_channel(shared: &Shared) -> bool {
    let this: *const Shared = shared;
    LAST_CHANNEL.replace(this) == this
}

impl Shared {
    /// Looks for the reply of a call a moment, and hands out what comes; returns whether the call is over.
    pub(super) fn look(&self, mut half: Box<ReadHalf>, waiter: WaiterId) -> bool {
        let socket = Arc::clone(&half.socket);
        let looked = self.try_look(&mut half, waiter);
        let mut state = self.lock();
        if let Err(failure) = looked {
            state.break_link(&socket, &failure);
        }
        let is_over = state.waiters.is_over(waiter);
        state.is_parked = !is_over || socket.get_ref().stream().is_none_or(is_socket);
        if !is_over {
            half.slept_since = Some(Instant::now());
        }
        state.put_reader(half);
        if state.needs_sender() {
            state.wake_driver();
        }
        self.wake(state);
        is_over
    }

    fn try_look(&self, half: &mut ReadHalf, waiter: WaiterId) -> Result<(), ConnectionFailure> {
        let end = Instant::now() + LOOK_MAX;
        loop {
            let Some(received) = half.look(&self.waits, end) else {
                if half.park() {
                    return Ok(());
                }
                self.receive(half)?;
                continue;
            };
            self.handle_received(half, received)?;
            if self.lock().waiters.is_over(waiter) {
                return Ok(());
            }
        }
    }
}

impl ReadHalf {
    /// Looks until something comes, but not for longer than until `end`, nor than what was learned says. Returns what
    /// a receive has reported and whether there may be more; `None` if nothing has come.
    fn look(
        &mut self,
        waits: &tenon_core::wait::WaitTally,
        end: Instant,
    ) -> Option<std::io::Result<bool>> {
        let Self {
            socket,
            input,
            waiter,
            ..
        } = self;
        let socket = socket.get_ref();
        let company = Company {
            spinners: Spinners::of_callers(),
            looking: Looking::at(socket.transport()),
            tally: waits,
        };
        let room = input.room();
        let length = room.len();
        let mut looks = 0;
        let look = || {
            socket.look(looks);
            looks = LOOKS;
            socket.try_recv(room)
        };
        match waiter.look(&company, |_| end, || true, look) {
            Spun::Came(came) => Some(self.handle_received(came, length)),
            Spun::Late | Spun::Sleep => None,
        }
    }

    /// Has the system tell of what comes; returns false if something has come.
    pub(super) fn park(&self) -> bool {
        self.socket.get_ref().stream().is_none_or(Stream::park)
    }
}

impl ChannelState {
    /// Gives the reader's role back.
    pub(super) fn put_reader(&mut self, half: Box<ReadHalf>) {
        let socket = Arc::clone(&half.socket);
        let wants_reader = std::mem::take(&mut self.wants_reader);
        match self.link_over(&socket) {
            Some(link) => link.reader = Some(half),
            // That of a connection that has ended closes it.
            None => drop(half),
        }
        if wants_reader {
            self.wake_driver();
        }
    }
}

/// Whether the system tells of everything that comes over a stream, parked or not.
fn is_socket(stream: &Stream) -> bool {
    stream.transport() != tenon_net::Transport::Shm
}

/// Whether the system tells of everything that comes.
pub(super) fn tells_all(socket: &WatchedSocket) -> bool {
    socket.get_ref().stream().is_none_or(is_socket)
}

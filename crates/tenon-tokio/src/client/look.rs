//! Looking for a reply within one poll: where the peer answers within some microseconds, that is several times as quick
//! as having the run time sleep and be woken.
//!
//! A look takes at most 20 us within one poll, and goes on in the next one once other tasks have run. Its end is
//! learned as that of a thread is: if its peer takes longer, a channel soon does not look any more. The reader's role
//! is given back before the poll ends. A future looks only if its call is the only one in flight and its task has made
//! the last call of the channel too; for several calls the driver looks. Neither does if the run time's thread calls
//! over several channels: it would keep the others waiting.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::error::ConnectionFailure;
use tenon_core::wait::{LOOKS, Looking, Polled, Spinners, WaitContext, WaitTally};
use tenon_net::{Stream, Transport};

use super::channel::SharedChannel;
use super::state::{ChannelState, ReaderState};
use super::waiters::WaiterId;
use crate::watch::{LOOK_MAX, SILENCE_MAX, WatchedSocket};

thread_local! {
    /// The channel over which this thread has called last.
    static LAST_CHANNEL: Cell<*const SharedChannel> = const { Cell::new(ptr::null()) };
}

/// Returns whether this thread has called over this channel before; from now on it has.
#[inline]
pub(super) fn is_of_same_channel(shared: &SharedChannel) -> bool {
    let this: *const SharedChannel = shared;
    LAST_CHANNEL.replace(this) == this
}

/// Returns whether this is the channel over which this thread has called last.
pub(super) fn is_last_channel(shared: &SharedChannel) -> bool {
    let this: *const SharedChannel = shared;
    LAST_CHANNEL.get() == this
}

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyPoll {
    /// The reply of the call that was looked for, or anything if it was none.
    Found,
    /// Nothing yet: it goes on once other tasks have had their turn.
    Yields,
    /// Nothing.
    Sleeps,
}

impl SharedChannel {
    /// Looks a moment for what comes, until the call of `waiter` is over if there is one, and hands it out.
    pub(super) fn look(&self, mut half: Box<ReaderState>, waiter: Option<WaiterId>) -> ReplyPoll {
        let socket = Arc::clone(&half.socket);
        let looked = self.try_look(&mut half, waiter);
        let mut state = self.lock();
        let looked = looked.unwrap_or_else(|failure| {
            state.break_link(&socket, &failure);
            ReplyPoll::Found
        });
        state.is_parked = looked == ReplyPoll::Sleeps || tells_all(&socket);
        if looked == ReplyPoll::Sleeps {
            half.slept_since = Some(Instant::now());
        }
        state.put_reader(half);
        if state.needs_sender() {
            state.wake_driver();
        }
        self.wake(state);
        looked
    }

    fn try_look(
        &self,
        half: &mut ReaderState,
        waiter: Option<WaiterId>,
    ) -> Result<ReplyPoll, ConnectionFailure> {
        loop {
            match half.look(&self.waits) {
                Polled::Ready(received) => self.handle_received(half, received)?,
                Polled::Yields => return Ok(ReplyPoll::Yields),
                Polled::Sleep if half.park() => return Ok(ReplyPoll::Sleeps),
                Polled::Sleep => self.receive(half)?,
            };
            if waiter.is_none_or(|waiter| self.lock().waiters.is_over(waiter)) {
                return Ok(ReplyPoll::Found);
            }
        }
    }

    /// Takes the reader's role for a future that is to look on for its reply. If it is not to, the driver reads.
    pub(super) fn reader_to_look_on(&self) -> Option<Box<ReaderState>> {
        let mut state = self.lock();
        let is_alone = state.calls.in_flight() == 1;
        let reader = state.link.as_mut().and_then(|link| link.reader.take());
        match reader {
            Some(half) if is_alone && half.waiter.is_to_look() => return Some(half),
            Some(half) => state.put_reader(half),
            None => {}
        }
        if !state.is_parked {
            state.wake_driver();
        }
        self.wake(state);
        None
    }

    /// Takes the reader's role for the driver, if it is to look.
    pub(super) fn reader_for_driver(
        &self,
        socket: &Arc<WatchedSocket>,
    ) -> Option<Box<ReaderState>> {
        let mut state = self.lock();
        if state.calls.in_flight() == 0 || state.needs_sender() || !is_last_channel(self) {
            return None;
        }
        let link = state.link_over(socket)?;
        link.reader.take_if(|half| !half.waiter.always_sleeps())
    }
}

impl ReaderState {
    /// Looks until something comes, not longer than what was learned says. Returns what a receive has reported and
    /// whether there may be more.
    fn look(&mut self, waits: &WaitTally) -> Polled<bool> {
        let Self {
            socket,
            input,
            waiter,
            ..
        } = self;
        let socket = socket.get_ref();
        let room = input.room();
        let length = room.len();
        let mut looks = 0;
        let look = || {
            socket.look(looks);
            looks = LOOKS;
            socket.try_recv(room)
        };
        let context = wait_context(socket.transport(), waits);
        match waiter.look_within_poll(&context, LOOK_MAX, SILENCE_MAX, look) {
            Polled::Ready(came) => Polled::Ready(self.handle_received(came, length)),
            Polled::Yields => Polled::Yields,
            Polled::Sleep => Polled::Sleep,
        }
    }

    /// Notes that something was received without looking for it.
    pub(super) fn note_received(&mut self, waits: &WaitTally) {
        let context = wait_context(self.socket.get_ref().transport(), waits);
        self.waiter.note_received(&context);
        if let Some(since) = self.slept_since.take() {
            self.waiter.note_slept(since.elapsed());
        }
    }

    /// Has the system tell of what comes; returns false if something has come.
    pub(super) fn park(&self) -> bool {
        self.socket.get_ref().stream().is_none_or(Stream::park)
    }
}

impl ChannelState {
    /// Gives the reader's role back.
    pub(super) fn put_reader(&mut self, half: Box<ReaderState>) {
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

fn wait_context(transport: Transport, tally: &WaitTally) -> WaitContext<'_> {
    WaitContext {
        spinners: Spinners::of_callers(),
        looking: Looking::at(transport),
        tally,
    }
}

/// Returns whether the system tells of everything that comes, parked or not.
pub(super) fn tells_all(socket: &WatchedSocket) -> bool {
    socket.get_ref().stream().is_none_or(Stream::is_socket)
}

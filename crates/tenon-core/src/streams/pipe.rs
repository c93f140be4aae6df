//! What lies between a connection and the program that uses the streams of one of its calls.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tenon_proto::connection::ItemMessage;
use tenon_proto::lean::ITEM_MAX;
use tenon_wire::Buffer;

use super::received::ReceivedItems;

/// Bytes of items that a program may hand over before the connection has taken them.
const QUEUED_MAX: usize = 64 << 10;

/// Bytes at which a program goes on that has waited: it hands several messages over at a time.
const QUEUED_AT_WAKE: usize = QUEUED_MAX / 2;

/// Buffers that are kept for what a program hands over next: as many as it may hand over of the longest messages.
const SPARE_MAX: usize = QUEUED_MAX / ITEM_MAX;

/// The streams of one call: items that the connection has received and the program has not taken, and how far the
/// program is ahead with those that it sends. Threads and tasks may wait for either.
#[derive(Debug, Default)]
pub struct StreamPipe {
    state: Mutex<PipeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PipeState {
    received: ReceivedItems,
    /// True if the program has waited for items.
    is_read: bool,
    /// True if nothing more is received.
    has_ended: bool,
    /// True if the call is over for the peer: nothing more is sent.
    is_over: bool,
    /// Bytes that were handed over, and that the connection has not taken.
    queued: usize,
    /// Memory of what the connection has taken, for what is handed over next.
    spare: Vec<Buffer>,
    /// Bytes of credit of the items that were received, and that were not given back.
    unreturned: u64,
    /// Threads that wait for a change.
    sleeping: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What a reader finds in a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    /// Items.
    Items,
    /// There are none, and more may come.
    Nothing,
    /// All of them were taken, and the peer has said that these are all.
    Ended,
    /// The call is over: it was answered or given up, or the connection is lost.
    Over,
}

/// Whether a program may hand an item over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writable {
    /// It may.
    Yes,
    /// It has to wait until the connection has taken what was handed over.
    NotNow,
    /// The peer takes no further items.
    Over,
}

impl PipeState {
    fn take(&mut self, into: &mut ReceivedItems) -> Readable {
        if !self.received.is_empty() {
            self.received.move_to(into);
            return Readable::Items;
        }
        match (self.has_ended, self.is_over) {
            (true, _) => Readable::Ended,
            (false, true) => Readable::Over,
            (false, false) => Readable::Nothing,
        }
    }

    fn writable(&self) -> Writable {
        match self.queued {
            _ if self.is_over => Writable::Over,
            0..QUEUED_MAX => Writable::Yes,
            _ => Writable::NotNow,
        }
    }
}

impl StreamPipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes those who wait for it.
    fn change(&self, change: impl FnOnce(&mut PipeState) -> [Option<Waker>; 2]) {
        let (wakers, is_awaited) = {
            let mut state = self.lock();
            (change(&mut state), state.sleeping > 0)
        };
        // To notify is a system call, whether a thread waits or not.
        if is_awaited {
            self.changed.notify_all();
        }
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    // ---- The side of the connection ----

    /// Takes in an item that was received.
    pub fn push(&self, item: &ItemMessage<'_>) {
        self.change(|state| {
            state.received.push(item);
            state.unreturned += item.size;
            [state.reader.take(), None]
        });
    }

    /// Notes that the peer has no further items.
    pub fn end(&self) {
        self.change(|state| {
            state.has_ended = true;
            [state.reader.take(), None]
        });
    }

    /// Notes that the call is over. Items that were received may still be taken.
    pub fn close(&self) {
        self.change(|state| {
            state.is_over = true;
            [state.reader.take(), state.writer.take()]
        });
    }

    /// Notes that so many bytes of credit are given back; returns how many of them were not before. None are once the
    /// call is over, when [all](Self::take_unreturned) were.
    pub fn note_returned(&self, bytes: u64) -> u64 {
        let mut state = self.lock();
        let returned = bytes.min(state.unreturned);
        state.unreturned -= returned;
        returned
    }

    /// Takes the bytes of credit that were not given back: those of items that are not taken any more, which other
    /// streams of the connection would lack.
    pub fn take_unreturned(&self) -> u64 {
        std::mem::take(&mut self.lock().unreturned)
    }

    /// Notes that the connection has taken so many bytes that were handed over, and has left this memory for others.
    /// Returns whether the program may wait for that, and is to be [woken](Self::wake_writer).
    #[must_use]
    pub fn note_accepted(&self, bytes: usize, spare: Buffer) -> bool {
        let mut state = self.lock();
        state.queued -= bytes.min(state.queued);
        if state.spare.len() < SPARE_MAX {
            state.spare.push(spare);
        }
        state.queued <= QUEUED_AT_WAKE && (state.writer.is_some() || state.sleeping > 0)
    }

    /// Wakes the program that waits until it may hand something over.
    pub fn wake_writer(&self) {
        self.change(|state| [None, state.writer.take()]);
    }

    /// Returns whether the program has waited for items, and may again.
    pub fn expects_items(&self) -> bool {
        let state = self.lock();
        state.is_read && !state.has_ended && !state.is_over
    }

    // ---- The side of the program ----

    /// Notes that so many bytes are handed over to the connection; returns an empty buffer for the next.
    pub fn note_queued(&self, bytes: usize) -> Buffer {
        let mut state = self.lock();
        state.queued += bytes;
        state.spare.pop().unwrap_or_default()
    }

    /// Takes all items that are there, `into` an empty place.
    pub fn take(&self, into: &mut ReceivedItems) -> Readable {
        self.lock().take(into)
    }

    /// Waits for items until a deadline, and takes them.
    pub fn wait_readable(&self, into: &mut ReceivedItems, until: Option<Instant>) -> Readable {
        let mut state = self.lock();
        loop {
            match state.take(into) {
                Readable::Nothing => {
                    state.is_read = true;
                    match self.wait(state, until) {
                        Some(woken) => state = woken,
                        None => return Readable::Nothing,
                    }
                }
                found => return found,
            }
        }
    }

    /// Waits until an item may be handed over, or a deadline.
    pub fn wait_writable(&self, until: Option<Instant>) -> Writable {
        let mut state = self.lock();
        loop {
            match state.writable() {
                Writable::NotNow => match self.wait(state, until) {
                    Some(woken) => state = woken,
                    None => return Writable::NotNow,
                },
                found => return found,
            }
        }
    }

    /// Waits for a change; `None` at the deadline.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, PipeState>,
        until: Option<Instant>,
    ) -> Option<MutexGuard<'s, PipeState>> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        state.sleeping += 1;
        let mut woken = match left {
            None => {
                let woken = self.changed.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            }
            Some(left) => {
                let woken = self.changed.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        woken.sleeping -= 1;
        Some(woken)
    }

    /// As [`take`](Self::take), for a task, which is woken when there is something.
    pub fn poll_readable(
        &self,
        context: &mut Context<'_>,
        into: &mut ReceivedItems,
    ) -> Poll<Readable> {
        let mut state = self.lock();
        match state.take(into) {
            Readable::Nothing => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
            found => Poll::Ready(found),
        }
    }

    /// Returns whether an item may be handed over, to a task, which is woken when it may.
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<Writable> {
        let mut state = self.lock();
        match state.writable() {
            Writable::NotNow => {
                state.writer = Some(context.waker().clone());
                Poll::Pending
            }
            found => Poll::Ready(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_waits_goes_on_when_half_of_what_waited_was_taken() {
        let pipe = StreamPipe::default();
        let quarter = QUEUED_MAX / 4;
        for _ in 0..4 {
            pipe.note_queued(quarter);
        }
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pipe.poll_writable(&mut context), Poll::Pending);
        assert!(!pipe.note_accepted(quarter, Buffer::default()));
        assert!(pipe.note_accepted(quarter, Buffer::default()));
        pipe.wake_writer();
        let is_awaited = pipe.note_accepted(quarter, Buffer::default());
        assert!(!is_awaited, "it was woken");
        let writable = pipe.poll_writable(&mut context);
        assert_eq!(writable, Poll::Ready(Writable::Yes));
    }
}

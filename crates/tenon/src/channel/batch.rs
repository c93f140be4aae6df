//! Calls that are sent together: while a batch is open they are gathered, and what was gathered goes
//! out with one system call.

use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_net::is_deadline;

use super::Channel;
use super::broken::Broken;
use super::connection::Connection;
use super::state::State;

/// Bytes that are gathered at most; the call that would be beyond them takes them along.
pub(super) const GATHERED_MAX: usize = 64 << 10;

/// Gathers the calls that are started on a channel, by whomever, and sends them together when it is
/// dropped, as far as there is room for them. They are sent earlier when somebody waits for a reply
/// over this channel, or when there are 64 KiB of them; so an open batch delays calls, but holds
/// nothing up that is waited for. Calls by ONC RPC over UDP are not gathered.
///
/// A system call costs more than everything else that is done for a small call: many calls in flight
/// are several times faster by batches.
///
/// ```no_run
/// use tenon::Client;
///
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3)?;
/// let batch = nfs.channel().batch();
/// let pings = (0..16)
///     .map(|_| nfs.start(0, |_arguments| Ok(()), |_result| Ok(())))
///     .collect::<Result<Vec<_>, _>>()?;
/// drop(batch);
/// for ping in pings {
///     ping.wait()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping a batch sends what it has gathered"]
pub struct Batch<'c>(&'c Channel);

impl Channel {
    /// Begins to gather the calls that are started on this channel.
    pub fn batch(&self) -> Batch<'_> {
        self.lock().batches += 1;
        Batch(self)
    }

    /// Sends what stands in front of the next call, unless somebody sends now. What there is no room
    /// for until `deadline` goes on standing there.
    #[cold]
    pub(super) fn send_front<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        deadline: Instant,
    ) -> MutexGuard<'s, State> {
        let Some(connection) = state.begin_front() else {
            return state;
        };
        let front = state.take_front();
        drop(state);
        let sent = self.transmit(&connection, front.as_slice(), deadline);
        let mut state = self.lock();
        if let Err(unsent) = sent {
            match &unsent.broken {
                Broken::Io(cause) if is_deadline(cause) => {
                    state.leave_rest(&connection, &front.as_slice()[unsent.sent..]);
                }
                broken => state.break_line(&connection, broken),
            }
        }
        state.buffers.put(front);
        state.stop_sending(&connection);
        self.pass_turn(&state);
        state
    }
}

impl State {
    /// Whether a call of so many bytes is to be gathered.
    #[inline]
    pub(super) fn gathers(&self, size: usize) -> bool {
        self.batches > 0 && self.front_len() + size <= GATHERED_MAX
    }

    /// Whether something waits to be sent in front of the next call.
    #[inline]
    pub(super) fn has_front(&self) -> bool {
        self.front_len() > 0
    }

    #[inline]
    fn front_len(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.front.len())
    }

    /// Puts a call behind what is gathered.
    #[inline]
    pub(super) fn gather(&mut self, call: &[u8]) {
        let mut front = self.take_front();
        if front.is_empty() {
            front = self.buffers.take();
        }
        front.extend(call);
        if let Some(line) = &mut self.line {
            line.front = front;
        }
    }

    /// Becomes the one who sends, if nobody is and there is something.
    fn begin_front(&mut self) -> Option<Arc<Connection>> {
        let line = self.line.as_mut()?;
        if line.is_sending || line.front.is_empty() {
            return None;
        }
        line.is_sending = true;
        Some(Arc::clone(&line.connection))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.batches -= 1;
        if state.batches == 0 && (state.has_front() || state.has_packets()) {
            let backlog = state.flush();
            drop(self.0.send_backlog_unlocked(state, backlog));
        }
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

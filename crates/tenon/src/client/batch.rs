//! Calls that are sent together: while a batch is open they are gathered, and what was gathered goes out with one
//! system call.

use std::fmt;
use std::time::Instant;

use super::channel::Channel;

/// Gathers the calls that are started on a channel, by any of its users, and sends them together when it is dropped, as
/// far as there is room for them. They are sent earlier when a reply is waited for over this channel, or when there are
/// 32 KiB of them; so an open batch delays calls, but holds nothing up that is waited for.
///
/// A system call costs more than everything else that is done for a small call: many calls in flight are several times
/// faster by batches.
///
/// ```no_run
/// use tenon::Client;
///
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3)?;
/// let batch = nfs.channel().batch();
/// let pings = (0..16)
///     .map(|_| nfs.onc().start(0, |_arguments| Ok(()), |_result| Ok(())))
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
        self.lock().open_batches += 1;
        Batch(self)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open_batches -= 1;
        if state.open_batches == 0 && state.needs_sender() {
            // What finds no room is sent by the callers that wait for replies.
            drop(self.0.transmit(state, Instant::now()));
        }
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

//! A call whose reply is fetched later.

use std::fmt;
use std::time::Duration;

use tenon_wire::{Buffer, DecodeError, Decoder};

use crate::channel::Ticket;
use crate::client::Decoding;
use crate::error::CallError;

/// A call that has been sent. Dropping it gives the call up: the peer may still carry it out, its
/// reply is ignored. On UDP a lost call is sent again only while somebody waits.
#[must_use = "dropping a pending call gives it up"]
pub struct PendingCall<T> {
    ticket: Ticket,
    decoding: Decoding,
    decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    /// What has come before anybody waited for good.
    early: Option<Result<Buffer, CallError>>,
}

impl<T> PendingCall<T> {
    pub(crate) fn new(
        ticket: Ticket,
        decoding: Decoding,
        decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Self {
        Self {
            ticket,
            decoding,
            decode,
            early: None,
        }
    }

    /// Waits for the reply until the call's deadline and decodes its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub fn wait(self) -> Result<T, CallError> {
        let Some(early) = self.early else {
            let reply = self.ticket.wait()?;
            return self.decoding.decode(reply.results(), self.decode);
        };
        let results = early?;
        let value = self.decoding.decode(results.as_slice(), self.decode);
        self.ticket.recycle(results);
        value
    }

    /// Whether [`wait`](Self::wait) would return at once. Looks, and does not wait.
    pub fn is_ready(&mut self) -> bool {
        self.wait_for(Duration::ZERO)
    }

    /// Waits no longer than `limit`, and says whether [`wait`](Self::wait) would return at once.
    pub fn wait_for(&mut self, limit: Duration) -> bool {
        if self.early.is_none() {
            self.early = self.ticket.wait_for(limit).transpose();
        }
        self.early.is_some()
    }
}

impl<T> fmt::Debug for PendingCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall")
            .field("is_ready", &self.early.is_some())
            .finish_non_exhaustive()
    }
}

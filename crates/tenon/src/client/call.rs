//! A call in flight, as the caller that waits for its reply has it, and its reply.

use std::sync::Arc;
use std::time::Duration;

use tenon_core::ReplyMetadata;
use tenon_core::client::{ReplyExtensions, ResultBytes, Results};
use tenon_core::error::CallError;
use tenon_core::profile::{Note, Probe};
use tenon_core::timer::CallTimer;
use tenon_proto::lean::{ByteOrder, Stamps};
use tenon_wire::Buffer;

use super::channel::Channel;
use super::reader::ReaderRole;
use super::state::ChannelState;
use super::waiters::WaiterId;

/// A call that awaits its reply; its caller waits for that now or later.
#[derive(Debug)]
pub(super) struct InFlightCall {
    /// Its waiter, until the call is over or given up.
    pub(super) waiter: Option<WaiterId>,
    pub(super) timer: CallTimer,
}

impl InFlightCall {
    /// A call that has no waiter yet.
    #[inline]
    pub(super) fn new(timer: CallTimer) -> Self {
        Self {
            waiter: None,
            timer,
        }
    }

    /// Returns whether it has not ended, as far as is known, and needs no other connection.
    fn is_under_way(&self, state: &ChannelState) -> bool {
        let has_outcome = self
            .waiter
            .is_none_or(|waiter| state.waiters.has_outcome(waiter));
        !has_outcome && state.link.is_some() && !self.timer.is_over()
    }

    /// Gives the call up on `channel`, if it is not over.
    #[inline]
    pub(super) fn end(&mut self, channel: &Channel) {
        if let Some(waiter) = self.waiter.take() {
            channel.give_up(waiter);
        }
    }
}

/// A call that is waited for at once. Dropping it gives the call up.
pub(super) struct BlockingCall<'c> {
    pub(super) channel: &'c Channel,
    pub(super) flight: InFlightCall,
}

impl Drop for BlockingCall<'_> {
    #[inline]
    fn drop(&mut self) {
        self.flight.end(self.channel);
    }
}

/// A started call; any thread may fetch its reply later. Dropping it gives the call up.
#[derive(Debug)]
pub(super) struct CallHandle {
    channel: Channel,
    flight: InFlightCall,
    /// Place for the metadata of its reply, if that is wanted.
    reply_metadata: Option<Arc<ReplyMetadata>>,
}

impl CallHandle {
    pub(super) fn new(channel: Channel, flight: InFlightCall) -> Self {
        Self {
            channel,
            flight,
            reply_metadata: None,
        }
    }

    /// Has the metadata of the reply put there, too.
    pub(super) fn want_metadata(&mut self, place: Option<&Arc<ReplyMetadata>>) {
        self.reply_metadata = place.cloned();
    }

    /// Waits for the reply.
    pub(super) fn wait(&mut self, probe: impl Probe) -> Result<ReceivedReply<'_>, CallError> {
        let Self {
            channel,
            flight,
            reply_metadata,
        } = self;
        let mut replied = match channel.take_delivered(channel.lock(), flight) {
            Ok(reply) => reply,
            Err(state) => {
                let until = flight.timer.deadline().into();
                let reply = channel.wait_for_reply(state, flight, until, probe);
                reply.and_then(|reply| reply.ok_or_else(|| flight.timer.error(true)))
            }
        };
        if let Some(place) = reply_metadata {
            keep_metadata(&mut replied, place);
        }
        let mut reply = replied?;
        reply.tell(probe);
        Ok(reply)
    }

    /// Waits for the reply, but not for longer than `limit`, and returns a copy of its results.
    pub(super) fn wait_for(
        &mut self,
        limit: Duration,
        probe: impl Probe,
    ) -> Result<Option<CopiedResults>, CallError> {
        let until = CallTimer::start(limit).until();
        let state = self.channel.lock();
        // Steps alone send and receive, and have the descriptor show what comes behind them.
        if limit.is_zero() && state.is_stepped && self.flight.is_under_way(&state) {
            return Ok(None);
        }
        let reply = self
            .channel
            .wait_for_reply(state, &mut self.flight, until, probe)
            .transpose();
        let Some(mut replied) = reply else {
            return Ok(None);
        };
        if let Some(place) = &self.reply_metadata {
            keep_metadata(&mut replied, place);
        }
        let mut reply = replied?;
        reply.tell(probe);
        let mut bytes = self.channel.buffer();
        let (results, order) = reply.results();
        bytes.extend(results);
        Ok(Some(CopiedResults { bytes, order }))
    }

    /// Gives a copy back.
    pub(super) fn recycle(&self, copy: Buffer) {
        self.channel.recycle(copy);
    }
}

/// Puts the metadata of a reply, or of the exception in its place, where it is wanted.
#[cold]
pub(super) fn keep_metadata(
    replied: &mut Result<ReceivedReply<'_>, CallError>,
    place: &ReplyMetadata,
) {
    place.set_of(match replied {
        Ok(reply) => Ok(reply.extensions()),
        Err(error) => Err(error),
    });
}

impl Drop for CallHandle {
    #[inline]
    fn drop(&mut self) {
        self.flight.end(&self.channel);
    }
}

/// A copy of the encoded results of a call.
#[derive(Debug)]
pub(super) struct CopiedResults {
    pub(super) bytes: Buffer,
    /// The order of their bytes.
    pub(super) order: ByteOrder,
}

/// The reply to a call.
pub(super) enum ReceivedReply<'c> {
    /// In the memory that it was received into: its caller is the reader.
    InPlace(ReaderRole<'c>),
    /// Elsewhere.
    Delivered(DeliveredReply<'c>),
}

/// The reply to a call that another caller has read.
pub(super) struct DeliveredReply<'c> {
    pub(super) results: Results,
    pub(super) channel: &'c Channel,
}

impl ReceivedReply<'_> {
    /// Returns the encoded results, and the order of their bytes.
    #[inline(always)]
    pub(super) fn results(&mut self) -> (&[u8], ByteOrder) {
        match self {
            Self::InPlace(reader) => {
                let half = reader.half();
                let order = half.own.order;
                (half.results(), order)
            }
            Self::Delivered(reply) => (reply.results.bytes.as_slice(), reply.results.order),
        }
    }

    /// Returns what the server says in the reply beside the results.
    pub(super) fn extensions(&mut self) -> Option<&ReplyExtensions> {
        match self {
            Self::InPlace(reader) => reader.extensions(),
            Self::Delivered(reply) => reply.results.extensions.as_deref(),
        }
    }

    /// Tells a probe that the reply was found, and what the server says of the call's way.
    #[inline]
    pub(super) fn tell(&mut self, probe: impl Probe) {
        match self {
            Self::InPlace(reader) => {
                probe.found(|| -> Option<Stamps> { reader.extensions()?.stamps })
            }
            Self::Delivered(reply) => {
                let note: Option<&Note> = reply.results.note.as_deref();
                probe.fetched(note);
            }
        }
    }
}

impl Drop for DeliveredReply<'_> {
    #[inline]
    fn drop(&mut self) {
        if let ResultBytes::Copied(bytes) = &mut self.results.bytes {
            self.channel.recycle(std::mem::take(bytes));
        }
    }
}

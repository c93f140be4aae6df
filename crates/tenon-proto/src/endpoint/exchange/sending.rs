//! A message that is being sent: its fragments, and what has become of each.

use std::time::Instant;

use tenon_wire::Buffer;

use super::DATAGRAM_DEFAULT;
use super::ack::ReceivedFragments;
use super::sent_fragments::{AckOutcome, PacketCount, SentFragments};
use super::spare::{KEPT_BY_SERVER, SpareBuffers};

/// Bytes of every fragment of a message but the last, at least.
pub(super) const FRAGMENT_MIN: usize = 1024;

/// A message that is being sent, or was, and may be again.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessage {
    /// Stands in front of the message: the binding of a service, or the answer to it.
    prefix: Buffer,
    message: Buffer,
    fragment_bytes: usize,
    /// Packets that a fragment counts as: it is more than one if it is larger than an Ethernet takes.
    weight: u32,
    /// 0 if there is no message.
    count: u32,
    sent: SentFragments,
}

impl OutgoingMessage {
    /// Takes an answer, in exchange for an empty buffer, to be sent in fragments of so many bytes.
    /// What stands in front of it is written by `prefix`.
    #[inline]
    pub(super) fn begin(
        &mut self,
        message: &mut Buffer,
        fragment_bytes: usize,
        prefix: impl FnOnce(&mut Buffer),
    ) {
        self.forget();
        // A short answer does not keep the memory of a long one until the next call.
        match message.capacity() > KEPT_BY_SERVER && message.len() <= KEPT_BY_SERVER {
            true => self.copy(message),
            false => self.take(message),
        }
        self.restart(fragment_bytes, prefix);
    }

    /// Takes a message, in exchange for an empty buffer, which is to be [begun](Self::restart). There is none
    /// that was not [forgotten](Self::forget).
    #[inline]
    pub(super) fn take(&mut self, message: &mut Buffer) {
        std::mem::swap(&mut self.message, message);
    }

    #[cold]
    fn copy(&mut self, message: &mut Buffer) {
        self.message.extend(message.as_slice());
        message.clear();
    }

    /// Begins to send the same message anew.
    #[inline]
    pub(super) fn restart(&mut self, fragment_bytes: usize, prefix: impl FnOnce(&mut Buffer)) {
        self.prefix.clear();
        prefix(&mut self.prefix);
        self.fragment_bytes = fragment_bytes.max(FRAGMENT_MIN);
        let bytes = self.bytes();
        // A division takes longer than all else here, and most messages are short.
        self.count = match bytes <= self.fragment_bytes {
            true => 1,
            false => u32::try_from(bytes.div_ceil(self.fragment_bytes)).unwrap_or(u32::MAX),
        };
        let largest = self.fragment_bytes.min(bytes);
        self.weight = largest.div_ceil(DATAGRAM_DEFAULT).max(1) as u32;
        self.sent.clear();
    }

    /// Drops the message. Its memory is [still there](Self::spare).
    #[inline]
    pub(super) fn forget(&mut self) {
        self.message.clear();
        self.prefix.clear();
        self.count = 0;
        self.sent.clear();
    }

    /// Gives the memory of a message back that was dropped.
    #[inline]
    pub(super) fn spare(&mut self, spare: &mut SpareBuffers) {
        spare.take_message(&mut self.message);
    }

    pub(super) fn message_mut(&mut self) -> &mut Buffer {
        &mut self.message
    }

    /// Bytes of the whole.
    pub(super) fn bytes(&self) -> usize {
        self.prefix.len() + self.message.len()
    }

    /// Bytes of memory that the message has, if it is more than lanes keep.
    #[inline]
    pub(super) fn bytes_beyond_kept(&self) -> usize {
        match self.message.capacity() {
            kept if kept <= KEPT_BY_SERVER => 0,
            bytes => bytes,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn has_all_arrived(&self) -> bool {
        self.sent.arrived_below() == u64::from(self.count)
    }

    /// Returns whether any fragment was sent.
    pub(super) fn is_begun(&self) -> bool {
        self.sent.next() > 0
    }

    /// Returns whether all fragments were sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.next() == u64::from(self.count)
    }

    /// Packets that are under way.
    pub(super) fn under_way(&self) -> u32 {
        self.sent.under_way()
    }

    /// Packets that a fragment counts as.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// The fragment that is to be sent next.
    #[inline]
    pub(super) fn next_fragment(&mut self) -> Option<u32> {
        let next = self.sent.next_to_send(self.count.into())?;
        Some(next as u32)
    }

    /// Returns whether nothing can be sent behind this fragment before something arrives.
    #[inline]
    pub(super) fn is_end(&self, fragment: u32) -> bool {
        fragment + 1 == self.count || u64::from(fragment) + 1 >= self.sent.window_end()
    }

    /// Returns whether a fragment was sent before.
    pub(super) fn is_repeated(&self, fragment: u32) -> bool {
        self.sent.is_repeated(fragment.into())
    }

    /// A fragment is sent, as the `order`th of all packets. Says whether it is under way in addition
    /// to those that were.
    #[inline]
    pub(super) fn sent(&mut self, fragment: u32, order: u64, now: Instant) -> bool {
        self.sent.sent(fragment.into(), self.weight, order, now)
    }

    /// Appends a fragment's bytes.
    #[inline]
    pub(super) fn put(&self, fragment: u32, out: &mut Buffer) {
        let begin = fragment as usize * self.fragment_bytes;
        let end = (begin + self.fragment_bytes).min(self.bytes());
        let prefix = self.prefix.as_slice();
        let front = prefix.get(begin..end.min(prefix.len())).unwrap_or_default();
        out.extend(front);
        let skipped = prefix.len();
        let message = begin.saturating_sub(skipped)..end.saturating_sub(skipped);
        out.extend(&self.message.as_slice()[message]);
    }

    /// All has arrived, as the answer says.
    #[inline]
    pub(super) fn all_arrived(&mut self, now: Instant) -> AckOutcome {
        self.sent.all_arrived(self.count.into(), now)
    }

    /// Takes in what the other end has.
    pub(super) fn handle_arrived(
        &mut self,
        arrived: &ReceivedFragments<'_>,
        now: Instant,
    ) -> AckOutcome {
        self.sent.handle_arrived(arrived, now)
    }

    /// As [`SentFragments::send_again`].
    pub(super) fn send_again(&mut self, all: bool) -> PacketCount {
        self.sent.send_again(all)
    }
}

//! The direction of a stream of bytes that this end sends.

use std::collections::VecDeque;
use std::time::Instant;

use tenon_wire::Buffer;

use crate::endpoint::exchange::DATAGRAM_DEFAULT;
use crate::endpoint::exchange::WINDOW;
use crate::endpoint::exchange::ack::ReceivedFragments;
use crate::endpoint::exchange::packet::DropReason;
use crate::endpoint::exchange::sent_fragments::{AckOutcome, PacketCount, SentFragments};

/// Fragments that may be sent before the receiver has said how many it takes.
pub(super) const LIMIT_FIRST: u64 = 16;

/// Bytes that are taken from the writer before any of them is sent.
const UNSENT_MAX: usize = 256 << 10;

/// Empty buffers that are kept for further fragments.
const SPARE_MAX: usize = 64;

/// Bytes to be sent, cut into fragments. A fragment that was sent keeps its number and its bytes until it has arrived.
#[derive(Debug)]
pub(super) struct OutgoingBytes {
    /// From the first fragment that has not arrived on.
    fragments: VecDeque<Buffer>,
    sent: SentFragments,
    /// Bytes of a fragment at most.
    room: usize,
    /// The receiver takes the fragments before this one.
    limit: u64,
    is_finished: bool,
    spare: Vec<Buffer>,
}

impl OutgoingBytes {
    /// Nothing is written yet. A fragment has up to `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        Self {
            fragments: VecDeque::new(),
            sent: SentFragments::default(),
            room,
            limit: LIMIT_FIRST,
            is_finished: false,
            spare: Vec::new(),
        }
    }

    /// Fragments that are cut from now on have up to so many bytes.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Returns how many bytes may be written now.
    pub(super) fn free(&self) -> usize {
        if self.is_finished {
            return 0;
        }
        let unsent = (self.end() - self.sent.next()) as usize;
        let fragments_max = (UNSENT_MAX / self.room).max(2);
        let in_last = self.unsent_last().map_or(0, |last| self.room - last);
        fragments_max.saturating_sub(unsent) * self.room + in_last
    }

    /// Bytes of the last fragment, if it was not sent and is not full.
    fn unsent_last(&self) -> Option<usize> {
        let length = self.fragments.back()?.len();
        (self.end() > self.sent.next() && length < self.room).then_some(length)
    }

    /// Appends bytes. The caller has asked how many are [free](Self::free).
    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        if let Some(length) = self.unsent_last()
            && let Some(last) = self.fragments.back_mut()
        {
            let (front, rest) = bytes.split_at(bytes.len().min(self.room - length));
            last.extend(front);
            bytes = rest;
        }
        for piece in bytes.chunks(self.room) {
            let mut fragment = self.spare.pop().unwrap_or_default();
            fragment.extend(piece);
            self.fragments.push_back(fragment);
        }
    }

    /// No more bytes are written. The last fragment says so, and is empty if all others were sent.
    pub(super) fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) && self.end() == self.sent.next() {
            self.fragments.push_back(Buffer::default());
        }
    }

    /// The fragment behind the last one.
    fn end(&self) -> u64 {
        self.sent.arrived_below() + self.fragments.len() as u64
    }

    /// Returns whether everything has arrived, and nothing more is written.
    pub(super) fn has_all_arrived(&self) -> bool {
        self.is_finished && self.fragments.is_empty()
    }

    /// Returns whether something is under way, or is to be sent again.
    pub(super) fn has_unarrived(&self) -> bool {
        self.sent.next() > self.sent.arrived_below()
    }

    /// Returns whether there is something to send that the receiver does not take yet.
    pub(super) fn is_blocked(&self) -> bool {
        !self.has_unarrived() && self.end() > self.sent.next() && self.limit <= self.sent.next()
    }

    /// Returns the fragment that is to be sent next.
    pub(super) fn next(&mut self) -> Option<u64> {
        let end = self.end().min(self.limit);
        self.sent.next_to_send(end)
    }

    /// Returns whether no fragment is behind this one that may be sent before something arrives.
    pub(super) fn is_end(&self, fragment: u64) -> bool {
        let end = self.end().min(self.limit).min(self.sent.window_end());
        fragment + 1 >= end
    }

    /// Returns whether a fragment is the last of the stream.
    pub(super) fn is_last(&self, fragment: u64) -> bool {
        self.is_finished && fragment + 1 == self.end()
    }

    /// Returns whether a fragment was sent before.
    pub(super) fn is_repeated(&self, fragment: u64) -> bool {
        self.sent.is_repeated(fragment)
    }

    fn bytes_of(&self, fragment: u64) -> &[u8] {
        let index = fragment.checked_sub(self.sent.arrived_below());
        let fragment = index.and_then(|index| self.fragments.get(index as usize));
        fragment.map_or(&[], Buffer::as_slice)
    }

    /// Packets that a fragment counts as: it is more than one if it is larger than an Ethernet takes.
    pub(super) fn weight(&self, fragment: u64) -> u32 {
        let bytes = self.bytes_of(fragment).len();
        bytes.div_ceil(DATAGRAM_DEFAULT).max(1) as u32
    }

    /// Appends a fragment's bytes, which are sent as the `order`th of all packets. Says whether it is under way in
    /// addition to those that were.
    pub(super) fn send(
        &mut self,
        fragment: u64,
        order: u64,
        now: Instant,
        out: &mut Buffer,
    ) -> bool {
        out.extend(self.bytes_of(fragment));
        let weight = self.weight(fragment);
        self.sent.sent(fragment, weight, order, now)
    }

    /// Takes in which fragments the receiver has, and how many it takes.
    pub(super) fn handle_ack(
        &mut self,
        (fragment, limit): (u32, u32),
        bitmap: &[u8],
        now: Instant,
    ) -> Result<AckOutcome, DropReason> {
        let from = self.sent.arrived_below();
        // An acknowledgement that others have overtaken says nothing new.
        let ahead = fragment.wrapping_sub(from as u32);
        if ahead > u32::MAX / 2 {
            return Err(DropReason::Repeated);
        }
        let below = from + u64::from(ahead);
        let more = limit.wrapping_sub(fragment);
        if below > self.sent.next() || more > WINDOW {
            return Err(DropReason::Malformed);
        }
        let arrived = ReceivedFragments::get(below, bitmap)?;
        self.limit = self.limit.max(below + u64::from(more));
        let outcome = self.sent.handle_arrived(&arrived, now);
        for _ in from..self.sent.arrived_below() {
            if let Some(mut fragment) = self.fragments.pop_front()
                && self.spare.len() < SPARE_MAX
            {
                fragment.clear();
                self.spare.push(fragment);
            }
        }
        Ok(outcome)
    }

    /// As [`SentFragments::send_again`].
    pub(super) fn send_again(&mut self, all: bool) -> PacketCount {
        self.sent.send_again(all)
    }
}

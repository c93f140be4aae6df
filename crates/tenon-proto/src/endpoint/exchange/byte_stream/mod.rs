//! A stream of bytes in packets, both ways: it carries a connection of the lean protocol where a socket for datagrams is
//! all there is, for the calls that the lanes of a conversation do not carry, as those with streams. Each stream has a
//! conversation of its own, which is begun as others are. `docs/exchange.md` specifies it.
//!
//! The courses of loss detection, congestion control and acknowledgement are those of messages of several fragments; but
//! the number of fragments is not known beforehand, and the receiver says how many it takes.

pub mod client;
mod incoming;
mod outgoing;
pub mod server;

use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::ack::put_bitmap;
use super::congestion::CongestionController;
use super::opening::{ConversationOpening, OPENING};
use super::packet::{ASKS, DropReason, HeaderTemplate, OPENS, PacketHeader, PacketKind};
use super::sent_fragments::AckOutcome;
use super::time::{RetransmitTimeouts, RttEstimator, SplitMix64};
use incoming::IncomingBytes;
use outgoing::OutgoingBytes;

/// Times that something is sent again in vain, at least, before the peer is taken to be gone.
const IN_VAIN_MIN: u32 = 4;

/// What `detail` is in a packet with the last fragment.
const IS_LAST: u16 = 1;

/// One end of a stream of bytes.
#[derive(Debug)]
pub struct ByteStream {
    conversation: u64,
    prototype: HeaderTemplate,
    /// Precedes the fragments of a client that has not heard of its server in this conversation.
    opening: Option<ConversationOpening>,
    /// Bytes of a fragment at most.
    room: usize,
    outgoing: OutgoingBytes,
    incoming: IncomingBytes,
    congestion: CongestionController,
    round_trip: RttEstimator,
    patience: RetransmitTimeouts,
    rng: SplitMix64,
    /// Packets sent.
    order: u64,
    /// The time at which something is sent again.
    retransmit_at: Option<Instant>,
    /// Times that something was sent again since anything has arrived.
    in_vain: u32,
    /// A fragment is sent whatever the window says, to learn whether anything arrives.
    is_retrying: bool,
    heard_at: Instant,
    /// The time of the first packet to which an answer is awaited, if none has come since.
    asked_at: Option<Instant>,
    probed_at: Instant,
    owes_probe: bool,
    end: Option<ByteStreamEnd>,
}

/// The reason for which a stream of bytes ended before both ends had finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ByteStreamEnd {
    /// The peer does not know it, or no longer.
    Reset,
    /// The peer is silent.
    Silent,
}

impl ByteStream {
    fn new(
        conversation: u64,
        opening: Option<ConversationOpening>,
        room: usize,
        patience: RetransmitTimeouts,
        seed: u64,
        now: Instant,
    ) -> Self {
        let room_first = match opening {
            Some(_) => room - OPENING,
            None => room,
        };
        Self {
            conversation,
            prototype: HeaderTemplate::new(conversation),
            opening,
            room,
            outgoing: OutgoingBytes::new(room_first),
            incoming: IncomingBytes::new(room),
            congestion: CongestionController::new(room),
            round_trip: RttEstimator::new(patience),
            patience,
            rng: SplitMix64(seed),
            order: 0,
            retransmit_at: None,
            in_vain: 0,
            is_retrying: false,
            heard_at: now,
            asked_at: None,
            probed_at: now,
            owes_probe: false,
            end: None,
        }
    }

    // ---- Bytes ----

    /// Returns how many bytes may be written now.
    pub fn free(&self) -> usize {
        match self.end {
            None => self.outgoing.free(),
            Some(_) => 0,
        }
    }

    /// Appends bytes to what is sent: no more than are [free](Self::free).
    pub fn write(&mut self, bytes: &[u8]) {
        self.outgoing.write(bytes);
    }

    /// No more bytes are written. The peer is told so behind those that were.
    pub fn finish(&mut self) {
        self.outgoing.finish();
    }

    /// Returns whether all that was written has arrived, and the peer knows that nothing follows.
    pub fn has_all_arrived(&self) -> bool {
        self.outgoing.has_all_arrived()
    }

    /// Returns bytes that have come and are to be read next.
    pub fn ready(&self) -> &[u8] {
        self.incoming.ready()
    }

    /// So many of the bytes that are ready were read.
    pub fn consume(&mut self, bytes: usize) {
        self.incoming.consume(bytes);
    }

    /// Returns whether the peer has finished, and all that it wrote was read.
    pub fn has_ended(&self) -> bool {
        self.incoming.has_ended()
    }

    /// Returns the reason for which nothing more comes and nothing more is sent, though not both ends have finished.
    pub fn end(&self) -> Option<ByteStreamEnd> {
        self.end
    }

    /// Returns whether what was sent has been sent again and again in vain.
    pub fn is_unanswered(&self) -> bool {
        self.in_vain >= IN_VAIN_MIN
    }

    /// Returns whether nothing more happens: both ends have finished, or it has [ended](Self::end).
    pub fn is_over(&self) -> bool {
        let is_whole = self.has_all_arrived() && self.has_ended() && !self.incoming.owes_ack;
        is_whole || self.end.is_some()
    }

    // ---- Packets ----

    /// Takes in a packet of this conversation. `body` stands behind its header and its opening.
    fn handle_packet(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        if self.end.is_some() {
            return Err(DropReason::Stale);
        }
        match header.kind {
            PacketKind::Data => {
                self.note_heard(now, header);
                let is_last = match header.detail {
                    0 => false,
                    IS_LAST => true,
                    _ => return Err(DropReason::Malformed),
                };
                self.incoming.take(header.fragment, is_last, body)
            }
            PacketKind::DataAck => {
                self.note_heard(now, header);
                let fields = (header.fragment, header.fragments);
                let outcome = self.outgoing.handle_ack(fields, body, now)?;
                self.learn(&outcome, now);
                Ok(())
            }
            PacketKind::DataEnd => {
                self.end = Some(ByteStreamEnd::Reset);
                Ok(())
            }
            _ => Err(DropReason::WrongEnd),
        }
    }

    /// The peer is there, and knows the stream.
    fn note_heard(&mut self, now: Instant, header: &PacketHeader) {
        self.heard_at = now;
        self.asked_at = None;
        if self.opening.take().is_some() {
            self.outgoing.set_room(self.room);
        }
        self.incoming.owes_ack |= header.has(ASKS);
    }

    fn learn(&mut self, outcome: &AckOutcome, now: Instant) {
        if let Some(trip) = outcome.trip {
            self.round_trip.measure(trip);
        }
        self.congestion.handle_ack(outcome, now);
        if outcome.arrived.count > 0 {
            self.in_vain = 0;
        }
        self.retransmit_at = None;
        if self.outgoing.has_unarrived() {
            let wait = self.round_trip.wait(self.in_vain, &mut self.rng);
            self.retransmit_at = Some(now + wait);
        }
    }

    /// Appends the next packet that is to be sent; returns whether there is one.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        if self.end.is_some() {
            return false;
        }
        if std::mem::take(&mut self.owes_probe) {
            self.put_ack(ASKS, out);
            self.asked_at.get_or_insert(now);
            self.probed_at = now;
            return true;
        }
        // A server that was not heard may not know the stream: only what opens it is for that one.
        if self.incoming.owes_ack && self.opening.is_none() {
            self.put_ack(0, out);
            return true;
        }
        self.transmit_fragment(now, out)
    }

    fn put_ack(&mut self, flags: u8, out: &mut Buffer) {
        let (fragment, fragments) = self.incoming.begin_ack();
        let header = PacketHeader {
            flags,
            fragment,
            fragments,
            ..PacketHeader::plain(PacketKind::DataAck, self.conversation, 0, 0)
        };
        let (below, held) = self.incoming.held();
        self.prototype
            .put(out, &header, |out| put_bitmap(out, below, held));
    }

    fn transmit_fragment(&mut self, now: Instant, out: &mut Buffer) -> bool {
        let Some(fragment) = self.outgoing.next() else {
            return false;
        };
        if !std::mem::take(&mut self.is_retrying) && !self.congestion.has_room() {
            return false;
        }
        let weight = self.outgoing.weight(fragment);
        let is_pause = self.outgoing.is_end(fragment)
            || self.outgoing.is_repeated(fragment)
            || self.congestion.is_last(weight)
            || self.congestion.is_half(weight);
        let opens = match self.opening {
            Some(_) => OPENS,
            None => 0,
        };
        let header = PacketHeader {
            flags: opens | if is_pause { ASKS } else { 0 },
            detail: if self.outgoing.is_last(fragment) {
                IS_LAST
            } else {
                0
            },
            fragment: fragment as u32,
            ..PacketHeader::plain(PacketKind::Data, self.conversation, 0, 0)
        };
        self.order += 1;
        let (order, opening, outgoing) = (self.order, &self.opening, &mut self.outgoing);
        let mut is_more = false;
        self.prototype.put(out, &header, |out| {
            if let Some(opening) = opening {
                opening.put(out);
            }
            is_more = outgoing.send(fragment, order, now, out);
        });
        if is_more {
            self.congestion.sent(weight);
        }
        if is_pause {
            self.asked_at.get_or_insert(now);
        }
        let wait = self.round_trip.wait(self.in_vain, &mut self.rng);
        self.retransmit_at = Some(now + wait);
        true
    }

    /// Appends the packet that tells the peer that this end has forgotten the stream.
    pub fn put_end(&self, out: &mut Buffer) {
        let header = PacketHeader::plain(PacketKind::DataEnd, self.conversation, 0, 0);
        self.prototype.put(out, &header, |_| {});
    }

    // ---- Time ----

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.end.is_some() {
            return None;
        }
        let probe_at = self.next_probe();
        Some(self.retransmit_at.map_or(probe_at, |at| at.min(probe_at)))
    }

    /// Returns when the peer is asked for its state though there is nothing to send.
    fn next_probe(&self) -> Instant {
        let is_waiting = self.asked_at.is_some() || self.outgoing.is_blocked();
        let interval = match is_waiting {
            true => self.patience.probe,
            false => self.patience.silence / 2,
        };
        self.heard_at.max(self.probed_at) + interval
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.end.is_some() {
            return;
        }
        let silent_for = |asked_at| now.saturating_duration_since(asked_at);
        let silence = self.asked_at.map_or(Duration::ZERO, silent_for);
        let is_asked_enough = self.is_unanswered() || self.retransmit_at.is_none();
        if silence >= self.patience.silence && is_asked_enough {
            self.end = Some(ByteStreamEnd::Silent);
            return;
        }
        if self.retransmit_at.is_some_and(|at| at <= now) {
            self.send_again(now);
        }
        if self.next_probe() <= now {
            // The fragments of a client that was never answered ask by themselves.
            self.owes_probe = self.opening.is_none();
            self.probed_at = now;
        }
    }

    fn send_again(&mut self, now: Instant) {
        self.retransmit_at = None;
        if !self.outgoing.has_unarrived() {
            return;
        }
        self.in_vain += 1;
        let all = self.in_vain > 1;
        let lost = self.outgoing.send_again(all);
        self.congestion.handle_timeout(lost, all, now);
        self.is_retrying = true;
        let wait = self.round_trip.wait(self.in_vain, &mut self.rng);
        self.retransmit_at = Some(now + wait);
    }
}

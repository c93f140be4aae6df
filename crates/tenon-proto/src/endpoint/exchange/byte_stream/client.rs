//! The end of a stream of bytes that begins it.

use std::time::Instant;

use tenon_wire::Buffer;

use super::ByteStream;
use crate::config::{ConnectionConfig, Role};
use crate::endpoint::exchange::datagram_max;
use crate::endpoint::exchange::opening::{ConversationOpening, TransportParameters, WelcomePacket};
use crate::endpoint::exchange::packet::{
    DropReason, HeaderTemplate, PACKET_HEADER, PacketHeader, PacketKind, decode,
};
use crate::endpoint::exchange::time::{RetransmitTimeouts, RttEstimator, SplitMix64};
use crate::lean::{RefusalReason, Refused};

/// Begins a stream of bytes: asks the server for a cookie until it gives one, or refuses.
#[derive(Debug)]
pub struct ByteStreamHandshake {
    conversation: u64,
    own: TransportParameters,
    patience: RetransmitTimeouts,
    round_trip: RttEstimator,
    rng: SplitMix64,
    sent: u32,
    sent_at: Instant,
    timer: Instant,
}

impl ByteStreamHandshake {
    /// Begins at `now`, with a number that no other host can foresee.
    pub fn new(
        config: &ConnectionConfig,
        datagram_bytes: usize,
        patience: RetransmitTimeouts,
        conversation: u64,
        now: Instant,
    ) -> Self {
        Self {
            conversation,
            own: TransportParameters {
                preamble: config.preamble(Role::Client),
                datagram_max: datagram_max(datagram_bytes, usize::MAX) as u32,
            },
            patience,
            round_trip: RttEstimator::new(patience),
            rng: SplitMix64(conversation),
            sent: 0,
            sent_at: now,
            timer: now,
        }
    }

    /// Appends a packet if one is due by `now`.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        if now < self.timer {
            return false;
        }
        let wait = self.round_trip.wait(self.sent, &mut self.rng);
        self.sent += 1;
        (self.sent_at, self.timer) = (now, now + wait);
        let header = PacketHeader::plain(PacketKind::Hello, self.conversation, 0, self.sent);
        let own = self.own;
        HeaderTemplate::new(self.conversation).put(out, &header, |out| own.put_hello(out));
        true
    }

    /// Returns when the next packet is due.
    pub fn poll_timeout(&self) -> Instant {
        self.timer
    }

    /// Takes in a datagram that has come; returns the stream, or why there is none, if it decides that.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Option<Result<Box<ByteStream>, Refused>> {
        let (header, body) = decode(datagram).ok()?;
        if header.kind != PacketKind::Welcome || header.conversation != self.conversation {
            return None;
        }
        let welcome = WelcomePacket::get(body).ok()?;
        if header.sequence == self.sent {
            let trip = now.saturating_duration_since(self.sent_at);
            self.round_trip.measure(trip);
        }
        let opened = self.judge(&welcome);
        Some(opened.map(|()| Box::new(self.open(&welcome, now))))
    }

    fn judge(&self, welcome: &WelcomePacket) -> Result<(), Refused> {
        let (theirs, ours) = (welcome.facts.preamble, self.own.preamble.versions);
        let reason = match (theirs.refusal, ours.common(theirs.versions)) {
            (Some(reason), _) => reason,
            (None, None) => RefusalReason::VERSION,
            (None, Some(_)) => return Ok(()),
        };
        Err(Refused {
            reason,
            theirs: theirs.versions,
            ours,
        })
    }

    fn open(&self, welcome: &WelcomePacket, now: Instant) -> ByteStream {
        let theirs = welcome.facts.datagram_max as usize;
        let datagram = datagram_max(self.own.datagram_max as usize, theirs);
        let opening = ConversationOpening {
            cookie: welcome.cookie,
            facts: self.own,
        };
        let room = datagram - PACKET_HEADER;
        let (number, seed) = (self.conversation, self.conversation);
        ByteStream::new(number, Some(opening), room, self.patience, seed, now)
    }
}

impl ByteStream {
    /// Takes in a datagram that the server has sent.
    ///
    /// # Errors
    /// It is no packet of this stream.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), DropReason> {
        let (header, body) = decode(datagram)?;
        match header.conversation == self.conversation {
            true => self.handle_packet(now, &header, body),
            false => Err(DropReason::Stale),
        }
    }
}

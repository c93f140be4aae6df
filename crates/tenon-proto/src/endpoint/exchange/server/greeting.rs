//! Conversations: begun and refused.

use std::time::Instant;

use super::conversation::Conversation;
use super::{PeerAddress, ServerCore, StatelessReply};
use crate::endpoint::exchange::datagram_max;
use crate::endpoint::exchange::opening::{ConversationOpening, TransportParameters, WelcomePacket};
use crate::endpoint::exchange::packet::{
    DropReason, OPENS, PACKET_HEADER, PacketHeader, PacketKind,
};
use crate::lean::RefusalReason;

/// Answers to peers without a conversation that wait to be sent; what is more is dropped.
const STRAY_MAX: usize = 256;

impl<A: PeerAddress> ServerCore<A> {
    #[cold]
    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        from: A,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let theirs = TransportParameters::of_hello(body)?.preamble;
        let ours = self.preamble;
        let reason = match ours.versions.common(theirs.versions) {
            _ if self.is_closed => Some(RefusalReason::STOPPING),
            _ if theirs.refusal.is_some() => return Err(DropReason::Malformed),
            None => Some(RefusalReason::VERSION),
            Some(_) if !self.may_find_room(now, from) => Some(RefusalReason::BUSY),
            Some(_) => None,
        };
        let preamble = reason.map_or(ours, |reason| ours.refusing(reason));
        let retention = self.limits.retention.as_millis();
        let welcome = WelcomePacket {
            facts: TransportParameters {
                preamble,
                ..self.facts_for(from)
            },
            incarnation: self.incarnation,
            cookie: self.cookies.give(now, &from),
            retention_ms: u32::try_from(retention).unwrap_or(u32::MAX),
        };
        let header =
            PacketHeader::plain(PacketKind::Welcome, header.conversation, 0, header.sequence);
        self.answer_stray(from, header, Some(welcome));
        Ok(())
    }

    pub(super) fn has_room(&self, from: A) -> bool {
        let host = self.hosts.get(&from.host());
        let of_host = host.map_or(0, |host| host.conversations);
        self.conversations.len() < self.limits.conversations
            && of_host < self.limits.conversations_of_host
    }

    fn answer_stray(&mut self, to: A, header: PacketHeader, welcome: Option<WelcomePacket>) {
        if self.stray.len() < STRAY_MAX {
            self.stray.push_back(StatelessReply {
                to,
                header,
                welcome,
            });
        }
    }

    /// Finds the conversation of a packet, or begins it; what is left of the packet's body.
    #[inline]
    pub(super) fn find_conversation<'d>(
        &mut self,
        now: Instant,
        from: A,
        header: &PacketHeader,
        body: &'d [u8],
    ) -> Result<&'d [u8], DropReason> {
        match self.conversations.get_mut(header.conversation) {
            Some(conversation) if conversation.peer == from => {
                conversation.heard_at = now;
                match header.has(OPENS) {
                    false => Ok(body),
                    true => ConversationOpening::get(body).map(|(_, rest)| rest),
                }
            }
            Some(_) => {
                self.reset(now, from, header, true);
                Err(DropReason::OtherAddress)
            }
            None => self.open_conversation(now, from, header, body),
        }
    }

    #[cold]
    fn open_conversation<'d>(
        &mut self,
        now: Instant,
        from: A,
        header: &PacketHeader,
        body: &'d [u8],
    ) -> Result<&'d [u8], DropReason> {
        if !header.has(OPENS) {
            self.reset(now, from, header, false);
            return Err(DropReason::Stale);
        }
        let (opening, rest) = ConversationOpening::get(body)?;
        let Some(expiry) = self.cookies.expiry(now, &from, &opening.cookie) else {
            // A packet that its client has sent from there, before it moved, may begin the conversation yet.
            let may_begin = self.cookies.may_be_of_another(now, &opening.cookie);
            self.reset(now, from, header, may_begin);
            return Err(DropReason::Stale);
        };
        if self.over.has(header.conversation, now) {
            self.reset(now, from, header, true);
            return Err(DropReason::Stale);
        }
        // The client is not told: the same packet may come again, and find room.
        if self.is_closed || !self.make_room(now, from) {
            return Err(DropReason::Full);
        }
        let datagram = datagram_max(
            self.facts_for(from).datagram_max as usize,
            opening.facts.datagram_max as usize,
        );
        let conversation = Conversation::new(
            header.conversation,
            from,
            expiry,
            opening.facts.preamble,
            datagram - PACKET_HEADER,
            self.limits.patience,
            now,
        );
        self.conversations.insert(header.conversation, conversation);
        self.hosts.entry(from.host()).or_default().conversations += 1;
        self.counters.conversations += 1;
        Ok(rest)
    }

    /// Tells a client that a conversation is not known, and for how long it would have been.
    #[cold]
    fn reset(&mut self, now: Instant, to: A, header: &PacketHeader, may_be_of_other: bool) {
        if header.kind == PacketKind::Ack {
            return;
        }
        // A client that this run has told that it stops was forgotten at once, with the calls that it had begun.
        let since = self
            .farewell_at
            .map_or(self.started, |at| at.max(self.started));
        let since = self.reclaimed_heard_at.map_or(since, |at| at.max(since));
        let known = now.saturating_duration_since(since);
        let memory = match may_be_of_other {
            true => 0,
            false => known.min(self.limits.retention).as_millis(),
        };
        let reset = PacketHeader {
            fragment: self.incarnation,
            fragments: u32::try_from(memory).unwrap_or(u32::MAX),
            ..PacketHeader::plain(
                PacketKind::Reset,
                header.conversation,
                header.lane,
                header.sequence,
            )
        };
        self.answer_stray(to, reset, None);
    }
}

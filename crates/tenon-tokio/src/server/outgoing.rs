//! Replies of ONC RPC for which the socket had no room.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon::runtime::{Offer, SEND_PATIENCE, note_sent};
use tenon::wire::Buffer;
use tenon_net::{Carrier, Train};
use tenon_proto::onc::record;

use crate::watch::is_for_now;

/// How long until it is looked again whether there is room. Having the poller say so would cost every reply that
/// leaves a wake-up of it.
const AGAIN: Duration = Duration::from_millis(1);

/// Replies that wait for room, for as long as one at a synchronous server does.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<(Buffer, SocketAddr)>,
    since: Option<Instant>,
    again_at: Option<Instant>,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends a message, unless others wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room, or others wait for it; what the system reports.
    pub(super) fn try_send(
        &self,
        carrier: &Carrier,
        message: &[u8],
        peer: SocketAddr,
    ) -> io::Result<()> {
        match self.is_empty() {
            true => send(carrier, message, peer),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Keeps a reply until there is room.
    pub(super) fn put_off(&mut self, reply: Buffer, peer: SocketAddr, now: Instant) {
        self.waiting.push_back((reply, peer));
        self.since.get_or_insert(now);
        self.again_at.get_or_insert(now + AGAIN);
    }

    /// When to look again whether there is room.
    pub(super) fn next_attempt(&self) -> Option<Instant> {
        self.again_at
    }

    /// Sends what there is room for now. What has waited for too long is dropped; its peer calls again.
    pub(super) fn try_again(&mut self, offer: &Offer, carrier: &Carrier, now: Instant) {
        if self.again_at.is_none_or(|at| at > now) {
            return;
        }
        let is_late = self.since.is_some_and(|since| now >= since + SEND_PATIENCE);
        while let Some((reply, peer)) = self.waiting.pop_front() {
            match send(carrier, record::message(&reply), peer) {
                Err(error) if is_for_now(&error) && !is_late => {
                    self.waiting.push_front((reply, peer));
                    self.again_at = Some(now + AGAIN);
                    return;
                }
                sent => note_sent(offer, sent, peer),
            }
        }
        (self.since, self.again_at) = (None, None);
    }
}

fn send(carrier: &Carrier, message: &[u8], peer: SocketAddr) -> io::Result<()> {
    let sent = carrier.try_send_to(Train::one(message), peer);
    sent.map(|_| ())
}

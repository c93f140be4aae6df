//! Messages of ONC RPC that are datagrams: which are answered, which are carried out, and which have been.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_net::{Datagram, Transport};
use tenon_proto::onc::duplicates::{CallKey, DuplicateCache, DuplicateLimits, Verdict};
use tenon_proto::onc::message::Refused;
use tenon_proto::onc::record;
use tenon_proto::onc::server::{Call, Received, Reply};
use tenon_wire::Buffer;

use super::offer::Offer;

/// How long a reply waits for room in the socket before it is dropped; the peer repeats its call.
pub const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// The calls that came to a port in datagrams, so that each is carried out once.
#[derive(Debug)]
pub struct Duplicates {
    transport: Transport,
    cache: DuplicateCache<SocketAddr>,
}

/// What a datagram asks for.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is looked at where it is made, and most are calls"
)]
pub enum Wanted<'m> {
    /// Nothing that is to be answered now.
    Nothing,
    /// Something that is answered: the reply is to be sent.
    Answered,
    /// To carry a call out, once, and to [finish](Duplicates::finish) it.
    Call(CallKey<SocketAddr>, Call<'m>),
}

impl Duplicates {
    /// Of a port that is opened now, and nobody has called yet.
    pub fn new(transport: Transport, limits: DuplicateLimits) -> Self {
        let cache = DuplicateCache::new(limits);
        Self { transport, cache }
    }

    /// Finds out what a message asks for. `out` is empty; what can be answered without a service is in it.
    pub fn judge<'m>(
        &mut self,
        offer: &Offer,
        message: &'m [u8],
        peer: SocketAddr,
        out: &mut Buffer,
    ) -> Wanted<'m> {
        if !carries_onc(self.transport) {
            tracing::debug!(%peer, "dropping a datagram that is no packet");
            offer.tally.datagrams_dropped.up();
            return Wanted::Nothing;
        }
        match offer.services.receive(message, &offer.tally) {
            Received::Ping(xid) => {
                let _ = Reply::begin(out, xid);
                Wanted::Answered
            }
            Received::Refuse(xid, refused) => {
                let _ = Reply::begin(out, xid).refuse(out, refused);
                Wanted::Answered
            }
            Received::Unanswerable(violation) => {
                tracing::debug!(%peer, %violation, "dropping a datagram");
                Wanted::Nothing
            }
            Received::Call(call) => self.admit(offer, call, peer, out),
        }
    }

    /// Lets a call through that is new; answers or drops one that is not.
    fn admit<'m>(
        &mut self,
        offer: &Offer,
        call: Call<'m>,
        peer: SocketAddr,
        out: &mut Buffer,
    ) -> Wanted<'m> {
        let key = CallKey::new(peer, &call);
        match self.cache.check(key, Instant::now()) {
            Verdict::New => Wanted::Call(key, call),
            Verdict::Done(reply) => {
                offer.tally.duplicates_answered.up();
                record::put_message(out, reply);
                Wanted::Answered
            }
            Verdict::InProgress | Verdict::Full => {
                offer.tally.datagrams_dropped.up();
                Wanted::Nothing
            }
        }
    }

    /// Remembers the reply to a call that was carried out, which is all that is in `out`. A refusal takes the place
    /// of one that does not fit into a datagram.
    pub fn finish(
        &mut self,
        offer: &Offer,
        key: &CallKey<SocketAddr>,
        xid: u32,
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        let bytes = record::message(out).len();
        if bytes > Datagram::SIZE_MAX {
            offer.tally.replies_too_large.up();
            tracing::warn!(%peer, bytes, "a reply does not fit into a datagram");
            out.clear();
            let _ = Reply::begin(out, xid).refuse(out, Refused::SystemError);
        }
        self.cache.finish(key, record::message(out), Instant::now());
    }

    /// There is no room for a call that was let through: the peer repeats it.
    pub fn drop_call(&mut self, offer: &Offer, key: &CallKey<SocketAddr>) {
        offer.tally.datagrams_dropped.up();
        self.cache.forget(key);
    }
}

/// Whether datagrams of ONC RPC are taken that come through a transport. They have no check of their own.
fn carries_onc(transport: Transport) -> bool {
    match transport {
        Transport::Tcp | Transport::Unix | Transport::Udp | Transport::Shm => true,
        Transport::Xdp => false,
    }
}

/// Counts a reply that could not be sent. The peer repeats its call.
pub fn note(offer: &Offer, sent: io::Result<()>, peer: SocketAddr) {
    if let Err(error) = sent {
        offer.tally.datagrams_dropped.up();
        tracing::debug!(%peer, %error, "a reply could not be sent");
    }
}

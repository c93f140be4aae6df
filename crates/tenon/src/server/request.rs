//! What a connection asks for: what the engine answers itself is answered here, the rest is for whoever
//! executes calls.

use tenon_proto::lean;
use tenon_proto::onc::server::{Call, Received, Reply};
use tenon_wire::Buffer;

use super::offer::Offer;
use super::reason::Reason;
use super::reception::Reception;

/// What a connection asks for.
#[derive(Debug)]
pub enum Request<'m> {
    /// Nothing that has come whole.
    None,
    /// Something that is answered now, or needs no answer.
    Handled,
    /// The same, with a reply that says [when it is sent](super::stamp_replies).
    HandledStamped,
    /// To execute a call by ONC RPC, and the message that it is.
    Onc(Call<'m>, &'m [u8]),
    /// To execute a call by the lean protocol.
    Lean(lean::server::Call<'m>),
    /// That this lean call be given up.
    Cancel(u32),
}

impl Reception {
    /// What has come next as a whole. What can be answered without a service is, in `replies`.
    ///
    /// # Errors
    /// The connection is to end. What is in `replies` is still to be sent.
    #[inline]
    pub fn next_request(
        &mut self,
        offer: &Offer,
        replies: &mut Buffer,
    ) -> Result<Request<'_>, Reason> {
        match self {
            Self::Onc(reader) => match reader.next_record().map_err(Reason::Record)? {
                Some(record) => understand(record, offer, replies),
                None => Ok(Request::None),
            },
            Self::Lean(lean) => lean.next_request(offer, replies),
            Self::Unknown(_) => Ok(Request::None),
        }
    }
}

#[inline]
fn understand<'m>(
    record: &'m [u8],
    offer: &Offer,
    replies: &mut Buffer,
) -> Result<Request<'m>, Reason> {
    let reply = match offer.services.receive(record, &offer.tally) {
        Received::Call(call) => return Ok(Request::Onc(call, record)),
        Received::Unanswerable(violation) => return Err(Reason::Message(violation)),
        Received::Ping(xid) => Reply::begin(replies, xid),
        Received::Refuse(xid, refused) => Reply::begin(replies, xid).refuse(replies, refused),
    };
    reply.seal(replies, offer.fragment_max);
    Ok(Request::Handled)
}

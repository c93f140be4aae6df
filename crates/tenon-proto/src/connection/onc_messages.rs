//! Messages of ONC RPC (RFC 5531 section 9): calls of the peer and replies to calls of this end.

use tenon_wire::{BStr, Buffer, Decoder};

use super::incoming_calls::{Caller, IncomingCall, NULL_PROCEDURE, ReplyDraft};
use super::service_table::ServiceTable;
use super::{Connection, ConnectionError, Event, PeerClosing, WireProtocol};
use crate::codec::lean::{ByteOrder, CallStreams, Close, CloseReason, Extensions};
use crate::codec::onc::auth::Credential;
use crate::codec::onc::message::{BadCall, CallHeader, Refused};
use crate::codec::onc::record::{self, MARK};
use crate::codec::onc::reply;

/// The second word of a reply, behind its number: one.
const REPLY: [u8; 4] = [0, 0, 0, 1];

impl<W> Connection<W> {
    #[inline]
    pub(super) fn handle_record<'m>(
        &mut self,
        record: &'m [u8],
        services: &ServiceTable,
    ) -> Result<Event<'m, W>, ConnectionError> {
        self.protocol = Some(WireProtocol::Onc);
        // What an end that has never called gets is no reply.
        let is_reply = record.get(4..8) == Some(&REPLY) && self.outgoing.has_called();
        if is_reply || self.config.incoming_calls_max == 0 {
            return Ok(match self.outgoing.handle_onc_reply(record)? {
                Some(answer) => Event::Answered(answer),
                None if record == reply::CLOSE_NOTICE => self.handle_close_notice(),
                None => Event::Handled,
            });
        }
        self.handle_onc_call(record, services)
    }

    /// Takes in that the peer has answered all calls that it has carried out, and closes the connection.
    #[cold]
    fn handle_close_notice<'m>(&mut self) -> Event<'m, W> {
        self.closing.peer = Some(None);
        let unbegun = self.outgoing.abandon_behind(None);
        for call in unbegun.iter().filter(|call| !call.was_sent) {
            self.send_queue.remove(call.number);
        }
        let close = Close {
            reason: CloseReason::STOPPING,
            last_call: None,
            message: BStr::new(b""),
        };
        Event::PeerClosing(PeerClosing { close, unbegun })
    }

    /// Tells the peer, unless it speaks the lean protocol, that all calls are answered which were carried out, and that no
    /// others are. The connection is to be closed behind it, and nothing received any more.
    pub fn push_close_notice(&mut self) {
        if self.protocol != Some(WireProtocol::Lean) {
            let mut notice = std::mem::take(&mut self.scratch);
            notice.room(MARK);
            notice.extend(&reply::CLOSE_NOTICE);
            record::seal(&mut notice, 0, self.config.fragment_max);
            self.push_own_reply(notice);
        }
    }

    #[inline]
    fn handle_onc_call<'m>(
        &mut self,
        record: &'m [u8],
        services: &ServiceTable,
    ) -> Result<Event<'m, W>, ConnectionError> {
        let fragment_max = self.config.fragment_max;
        match understand(record, services, fragment_max) {
            Ok(call) if call.procedure == NULL_PROCEDURE => {
                self.incoming.counters.pings += 1;
                let mut reply = std::mem::take(&mut self.scratch);
                ReplyDraft::begin(&mut reply, call.caller).seal(&mut reply);
                self.push_own_reply(reply);
                Ok(Event::Handled)
            }
            Ok(call) => {
                self.incoming.counters.calls += 1;
                Ok(Event::Called(call))
            }
            Err(BadCall::Refuse { xid, refused }) => {
                self.incoming.counters.refusals += 1;
                let mut reply = std::mem::take(&mut self.scratch);
                reply::OncReplyDraft::begin(&mut reply, xid)
                    .refuse(&mut reply, refused)
                    .seal(&mut reply, fragment_max);
                self.push_own_reply(reply);
                Ok(Event::Handled)
            }
            Err(BadCall::Unanswerable(violation)) => Err(violation.into()),
        }
    }

    fn push_own_reply(&mut self, mut reply: Buffer) {
        self.send_queue.push(&mut reply, None);
        self.scratch = reply;
    }
}

/// Finds out what a message of ONC RPC asks for. The credential is judged before the program, as libtirpc does it,
/// and for procedure 0 as for any other.
#[inline]
pub(crate) fn understand<'m>(
    message: &'m [u8],
    services: &ServiceTable,
    fragment_max: usize,
) -> Result<IncomingCall<'m>, BadCall> {
    let mut input = Decoder::new(message);
    let header = CallHeader::decode(&mut input)?;
    let xid = header.xid;
    let refuse = |refused| BadCall::Refuse { xid, refused };
    let credential = Credential::from_opaque(header.credential)
        .map_err(|stat| refuse(Refused::Authentication(stat)))?;
    let service = services
        .find(header.program, header.version)
        .map_err(refuse)?;
    Ok(IncomingCall {
        service,
        procedure: header.procedure,
        credential,
        time_left: None,
        extensions: Extensions::none(ByteOrder::Big),
        wants_stamps: false,
        streams: CallStreams::NONE,
        order: ByteOrder::Big,
        arguments: input.rest(),
        caller: Caller::Onc { xid, fragment_max },
    })
}

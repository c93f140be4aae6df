//! Requests that are whole, and their answers.

use tenon_wire::Buffer;

use super::conversation::ServerLaneState;
use super::{CallKey, ExchangeRequest, PeerAddress, ServerCore};
use crate::codec::onc::auth::Credential;
use crate::connection::{self, IncomingCall, ServiceTable};
use crate::endpoint::exchange::ack::CallStatus;
use crate::endpoint::exchange::content::{RequestAction, RequestContent};
use crate::endpoint::exchange::packet::{DropReason, PacketHeader, PacketKind};
use crate::endpoint::exchange::spare::KEPT_BY_SERVER;
use crate::lean::{CallStreams, Caller, Exception, Features, ReplyDraft, Status};

impl<A: PeerAddress> ServerCore<A> {
    #[inline]
    pub(super) fn judge<'m>(
        &mut self,
        key: CallKey,
        message: &'m [u8],
        services: &ServiceTable,
    ) -> Option<ExchangeRequest<'m>> {
        let conversation = self.conversations.get_mut(key.conversation)?;
        let index = conversation.index_of(key.lane)?;
        let asked = RequestContent::read(message, conversation.client.order, key.sequence);
        let question = match asked {
            Ok(question) => question,
            Err(_) => {
                conversation.lanes[index].end(CallStatus::Malformed);
                self.counters.refusals += 1;
                self.counters.ignored.count(DropReason::Malformed);
                self.make_owing(key);
                return None;
            }
        };
        let caller = Caller::new(
            &question.call.header,
            self.preamble.order,
            conversation.client.message_max,
        );
        conversation.lanes[index].caller = Some(caller);
        if let Some(bind) = &question.bind {
            let number = question.call.header.service;
            let found = services.bind(bind);
            if let Err(unbound) =
                found.and_then(|found| conversation.bind(index, number, bind, found))
            {
                self.scratch.clear();
                unbound.encode(&mut self.scratch, self.preamble.order, number, false);
                return self.refuse(key, caller, &Exception::new(Status::UNBOUND, ""));
            }
        }
        let header = &question.call.header;
        let service = conversation.service(header.service, header.procedure);
        self.scratch.clear();
        let wants_stamps = question.asks_for_stamps()
            && self.preamble.features.has(Features::STAMPS)
            && conversation.client.features.has(Features::STAMPS);
        match question.judge(service, self.is_closed, self.limits.metadata_max) {
            RequestAction::Call { service, parts } => {
                self.counters.calls += 1;
                let call = IncomingCall {
                    service,
                    procedure: question.call.header.procedure.into(),
                    credential: parts.extensions.credential(),
                    time_left: parts.time_left,
                    extensions: parts.extensions,
                    wants_stamps,
                    streams: CallStreams::NONE,
                    order: question.call.order,
                    arguments: parts.body,
                    caller: connection::Caller::Lean(caller),
                };
                Some(ExchangeRequest { key, call })
            }
            RequestAction::Ping if wants_stamps => {
                self.counters.pings += 1;
                let call = IncomingCall {
                    service: 0,
                    procedure: question.call.header.procedure.into(),
                    credential: Credential::None,
                    time_left: None,
                    extensions: question.extensions(),
                    wants_stamps,
                    streams: CallStreams::NONE,
                    order: question.call.order,
                    arguments: &[],
                    caller: connection::Caller::Lean(caller),
                };
                Some(ExchangeRequest { key, call })
            }
            RequestAction::Ping => {
                self.counters.pings += 1;
                ReplyDraft::begin(&mut self.scratch, caller).seal(&mut self.scratch);
                self.answer_by_itself(key);
                None
            }
            RequestAction::Refused(refused) => self.refuse(key, caller, &refused.exception()),
        }
    }

    /// Answers a call with an exception, behind what is in `scratch`.
    #[cold]
    fn refuse<'m>(
        &mut self,
        key: CallKey,
        caller: Caller,
        exception: &Exception<'_>,
    ) -> Option<ExchangeRequest<'m>> {
        self.counters.refusals += 1;
        let reply = ReplyDraft::begin(&mut self.scratch, caller);
        reply
            .refuse(&mut self.scratch, exception)
            .seal(&mut self.scratch);
        self.answer_by_itself(key);
        None
    }

    fn make_owing(&mut self, key: CallKey) {
        let header = PacketHeader::plain(PacketKind::Ack, key.conversation, key.lane, key.sequence);
        let conversation = self.conversations.get(key.conversation);
        let index = conversation.and_then(|conversation| conversation.index_of(key.lane));
        if let Some(index) = index {
            self.charge(key.conversation, index);
            self.owe_ack(&header, index);
        }
    }

    fn answer_by_itself(&mut self, key: CallKey) {
        let mut answer = std::mem::take(&mut self.scratch);
        self.send_answer(key, &mut answer);
        self.scratch = answer;
    }

    pub(super) fn reply(&mut self, key: CallKey, message: &mut Buffer) -> bool {
        let bytes = message.len();
        // One that every lane has room for is always taken: the call was carried out.
        let is_full = bytes > KEPT_BY_SERVER && !self.can_keep(key.conversation, bytes);
        let Some(conversation) = self.conversations.get_mut(key.conversation) else {
            return false;
        };
        let Some(lane) = conversation.lane_mut(key.lane) else {
            return false;
        };
        if lane.sequence != key.sequence {
            return false;
        }
        match (lane.stage, lane.caller) {
            (ServerLaneState::Running, Some(caller)) => {
                if is_full {
                    refuse_for_room(message, caller);
                }
                self.send_answer(key, message);
                true
            }
            (ServerLaneState::Cancelled, _) => {
                lane.end(CallStatus::Over);
                message.clear();
                self.make_owing(key);
                false
            }
            (
                ServerLaneState::Running
                | ServerLaneState::Receiving
                | ServerLaneState::Answered
                | ServerLaneState::Over(_),
                _,
            ) => false,
        }
    }

    fn send_answer(&mut self, key: CallKey, message: &mut Buffer) {
        let Some(conversation) = self.conversations.get_mut(key.conversation) else {
            return;
        };
        let Some(index) = conversation.index_of(key.lane) else {
            return;
        };
        conversation.begin_answer(index, message, self.preamble.order);
        self.spare.lend_message(message);
        self.wait_for(key.conversation, index);
        self.charge(key.conversation, index);
        self.make_ready(key.conversation, key.lane);
    }

    /// Has an answer of several fragments sent again until it has arrived.
    pub(super) fn wait_for(&mut self, id: u64, index: usize) {
        if let Ok(lane) = self.lane(id, index)
            && lane.sending.count() > 1
            && !std::mem::replace(&mut lane.is_timed, true)
        {
            let number = lane.number;
            self.timed.push((id, number));
        }
    }
}

/// Puts an exception in the place of a result that there is no room for.
#[cold]
fn refuse_for_room(message: &mut Buffer, caller: Caller) {
    message.clear();
    let exception = Exception::new(Status::TOO_LARGE, "the server has no room for the result");
    let reply = ReplyDraft::begin(message, caller);
    reply.refuse(message, &exception).seal(message);
}

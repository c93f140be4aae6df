//! Calls: begun, given up, ended.

use std::sync::Arc;
use std::time::Instant;

use tenon_wire::Buffer;

use super::lane::{ClientLane, ClientLaneState, LaneCall};
use super::{
    BindingState, CallId, ClientCore, ClientEvent, ConversationState, Outgoing, ServiceBinding,
};
use crate::connection::{BindError, StartError};
use crate::endpoint::exchange::failure::{Failure, Reason};
use crate::endpoint::exchange::reassembled::content_max;
use crate::lean::{BindRefusal, BindRequest, ByteOrder, CALLS_MIN, HEADER, Interface};

impl<W> ClientCore<W> {
    #[inline]
    pub(super) fn bind(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
    ) -> Result<u16, BindError> {
        let known = self.bindings.iter().position(|binding| {
            Arc::ptr_eq(&binding.interface, interface) || *binding.interface == **interface
        });
        let Some(number) = known else {
            return self.push_binding(interface, BindingState::Asked);
        };
        match &self.bindings[number].state {
            BindingState::Asked | BindingState::Bound => Ok(number as u16),
            _ => self.bind_narrowed(number, procedure),
        }
    }

    fn push_binding(
        &mut self,
        interface: &Arc<Interface>,
        state: BindingState,
    ) -> Result<u16, BindError> {
        let number = u16::try_from(self.bindings.len()).map_err(|_| BindError::NoNumbers)?;
        self.bindings.push(ServiceBinding {
            interface: Arc::clone(interface),
            state,
            narrowed: None,
        });
        Ok(number)
    }

    /// Returns the number by which a procedure of a service is called that is not bound as a whole.
    #[cold]
    fn bind_narrowed(&mut self, number: usize, procedure: u16) -> Result<u16, BindError> {
        let binding = &self.bindings[number];
        match (self.narrowed(number as u16, procedure), &binding.state) {
            (Some(narrowed), _) => Ok(narrowed),
            (None, BindingState::Refused(refusal)) => Err(BindError::Refused(Arc::clone(refusal))),
            (None, BindingState::Narrowed { refusal, .. }) => {
                let refusal = refusal.of_procedure(&binding.interface, procedure);
                Err(BindError::Refused(Arc::new(refusal)))
            }
            (None, _) => Ok(number as u16),
        }
    }

    /// Returns the number by which a procedure of a service is called, if the service is bound for some procedures only
    /// and this is one of them.
    fn narrowed(&self, number: u16, procedure: u16) -> Option<u16> {
        let binding = self.bindings.get(usize::from(number))?;
        let BindingState::Narrowed { agreed, .. } = &binding.state else {
            return None;
        };
        let has = procedure == 0 || agreed.binary_search(&procedure).is_ok();
        binding.narrowed.filter(|_| has)
    }

    /// Takes in which procedures of a service agree that is not bound as a whole.
    #[cold]
    pub(super) fn narrow(&mut self, number: u16, refusal: BindRefusal, agreed: Vec<u16>) {
        let number = usize::from(number);
        let interface = Arc::clone(&self.bindings[number].interface);
        let narrowed = match self.bindings[number].narrowed {
            Some(narrowed) => Ok(narrowed),
            None => self.push_binding(&interface, BindingState::Procedures(Vec::new())),
        };
        let binding = &mut self.bindings[number];
        binding.narrowed = narrowed.ok();
        binding.state = match binding.narrowed {
            Some(_) if !agreed.is_empty() => BindingState::Narrowed {
                refusal: Box::new(refusal),
                agreed,
            },
            _ => BindingState::Refused(Arc::new(refusal)),
        };
    }

    /// Sends a call again, by the fingerprint of its procedure, that the server did not begin as the fingerprints of
    /// the versions differ; returns whether.
    #[cold]
    pub(super) fn call_by_procedure(&mut self, number: u16) -> bool {
        let lane = &self.lanes[usize::from(number)];
        let ClientLaneState::Calling(pending) = &lane.stage else {
            return false;
        };
        let Some(service) = self.narrowed(pending.service, pending.procedure) else {
            return false;
        };
        let lane = &mut self.lanes[usize::from(number)];
        if let ClientLaneState::Calling(pending) = &mut lane.stage {
            pending.service = service;
        }
        self.congestion.forget(lane.sending.under_way());
        if lane.assembly.is_begun() {
            self.bytes -= lane.assembly.bytes();
        }
        lane.begin_anew();
        self.prepare(number);
        true
    }

    pub(super) fn start(
        &mut self,
        now: Instant,
        call: &Outgoing,
        message: &mut Buffer,
        waiter: W,
    ) -> Result<CallId, StartError> {
        assert!(message.len() >= HEADER, "a message has a header");
        let number = self.free_lane(message.len())?;
        self.serial = self.serial.wrapping_add(1);
        let id = CallId {
            lane: number,
            serial: self.serial,
        };
        let pending = LaneCall {
            waiter,
            id,
            service: call.service,
            procedure: call.procedure,
            deadline: call.deadline,
        };
        let lane = &mut self.lanes[usize::from(number)];
        lane.begin(pending);
        self.calling += 1;
        lane.sending.take(message);
        self.spare.lend_message(message);
        self.counters.calls += 1;
        match self.link {
            ConversationState::Open(_) => self.prepare(number),
            ConversationState::Idle => {
                lane.sending.restart(usize::MAX, |_| {});
                self.greet(now);
            }
            ConversationState::Greeting(_) => lane.sending.restart(usize::MAX, |_| {}),
        }
        Ok(id)
    }

    /// Calls that the server takes in one conversation. Until it has said how many, further ones wait here.
    pub(super) fn lanes_max(&self) -> usize {
        let calls_max = (self.peer.as_ref()).map_or(CALLS_MIN, |peer| peer.calls_max);
        (calls_max as usize).min(usize::from(u16::MAX))
    }

    /// A lane for a message of so many bytes.
    fn free_lane(&mut self, size: usize) -> Result<u16, StartError> {
        if let Some(peer) = &self.peer
            && size > peer.message_max as usize
        {
            let limit = peer.message_max as usize;
            return Err(StartError::TooLarge { size, limit });
        }
        let limit = self.lanes_max();
        if self.lanes.len() - self.free.len() >= limit {
            return Err(StartError::TooManyCalls { limit });
        }
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        let bytes_max = content_max(&self.own.preamble);
        self.lanes.push(ClientLane::new(bytes_max));
        Ok((self.lanes.len() - 1) as u16)
    }

    /// Cuts a call into fragments for the conversation that there is, and has it sent.
    pub(super) fn prepare(&mut self, number: u16) {
        let ConversationState::Open(open) = &self.link else {
            return;
        };
        let lane = &mut self.lanes[usize::from(number)];
        let ClientLaneState::Calling(pending) = &lane.stage else {
            return;
        };
        let (service, procedure) = (pending.service, pending.procedure);
        let order = self.own.preamble.order;
        stamp(lane.sending.message_mut(), order, lane.sequence, service);
        let binding = self.bindings.get(usize::from(service));
        let bind = binding.and_then(|binding| binding.request(procedure));
        lane.sending.restart(open.fragment_bytes(), |prefix| {
            if let Some(bind) = bind {
                bind.encode(prefix, order, service, false);
            }
        });
        self.make_ready(number);
    }

    pub(super) fn make_ready(&mut self, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        if !std::mem::replace(&mut lane.is_ready, true) {
            self.ready.push_back(number);
        }
    }

    /// Calls that waited for room in the window.
    pub(super) fn wake(&mut self) {
        if !self.congestion.has_room() || !std::mem::take(&mut self.has_waiting) {
            return;
        }
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.make_ready(number as u16);
            }
        }
    }

    /// The number of the lane that carries a call, if it is in flight: that on which it was begun, unless a
    /// server that followed grants fewer.
    pub(super) fn lane_with(&self, id: CallId) -> Option<u16> {
        let carries = |lane: &ClientLane<W>| match &lane.stage {
            ClientLaneState::Calling(pending) => pending.id == id,
            ClientLaneState::GivenUp | ClientLaneState::Free => false,
        };
        match self.lanes.get(usize::from(id.lane)) {
            Some(lane) if carries(lane) => Some(id.lane),
            Some(_) | None => {
                let number = self.lanes.iter().position(carries)?;
                Some(number as u16)
            }
        }
    }

    pub(super) fn cancel(&mut self, id: CallId) -> Option<W> {
        let number = self.lane_with(id)?;
        self.counters.cancellations += 1;
        self.give_up(number).map(|pending| pending.waiter)
    }

    /// Gives a call up that is not waited for any more. Its lane is free when the server says that it is over.
    fn give_up(&mut self, number: u16) -> Option<LaneCall<W>> {
        let is_open = matches!(self.link, ConversationState::Open(_));
        let lane = &mut self.lanes[usize::from(number)];
        if !is_open || !lane.sending.is_begun() {
            return self.end(number);
        }
        let ClientLaneState::Calling(pending) =
            std::mem::replace(&mut lane.stage, ClientLaneState::GivenUp)
        else {
            return None;
        };
        self.calling -= 1;
        self.clear(number);
        let lane = &mut self.lanes[usize::from(number)];
        lane.owes_cancel = true;
        lane.timer = None;
        lane.in_vain = 0;
        self.make_ready(number);
        Some(pending)
    }

    /// Forgets what a call sends and receives.
    pub(super) fn clear(&mut self, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        self.congestion.forget(lane.sending.under_way());
        lane.sending.forget();
        lane.sending.spare(&mut self.spare);
        if lane.assembly.is_begun() {
            self.bytes -= lane.assembly.bytes();
            lane.assembly.clear();
        }
        self.wake();
    }

    /// A lane is free; the call that it carried.
    pub(super) fn end(&mut self, number: u16) -> Option<LaneCall<W>> {
        let lane = &mut self.lanes[usize::from(number)];
        lane.rest();
        let stage = std::mem::replace(&mut lane.stage, ClientLaneState::Free);
        self.clear(number);
        match stage {
            ClientLaneState::Free => None,
            ClientLaneState::GivenUp => {
                self.free.push(number);
                None
            }
            ClientLaneState::Calling(pending) => {
                self.calling -= 1;
                self.free.push(number);
                Some(pending)
            }
        }
    }

    /// A call comes to nothing, and its lane is free.
    pub(super) fn fail(&mut self, number: u16, reason: Reason) {
        let may_have_run = self.lanes[usize::from(number)].is_sent && reason.may_have_run();
        if let Some(pending) = self.end(number) {
            self.report(pending, reason, may_have_run);
        }
    }

    /// A call comes to nothing here, and the server is told.
    pub(super) fn fail_and_tell(&mut self, number: u16, reason: Reason) {
        let may_have_run = self.lanes[usize::from(number)].is_sent && reason.may_have_run();
        if let Some(pending) = self.give_up(number) {
            self.report(pending, reason, may_have_run);
        }
    }

    #[cold]
    pub(super) fn break_off(&mut self) -> Vec<W> {
        self.forget_conversation();
        let mut waiters = Vec::new();
        for number in 0..self.lanes.len() {
            waiters.extend(self.end(number as u16).map(|pending| pending.waiter));
        }
        waiters
    }

    pub(super) fn report(&mut self, pending: LaneCall<W>, reason: Reason, may_have_run: bool) {
        self.counters.failures += 1;
        self.events.push_back(ClientEvent::Failed {
            id: pending.id,
            waiter: pending.waiter,
            failure: Failure {
                reason,
                may_have_run,
            },
        });
    }
}

impl ServiceBinding {
    /// Returns what is to be asked for in front of a call of a procedure; `None` if it is bound.
    #[inline]
    fn request(&self, procedure: u16) -> Option<BindRequest> {
        match &self.state {
            BindingState::Bound => None,
            BindingState::Procedures(bound) if bound.contains(&procedure) => None,
            BindingState::Procedures(_) if procedure != 0 => {
                Some(BindRequest::of_procedures(&self.interface, &[procedure]))
            }
            _ => Some(BindRequest::of(&self.interface)),
        }
    }
}

/// Gives a call its number and its service.
fn stamp(message: &mut Buffer, order: ByteOrder, sequence: u32, service: u16) {
    let place = &mut message.as_mut_slice()[4..10];
    place[..4].copy_from_slice(&order.bytes_of_u32(sequence));
    place[4..].copy_from_slice(&order.bytes_of_u16(service));
}

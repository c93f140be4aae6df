//! Calls: begun, given up, ended.

use std::sync::Arc;
use std::time::Instant;

use tenon_wire::Buffer;

use super::lane::{Lane, Pending, Stage};
use super::{Binding, BindingState, CallId, ClientEvent, Core, Link, Outgoing};
use crate::connection::{BindError, StartError};
use crate::endpoint::exchange::failure::{Failure, Reason};
use crate::endpoint::exchange::whole::content_max;
use crate::lean::{Bind, ByteOrder, CALLS_MIN, HEADER, Interface};

impl<W> Core<W> {
    #[inline]
    pub(super) fn bind(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let known = self.bindings.iter().position(|binding| {
            Arc::ptr_eq(&binding.interface, interface) || *binding.interface == **interface
        });
        let Some(number) = known else {
            let number = u16::try_from(self.bindings.len()).map_err(|_| BindError::NoNumbers)?;
            self.bindings.push(Binding {
                interface: Arc::clone(interface),
                state: BindingState::Asked,
            });
            return Ok(number);
        };
        match &self.bindings[number].state {
            BindingState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal))),
            BindingState::Asked | BindingState::Bound => Ok(number as u16),
        }
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
        let pending = Pending {
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
            Link::Open(_) => self.prepare(number),
            Link::Idle => {
                lane.sending.restart(usize::MAX, |_| {});
                self.greet(now);
            }
            Link::Greeting(_) => lane.sending.restart(usize::MAX, |_| {}),
        }
        Ok(id)
    }

    /// A lane for a message of so many bytes.
    fn free_lane(&mut self, size: usize) -> Result<u16, StartError> {
        let calls_max = match &self.peer {
            Some(peer) if size > peer.message_max as usize => {
                let limit = peer.message_max as usize;
                return Err(StartError::TooLarge { size, limit });
            }
            Some(peer) => peer.calls_max,
            // Calls wait here until the server has said what it takes in.
            None => CALLS_MIN,
        };
        let limit = (calls_max as usize).min(usize::from(u16::MAX));
        if self.lanes.len() - self.free.len() >= limit {
            return Err(StartError::TooManyCalls { limit });
        }
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        let bytes_max = content_max(&self.own.preamble);
        self.lanes.push(Lane::new(bytes_max));
        Ok((self.lanes.len() - 1) as u16)
    }

    /// Cuts a call into fragments for the conversation that there is, and has it sent.
    pub(super) fn prepare(&mut self, number: u16) {
        let Link::Open(open) = &self.link else {
            return;
        };
        let lane = &mut self.lanes[usize::from(number)];
        let Stage::Calling(pending) = &lane.stage else {
            return;
        };
        let service = pending.service;
        let order = self.own.preamble.order;
        stamp(lane.sending.message_mut(), order, lane.sequence, service);
        let unbound = match self.bindings.get(usize::from(service)) {
            Some(Binding {
                state: BindingState::Bound,
                ..
            })
            | None => None,
            Some(binding) => Some(&binding.interface),
        };
        lane.sending.restart(open.fragment_bytes(), |prefix| {
            if let Some(interface) = unbound {
                Bind::of(interface).encode(prefix, order, service, false);
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
        let carries = |lane: &Lane<W>| match &lane.stage {
            Stage::Calling(pending) => pending.id == id,
            Stage::GivenUp | Stage::Free => false,
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

    /// Nobody waits for a call any more. Its lane is free when the server says that it is over.
    fn give_up(&mut self, number: u16) -> Option<Pending<W>> {
        let is_open = matches!(self.link, Link::Open(_));
        let lane = &mut self.lanes[usize::from(number)];
        if !is_open || !lane.sending.is_begun() {
            return self.end(number);
        }
        let Stage::Calling(pending) = std::mem::replace(&mut lane.stage, Stage::GivenUp) else {
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
    pub(super) fn end(&mut self, number: u16) -> Option<Pending<W>> {
        let lane = &mut self.lanes[usize::from(number)];
        lane.rest();
        let stage = std::mem::replace(&mut lane.stage, Stage::Free);
        self.clear(number);
        match stage {
            Stage::Free => None,
            Stage::GivenUp => {
                self.free.push(number);
                None
            }
            Stage::Calling(pending) => {
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

    pub(super) fn report(&mut self, pending: Pending<W>, reason: Reason, may_have_run: bool) {
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

/// Gives a call its number and its service.
fn stamp(message: &mut Buffer, order: ByteOrder, sequence: u32, service: u16) {
    let place = &mut message.as_mut_slice()[4..10];
    place[..4].copy_from_slice(&order.bytes_of_u32(sequence));
    place[4..].copy_from_slice(&order.bytes_of_u16(service));
}

//! A call that is alone: a short one by the lean protocol over a stream, while nobody else has a call in flight,
//! reads or sends, and nothing waits to be sent. Most calls are. It does what any other does, of which a straight
//! line is left then: the bookkeeping is locked once to send and to become the reader, and once behind the reply.
//! Whatever stands in its way or turns out otherwise is left to [sending](super::sending) and
//! [receiving](super::receiving), which know all that there can be.

use std::mem;

use tenon_wire::Buffer;

use super::engine::Engine;
use super::flight::{Flight, Locked};
use super::form::{Form, LeanForm, Started};
use super::receiving::Reader;
use super::slots::SlotId;
use super::state::State;
use super::{Channel, Timer};
use crate::account::{Step, Watcher};
use crate::options::ChannelOptions;

/// Bytes of the longest call that goes this way: a longer one gains nothing by it.
const SHORT: usize = 2048;

impl Channel {
    /// Makes a call that is alone, and returns whoever has its reply on the desk. None if it is not alone: then
    /// it is not begun, and `message` is as it was. Or if something else came than its reply: then it is in
    /// flight. What was locked then is left to whoever goes on.
    #[inline(never)]
    pub(super) fn call_alone<'c>(
        &'c self,
        flight: &mut Flight,
        message: &mut Buffer,
        form: &Form<'_>,
        locked: &mut Option<Locked<'c>>,
        watcher: impl Watcher,
    ) -> Option<Reader<'c>> {
        let mut reader = self.send_alone(flight, message, form, locked, watcher)?;
        let is_answered = reader.read_alone(flight, watcher);
        *flight.is_over.get_mut() = is_answered;
        is_answered.then_some(reader)
    }

    /// Sends it and becomes the reader.
    #[inline(always)]
    fn send_alone<'c>(
        &'c self,
        flight: &mut Flight,
        message: &mut Buffer,
        form: &Form<'_>,
        locked: &mut Option<Locked<'c>>,
        watcher: impl Watcher,
    ) -> Option<Reader<'c>> {
        let Form::Lean(form) = form else {
            return None;
        };
        let timer = &flight.timer;
        let size = form.draft.size(message);
        let mut state = self.lock();
        let Some(started) = state.may_start_alone(form, size, timer, self.options()) else {
            *locked = Some(Locked(state));
            return None;
        };
        let written = message.len();
        form.draft.finish(message, started.id, started.service);
        form.tell_time(message, timer);
        watcher.at(Step::Sending);
        let line = state.line.as_mut()?;
        match line.connection.try_send(message.as_slice(), 0) {
            Ok(sent) if sent == size => {}
            // Whoever waits for the reply sees to the rest.
            Ok(sent) => line.front.extend(&message.as_slice()[sent..]),
            Err(_) => {
                // The next attempt finds the same, and knows what to do.
                message.truncate(written);
                *locked = Some(Locked(state));
                return None;
            }
        }
        watcher.at(Step::Sent);
        // What follows takes its time while the peer is at the call; nobody can have seen the bookkeeping without it.
        line.used_at = timer.started;
        let is_whole = line.front.is_empty();
        let slot = state.start_alone(&started, timer);
        state.buffers.keep(mem::take(message));
        flight.begin(started, slot, None);
        match is_whole {
            true => self.read(&mut state),
            false => None,
        }
    }
}

impl State {
    /// What a call has to carry that may be sent alone.
    #[inline(always)]
    fn may_start_alone(
        &mut self,
        form: &LeanForm<'_>,
        size: usize,
        timer: &Timer,
        options: &ChannelOptions,
    ) -> Option<Started> {
        let is_free = self.obstacle(timer.started).is_none()
            && !self.has_front()
            && self.has_desk()
            && self.batches == 0
            && self.waiting_to_send == 0;
        match &mut self.engine {
            Engine::Lean(engine) if is_free => {
                let is_allowed = size <= options.send_max.min(SHORT) && options.calls_max > 0;
                is_allowed.then(|| engine.may_start_alone(form, size))?
            }
            Engine::Lean(_) | Engine::Onc(_) | Engine::Exchange(_) => None,
        }
    }

    /// Puts that call in flight.
    #[inline(always)]
    fn start_alone(&mut self, started: &Started, timer: &Timer) -> SlotId {
        let slot = self.slots.take();
        if let Engine::Lean(engine) = &mut self.engine {
            engine.start_alone(started, timer, slot);
        }
        slot
    }
}

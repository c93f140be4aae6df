//! A call that is alone: a short one by the lean protocol over a stream, while nobody else has a call in flight,
//! reads or sends, and nothing waits to be sent. Most calls are. It does what any other does, of which a straight
//! line is left then: the bookkeeping is locked once to send and to become the reader, and once behind the reply.
//! Whatever stands in its way or turns out otherwise is left to [sending](super::sending) and
//! [receiving](super::receiving), which know all that there can be.

use std::mem;
use std::sync::MutexGuard;
use std::time::Duration;

use tenon_net::Ticks;
use tenon_wire::Buffer;

use super::engine::Engine;
use super::flight::Locked;
use super::form::{Form, LeanForm, Started};
use super::reader::Reader;
use super::slots::SlotId;
use super::state::State;
use super::{Channel, Timer};
use crate::account::{Step, Watcher};
use crate::options::ChannelOptions;

/// Bytes of the longest call that goes this way: a longer one gains nothing by it.
const SHORT: usize = 2048;

/// A call that is not alone, or not any more. It is given up unless somebody goes on with it.
pub(super) struct Beside<'c> {
    pub(super) timer: Timer,
    /// The bookkeeping, if it is locked still.
    pub(super) locked: Option<Locked<'c>>,
    /// Its number and its slot, if it was sent.
    pub(super) sent: Option<(Started, SlotId)>,
}

impl Channel {
    /// Makes a call that is alone, and returns whoever has its reply on the desk.
    ///
    /// # Errors
    /// It is not alone: then it is not begun, and `message` is as it was. Or something else came than its reply:
    /// then it is in flight.
    #[inline(never)]
    pub(super) fn call_alone(
        &self,
        message: &mut Buffer,
        form: &Form<'_>,
        limit: Duration,
        watcher: impl Watcher,
    ) -> Result<Reader<'_>, Beside<'_>> {
        let (Form::Lean(form), Some(ticks)) = (form, self.ticks_for(limit)) else {
            return Err(Beside::unsent(self.timer(limit), None));
        };
        let tick = ticks.last();
        let size = form.draft.size(message);
        let mut state = self.lock();
        let may_start = state.may_start_alone(form, size, (ticks, tick), self.options());
        let (Some(started), Some(line)) = (may_start, &mut state.line) else {
            return Err(Beside::unsent(
                Timer::start_at(ticks, tick, limit),
                Some(state),
            ));
        };
        let written = message.len();
        form.draft.finish(message, started.id, started.service);
        watcher.at(Step::Sending);
        match line.connection.try_send(message.as_slice(), 0) {
            Ok(sent) if sent == size => {}
            // Whoever waits for the reply sees to the rest.
            Ok(sent) => line.front.extend(&message.as_slice()[sent..]),
            Err(_) => {
                // The next attempt finds the same, and knows what to do.
                message.truncate(written);
                return Err(Beside::unsent(
                    Timer::start_at(ticks, tick, limit),
                    Some(state),
                ));
            }
        }
        watcher.at(Step::Sent);
        // There is time for what follows while the peer is at the call, and nobody can have looked meanwhile.
        let timer = Timer::start_at(ticks, tick, limit);
        line.used_at = timer.started;
        line.used_at_tick = tick;
        let slot = state.start_alone(&started, &timer);
        state.buffers.keep(mem::take(message));
        let beside = Beside {
            timer,
            locked: None,
            sent: Some((started, slot)),
        };
        if state.has_front() {
            return Err(beside);
        }
        let Some(mut reader) = self.read(&mut state) else {
            return Err(beside);
        };
        drop(state);
        match reader.read_alone(&started, slot, timer.until_from_start(), watcher) {
            true => Ok(reader),
            false => Err(beside),
        }
    }
}

impl<'c> Beside<'c> {
    fn unsent(timer: Timer, state: Option<MutexGuard<'c, State>>) -> Self {
        Self {
            timer,
            locked: state.map(Locked),
            sent: None,
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
        (ticks, tick): (&Ticks, u64),
        options: &ChannelOptions,
    ) -> Option<Started> {
        let line = self.line.as_mut()?;
        let is_free = !line.is_sending
            && line.front.is_empty()
            && line.desk.is_some()
            && !line.has_rested_at(ticks, tick)
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

//! Serving a connection or port until it has nothing more to say, and what becomes of it then.

use std::sync::Arc;
use std::time::Instant;

use tenon_core::serve::EndReason;
use tenon_net::{Carrier, Watch};

use super::late_answers::push_close_notice;
use super::port::PortTurn;
use super::slot::{SlotSocket, SlotState, SocketSlot, port_of, stream_of};
use super::slot_callbacks::end_callbacks;
use super::state::ServerState;
use super::stream::StreamTurn;
use super::thread::ThreadContext;
use super::turn_end::TurnEnd;

/// Serves a connection or port for a turn. If it `is_lone`, and has been for a while, the thread stays with it.
pub(super) fn serve(
    server: &Arc<ServerState>,
    slot: &Arc<SocketSlot>,
    state: Box<SlotState>,
    thread: &mut ThreadContext,
    is_lone: bool,
) {
    let mut turn = SlotTurn {
        server,
        slot,
        thread,
    };
    let mut place = Some(state);
    let mut end = turn.run(&mut place);
    loop {
        if turn.thread.activity.is_replaced()
            && !matches!(end, TurnEnd::Over(_))
            && let Some(state) = place.take()
        {
            // Other threads do this one's work; it begins anew.
            return server.scheduler.push_ready(server, slot, state);
        }
        end = match end {
            TurnEnd::Taken => return,
            TurnEnd::Over(reason) => return turn.end(place, &reason),
            TurnEnd::More => {
                let Some(mut state) = place.take() else {
                    return;
                };
                state.wake_writers();
                place = server.scheduler.requeue(server, slot, state);
                if place.is_none() {
                    return;
                }
                turn.run(&mut place)
            }
            TurnEnd::Idle => {
                if is_lone && turn.may_stay(&mut place) {
                    end = turn.stay(&mut place);
                    continue;
                }
                if is_lone && turn.look_for_items(&mut place) {
                    // Behind the turns of others.
                    end = TurnEnd::More;
                    continue;
                }
                if !turn.park(&mut place) {
                    return;
                }
                turn.run(&mut place)
            }
        };
    }
}

/// Ends a connection of a server that stops: a lean peer is told which of its calls were begun.
pub(super) fn stop(
    server: &Arc<ServerState>,
    slot: &Arc<SocketSlot>,
    state: Box<SlotState>,
    thread: &mut ThreadContext,
) {
    let mut turn = SlotTurn {
        server,
        slot,
        thread,
    };
    let mut place = Some(state);
    turn.stream().end(&mut place, EndReason::Stopping);
    turn.end(place, &EndReason::Stopping);
}

struct SlotTurn<'t> {
    server: &'t Arc<ServerState>,
    slot: &'t Arc<SocketSlot>,
    thread: &'t mut ThreadContext,
}

impl SlotTurn<'_> {
    fn stream(&mut self) -> StreamTurn<'_> {
        StreamTurn {
            server: self.server,
            slot: self.slot,
            thread: self.thread,
        }
    }

    fn port<'t>(&'t mut self, carrier: &'t Carrier) -> PortTurn<'t> {
        PortTurn {
            server: self.server,
            slot: self.slot,
            carrier,
            thread: self.thread,
        }
    }

    fn run(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        let slot = self.slot;
        match &slot.socket {
            SlotSocket::Stream(_) => self.stream().run(place),
            SlotSocket::Port(carrier) => self.port(carrier).run(place),
        }
    }

    /// Looks for a moment for further items of a connection with streams; returns whether it is to be served again.
    fn look_for_items(&mut self, place: &mut Option<Box<SlotState>>) -> bool {
        self.stream()
            .look_for_items(place)
            .unwrap_or_else(|reason| {
                if let Some(state) = stream_of(place) {
                    state.end(reason);
                }
                true
            })
    }

    /// Returns whether the thread is to stay with this connection or port, which is the only one that says something;
    /// another thread polls from now on, then.
    fn may_stay(&mut self, place: &mut Option<Box<SlotState>>) -> bool {
        let slot = self.slot;
        let may = match &slot.socket {
            SlotSocket::Stream(_) => self.stream().may_stay(place),
            SlotSocket::Port(carrier) => self.port(carrier).may_stay(place),
        };
        may && (self.server.scheduler).begin_stay(self.server, slot, &self.thread.activity)
    }

    fn stay(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        let slot = self.slot;
        // The thread sees everything itself: at a socket, and at memory in its sleep, or as it looks for long.
        self.watch(place, Watch::Nothing);
        let before = self.thread.activity.handlers();
        let end = match &slot.socket {
            SlotSocket::Stream(_) => self.stream().stay(place),
            SlotSocket::Port(carrier) => self.port(carrier).stay(place),
        };
        let turns = self.thread.activity.handlers().wrapping_sub(before);
        (self.server.scheduler).end_stay(slot, &self.thread.activity, turns);
        match end {
            // It is watched for less than it was: whatever has come counts anew.
            TurnEnd::Idle => {
                self.watch(place, Watch::Receive);
                self.park_or_go_on(place)
            }
            end => end,
        }
    }

    /// Puts a connection or port back that has nothing more to say, and says so in the words of a turn's end.
    fn park_or_go_on(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        if self.park(place) {
            TurnEnd::More
        } else {
            TurnEnd::Taken
        }
    }

    /// Puts a connection or port back that has nothing more to say; returns whether it has something to say again.
    fn park(&mut self, place: &mut Option<Box<SlotState>>) -> bool {
        let is_blocked = stream_of(place).is_some_and(|state| state.is_blocked());
        let watch = if is_blocked {
            Watch::ReceiveAndSend
        } else {
            Watch::Receive
        };
        self.watch(place, watch);
        if !self.prepare_to_park(place, is_blocked) {
            if let Some(state) = stream_of(place) {
                state.is_readable = true;
            }
            return true;
        }
        let Some(state) = place.take() else {
            return false;
        };
        *place = self.server.put_back(self.slot, state);
        place.is_some()
    }

    /// Notes how long the connection or port may have nothing to say; returns false if it has something to say.
    fn prepare_to_park(&mut self, place: &mut Option<Box<SlotState>>, is_blocked: bool) -> bool {
        let limits = &self.server.shared.limits;
        if let Some(state) = stream_of(place) {
            state.served.reclaim(&mut self.thread.memory);
            state.served.park(limits, Instant::now());
            if let Some(at) = state.served.deadline() {
                self.server.note_deadline(at);
            }
            self.slot.tally.publish(&state.served.counters());
        } else if let Some(port) = port_of(place)
            && let Some(at) = port.served.next_timeout()
        {
            self.server.note_deadline(at);
        }
        let (Some(stream), Some(state)) = (self.slot.stream(), stream_of(place)) else {
            return true;
        };
        if state.is_over() {
            return false;
        }
        if state.may_receive() {
            // In shared memory something may have come that the descriptor does not show.
            return stream.park() && (!is_blocked || self.park_sender(place));
        }
        // It is looked for when something may be received again.
        state.is_readable = true;
        !is_blocked || self.park_sender(place)
    }

    /// Has the thread that polls notice when there is room in shared memory; returns false if there is.
    fn park_sender(&mut self, place: &mut Option<Box<SlotState>>) -> bool {
        let (Some(state), Some(stream)) = (stream_of(place), self.slot.stream()) else {
            return true;
        };
        if !state.has_room_notifier() {
            match stream.room_notifier() {
                Ok(Some(notifier)) => {
                    let registry = &self.server.poll_registry;
                    if let Err(error) = registry.add(&notifier, self.slot.id, Watch::Receive) {
                        tracing::warn!(%error, "the system cannot wait for room");
                    }
                    state.set_room_notifier(notifier);
                }
                Ok(None) => return true,
                Err(error) => tracing::warn!(%error, "the system cannot wait for room"),
            }
        }
        stream.take_in_room();
        stream.park_sender()
    }

    /// Has the socket watched for this from now on.
    fn watch(&mut self, place: &mut Option<Box<SlotState>>, watch: Watch) {
        let change = match place.as_deref_mut() {
            Some(SlotState::Stream(state)) => state.change_watch(watch),
            Some(SlotState::Port(port)) => port.change_watch(watch),
            None => None,
        };
        let registry = &self.server.poll_registry;
        if let Some(before) = change
            && let Err(error) = registry.change(&**self.slot, self.slot.id, before, watch)
        {
            tracing::debug!(id = self.slot.id, %error, "a socket is not watched any more");
        }
    }

    /// A connection is over.
    fn end(&mut self, mut place: Option<Box<SlotState>>, reason: &EndReason) {
        if let Some(state) = stream_of(&mut place) {
            state.served.reclaim(&mut self.thread.memory);
            self.slot.tally.publish(&state.served.counters());
            let is_stop = matches!(reason, EndReason::Stopping);
            if state.has_running_calls() {
                // Those that answer them have the socket, too.
                self.slot.hang_up();
            } else if is_stop {
                push_close_notice(self.slot, state);
                if state.served.was_called_lately(Instant::now()) {
                    self.server.half_close(self.slot);
                }
            }
        }
        let (id, peer) = (self.slot.id, self.slot.origin().peer);
        reason.report(id, peer, &self.server.shared.tally);
        self.server.slots.remove(id);
        self.slot.set_over();
        if self.slot.has_had_streams() {
            end_callbacks(self.slot);
        }
        if self.slot.has_had_streams() {
            self.server.scheduler.end_streams(self.server);
        }
        // It may have been told that there is room for its call.
        self.server.scheduler.note_decided(self.server, self.slot);
    }
}

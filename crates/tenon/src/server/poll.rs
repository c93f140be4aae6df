//! The poll loop of the thread that waits for all connections and ports which have nothing to say: it finds those that
//! have something to say, accepts new connections, and ends those that take too long.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::serve::{ACCEPT_AGAIN, ACCEPTS_PER_TURN, LOOK_INTERVAL};
use tenon_net::BACKLOG;

use super::poll_duty::PollDuty;
use super::slot::{ENDED, READY, ReadySlot, SlotState, SocketSlot, TIME, port_of, stream_of};
use super::state::ServerState;

/// Looks for silent connections this many times within the time that they are granted.
const IDLE_CHECKS: u32 = 4;

impl PollDuty {
    /// Waits until something happens, if it `waits`, and finds the connections and ports that have something to say.
    pub(super) fn wait(&mut self, server: &Arc<ServerState>, waits: bool) {
        let now = Instant::now();
        let limit = match self.next_duty(server, now) {
            _ if !waits => Some(Duration::ZERO),
            duty => duty.map(|at| at.saturating_duration_since(now)),
        };
        if let Err(error) = self.poller.wait(limit) {
            tracing::error!(%error, "waiting for events failed");
            return;
        }
        if server.is_stopping() && !server.scheduler.polls() {
            return;
        }
        self.find_ready(server);
        if limit.is_some() {
            self.do_duties(server);
        }
    }

    /// Returns when something is to be done even if nothing happens.
    pub(super) fn next_duty(&mut self, server: &ServerState, now: Instant) -> Option<Instant> {
        let idle = server.shared.limits.idle_timeout;
        if self.check_idle.is_none()
            && let Some(idle) = idle
        {
            self.check_idle = Some(now + idle / IDLE_CHECKS);
        }
        // Looking at all connections takes a while: not each time that one of many is due.
        let rest = self.looked_at.map(|at| at + LOOK_INTERVAL);
        let deadline = (server.next_deadline()).map(|at| rest.map_or(at, |rest| at.max(rest)));
        let duties = [self.accept_again, self.check_idle, deadline];
        duties.into_iter().flatten().min()
    }

    fn find_ready(&mut self, server: &Arc<ServerState>) {
        let Self {
            poller,
            listeners,
            ready,
            waiting,
            ..
        } = self;
        let listeners = listeners.len();
        let events = poller.events().filter_map(|event| {
            if event.token < listeners {
                waiting.push(event.token);
                return None;
            }
            let ended = if event.is_read_closed { ENDED } else { 0 };
            Some((event.token, READY | ended))
        });
        server.slots.get_all(events, |slot, signal| {
            if let Some(state) = slot.signal(signal) {
                ready.push((Arc::clone(slot), state));
            }
        });
        while let Some(index) = self.waiting.pop() {
            self.accept(server, index);
        }
    }

    fn do_duties(&mut self, server: &Arc<ServerState>) {
        let now = Instant::now();
        if self.accept_again.take_if(|at| *at <= now).is_some() {
            for index in 0..self.listeners.len() {
                self.accept(server, index);
            }
        }
        let may_look = (self.looked_at).is_none_or(|at| now >= at + LOOK_INTERVAL);
        let is_late = may_look && server.take_deadline(now);
        if self.check_idle.take_if(|at| *at <= now).is_some() || is_late {
            self.looked_at = Some(now);
            server.expire_calls(now);
            for slot in server.slots.all() {
                let state = match server.shared.limits.connection_age {
                    None => slot.claim(),
                    // A thread that has the connection looks at its age itself.
                    Some(_) => slot.signal(TIME),
                };
                if let Some(state) = state {
                    look_at_time(server, &slot, state, now, &mut self.ready);
                }
            }
        }
    }

    /// Accepts until no connection waits any more, or others are to have their turn.
    fn accept(&mut self, server: &Arc<ServerState>, index: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listeners[index].try_accept() {
                Ok(Some(accepted)) => server.take_in(accepted),
                Ok(None) => return,
                Err(error) => return self.put_off_accepting(server, &error),
            }
        }
        // The poller has told of those that wait still, and does not again.
        self.accept_again.get_or_insert_with(Instant::now);
    }

    /// Takes in the connections that still wait, and closes the listeners. The system would reset them, and their peers,
    /// which may have called, would not know what came of that.
    pub(super) fn accept_last(&mut self, server: &Arc<ServerState>) {
        for listener in self.listeners.drain(..) {
            listener.stop_listening();
            for _ in 0..BACKLOG {
                match listener.try_accept() {
                    Ok(Some(accepted)) => server.take_in(accepted),
                    Ok(None) => break,
                    Err(error) => {
                        server.shared.note_accept_failure(&error);
                        break;
                    }
                }
            }
        }
    }

    fn put_off_accepting(&mut self, server: &ServerState, error: &io::Error) {
        server.shared.note_accept_failure(error);
        self.accept_again = Some(Instant::now() + ACCEPT_AGAIN);
    }
}

/// Ends a connection that is overdue, has a port served that has something to do, and puts others back.
fn look_at_time(
    server: &Arc<ServerState>,
    slot: &Arc<SocketSlot>,
    state: Box<SlotState>,
    now: Instant,
    ready: &mut Vec<ReadySlot>,
) {
    let mut place = Some(state);
    if let Some(state) = stream_of(&mut place) {
        if let Some(reason) = state.served.overdue(&server.shared.limits, now) {
            state.end(reason);
            ready.extend(place.map(|state| (Arc::clone(slot), state)));
            return;
        }
        if state.check_age(&server.shared.limits, now) {
            ready.extend(place.map(|state| (Arc::clone(slot), state)));
            return;
        }
        state.served.trim(now);
        if let Some(at) = state.served.deadline() {
            server.note_deadline(at);
        }
    } else if let Some(port) = port_of(&mut place)
        && let Some(at) = port.served.next_timeout()
    {
        if at <= now {
            ready.extend(place.map(|state| (Arc::clone(slot), state)));
            return;
        }
        server.note_deadline(at);
    }
    if let Some(state) = place.and_then(|state| server.put_back(slot, state)) {
        ready.push((Arc::clone(slot), state));
    }
}

//! What the thread does that waits for everybody whom nobody attends: take in new connections, hand
//! out parked ones that have something to say, close those that have been silent for too long.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tenon_net::Listener;

use super::core::Core;
use super::pool::Guest;

/// The event that only wakes.
pub(super) const WAKE: Token = Token(usize::MAX);

/// Events taken from the system at a time.
const EVENTS_MAX: usize = 256;

/// Connections taken in at a time: whoever makes them faster than they are taken in must not keep those from being
/// heard who have one.
const ACCEPTS_MAX: usize = 32;

/// How long to wait after a failure to accept, for want of descriptors for example, before the
/// next attempt. The connections wait in the kernel.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Looks for silent connections this many times within the time that they are granted.
const IDLE_CHECKS: u32 = 4;

/// The poller and the listeners. One thread at a time has it.
#[derive(Debug)]
pub(super) struct Watcher {
    poll: Poll,
    events: Events,
    /// Their tokens are their indices.
    listeners: Vec<Listener>,
    accept_again: Option<Instant>,
    check_idle: Option<Instant>,
}

impl Watcher {
    pub(super) fn new(listeners: Vec<Listener>) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (index, listener) in listeners.iter().enumerate() {
            let fd = listener.as_raw_fd();
            poll.registry()
                .register(&mut SourceFd(&fd), Token(index), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            listeners,
            accept_again: None,
            check_idle: None,
        })
    }

    pub(super) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// Waits until something happens and hands out who is to be attended.
    pub(super) fn watch(&mut self, core: &Core) -> Vec<Guest> {
        let now = Instant::now();
        let timeout = self
            .next_duty(core, now)
            .map(|at| at.saturating_duration_since(now));
        if let Err(error) = self.poll.poll(&mut self.events, timeout) {
            if error.kind() != io::ErrorKind::Interrupted {
                tracing::error!(%error, "waiting for events failed");
            }
            return Vec::new();
        }
        if core.is_stopping() {
            return Vec::new();
        }
        self.do_duties(core);
        self.attend_events(core)
    }

    /// When something is to be done even if nothing happens.
    fn next_duty(&mut self, core: &Core, now: Instant) -> Option<Instant> {
        let idle = core.limits.idle;
        if self.check_idle.is_none() && !idle.is_zero() {
            self.check_idle = Some(now + idle / IDLE_CHECKS);
        }
        let exchanges = core.open_ports().map(|port| port.next_timeout());
        let own = [self.accept_again, self.check_idle, core.parking.next_end()];
        own.into_iter().chain(exchanges).flatten().min()
    }

    fn do_duties(&mut self, core: &Core) {
        let now = Instant::now();
        if self.accept_again.take_if(|at| *at <= now).is_some() {
            for index in 0..self.listeners.len() {
                self.accept(core, index);
            }
        }
        for port in core.open_ports() {
            port.look_at_time(core, now);
        }
        let has_late = core.parking.next_end().is_some_and(|at| at <= now);
        if self.check_idle.take_if(|at| *at <= now).is_some() || has_late {
            for guest in core.parking.take_late(&core.limits, now) {
                if let Some(reason) = guest.lateness(&core.limits, now) {
                    guest.end(&reason, core);
                }
            }
        }
    }

    fn attend_events(&mut self, core: &Core) -> Vec<Guest> {
        let happened: Vec<_> = self.events.iter().map(Event::token).collect();
        let mut guests = Vec::new();
        for Token(id) in happened.into_iter().filter(|&token| token != WAKE) {
            match id < self.listeners.len() {
                true => self.accept(core, id),
                false => guests.extend(core.parking.take(id)),
            }
        }
        guests
    }

    /// Accepts until nobody waits any more, or others are to have their turn.
    fn accept(&mut self, core: &Core, index: usize) {
        for _ in 0..ACCEPTS_MAX {
            match self.listeners[index].try_accept() {
                Ok(Some(stream)) => core.admit(stream),
                Ok(None) => return,
                Err(error) => return self.put_off_accepting(core, &error),
            }
        }
        // The poller has told of those who wait still, and does not again.
        self.accept_again.get_or_insert_with(Instant::now);
    }

    fn put_off_accepting(&mut self, core: &Core, error: &io::Error) {
        core.tally.accept_failures.up();
        tracing::warn!(%error, "cannot accept a connection; trying again soon");
        self.accept_again = Some(Instant::now() + ACCEPT_AGAIN);
    }
}

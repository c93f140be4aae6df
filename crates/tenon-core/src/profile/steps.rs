//! The steps of a call at its client, and the probes that are told of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tenon_proto::lean::Stamps;

use super::clock;

/// A place on the way of a call through its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The call is entered.
    Entered,
    /// Its message is written.
    Encoded,
    /// The system call that sends it begins.
    Sending,
    /// That system call has returned.
    Sent,
    /// Something was received.
    Received,
    /// It was this call's reply.
    Found,
    /// Somebody else has received it, and the caller goes on with it.
    Fetched,
    /// The result is decoded.
    Decoded,
    /// The caller has left the channel to others.
    Left,
}

impl Step {
    /// How many there are.
    pub const COUNT: usize = Self::Left as usize + 1;
}

/// Is told where a call is on its way. The way is compiled for each kind of probe, so [`NoProbe`] costs nothing.
pub trait Probe: Copy {
    /// Whether the server is to say when the call passed it.
    const ASKS_SERVER: bool;

    /// The call is at this place.
    fn at(self, step: Step);

    /// The caller has found its reply where it was received; `stamps` returns what the server says in it.
    fn found(self, stamps: impl FnOnce() -> Option<Stamps>);

    /// The caller goes on with a reply that another caller has received, which left this note if the server says
    /// something of its side.
    fn fetched(self, note: Option<&Note>);
}

/// A probe of no size, which is told nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    const ASKS_SERVER: bool = false;

    #[inline(always)]
    fn at(self, _: Step) {}

    #[inline(always)]
    fn found(self, _: impl FnOnce() -> Option<Stamps>) {}

    #[inline(always)]
    fn fetched(self, _: Option<&Note>) {}
}

/// Tells a probe when it is dropped that the call is at a place: so what the last step returns is not moved once
/// more.
pub struct AtEnd<P: Probe>(pub P, pub Step);

impl<P: Probe> Drop for AtEnd<P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.at(self.1);
    }
}

/// When a call was where, in ticks, and what the server says.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// 0 where it was not.
    pub client: [u64; Step::COUNT],
    pub server: Option<Stamps>,
}

/// What whoever received a reply for another has seen of it.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    stamps: Stamps,
    /// When it found the reply among what it had received.
    found_at: u64,
}

impl Note {
    /// Of a reply that is found now.
    #[cold]
    pub fn now(stamps: Stamps) -> Box<Self> {
        let found_at = clock::now();
        Box::new(Self { stamps, found_at })
    }
}

/// Where a call is, as it goes, whoever brings it further.
#[derive(Debug)]
pub struct Steps {
    times: [AtomicU64; Step::COUNT],
    server: OnceLock<Stamps>,
}

impl Steps {
    /// Those of a call that is entered now.
    pub fn begin() -> Self {
        let steps = Self {
            times: Default::default(),
            server: OnceLock::new(),
        };
        Probe::at(&steps, Step::Entered);
        steps
    }

    /// Those of a call that is over.
    pub fn end(&self) -> Times {
        Probe::at(self, Step::Left);
        Times {
            client: self
                .times
                .each_ref()
                .map(|time| time.load(Ordering::Relaxed)),
            server: self.server.get().copied(),
        }
    }

    /// The caller goes on with a reply that somebody else has received, who left this note if the server
    /// says something of its side.
    fn note_fetched(&self, note: Option<&Note>) {
        let now = clock::now();
        // Without a note it is not known how long it had been there.
        let found_at = note.map_or(now, |note| note.found_at);
        self.set(Step::Received, found_at);
        self.set(Step::Found, found_at);
        self.set(Step::Fetched, now);
        self.tell(note.map(|note| note.stamps));
    }

    fn set(&self, step: Step, time: u64) {
        self.times[step as usize].store(time, Ordering::Relaxed);
    }

    /// A call has one reply; what another would say is not looked at.
    fn tell(&self, stamps: Option<Stamps>) {
        let _ = stamps.map(|stamps| self.server.set(stamps));
    }
}

impl Probe for &Steps {
    const ASKS_SERVER: bool = true;

    fn at(self, step: Step) {
        self.set(step, clock::now());
    }

    fn found(self, stamps: impl FnOnce() -> Option<Stamps>) {
        self.at(Step::Found);
        // It may have come with the reply to another call.
        if self.times[Step::Received as usize].load(Ordering::Relaxed) == 0 {
            self.at(Step::Received);
        }
        self.tell(stamps());
    }

    fn fetched(self, note: Option<&Note>) {
        self.note_fetched(note);
    }
}

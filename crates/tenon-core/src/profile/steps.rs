//! The steps of a call at its client, and the probes that are told of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tenon_proto::lean::Stamps;

use super::clock;
use super::packets::PacketTicks;

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
    /// The caller goes on with a reply that another caller has received.
    Fetched,
    /// The result is decoded.
    Decoded,
    /// The caller has left the channel to others.
    Left,
}

impl Step {
    /// Number of steps.
    pub const COUNT: usize = Self::Left as usize + 1;
}

/// Observes where a call is on its way. The way is compiled for each kind of probe, so [`NoProbe`] costs nothing.
pub trait Probe: Copy {
    /// True if the server is to say when the call passed it.
    const ASKS_SERVER: bool;

    /// Tells that the call is at this place.
    fn at(self, step: Step);

    /// Tells that the caller has found its reply where it was received; `stamps` returns what the server says in it.
    fn found(self, stamps: impl FnOnce() -> Option<Stamps>);

    /// Tells that the caller goes on with a reply that another caller has received, which left this note if the server
    /// says something of its side.
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

/// Times at which a call passed each step, in ticks, the stamps of the server, and those of the client's kernel.
#[derive(Debug, Clone, Copy)]
pub struct CallTimestamps {
    /// Times at the client; 0 for a step that the call did not pass.
    pub client: [u64; Step::COUNT],
    pub server: Option<Stamps>,
    /// Times of its packets at the client.
    pub packets: Option<PacketTicks>,
}

/// Note of the caller that has received a reply for another: the server's stamps, and when the reply was found.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    stamps: Stamps,
    /// Time at which it found the reply among what it had received.
    found_at: u64,
}

impl Note {
    /// The note of a reply that is found now.
    #[cold]
    pub fn now(stamps: Stamps) -> Box<Self> {
        let found_at = clock::now();
        Box::new(Self { stamps, found_at })
    }
}

/// Recorder of the steps of a call as it goes, whichever thread brings it further.
#[derive(Debug)]
pub struct StepRecorder {
    times: [AtomicU64; Step::COUNT],
    server: OnceLock<Stamps>,
}

impl StepRecorder {
    /// The recorder of a call that is entered now.
    pub fn begin() -> Self {
        let steps = Self {
            times: Default::default(),
            server: OnceLock::new(),
        };
        Probe::at(&steps, Step::Entered);
        steps
    }

    /// Ends the recording of a call that is over; returns its timestamps.
    pub fn end(&self) -> CallTimestamps {
        Probe::at(self, Step::Left);
        CallTimestamps {
            client: self
                .times
                .each_ref()
                .map(|time| time.load(Ordering::Relaxed)),
            server: self.server.get().copied(),
            packets: None,
        }
    }

    /// Records that the caller goes on with a reply that another caller has received, which left this note if the
    /// server says something of its side.
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

    /// Keeps the stamps of the server. A call has one reply; what another would say is not looked at.
    fn tell(&self, stamps: Option<Stamps>) {
        let _ = stamps.map(|stamps| self.server.set(stamps));
    }
}

impl Probe for &StepRecorder {
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

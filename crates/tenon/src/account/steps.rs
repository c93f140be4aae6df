//! The steps of a call at its client, and who watches them.

use std::cell::Cell;

use tenon_proto::lean::Stamps;

use super::clock;
use crate::channel::Reply;

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
    /// Something was received, or somebody else has received it.
    Received,
    /// It was this call's reply.
    Found,
    /// The result is decoded.
    Decoded,
    /// The caller has left the channel to others.
    Left,
}

impl Step {
    /// How many there are.
    pub const COUNT: usize = Self::Left as usize + 1;
}

/// Who watches a call on its way. Nobody, `()`, mostly: the way is compiled for each kind of watcher,
/// so what nobody watches costs nothing.
pub trait Watcher: Copy {
    /// Whether the server is to say when the call passed it.
    const ASKS: bool;

    /// The call is at this place.
    fn at(self, step: Step);

    /// The reply is found.
    fn found(self, reply: &Reply<'_>);
}

impl Watcher for () {
    const ASKS: bool = false;

    #[inline(always)]
    fn at(self, _: Step) {}

    #[inline(always)]
    fn found(self, _: &Reply<'_>) {}
}

/// When a call was where, and what the server says.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub client: [u64; Step::COUNT],
    pub server: Option<Stamps>,
}

/// Where a call is, as it goes.
#[derive(Debug)]
pub struct Steps {
    times: [Cell<u64>; Step::COUNT],
    server: Cell<Option<Stamps>>,
}

impl Steps {
    /// Those of a call that is entered now.
    pub fn begin() -> Self {
        let steps = Self {
            times: Default::default(),
            server: Cell::new(None),
        };
        steps.at(Step::Entered);
        steps
    }

    /// Those of a call that is over.
    pub fn end(self) -> Times {
        self.at(Step::Left);
        Times {
            client: self.times.map(Cell::into_inner),
            server: self.server.get(),
        }
    }
}

impl Watcher for &Steps {
    const ASKS: bool = true;

    fn at(self, step: Step) {
        self.times[step as usize].set(clock::now());
    }

    fn found(self, reply: &Reply<'_>) {
        self.at(Step::Found);
        self.server.set(reply.stamps());
    }
}

//! Who may still call a program's handlers, and whoever waits until nobody may.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Held by everybody who may call a handler.
#[derive(Debug, Clone)]
pub struct Presence {
    /// Never sent to: it is its end that says something.
    _until_dropped: Sender<Infallible>,
}

/// Told when nobody is present any more.
#[derive(Debug)]
pub struct Absence(Receiver<Infallible>);

impl Presence {
    /// The first who is present, and who may be waited for.
    pub fn new() -> (Self, Absence) {
        let (sender, receiver) = channel();
        let first = Self {
            _until_dropped: sender,
        };
        (first, Absence(receiver))
    }
}

impl Absence {
    /// Returns as soon as nobody is present; what they did has happened then.
    pub fn wait(self) {
        // Nothing can be sent: the only answer is that all senders are gone.
        let Err(_) = self.0.recv();
    }
}

//! The threads that may still call a program's handlers, and waiting until none may.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Held by every service, which lives as long as a thread that may call its handlers.
#[derive(Debug, Clone)]
pub struct HandlerGuard {
    /// Never sent to: it is its end that says something.
    _until_dropped: Sender<Infallible>,
}

/// Waits until no guard is held any more.
#[derive(Debug)]
pub struct HandlerDrain(Receiver<Infallible>);

impl HandlerGuard {
    /// Returns the first guard, and the drain that waits for all of its clones.
    pub fn new() -> (Self, HandlerDrain) {
        let (sender, receiver) = channel();
        let first = Self {
            _until_dropped: sender,
        };
        (first, HandlerDrain(receiver))
    }
}

impl HandlerDrain {
    /// Returns as soon as no guard is held; what their holders did has happened then.
    pub fn wait(self) {
        // Nothing can be sent: the only answer is that all senders are gone.
        let Err(_) = self.0.recv();
    }
}

//! The poller, the listeners and the timers of the thread that polls.

use std::io;
use std::time::Instant;

use tenon_net::{Listener, Poller, Watch};

use super::slot::ReadySlot;

/// The poller and the listeners. One thread at a time has it.
#[derive(Debug)]
pub(super) struct PollDuty {
    pub(super) poller: Poller,
    /// They are registered under their indices.
    pub(super) listeners: Vec<Listener>,
    pub(super) accept_again: Option<Instant>,
    pub(super) check_idle: Option<Instant>,
    /// The time at which all connections were looked at last.
    pub(super) looked_at: Option<Instant>,
    /// The connections and ports that were found last.
    pub(super) ready: Vec<ReadySlot>,
    /// The listeners at which connections wait.
    pub(super) waiting: Vec<usize>,
}

impl PollDuty {
    /// Has the poller tell of connections that wait at `listeners`.
    ///
    /// # Errors
    /// The system cannot wait for one of them.
    pub(super) fn new(poller: Poller, listeners: Vec<Listener>) -> io::Result<Self> {
        let registry = poller.registry()?;
        for (index, listener) in listeners.iter().enumerate() {
            registry.add(listener, index, Watch::Receive)?;
        }
        Ok(Self {
            poller,
            listeners,
            accept_again: None,
            check_idle: None,
            looked_at: None,
            ready: Vec::new(),
            waiting: Vec::new(),
        })
    }
}

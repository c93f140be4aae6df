//! What a thread of the server has of its own.

use std::sync::Arc;

use tenon_proto::connection::framing::ReceiveMemory;
use tenon_wire::Buffer;

use super::activity::Activity;
use super::watchdog::Watchdog;

/// What a thread of the server has of its own.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// What connections receive into that have no memory.
    pub(super) memory: ReceiveMemory,
    /// What handlers write replies into.
    pub(super) reply: Buffer,
    pub(super) activity: Arc<Activity>,
}

impl Thread {
    /// What a new thread has whose handlers `watchdog` watches.
    pub(super) fn watched_by(watchdog: &Watchdog) -> Self {
        let thread = Self::default();
        watchdog.watch(&thread.activity);
        thread
    }
}

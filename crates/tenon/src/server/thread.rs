//! What a thread of the server has of its own.

use std::sync::Arc;
use std::time::Duration;

use tenon_proto::connection::framing::ReceiveMemory;
use tenon_wire::Buffer;

use super::activity::Activity;
use super::state::ServerState;

/// How long a thread stays with a connection or port at which nothing comes, if it has nothing else to serve. Long enough
/// for a client that computes between calls. Not shorter: a core that goes idle sets its timer for a limit that is near,
/// at 20 ms for 4 us of every call.
pub(super) const LINGER: Duration = Duration::from_millis(100);

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
    /// What a new thread of `server` has, whose handlers are watched from now on.
    pub(super) fn of(server: &ServerState) -> Self {
        let thread = Self::default();
        server.watchdog.watch(&thread.activity);
        server.shared.handlers.add_thread(&thread.activity.runs);
        thread
    }
}

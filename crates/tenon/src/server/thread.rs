//! The context of a thread of the server.

use std::sync::Arc;
use std::time::Duration;

use tenon_proto::connection::framing::ReceiveMemory;
use tenon_wire::Buffer;

use super::activity::ThreadActivity;
use super::state::ServerState;

/// Time that a thread stays with a connection or port at which nothing comes, if it has nothing else to serve. Long
/// enough for a client that computes between calls. Not shorter: a core that goes idle sets its timer for a limit that
/// is near, at 20 ms for 4 us of every call.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// The buffers and the activity record of a thread of the server.
#[derive(Debug, Default)]
pub(super) struct ThreadContext {
    /// Memory that connections without any of their own receive into.
    pub(super) memory: ReceiveMemory,
    /// The buffer that handlers write replies into.
    pub(super) reply: Buffer,
    pub(super) activity: Arc<ThreadActivity>,
}

impl ThreadContext {
    /// Makes the context of a new thread of `server`; its handlers are watched from now on.
    pub(super) fn of(server: &ServerState) -> Self {
        let thread = Self::default();
        server.watchdog.watch(&thread.activity);
        server.shared.handlers.add_thread(&thread.activity.runs);
        thread
    }
}

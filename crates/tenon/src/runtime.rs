//! What a run time of another kind is made of: everything that a channel decides about calls
//! and connections, without the threads that wait. `tenon-tokio` is such a run time. This is no
//! interface for programs: it changes as the run times need it.

use std::time::Duration;

use crate::options::ChannelOptions;

pub use crate::account::{Followed, Note, Step};
pub use crate::caller::{Caller, Decoding};
pub use crate::channel::{
    Answer, BackOff, Broken, Buffers, Engine, ExchangeEngine, Form, Inbox, LeanForm, Meaning,
    Obstacle, REST, Received, Results, SlotId, Socket, Started, Timer, Unstarted, counters,
    is_late, packet, seed,
};
pub use crate::rpcbind::Registrar;
pub use crate::server::{
    Arrival, Duplicates, Exchange, Execution, Grace, LeanJob, Offer, Origin, Passed, Places,
    Prepared, Reason, Reception, Request, SEND_PATIENCE, Services, Share, Wanted, execute_inline,
    execute_known, note as note_sent, note_panic, note_refusal, preamble, refuse_for_number,
    refuse_lean, stamp_replies, status,
};

pub use crate::trains::Trains;

/// Time for the first connection.
pub fn connect_timeout(options: &ChannelOptions) -> Duration {
    options.connect_timeout
}

/// Most calls that may wait for their replies.
pub fn calls_max(options: &ChannelOptions) -> usize {
    options.calls_max
}

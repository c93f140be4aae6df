//! The state that clients of threads and of tasks share: the calls of a channel and what is sent of them, what was
//! received and the calls that it answers, and how calls end. The drivers decide which thread or task sends, receives
//! and waits.

mod answers;
pub mod buffers;
mod calls;
mod counters;
mod datagram_input;
mod input;
mod outcome;
mod outgoing;
mod ready_pauses;
mod repeatable_call;
mod seal;
mod silence;
mod stopped_streams;

use std::time::Duration;

pub use answers::{Answered, NextMessage};
pub(crate) use answers::{closing_error, result_of};
#[cfg(feature = "_datagrams")]
pub(crate) use calls::datagram_endpoint;
pub use calls::{CallId, Calls, DatagramCalls};
pub use counters::ChannelCounters;
pub use input::{Input, ReplyExtensions, ReplyPlace, handle_stream, may_have_more};
pub use outcome::{Outcome, ResultBytes, Results};
pub use outgoing::Outgoing;
pub use ready_pauses::ReadyPauses;
pub use repeatable_call::RepeatableCall;
pub use seal::seal;
pub use stopped_streams::StoppedStreams;

/// A connection that was not used for so long is checked before a call is entrusted to it: the peer may have closed it
/// meanwhile.
pub const STALE_AFTER: Duration = Duration::from_millis(100);

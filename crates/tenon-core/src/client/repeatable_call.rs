//! Calls that may be made again as they were written.

use std::sync::Arc;

use tenon_proto::connection::{CallDraft, LeanCall};
use tenon_proto::lean::{Interface, MessageDraft};
use tenon_wire::Buffer;

use crate::ReplyMetadata;
use crate::options::CallOptions;
use crate::timer::{CallLimit, CallTimer};

/// A call with a stream that may be made again as it was written: what it is made of, without what its caller lent.
#[derive(Debug)]
pub struct RepeatableCall {
    message: Buffer,
    draft: MessageDraft,
    interface: Arc<Interface>,
    procedure: u16,
    /// The time to send it in, and whether it waits for a peer that cannot be reached.
    limit: CallLimit,
    timer: CallTimer,
    reply_metadata: Option<Arc<ReplyMetadata>>,
}

impl RepeatableCall {
    /// A call that is sent within `limit` and goes on for as long as `timeout` from now; `None` unless its options say
    /// that it may be [made again](CallOptions::repeatable).
    pub fn of(
        message: &Buffer,
        draft: &CallDraft<'_>,
        (limit, timeout): (CallLimit, CallLimit),
        options: &CallOptions<'_>,
    ) -> Option<Self> {
        match draft {
            CallDraft::Lean(call) if options.is_repeatable() => Some(Self {
                message: message.clone(),
                draft: call.draft,
                interface: Arc::clone(call.interface),
                procedure: call.procedure,
                limit,
                timer: CallTimer::start(timeout),
                reply_metadata: options.get_reply_metadata().cloned(),
            }),
            _ => None,
        }
    }

    /// Returns the call as it was written.
    pub fn written(&self) -> (Buffer, CallDraft<'_>) {
        let call = LeanCall {
            draft: self.draft,
            interface: &self.interface,
            procedure: self.procedure,
        };
        (self.message.clone(), CallDraft::Lean(call))
    }

    /// Returns the bounds of another attempt: the time to send it in, and the time that is left.
    pub fn limits(&self) -> (CallLimit, CallLimit) {
        let left = CallLimit {
            timeout: self.timer.left(),
            ..self.limit
        };
        (self.limit, left)
    }

    /// Returns the place for the metadata of the reply.
    pub fn reply_metadata(&self) -> Option<&Arc<ReplyMetadata>> {
        self.reply_metadata.as_ref()
    }
}

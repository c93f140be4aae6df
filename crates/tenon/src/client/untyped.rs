//! Calls with streams for the run time of another language, which moves items itself.

use std::fmt;
use std::sync::Arc;

use tenon_core::LeanInput;
use tenon_core::caller::{Caller, Decoding};
use tenon_core::error::CallError;
use tenon_proto::lean::CallStreams;
use tenon_wire::DecodeError;

use super::streaming::{ArgumentSink, ResultSource, StreamingCall};
use crate::streams::{ItemReader, ItemWriter};

/// A call with streams, of which the items have no types here: what moves them is said for each. Dropping all of it before
/// the call is answered gives it up, as dropping the writer or the reader does.
#[doc(hidden)]
#[derive(Debug)]
pub struct UntypedStreams {
    /// Writes the items of the argument, if that is a stream.
    pub writer: Option<ItemWriter<()>>,
    /// Reads the items of the result, if that is a stream.
    pub reader: Option<ItemReader<()>>,
    /// The call itself.
    pub call: UntypedCall,
}

/// The call that streams belong to.
#[doc(hidden)]
pub struct UntypedCall {
    call: Arc<StreamingCall>,
    decoding: Decoding,
}

impl UntypedStreams {
    /// The streams of a call that was sent.
    pub(super) fn of(call: Arc<StreamingCall>, streams: CallStreams, caller: &Caller) -> Self {
        let decoding = caller.decoding();
        let writer = || ItemWriter::new(Box::new(ArgumentSink::new(&call)), |_, _| Ok(()));
        let reader = || {
            ItemReader::new(
                Box::new(ResultSource::new(&call, None)),
                |_| Ok(()),
                decoding,
            )
        };
        Self {
            writer: streams.argument.then(writer),
            reader: streams.result.then(reader),
            call: UntypedCall { call, decoding },
        }
    }
}

impl UntypedCall {
    /// Waits for the result of a call of which it is no stream, once.
    ///
    /// # Errors
    /// Why the call has no result.
    pub fn wait_with<T>(
        &self,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let results = self.call.wait()?;
        let bytes = results.bytes.as_slice();
        self.decoding.decode_lean(bytes, results.order, decode)
    }

    /// Gives the call up, unless it is answered. Threads that wait for its streams are woken.
    pub fn cancel(&self) {
        self.call.cancel();
    }
}

impl fmt::Debug for UntypedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UntypedCall").field(&self.call).finish()
    }
}

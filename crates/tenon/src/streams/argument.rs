//! Writing the items of an argument, and waiting for the result.

use std::fmt;

use super::reader::DecodeItem;
use super::writer::ItemWriter;
use tenon_core::caller::Decoding;
use tenon_core::client::Results;
use tenon_core::error::CallError;

/// Writes the items of the stream that is the argument of a call, and waits for its result, an `R`. Dropping it before it
/// is [finished](Self::finish) gives the call up.
pub struct ArgumentWriter<T, R, E = CallError> {
    pub(super) items: ItemWriter<T, E>,
    reply: Box<dyn ReplySource>,
    decode: Box<dyn DecodeItem<R>>,
    decoding: Decoding,
}

/// A call that is answered.
pub(crate) trait ReplySource: Send {
    /// Waits for the reply.
    ///
    /// # Errors
    /// Why the call has no result.
    fn wait(&mut self) -> Result<Results, CallError>;
}

impl<T, R, E: From<CallError>> ArgumentWriter<T, R, E> {
    pub(crate) fn new(
        items: ItemWriter<T, E>,
        reply: Box<dyn ReplySource>,
        decode: impl DecodeItem<R>,
        decoding: Decoding,
    ) -> Self {
        Self {
            items,
            reply,
            decode: Box::new(decode),
            decoding,
        }
    }

    /// Returns the same writer, with what `map` makes of the origin of its reply.
    pub(crate) fn map_reply(
        self,
        map: impl FnOnce(Box<dyn ReplySource>) -> Box<dyn ReplySource>,
    ) -> Self {
        Self {
            reply: map(self.reply),
            ..self
        }
    }

    /// As [`ItemWriter::send`].
    ///
    /// # Errors
    /// As there. If the call was answered before its last item, [`finish`](Self::finish) returns the answer.
    pub fn send(&mut self, item: &T) -> Result<(), E> {
        self.items.send(item)
    }

    /// As [`ItemWriter::feed`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn feed(&mut self, item: &T) -> Result<(), E> {
        self.items.feed(item)
    }

    /// As [`ItemWriter::send_all`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_all<'t>(&mut self, items: impl IntoIterator<Item = &'t T>) -> Result<(), E>
    where
        T: 't,
    {
        self.items.send_all(items)
    }

    /// As [`ItemWriter::flush`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn flush(&mut self) -> Result<(), E> {
        self.items.flush()
    }

    /// Tells the server that these are all items, and waits for the result.
    ///
    /// # Errors
    /// Why the call has no result, by blame; see [`CallError`].
    pub fn finish(mut self) -> Result<R, E> {
        match self.items.end() {
            // It is answered already.
            Ok(()) | Err(CallError::StreamClosed) => {}
            Err(error) => return Err(error.into()),
        }
        let results = self.reply.wait()?;
        let decoding = self.decoding;
        decoding.decode_lean(results.bytes.as_slice(), results.order, &self.decode)
    }
}

impl<T, R, E> fmt::Debug for ArgumentWriter<T, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentWriter")
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

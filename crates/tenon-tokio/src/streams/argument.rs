//! Sending the items of an argument, and waiting for the result.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;
use tenon_core::caller::Decoding;
use tenon_core::client::Results;
use tenon_core::error::CallError;

use super::DecodeItem;
use super::item_sink::ItemSink;

/// Takes the items of the stream that is the argument of a call, and waits for its result, an `R`. Dropping it before it
/// is [finished](Self::finish) gives the call up.
pub struct ArgumentSink<T, R, E = CallError> {
    pub(super) items: ItemSink<T, E>,
    reply: Box<dyn ReplySource>,
    decode: DecodeItem<R>,
    decoding: Decoding,
}

/// A call that is answered.
pub(crate) trait ReplySource: Send {
    /// Returns the reply. If it is not there the task is woken when it is.
    ///
    /// # Errors
    /// Why the call has no result.
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Results, CallError>>;
}

impl<T, R, E: From<CallError>> ArgumentSink<T, R, E> {
    pub(crate) fn new(
        items: ItemSink<T, E>,
        reply: Box<dyn ReplySource>,
        decode: DecodeItem<R>,
        decoding: Decoding,
    ) -> Self {
        Self {
            items,
            reply,
            decode,
            decoding,
        }
    }

    /// The same call, with a source of its reply that `wrap` puts around its own.
    pub(crate) fn map_reply(
        self,
        wrap: impl FnOnce(Box<dyn ReplySource>) -> Box<dyn ReplySource>,
    ) -> Self {
        Self {
            reply: wrap(self.reply),
            ..self
        }
    }

    /// As [`ItemSink::send`].
    ///
    /// # Errors
    /// As there. If the call was answered before its last item, [`finish`](Self::finish) returns the answer.
    pub async fn send(&mut self, item: &T) -> Result<(), E> {
        self.items.send(item).await
    }

    /// As [`ItemSink::feed`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn feed(&mut self, item: &T) -> Result<(), E> {
        self.items.feed(item).await
    }

    /// As [`ItemSink::send_all`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_all<'t>(&mut self, items: impl IntoIterator<Item = &'t T>) -> Result<(), E>
    where
        T: 't,
    {
        self.items.send_all(items).await
    }

    /// As [`ItemSink::flush`].
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn flush(&mut self) -> Result<(), E> {
        self.items.flush().await
    }

    /// Tells the server that these are all items, and waits for the result.
    ///
    /// # Errors
    /// Why the call has no result, by blame; see [`CallError`].
    pub async fn finish(mut self) -> Result<R, E> {
        match poll_fn(|cx| self.items.poll_end(cx)).await {
            // It is answered already.
            Ok(()) | Err(CallError::StreamClosed) => {}
            Err(error) => return Err(error.into()),
        }
        let results = poll_fn(|cx| self.reply.poll_reply(cx)).await?;
        let (decoding, bytes) = (self.decoding, results.bytes.as_slice());
        decoding.decode_lean(bytes, results.order, self.decode)
    }
}

impl<T, R, E: From<CallError>> Sink<T> for ArgumentSink<T, R, E> {
    type Error = E;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Pin::new(&mut self.items).poll_ready(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), E> {
        Pin::new(&mut self.items).start_send(item)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Pin::new(&mut self.items).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Pin::new(&mut self.items).poll_close(cx)
    }
}

impl<T, R, E> fmt::Debug for ArgumentSink<T, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSink")
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

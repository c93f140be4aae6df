//! Receiving the items of a stream.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{ItemAssembly, ReceivedItems, StreamEnd};
use tenon_proto::lean::ByteOrder;

use super::DecodeItem;

/// The items of a stream: those of a result at the client, those of an argument in a handler. It ends behind the last,
/// or behind an error.
///
/// If the items are `opaque<>`, it reads their bytes as well, by [`AsyncRead`](tokio::io::AsyncRead) and
/// [`AsyncBufRead`](tokio::io::AsyncBufRead): one item behind the other, whatever lengths they have.
///
/// Dropping it before its end tells the other end that no further items are wanted: at the client the call is given up.
pub struct ItemStream<T, E = CallError> {
    source: Box<dyn ItemSource>,
    pub(super) items: ItemAssembly,
    decode: DecodeItem<T>,
    decoding: Decoding,
    /// Bytes that an item may have, if items are opaque data.
    pub(super) opaque_max: Option<u32>,
    end: Option<StreamEnd>,
    error: PhantomData<fn() -> E>,
}

/// The origin of items.
pub(crate) trait ItemSource: Send {
    /// Gives back so many bytes of credit, and takes the items that are there `into` an empty place. Returns false if no
    /// further items come. If none are there the task is woken when some are.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    fn poll_items(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReceivedItems,
        taken: u64,
    ) -> Poll<Result<bool, CallError>>;

    /// Gives back so many bytes of credit.
    fn give_back(&mut self, bytes: u64);

    /// Returns the bytes of the longest item that is accepted.
    fn item_max(&self) -> usize;
}

impl<T, E: From<CallError>> ItemStream<T, E> {
    pub(crate) fn new(
        source: Box<dyn ItemSource>,
        decode: DecodeItem<T>,
        decoding: Decoding,
    ) -> Self {
        Self {
            source,
            items: ItemAssembly::default(),
            decode,
            decoding,
            opaque_max: None,
            end: None,
            error: PhantomData,
        }
    }

    /// The same items, from a source that `wrap` puts around their own.
    pub(crate) fn map_source(
        self,
        wrap: impl FnOnce(Box<dyn ItemSource>) -> Box<dyn ItemSource>,
    ) -> Self {
        Self {
            source: wrap(self.source),
            ..self
        }
    }

    /// Waits for the next item; `None` behind the last, and behind an error. If the future is dropped no item is lost.
    pub async fn next(&mut self) -> Option<Result<T, E>> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, E>>> {
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_decoded(cx));
        self.end = StreamEnd::of(&next);
        Poll::Ready(next.map_err(E::from).transpose())
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, CallError>> {
        let (decoding, decode) = (self.decoding, self.decode);
        if let Some(rest) = self.items.take_unread() {
            let rest = decoding.decode_lean(rest.as_slice(), ByteOrder::NATIVE, decode);
            return Poll::Ready(rest.map(Some));
        }
        loop {
            let limit = self.source.item_max();
            if let Some(item) = self.items.next(limit)? {
                let value = decoding.decode_lean(item.bytes, item.order, decode);
                self.give_back_much();
                return Poll::Ready(value.map(Some));
            }
            if !ready!(self.poll_wait(cx))? {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Waits for bytes, as long as items are `opaque<max>`; there are none at the end.
    pub(super) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
        max: u32,
    ) -> Poll<Result<(), CallError>> {
        match self.end {
            Some(StreamEnd::Whole) => return Poll::Ready(Ok(())),
            Some(StreamEnd::Failed) => return Poll::Ready(Err(CallError::StreamClosed)),
            None => {}
        }
        let read = ready!(self.poll_next_bytes(cx, max));
        self.end = StreamEnd::of(&read);
        Poll::Ready(read.map(|_| ()))
    }

    fn poll_next_bytes(
        &mut self,
        cx: &mut Context<'_>,
        max: u32,
    ) -> Poll<Result<Option<()>, CallError>> {
        while self.items.unread().is_empty() {
            let limit = self.source.item_max();
            if self.items.next_bytes(limit, max, self.decoding)? {
                self.give_back_much();
            } else if !ready!(self.poll_wait(cx))? {
                return Poll::Ready(Ok(None));
            }
        }
        Poll::Ready(Ok(Some(())))
    }

    /// Waits for items; returns false at the end.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, CallError>> {
        let credit = self.items.take_credit();
        self.source.poll_items(cx, self.items.room(), credit)
    }

    /// Gives credit back, once there is enough of it to be worth a message.
    fn give_back_much(&mut self) {
        if let Some(credit) = self.items.take_much_credit() {
            self.source.give_back(credit);
        }
    }
}

impl<T, E: From<CallError>> Stream for ItemStream<T, E> {
    type Item = Result<T, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(cx)
    }
}

impl<T, E: From<CallError>> FusedStream for ItemStream<T, E> {
    fn is_terminated(&self) -> bool {
        self.end.is_some()
    }
}

impl<T, E> fmt::Debug for ItemStream<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

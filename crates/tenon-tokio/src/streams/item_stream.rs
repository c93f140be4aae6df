//! Receiving the items of a stream.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{ItemAssembly, ReceivedItems};

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

    /// Returns whether the call can be made again: not once an item has come.
    fn can_reopen(&self) -> bool {
        false
    }

    /// Makes the call again. The task is woken when it is sent.
    ///
    /// # Errors
    /// It cannot be sent; see [`CallError`].
    fn poll_reopened(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Err(CallError::StreamClosed))
    }
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

    #[inline]
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, E>>> {
        match ready!(self.poll_ready(cx)) {
            Ok(true) => {}
            Ok(false) => return Poll::Ready(None),
            Err(error) => return Poll::Ready(Some(Err(error.into()))),
        }
        let item = self.items.read(self.decoding, self.decode);
        Poll::Ready(Some(item.map_err(E::from)))
    }

    /// Waits for bytes, as long as items are `opaque<max>`; there are none at the end.
    pub(super) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
        max: u32,
    ) -> Poll<Result<(), CallError>> {
        self.items.check_whole()?;
        while self.items.unread().is_empty() && ready!(self.poll_ready(cx))? {
            self.items.read_bytes(max, self.decoding)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until the next item is ready; returns false at the end, and behind an error.
    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, CallError>> {
        match self.items.is_ready() {
            true => Poll::Ready(Ok(true)),
            false => self.poll_for_item(cx),
        }
    }

    #[inline(never)]
    fn poll_for_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, CallError>> {
        if self.items.has_ended() {
            return Poll::Ready(Ok(false));
        }
        let waited = ready!(self.poll_prepared(cx));
        self.items.note_waited(&waited);
        Poll::Ready(waited)
    }

    /// Waits until the next item is ready; returns false at the end. Credit of items that were read is given back, once
    /// there is enough of it to be worth a message.
    fn poll_prepared(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, CallError>> {
        loop {
            if self.items.prepare(|| self.source.item_max())? {
                if let Some(credit) = self.items.take_much_credit() {
                    self.source.give_back(credit);
                }
                return Poll::Ready(Ok(true));
            }
            let credit = self.items.take_credit();
            let polled = self.source.poll_items(cx, self.items.room(), credit);
            if !ready!(polled)? {
                return Poll::Ready(Ok(false));
            }
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
        self.items.has_ended()
    }
}

impl<T, E> fmt::Debug for ItemStream<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream")
            .field("has_ended", &self.items.has_ended())
            .finish_non_exhaustive()
    }
}

//! Receiving the items of a stream.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{ReceivedItems, TakenPart};
use tenon_wire::Buffer;

use super::DecodeItem;

/// Bytes of credit that are given back together.
const GIVEN_BACK_TOGETHER: u64 = 16 << 10;

/// The items of a stream: those of a result at the client, those of an argument in a handler. It ends behind the last,
/// or behind an error.
///
/// Dropping it before its end tells the other end that no further items are wanted: at the client the call is given up.
pub struct ItemStream<T, E = CallError> {
    source: Box<dyn ItemSource>,
    items: ReceivedItems,
    /// The first parts of an item that comes in several.
    partial: Buffer,
    /// Bytes of credit that were not given back.
    taken: u64,
    decode: DecodeItem<T>,
    decoding: Decoding,
    is_over: bool,
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
            items: ReceivedItems::default(),
            partial: Buffer::default(),
            taken: 0,
            decode,
            decoding,
            is_over: false,
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
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_decoded(cx));
        self.is_over = !matches!(next, Ok(Some(_)));
        Poll::Ready(next.map_err(E::from).transpose())
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, CallError>> {
        loop {
            let Some(part) = self.items.take() else {
                let taken = mem::take(&mut self.taken);
                let source = &mut self.source;
                if !ready!(source.poll_items(cx, &mut self.items, taken))? {
                    return Poll::Ready(Ok(None));
                }
                continue;
            };
            let value = self.decode_part(&part);
            self.taken += part.size;
            if self.taken >= GIVEN_BACK_TOGETHER {
                self.source.give_back(mem::take(&mut self.taken));
            }
            if let Some(value) = value? {
                return Poll::Ready(Ok(Some(value)));
            }
        }
    }

    /// Decodes an item, if this is the last part of it.
    fn decode_part(&mut self, part: &TakenPart) -> Result<Option<T>, CallError> {
        let (decoding, decode) = (self.decoding, self.decode);
        let (bytes, order) = (self.items.bytes(&part.place), self.items.order());
        if !part.has_more && self.partial.is_empty() {
            return decoding.decode_lean(bytes, order, decode).map(Some);
        }
        let limit = self.source.item_max();
        if self.partial.len() + bytes.len() > limit {
            return Err(CallError::ItemTooLarge { limit });
        }
        self.partial.extend(bytes);
        if part.has_more {
            return Ok(None);
        }
        let whole = mem::take(&mut self.partial);
        decoding
            .decode_lean(whole.as_slice(), order, decode)
            .map(Some)
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
        self.is_over
    }
}

impl<T, E> fmt::Debug for ItemStream<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

//! Sending the items of a stream.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;
use tenon_core::error::CallError;
use tenon_core::streams::ItemPacker;
use tenon_proto::lean::ItemDraft;
use tenon_wire::{Buffer, EncodeError, Encoder, Lean};

use super::EncodeItem;

/// Takes the items of a stream: those of an argument at the client, those of a result in a handler. It waits as long as
/// the other end takes no further items.
///
/// If the items are `opaque<>` it writes bytes as well, by [`AsyncWrite`](tokio::io::AsyncWrite), in items that are as
/// long as goes into one message: they are sent when there are many, or when they are flushed.
///
/// At the client the stream is to be [finished](Self::finish), or closed as a [`Sink`]: dropping it before that gives the
/// call up. A handler ends its stream by returning; items that were [fed](Self::feed) are sent before its reply.
pub struct ItemSink<T, E = CallError> {
    target: Box<dyn ItemTarget>,
    /// What was not handed over.
    packer: ItemPacker,
    encode: EncodeItem<T>,
    /// Bytes that an item may have, if items are opaque data.
    pub(super) opaque_max: Option<u32>,
    error: PhantomData<fn() -> E>,
}

/// The destination of items.
pub(crate) trait ItemTarget: Send {
    /// Returns the form of the messages of items.
    fn draft(&self) -> ItemDraft;

    /// Returns the bytes of the longest item that the other end accepts.
    fn item_max(&self) -> usize;

    /// Has a whole message sent, if there is room for it. An empty buffer is left in its place. If there is none the task
    /// is woken when there is.
    ///
    /// # Errors
    /// The other end takes no further items, or time ran out.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &mut Buffer,
    ) -> Poll<Result<(), CallError>>;

    /// Tells the other end that these are all items.
    fn end(&mut self);

    /// Has a message sent that was not when the sink is dropped, whether there is room for it or not. By default
    /// none is, as the call is given up.
    fn send_last(&mut self, _message: &mut Buffer) {}
}

impl<T, E> ItemSink<T, E> {
    pub(crate) fn new(target: Box<dyn ItemTarget>, encode: EncodeItem<T>) -> Self {
        Self {
            packer: ItemPacker::new(target.draft(), target.item_max()),
            target,
            encode,
            opaque_max: None,
            error: PhantomData,
        }
    }

    /// Puts an item behind those that wait.
    fn start(&mut self, item: &T) -> Result<(), CallError> {
        let encode = self.encode;
        self.start_with(|out| encode(item, out))
    }

    /// Puts an item that `encode` appends behind those that wait.
    pub(super) fn start_with(
        &mut self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<(), CallError> {
        self.packer.push(encode)
    }

    /// Hands over the messages that take no further items, or `all` items.
    pub(super) fn poll_handed_over(
        &mut self,
        cx: &mut Context<'_>,
        all: bool,
    ) -> Poll<Result<(), CallError>> {
        while let Some(message) = self.packer.next(all) {
            if let Err(error) = ready!(self.target.poll_send(cx, message)) {
                self.packer.clear();
                return Poll::Ready(Err(error));
            }
            self.packer.note_handed_over();
        }
        Poll::Ready(Ok(()))
    }

    /// Hands everything over, and tells the other end that these are all items.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        ready!(self.poll_handed_over(cx, true))?;
        self.target.end();
        Poll::Ready(Ok(()))
    }
}

impl<T, E: From<CallError>> ItemSink<T, E> {
    /// Sends an item at once, with those that were [fed](Self::feed) before. If the future is dropped once it was polled
    /// the item is sent with the next.
    ///
    /// # Errors
    /// The item breaks a bound of the interface, or is too large; the other end takes no further items, as
    /// [`CallError::StreamClosed`] says, or because it stops; time ran out.
    pub async fn send(&mut self, item: &T) -> Result<(), E> {
        self.start(item)?;
        self.flush().await
    }

    /// Takes an item, which is sent with others: when they are [flushed](Self::flush), or when there are many.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn feed(&mut self, item: &T) -> Result<(), E> {
        self.start(item)?;
        match self.packer.has_full() {
            false => Ok(()),
            true => Ok(poll_fn(|cx| self.poll_handed_over(cx, false)).await?),
        }
    }

    /// Sends all items that an iterator has, together as far as they find room.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_all<'t>(&mut self, items: impl IntoIterator<Item = &'t T>) -> Result<(), E>
    where
        T: 't,
    {
        for item in items {
            self.feed(item).await?;
        }
        self.flush().await
    }

    /// Sends the items that were [fed](Self::feed).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn flush(&mut self) -> Result<(), E> {
        Ok(poll_fn(|cx| self.poll_handed_over(cx, true)).await?)
    }

    /// Sends what was fed, and tells the other end that these are all items.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn finish(mut self) -> Result<(), E> {
        Ok(poll_fn(|cx| self.poll_end(cx)).await?)
    }
}

impl<T, E: From<CallError>> Sink<T> for ItemSink<T, E> {
    type Error = E;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.poll_handed_over(cx, false).map_err(E::from)
    }

    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), E> {
        Ok(self.start(&item)?)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.poll_handed_over(cx, true).map_err(E::from)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.poll_end(cx).map_err(E::from)
    }
}

impl<T, E> Drop for ItemSink<T, E> {
    fn drop(&mut self) {
        while let Some(message) = self.packer.next(true) {
            self.target.send_last(message);
            self.packer.note_handed_over();
        }
    }
}

impl<T, E> fmt::Debug for ItemSink<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSink")
            .field("fed_bytes", &self.packer.bytes())
            .finish_non_exhaustive()
    }
}

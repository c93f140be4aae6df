//! Writing the items of a stream.

use std::fmt;
use std::marker::PhantomData;

use tenon_core::error::CallError;
use tenon_core::streams::{BYTES_TOGETHER, ItemPacker};
use tenon_proto::lean::ItemDraft;
use tenon_wire::{Buffer, EncodeError, Encoder, Lean};

/// Writes the items of a stream: those of an argument at the client, those of a result in a handler. It waits as long as
/// the other end takes no further items.
///
/// If the items are `opaque<>` it writes bytes as well, by [`Write`](std::io::Write), in items that are as long as goes
/// into one message: they are sent when there are many, or when they are flushed.
///
/// At the client the stream is to be [finished](Self::finish): dropping the writer before that gives the call up. A
/// handler ends its stream by returning.
pub struct ItemWriter<T, E = CallError> {
    parts: PartWriter,
    encode: Box<dyn EncodeItem<T>>,
    /// Bytes that an item may have, if items are opaque data.
    pub(super) opaque_max: Option<u32>,
    error: PhantomData<fn() -> E>,
}

/// What is sent of a stream, whatever its items are.
struct PartWriter {
    sink: Box<dyn ItemSink>,
    /// What was not handed over.
    packer: ItemPacker,
}

/// Appends an item of a stream: a function, such as generated code has it.
pub trait EncodeItem<T>:
    Fn(&T, &mut Encoder<'_, Lean>) -> Result<(), EncodeError> + Send + Sync + 'static
{
}

impl<T, F> EncodeItem<T> for F where
    F: Fn(&T, &mut Encoder<'_, Lean>) -> Result<(), EncodeError> + Send + Sync + 'static
{
}

/// The destination of items.
pub(crate) trait ItemSink: Send {
    /// Returns the form of the messages of items.
    fn draft(&self) -> ItemDraft;

    /// Returns the bytes of the longest item that the other end accepts.
    fn item_max(&self) -> usize;

    /// Has a whole message sent, and waits until there is room for it. An empty buffer is left in its place.
    ///
    /// # Errors
    /// The other end takes no further items, or time ran out.
    fn send(&mut self, message: &mut Buffer) -> Result<(), CallError>;

    /// Tells the other end that these are all items.
    ///
    /// # Errors
    /// It takes no further items anyhow.
    fn end(&mut self) -> Result<(), CallError>;

    /// Has a message sent that was not when the writer is dropped, without waiting. By default none is, as
    /// the call is given up.
    fn send_last(&mut self, _message: &mut Buffer) {}
}

impl<T, E: From<CallError>> ItemWriter<T, E> {
    pub(crate) fn new(sink: Box<dyn ItemSink>, encode: impl EncodeItem<T>) -> Self {
        let packer = ItemPacker::new(sink.draft(), sink.item_max());
        Self {
            parts: PartWriter { sink, packer },
            encode: Box::new(encode),
            opaque_max: None,
            error: PhantomData,
        }
    }

    /// Sends an item at once, with those that were [fed](Self::feed) before.
    ///
    /// # Errors
    /// The item breaks a bound of the interface, or is too large; the other end takes no further items, as
    /// [`CallError::StreamClosed`] says, or because it stops; time ran out.
    pub fn send(&mut self, item: &T) -> Result<(), E> {
        self.feed(item)?;
        self.flush()
    }

    /// Takes an item, which is sent with others: when they are [flushed](Self::flush), or when there are many.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn feed(&mut self, item: &T) -> Result<(), E> {
        let encode = &self.encode;
        Ok(self.parts.feed_with(|out| encode(item, out))?)
    }

    /// Sends all items that an iterator has, together as far as they find room.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_all<'t>(&mut self, items: impl IntoIterator<Item = &'t T>) -> Result<(), E>
    where
        T: 't,
    {
        for item in items {
            self.feed(item)?;
        }
        self.flush()
    }

    /// Sends the items that were [fed](Self::feed).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn flush(&mut self) -> Result<(), E> {
        Ok(self.flush_items()?)
    }

    pub(super) fn flush_items(&mut self) -> Result<(), CallError> {
        self.parts.flush()
    }

    /// Sends what was fed, and tells the other end that these are all items.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn finish(mut self) -> Result<(), E> {
        Ok(self.end()?)
    }

    pub(crate) fn end(&mut self) -> Result<(), CallError> {
        self.parts.flush()?;
        self.parts.sink.end()
    }

    /// As [`feed`](Self::feed), of an item that `encode` appends in place of the function that appends those of this
    /// stream. The run time of another language calls it.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn feed_with(
        &mut self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<(), CallError> {
        self.parts.feed_with(encode)
    }

    /// Takes bytes, as long as items are `opaque<max>`: as many as go in one item, which is sent with others. Returns how
    /// many that is. The run time of another language calls it.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    #[doc(hidden)]
    pub fn feed_bytes(&mut self, bytes: &[u8], max: u32) -> Result<usize, CallError> {
        let item = &bytes[..bytes.len().min(BYTES_TOGETHER).min(max as usize)];
        if !item.is_empty() {
            self.parts.feed_with(|out| out.put_opaque(item, max))?;
        }
        Ok(item.len())
    }
}

impl PartWriter {
    /// Takes an item, which is sent with others.
    #[inline]
    fn feed_with(
        &mut self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<(), CallError> {
        self.packer.push(encode)?;
        match self.packer.has_full() {
            false => Ok(()),
            true => self.hand_over(false),
        }
    }

    fn flush(&mut self) -> Result<(), CallError> {
        self.hand_over(true)
    }

    /// Sends the messages that take no further items, or `all` items.
    #[inline(never)]
    fn hand_over(&mut self, all: bool) -> Result<(), CallError> {
        while let Some(message) = self.packer.next(all) {
            self.sink.send(message)?;
            self.packer.note_handed_over();
        }
        Ok(())
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        while let Some(message) = self.packer.next(true) {
            self.sink.send_last(message);
            self.packer.note_handed_over();
        }
    }
}

impl<T, E> fmt::Debug for ItemWriter<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemWriter")
            .field("fed_bytes", &self.parts.packer.bytes())
            .finish_non_exhaustive()
    }
}

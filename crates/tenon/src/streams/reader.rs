//! Reading the items of a stream.

use std::fmt;
use std::marker::PhantomData;

use tenon_core::LeanInput;
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{ItemAssembly, ReceivedItems, StreamEnd};
use tenon_proto::lean::ByteOrder;
use tenon_wire::DecodeError;

/// Reads the items of a stream: those of a result at the client, those of an argument in a handler. It is an iterator,
/// which waits for each item, and ends behind the last, or behind an error.
///
/// If the items are `opaque<>`, it reads their bytes as well, by [`Read`](std::io::Read) and
/// [`BufRead`](std::io::BufRead): one item behind the other, whatever lengths they have.
///
/// Dropping it before its end tells the other end that no further items are wanted: at the client the call is given up.
pub struct ItemReader<T, E = CallError> {
    parts: PartReader,
    decode: Box<dyn DecodeItem<T>>,
    /// Bytes that an item may have, if items are opaque data.
    pub(super) opaque_max: Option<u32>,
    error: PhantomData<fn() -> E>,
}

/// What is received of a stream, whatever its items are.
struct PartReader {
    source: Box<dyn ItemSource>,
    items: ItemAssembly,
    decoding: Decoding,
    end: Option<StreamEnd>,
}

/// Reads an item of a stream: a function, such as generated code has it.
pub trait DecodeItem<T>:
    Fn(&mut LeanInput<'_>) -> Result<T, DecodeError> + Send + Sync + 'static
{
}

impl<T, F> DecodeItem<T> for F where
    F: Fn(&mut LeanInput<'_>) -> Result<T, DecodeError> + Send + Sync + 'static
{
}

/// The origin of items.
pub(crate) trait ItemSource: Send {
    /// Gives back so many bytes of credit, waits for items, and takes them `into` an empty place. Returns false if no
    /// further items come.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    fn wait(&mut self, into: &mut ReceivedItems, taken: u64) -> Result<bool, CallError>;

    /// Gives back so many bytes of credit.
    fn give_back(&mut self, bytes: u64);

    /// Returns the bytes of the longest item that is accepted.
    fn item_max(&self) -> usize;
}

impl<T, E: From<CallError>> ItemReader<T, E> {
    pub(crate) fn new(
        source: Box<dyn ItemSource>,
        decode: impl DecodeItem<T>,
        decoding: Decoding,
    ) -> Self {
        Self {
            parts: PartReader {
                source,
                items: ItemAssembly::default(),
                decoding,
                end: None,
            },
            decode: Box::new(decode),
            opaque_max: None,
            error: PhantomData,
        }
    }

    /// Returns the same reader, with what `map` makes of the origin of its items.
    pub(crate) fn map_source(
        self,
        map: impl FnOnce(Box<dyn ItemSource>) -> Box<dyn ItemSource>,
    ) -> Self {
        let parts = PartReader {
            source: map(self.parts.source),
            ..self.parts
        };
        Self { parts, ..self }
    }

    /// Waits for the next item, which `decode` reads in place of the function that reads those of this stream. `None`
    /// is the end. Of an item that was read in part it is what is left. The run time of another language calls it.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    #[doc(hidden)]
    pub fn next_with<U>(
        &mut self,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<U, DecodeError>,
    ) -> Result<Option<U>, CallError> {
        self.parts.until_end(|parts| parts.next_with(decode))
    }

    /// Waits for bytes, as long as items are `opaque<max>`, and returns those of the item that comes; none at the end. The
    /// run time of another language calls it.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    #[doc(hidden)]
    pub fn fill_bytes(&mut self, max: u32) -> Result<&[u8], CallError> {
        self.parts
            .until_end(|parts| Ok(parts.fill_bytes(max)?.then_some(())))?;
        Ok(self.parts.items.unread())
    }

    /// Notes that so many bytes were read of those that [came](Self::fill_bytes).
    #[doc(hidden)]
    pub fn consume_bytes(&mut self, bytes: usize) {
        self.parts.items.consume(bytes);
    }

    /// Returns whether an item was read in part.
    #[doc(hidden)]
    pub fn has_bytes_left(&self) -> bool {
        !self.parts.items.unread().is_empty()
    }
}

impl PartReader {
    /// Reads something, unless the stream has ended.
    fn until_end<U>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Option<U>, CallError>,
    ) -> Result<Option<U>, CallError> {
        match self.end {
            Some(StreamEnd::Whole) => return Ok(None),
            Some(StreamEnd::Failed) => return Err(CallError::StreamClosed),
            None => {}
        }
        let read = read(self);
        self.end = StreamEnd::of(&read);
        read
    }

    /// Waits for the next item; `None` is the end.
    fn next_with<U>(
        &mut self,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<U, DecodeError>,
    ) -> Result<Option<U>, CallError> {
        let decoding = self.decoding;
        if let Some(rest) = self.items.take_unread() {
            let rest =
                decoding.decode_lean::<_, CallError>(rest.as_slice(), ByteOrder::NATIVE, decode)?;
            return Ok(Some(rest));
        }
        loop {
            let limit = self.source.item_max();
            if let Some(item) = self.items.next(limit)? {
                let value = decoding.decode_lean::<_, CallError>(item.bytes, item.order, decode)?;
                self.give_back_much();
                return Ok(Some(value));
            }
            if !self.wait()? {
                return Ok(None);
            }
        }
    }

    /// Waits until there are bytes to be read; returns false at the end.
    fn fill_bytes(&mut self, max: u32) -> Result<bool, CallError> {
        while self.items.unread().is_empty() {
            let limit = self.source.item_max();
            if self.items.next_bytes(limit, max, self.decoding)? {
                self.give_back_much();
            } else if !self.wait()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for items; returns false at the end.
    fn wait(&mut self) -> Result<bool, CallError> {
        let credit = self.items.take_credit();
        self.source.wait(self.items.room(), credit)
    }

    /// Gives credit back, once there is enough of it to be worth a message.
    fn give_back_much(&mut self) {
        if let Some(credit) = self.items.take_much_credit() {
            self.source.give_back(credit);
        }
    }
}

impl<T, E: From<CallError>> Iterator for ItemReader<T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        if self.parts.end.is_some() {
            return None;
        }
        let next = self.parts.until_end(|parts| parts.next_with(&self.decode));
        next.map_err(E::from).transpose()
    }
}

impl<T, E: From<CallError>> std::iter::FusedIterator for ItemReader<T, E> {}

impl<T, E> fmt::Debug for ItemReader<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemReader")
            .field("end", &self.parts.end)
            .finish_non_exhaustive()
    }
}

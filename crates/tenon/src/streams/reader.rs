//! Reading the items of a stream.

use std::fmt;
use std::marker::PhantomData;

use tenon_core::LeanInput;
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{ItemAssembly, ReceivedItems};
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

    /// Returns whether the call can be made again: not once an item has come.
    fn can_reopen(&self) -> bool {
        false
    }

    /// Makes the call again.
    ///
    /// # Errors
    /// It cannot be sent; see [`CallError`].
    fn reopen(&mut self) -> Result<(), CallError> {
        Err(CallError::StreamClosed)
    }
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
        let parts = &mut self.parts;
        parts.items.check_whole()?;
        match parts.is_ready()? {
            true => parts.items.read(parts.decoding, decode).map(Some),
            false => Ok(None),
        }
    }

    /// Waits for bytes, as long as items are `opaque<max>`, and returns those of the item that comes; none at the end. The
    /// run time of another language calls it.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    #[doc(hidden)]
    pub fn fill_bytes(&mut self, max: u32) -> Result<&[u8], CallError> {
        self.parts.items.check_whole()?;
        self.parts.fill_bytes(max)?;
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
    /// Waits until the next item is ready; returns false at the end, and behind an error.
    #[inline]
    fn is_ready(&mut self) -> Result<bool, CallError> {
        match self.items.is_ready() {
            true => Ok(true),
            false => self.wait_for_item(),
        }
    }

    #[inline(never)]
    fn wait_for_item(&mut self) -> Result<bool, CallError> {
        if self.items.has_ended() {
            return Ok(false);
        }
        let waited = self.prepare();
        self.items.note_waited(&waited);
        waited
    }

    /// Waits until there are bytes to be read, or the end.
    fn fill_bytes(&mut self, max: u32) -> Result<(), CallError> {
        while self.items.unread().is_empty() && self.is_ready()? {
            self.items.read_bytes(max, self.decoding)?;
        }
        Ok(())
    }

    /// Waits until the next item is ready; returns false at the end. Credit of items that were read is given back, once
    /// there is enough of it to be worth a message.
    fn prepare(&mut self) -> Result<bool, CallError> {
        loop {
            if self.items.prepare(|| self.source.item_max())? {
                if let Some(credit) = self.items.take_much_credit() {
                    self.source.give_back(credit);
                }
                return Ok(true);
            }
            let credit = self.items.take_credit();
            if !self.source.wait(self.items.room(), credit)? {
                return Ok(false);
            }
        }
    }
}

impl<T, E: From<CallError>> Iterator for ItemReader<T, E> {
    type Item = Result<T, E>;

    #[inline]
    fn next(&mut self) -> Option<Result<T, E>> {
        match self.parts.is_ready() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error.into())),
        }
        let (items, decoding) = (&mut self.parts.items, self.parts.decoding);
        Some(items.read(decoding, &self.decode).map_err(E::from))
    }
}

impl<T, E: From<CallError>> std::iter::FusedIterator for ItemReader<T, E> {}

impl<T, E> fmt::Debug for ItemReader<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemReader")
            .field("has_ended", &self.parts.items.has_ended())
            .finish_non_exhaustive()
    }
}

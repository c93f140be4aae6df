//! Reading the items of a stream.

use std::fmt;
use std::marker::PhantomData;

use tenon_core::LeanInput;
use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::ReceivedItems;
use tenon_wire::{Buffer, DecodeError};

/// Bytes of credit that are given back together.
const GIVEN_BACK_TOGETHER: u64 = 16 << 10;

/// Reads the items of a stream: those of a result at the client, those of an argument in a handler. It is an iterator,
/// which waits for each item, and ends behind the last, or behind an error.
///
/// Dropping it before its end tells the other end that no further items are wanted: at the client the call is given up.
pub struct ItemReader<T, E = CallError> {
    parts: PartReader,
    decode: Box<dyn DecodeItem<T>>,
    is_over: bool,
    error: PhantomData<fn() -> E>,
}

/// What is received of a stream, whatever its items are.
struct PartReader {
    source: Box<dyn ItemSource>,
    items: ReceivedItems,
    /// The first parts of an item that comes in several.
    partial: Buffer,
    /// Bytes of credit that were not given back.
    taken: u64,
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
                items: ReceivedItems::default(),
                partial: Buffer::default(),
                taken: 0,
                decoding,
            },
            decode: Box::new(decode),
            is_over: false,
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
    /// is the end, behind which it is not to be called again. The run time of another language calls it.
    ///
    /// # Errors
    /// Why the stream has ended before its end.
    #[doc(hidden)]
    pub fn next_with<U>(
        &mut self,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<U, DecodeError>,
    ) -> Result<Option<U>, CallError> {
        self.parts.next_with(decode)
    }
}

impl PartReader {
    /// Waits for the next item; `None` is the end.
    fn next_with<U>(
        &mut self,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<U, DecodeError>,
    ) -> Result<Option<U>, CallError> {
        let decoding = self.decoding;
        loop {
            let Some(part) = self.items.take() else {
                let taken = std::mem::take(&mut self.taken);
                if !self.source.wait(&mut self.items, taken)? {
                    return Ok(None);
                }
                continue;
            };
            self.taken += part.size;
            let bytes = self.items.bytes(&part.place);
            let order = self.items.order();
            if !part.has_more && self.partial.is_empty() {
                let value = decoding.decode_lean::<U, CallError>(bytes, order, decode)?;
                self.give_back_much();
                return Ok(Some(value));
            }
            let limit = self.source.item_max();
            if self.partial.len() + bytes.len() > limit {
                return Err(CallError::ItemTooLarge { limit });
            }
            self.partial.extend(bytes);
            self.give_back_much();
            if !part.has_more {
                let whole = std::mem::take(&mut self.partial);
                return decoding
                    .decode_lean(whole.as_slice(), order, decode)
                    .map(Some);
            }
        }
    }

    /// Gives credit back, once there is enough of it to be worth a message.
    fn give_back_much(&mut self) {
        if self.taken >= GIVEN_BACK_TOGETHER {
            self.source.give_back(std::mem::take(&mut self.taken));
        }
    }
}

impl<T, E: From<CallError>> Iterator for ItemReader<T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        if self.is_over {
            return None;
        }
        let next = self.parts.next_with(&self.decode);
        self.is_over = !matches!(next, Ok(Some(_)));
        next.map_err(E::from).transpose()
    }
}

impl<T, E: From<CallError>> std::iter::FusedIterator for ItemReader<T, E> {}

impl<T, E> fmt::Debug for ItemReader<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemReader")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

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
    source: Box<dyn ItemSource>,
    items: ReceivedItems,
    /// The first parts of an item that comes in several.
    partial: Buffer,
    /// Bytes of credit that were not given back.
    taken: u64,
    decode: Box<dyn DecodeItem<T>>,
    decoding: Decoding,
    is_over: bool,
    error: PhantomData<fn() -> E>,
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
            source,
            items: ReceivedItems::default(),
            partial: Buffer::default(),
            taken: 0,
            decode: Box::new(decode),
            decoding,
            is_over: false,
            error: PhantomData,
        }
    }

    /// Returns the same reader, with what `map` makes of the origin of its items.
    pub(crate) fn map_source(
        self,
        map: impl FnOnce(Box<dyn ItemSource>) -> Box<dyn ItemSource>,
    ) -> Self {
        Self {
            source: map(self.source),
            ..self
        }
    }

    fn next_item(&mut self) -> Result<Option<T>, CallError> {
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
            let (decoding, decode) = (self.decoding, &self.decode);
            let value = if !part.has_more && self.partial.is_empty() {
                Some(decoding.decode_lean::<T, CallError>(bytes, order, decode)?)
            } else {
                let limit = self.source.item_max();
                if self.partial.len() + bytes.len() > limit {
                    return Err(CallError::ItemTooLarge { limit });
                }
                self.partial.extend(bytes);
                None
            };
            if self.taken >= GIVEN_BACK_TOGETHER {
                self.source.give_back(std::mem::take(&mut self.taken));
            }
            if value.is_some() {
                return Ok(value);
            }
            if !part.has_more {
                let whole = std::mem::take(&mut self.partial);
                return decoding
                    .decode_lean(whole.as_slice(), order, decode)
                    .map(Some);
            }
        }
    }
}

impl<T, E: From<CallError>> Iterator for ItemReader<T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        if self.is_over {
            return None;
        }
        let next = self.next_item();
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

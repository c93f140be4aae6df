//! Streams of items for tasks: a stream of those that are received, and a sink for those that are sent.

mod argument;
mod bytes;
mod handler;
mod item_sink;
mod item_stream;
mod open;

pub use argument::ArgumentSink;
pub(crate) use argument::ReplySource;
pub use item_sink::ItemSink;
pub(crate) use item_sink::ItemTarget;
pub(crate) use item_stream::ItemSource;
pub use item_stream::ItemStream;
pub use open::{AsyncStreamPair, OpenAsyncStreams};

use tenon_core::LeanInput;
use tenon_wire::{DecodeError, EncodeError, Encoder, Lean};

/// Appends an item.
pub(crate) type EncodeItem<T> = fn(&T, &mut Encoder<'_, Lean>) -> Result<(), EncodeError>;

/// Reads an item.
pub(crate) type DecodeItem<T> = fn(&mut LeanInput<'_>) -> Result<T, DecodeError>;

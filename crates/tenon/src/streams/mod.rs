//! Streams of items for threads: a reader that waits for items, and a writer that waits for room.

mod argument;
mod bytes;
mod handler;
mod open;
mod reader;
mod writer;

pub use argument::ArgumentWriter;
pub(crate) use argument::ReplySource;
pub use open::{OpenStreams, StreamPair};
pub(crate) use reader::ItemSource;
pub use reader::{DecodeItem, ItemReader};
pub(crate) use writer::ItemSink;
pub use writer::{EncodeItem, ItemWriter};

//! Streams of items beside the arguments and results of calls, between a connection and the programs at both ends.

mod assembly;
mod bytes;
mod end;
mod packer;
mod pipe;
mod pipes;
mod port;
mod received;

pub use assembly::ItemAssembly;
pub use bytes::{BYTES_TOGETHER, declared_max, io_error};
pub use packer::ItemPacker;
pub use pipe::{Readable, StreamPipe, Writable};
pub use pipes::StreamPipes;
pub use port::{ServedStreams, StreamPort};
pub use received::ReceivedItems;

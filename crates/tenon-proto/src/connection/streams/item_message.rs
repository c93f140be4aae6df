//! A message of items that came.

use super::stream_id::StreamId;
use crate::codec::lean::ByteOrder;

/// A message of items that came. It takes [`size`](Self::size) bytes of the sender's credit, which are
/// [given back](crate::connection::Connection::give_back) when the reader has taken its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemMessage<'m> {
    /// The stream.
    pub id: StreamId,
    /// The order of the bytes of items.
    pub order: ByteOrder,
    /// Encoded items, one at each multiple of 8 bytes behind the one before, or the next bytes of a content that comes in
    /// parts.
    pub content: &'m [u8],
    /// True if the content goes on in the next message.
    pub has_more: bool,
    /// Bytes of the message.
    pub size: u64,
}

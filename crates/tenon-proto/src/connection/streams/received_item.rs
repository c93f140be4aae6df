//! An item that came.

use super::stream_id::StreamId;
use crate::codec::lean::ByteOrder;

/// An item that came, or a part of one. It takes [`size`](Self::size) bytes of the sender's credit, which are
/// [given back](crate::connection::Connection::give_back) when the reader has taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedItem<'m> {
    /// The stream.
    pub id: StreamId,
    /// The order of its bytes.
    pub order: ByteOrder,
    /// The encoded item, or the next bytes of it.
    pub content: &'m [u8],
    /// True if the item goes on in the next message.
    pub has_more: bool,
    /// Bytes of its message.
    pub size: u64,
}

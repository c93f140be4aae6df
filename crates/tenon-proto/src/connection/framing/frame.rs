//! Complete records, preambles and messages as they were received.

use crate::codec::lean::{Kind, Message, Preamble};
use crate::codec::onc::message::CallHeader;

/// A complete record, preamble or message that was received.
#[derive(Debug, Clone, Copy)]
pub enum Frame<'m> {
    /// A message of ONC RPC.
    Record(&'m [u8]),
    /// The first that comes by the lean protocol.
    Preamble(Preamble),
    /// A message of the lean protocol.
    Message(Message<'m>),
}

impl Frame<'_> {
    /// Returns whether it looks like a call of a service.
    #[inline]
    pub(in crate::connection) fn may_be_call(&self) -> bool {
        match self {
            Self::Record(record) => CallHeader::may_be_service_call(record),
            Self::Message(message) => message.header.kind == Kind::Call,
            Self::Preamble(_) => false,
        }
    }
}

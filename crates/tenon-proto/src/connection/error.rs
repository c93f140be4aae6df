//! Errors that end a connection.

use super::byte_layer::LayerError;
use super::framing::FramingError;
use crate::codec::lean;
use crate::codec::onc::message::Violation;

/// The reason for which a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The bytes of the stream cannot be read on.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// The peer broke the lean protocol.
    #[error(transparent)]
    Lean(#[from] lean::Violation),
    /// The peer sent a message of ONC RPC that cannot be answered, or is no message.
    #[error(transparent)]
    Onc(#[from] Violation),
    /// One of both ends refuses the connection, and has said so.
    #[error(transparent)]
    Refused(#[from] lean::Refused),
    /// The peer broke the protocol of the layer below.
    #[error(transparent)]
    Layer(#[from] LayerError),
}

//! A layer between the bytes of the stream and the framing of messages, which may be put in the middle of a stream.
//!
//! A plain connection has none. A layer sees every byte in both directions: it may keep the connection from sending
//! messages until its own handshake is over, send bytes of its own whenever it has received some, and knows the
//! identity of the peer and whether the peer has ended the stream in order.

use std::fmt;

use tenon_wire::Buffer;

/// A layer between the bytes of the stream and the framing of messages.
pub trait ByteLayer: fmt::Debug + Send {
    /// Takes in bytes that were received, and appends the plain bytes that are in them to `plain`. What the layer
    /// has to send itself it keeps until [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// The peer broke the layer's protocol: the connection ends.
    fn handle_received(&mut self, wire: &[u8], plain: &mut Buffer) -> Result<(), LayerError>;

    /// Returns whether the layer has something to send itself.
    fn has_transmit(&self) -> bool;

    /// Appends the bytes that the layer has to send itself.
    fn poll_transmit(&mut self, wire: &mut Buffer);

    /// Returns whether messages may be sent. As long as not, they wait.
    fn is_open(&self) -> bool;

    /// Appends what carries these plain bytes. Called only while the layer [is open](Self::is_open).
    fn wrap(&mut self, plain: &[u8], wire: &mut Buffer);

    /// Returns the identity of the peer, as the layer has verified it.
    fn peer_identity(&self) -> Option<&str> {
        None
    }

    /// Returns whether the peer has said by the layer that nothing follows: a stream that ends without that was cut
    /// off.
    fn has_ended(&self) -> bool;
}

/// A peer broke the protocol of a layer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayerError(pub String);

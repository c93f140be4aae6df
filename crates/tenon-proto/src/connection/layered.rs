//! A connection with a layer between its stream and its framing.

use tenon_wire::Buffer;

use super::Connection;
use super::byte_layer::ByteLayer;
use super::error::ConnectionError;
use super::framing::Receiver;
use super::send_queue::TransmitBatch;

impl<W> Connection<W> {
    /// Puts a layer between the stream and the framing. What was queued before goes through it, too; what `receiver`
    /// has received and not handed out is the first that the layer takes in.
    ///
    /// # Errors
    /// The layer refuses what has been received already.
    pub fn put_layer(
        &mut self,
        layer: Box<dyn ByteLayer>,
        receiver: &mut Receiver,
    ) -> Result<(), ConnectionError> {
        self.layer = Some(layer);
        receiver.put_layer();
        self.handle_layer_input(receiver)
    }

    /// Passes what `receiver` has received through the layer. To be called behind each
    /// [`Receiver::handle_received`] as long as the receiver [has a layer](Receiver::has_layer).
    ///
    /// # Errors
    /// The peer broke the layer's protocol, or speaks no known protocol in it.
    pub fn handle_layer_input(&mut self, receiver: &mut Receiver) -> Result<(), ConnectionError> {
        let Some(layer) = &mut self.layer else {
            return Ok(());
        };
        let taken = layer.handle_received(receiver.wire_bytes(), &mut self.scratch);
        receiver.clear_wire_bytes();
        let handed = receiver.handle_plain(self.scratch.as_slice());
        self.scratch.clear();
        taken?;
        Ok(handed?)
    }

    /// Returns the identity of the peer, as the layer below has verified it.
    pub fn peer_identity(&self) -> Option<&str> {
        self.layer.as_ref()?.peer_identity()
    }

    /// Returns whether the stream may end here, as far as the layer below knows.
    pub fn may_end(&self) -> bool {
        self.layer.as_ref().is_none_or(|layer| layer.has_ended())
    }

    #[cold]
    pub(super) fn poll_layer(&mut self, batch: &mut TransmitBatch) -> bool {
        let Some(mut layer) = self.layer.take() else {
            return false;
        };
        let mut wire = Buffer::default();
        layer.poll_transmit(&mut wire);
        if layer.is_open() {
            let mut plain = TransmitBatch::default();
            while self.poll_transmit(&mut plain) {
                for slice in plain.slices() {
                    layer.wrap(slice, &mut wire);
                }
                plain.advance(plain.remaining());
                self.handle_transmitted(&mut plain);
            }
        }
        self.layer = Some(layer);
        batch.set_wire_bytes(wire)
    }
}

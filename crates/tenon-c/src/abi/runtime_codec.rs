//! What moves the values of an opened interface, in the place of the routines of generated code.
//!
//! It is behind a trait, so that a program that is linked statically and opens no interface leaves all of it out.

use std::sync::Arc;

use tenon::wire::{
    DecodeError, Decoder, EncodeError, Encoder, Lean, Native, Representation, Swapped, Xdr,
};
use tenon_exec::{CMessage, MessageId};

use crate::opened::OpenedValues;

/// `tenon_codec`: moves and frees the values of one message.
pub struct RuntimeCodec(pub(super) Box<dyn ValueCodec>);

/// Moves and frees the values of one message, as `tenon_exec::CMessage` does and for its conditions of safety.
pub(super) trait ValueCodec: Send + Sync {
    /// Appends a value to a message of ONC RPC.
    ///
    /// # Safety
    /// See [`ValueCodec`], as for all below.
    unsafe fn encode_xdr(&self, value: *const u8, to: ValueSink<'_, '_, Xdr>) -> Encoded;

    /// Appends a value to a lean message.
    ///
    /// # Safety
    /// The same.
    unsafe fn encode_lean(&self, value: *const u8, to: ValueSink<'_, '_, Lean<Native>>) -> Encoded;

    /// Reads a value from a message of ONC RPC.
    ///
    /// # Safety
    /// The same.
    unsafe fn decode_xdr(&self, input: &mut Decoder<'_, Xdr>, value: *mut u8) -> Decoded;

    /// Reads a value from a lean message in this machine's order of bytes.
    ///
    /// # Safety
    /// The same.
    unsafe fn decode_lean(&self, input: &mut Decoder<'_, Lean<Native>>, value: *mut u8) -> Decoded;

    /// Reads a value from a lean message in the other order.
    ///
    /// # Safety
    /// The same.
    unsafe fn decode_swapped(
        &self,
        input: &mut Decoder<'_, Lean<Swapped>>,
        value: *mut u8,
    ) -> Decoded;

    /// Frees what a value owns.
    ///
    /// # Safety
    /// The same.
    unsafe fn free(&self, value: *mut u8);
}

/// A message that is appended to, and the bytes that it may have.
pub(super) type ValueSink<'s, 'b, R> = (&'s mut Encoder<'b, R>, usize);

type Encoded = Result<(), EncodeError>;
type Decoded = Result<(), DecodeError>;

/// The message of an opened interface.
pub(super) struct OpenedMessage {
    values: Arc<OpenedValues>,
    id: MessageId,
}

impl OpenedMessage {
    /// The message `id` of these values.
    pub(super) fn new(values: &Arc<OpenedValues>, id: MessageId) -> Self {
        let values = Arc::clone(values);
        Self { values, id }
    }

    /// The message as ONC RPC has it.
    #[inline]
    pub(super) fn xdr(&self) -> CMessage<'_> {
        self.values.xdr.message(self.id)
    }

    /// The message as the lean protocol has it.
    #[inline]
    fn lean(&self) -> CMessage<'_> {
        self.values.lean.message(self.id)
    }
}

/// # Safety
/// That of [`CMessage::encode`].
#[inline]
unsafe fn encode<R: Representation>(
    message: CMessage<'_>,
    value: *const u8,
    (out, limit): ValueSink<'_, '_, R>,
) -> Encoded {
    // SAFETY: the caller's promise.
    unsafe { message.encode(value, out, limit) }
}

impl ValueCodec for OpenedMessage {
    unsafe fn encode_xdr(&self, value: *const u8, to: ValueSink<'_, '_, Xdr>) -> Encoded {
        // SAFETY: the caller's promise.
        unsafe { encode(self.xdr(), value, to) }
    }

    unsafe fn encode_lean(&self, value: *const u8, to: ValueSink<'_, '_, Lean<Native>>) -> Encoded {
        // SAFETY: the caller's promise.
        unsafe { encode(self.lean(), value, to) }
    }

    unsafe fn decode_xdr(&self, input: &mut Decoder<'_, Xdr>, value: *mut u8) -> Decoded {
        // SAFETY: the caller's promise.
        unsafe { self.xdr().decode(input, value) }
    }

    unsafe fn decode_lean(&self, input: &mut Decoder<'_, Lean<Native>>, value: *mut u8) -> Decoded {
        // SAFETY: the caller's promise.
        unsafe { self.lean().decode(input, value) }
    }

    unsafe fn decode_swapped(
        &self,
        input: &mut Decoder<'_, Lean<Swapped>>,
        value: *mut u8,
    ) -> Decoded {
        // SAFETY: the caller's promise.
        unsafe { self.lean().decode(input, value) }
    }

    unsafe fn free(&self, value: *mut u8) {
        // SAFETY: the caller's promise; both representations have the same values in memory.
        unsafe { self.xdr().free(value) }
    }
}

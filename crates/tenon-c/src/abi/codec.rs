//! Values by C's routines: into a buffer of the run time, and out of what was received.

use std::alloc::Layout;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use tenon::wire::{
    Buffer, DecodeError, Decoder, EncodeError, Encoder, Lean, Native, Representation, Swapped, Xdr,
};
use tenon::{LeanInput, Refusal};

use super::runtime_codec::{ValueCodec, ValueSink};
use super::types::{CDecoder, CEncoder, CFailure, CMessage, Decode, Encode};
use crate::failure::{CodecError, CodecFailure, CodecFault, NO_MEMORY, TOO_LARGE};

/// Nothing went wrong yet.
const FINE: CFailure = CFailure {
    kind: 0,
    offset: 0,
    first: 0,
    second: 0,
    field: ptr::null(),
};

/// More than this no routine can mean.
const ROOM_MAX: usize = isize::MAX as usize / 4;

/// An encoder of C's, and the buffer behind it. C sees the first part only.
#[repr(C)]
struct EncoderBridge<'b> {
    encoder: CEncoder,
    buffer: &'b mut Buffer,
    /// Offset in the buffer at which the message begins.
    start: usize,
    /// Bytes that it may have.
    limit: usize,
}

impl<'b> EncoderBridge<'b> {
    /// Behind what the encoder has written; C is handed nothing yet.
    #[inline]
    fn over<R: Representation>(out: &'b mut Encoder<'_, R>, limit: usize) -> Self {
        let depth_left = out.depth_left();
        let (buffer, start) = out.parts();
        let none = ptr::null_mut();
        Self {
            encoder: CEncoder {
                base: none,
                at: none,
                end: none,
                grow,
                depth_left,
                failure: FINE,
            },
            buffer,
            start,
            limit,
        }
    }

    /// Bytes that were written, if the routine has stayed in its room.
    fn written(&self) -> Option<usize> {
        let room = self
            .encoder
            .end
            .addr()
            .checked_sub(self.encoder.base.addr())?;
        let written = self
            .encoder
            .at
            .addr()
            .checked_sub(self.encoder.base.addr())?;
        (written <= room).then_some(written)
    }

    /// Hands out all the room that the buffer has, `written` bytes of which are in use.
    fn hand_out(&mut self, written: usize) {
        let spare = self.buffer.capacity() - self.buffer.len();
        self.buffer.room(spare);
        let message = &mut self.buffer.as_mut_slice()[self.start..];
        let range = message.as_mut_ptr_range();
        self.encoder.base = range.start;
        self.encoder.at = message[written..].as_mut_ptr();
        self.encoder.end = range.end;
    }
}

/// Makes room in an encoder.
///
/// # Safety
/// It is the first part of an [`EncoderBridge`], the message of which is being encoded.
unsafe extern "C" fn grow(encoder: *mut CEncoder, room: usize) -> bool {
    // SAFETY: the caller's promise; the routine that calls this holds no other reference to it.
    let bridge = unsafe { &mut *encoder.cast::<EncoderBridge<'_>>() };
    let Some(written) = bridge.written().filter(|_| room <= ROOM_MAX) else {
        bridge.encoder.failure.kind = NO_MEMORY;
        return false;
    };
    let size = written.saturating_add(room);
    if size > bridge.limit {
        bridge.encoder.failure.kind = TOO_LARGE;
        bridge.encoder.failure.first = size as u64;
        bridge.encoder.failure.second = bridge.limit as u64;
        return false;
    }
    bridge.buffer.truncate(bridge.start + written);
    if !bridge.buffer.try_reserve(room) {
        bridge.encoder.failure.kind = NO_MEMORY;
        return false;
    }
    bridge.hand_out(written);
    true
}

/// A representation that C's tables have routines to read.
pub(super) trait CRead: Representation {
    /// Set if the sender's order of bytes is known by the decoder, and is the other one.
    const SENDER_SWAPPED: bool;

    /// The routine that reads a value.
    fn decode_routine(message: &CMessage) -> Option<Decode>;

    /// Reads a value of an opened interface.
    ///
    /// # Safety
    /// There is room for it, which is zeroed.
    unsafe fn decode_opened(
        codec: &dyn ValueCodec,
        input: &mut Decoder<'_, Self>,
        value: *mut u8,
    ) -> Result<(), DecodeError>;
}

/// A representation that C's tables have routines to write.
pub(super) trait CWrite: Representation {
    /// The routine that appends a value.
    fn encode_routine(message: &CMessage) -> Option<Encode>;

    /// Bytes of each number of a value, if it lies in the message as in memory, but for their order; 0 if not.
    fn unit(message: &CMessage) -> u32;

    /// Appends a value of an opened interface.
    ///
    /// # Safety
    /// It lies there.
    unsafe fn encode_opened(
        codec: &dyn ValueCodec,
        value: *const u8,
        to: ValueSink<'_, '_, Self>,
    ) -> Result<(), EncodeError>;
}

/// Implements [`CRead`] by a routine of the tables and a method of [`ValueCodec`].
macro_rules! read {
    ($representation:ty, $swapped:literal, $routine:ident, $method:ident) => {
        impl CRead for $representation {
            const SENDER_SWAPPED: bool = $swapped;

            #[inline(always)]
            fn decode_routine(message: &CMessage) -> Option<Decode> {
                message.$routine
            }

            unsafe fn decode_opened(
                codec: &dyn ValueCodec,
                input: &mut Decoder<'_, Self>,
                value: *mut u8,
            ) -> Result<(), DecodeError> {
                // SAFETY: the caller's promise.
                unsafe { codec.$method(input, value) }
            }
        }
    };
}

read!(Xdr, false, decode_xdr, decode_xdr);
read!(Lean<Native>, false, decode_lean, decode_lean);
read!(Lean<Swapped>, true, decode_lean, decode_swapped);

/// Implements [`CWrite`] by a routine of the tables, which the method of [`ValueCodec`] is called like.
macro_rules! write {
    ($representation:ty, $routine:ident, $unit:ident) => {
        impl CWrite for $representation {
            #[inline(always)]
            fn encode_routine(message: &CMessage) -> Option<Encode> {
                message.$routine
            }

            #[inline(always)]
            fn unit(message: &CMessage) -> u32 {
                message.$unit
            }

            unsafe fn encode_opened(
                codec: &dyn ValueCodec,
                value: *const u8,
                to: ValueSink<'_, '_, Self>,
            ) -> Result<(), EncodeError> {
                // SAFETY: the caller's promise.
                unsafe { codec.$routine(value, to) }
            }
        }
    };
}

write!(Xdr, encode_xdr, xdr_unit);
write!(Lean<Native>, encode_lean, lean_unit);

/// A table lacks the routine that is needed.
const NO_ROUTINE: CodecFault = CodecFault::Unsaid;

/// Appends a value to a message of the run time, which has no more bytes than `limit`.
///
/// # Safety
/// `message` describes the value that `value` leads to.
#[inline]
pub(super) unsafe fn encode<R: CWrite>(
    out: &mut Encoder<'_, R>,
    message: &CMessage,
    value: *const c_void,
    limit: usize,
) -> Result<(), CodecError<EncodeError>> {
    // SAFETY: it is NULL or that of an opened interface, which lives as long as its tables.
    if let Some(codec) = unsafe { message.codec.as_ref() } {
        // SAFETY: the caller's promise.
        let encoded = unsafe { R::encode_opened(&*codec.0, value.cast(), (out, limit)) };
        return encoded.map_err(CodecError::from);
    }
    let routine = R::encode_routine(message).ok_or(CodecError::Fault(NO_ROUTINE))?;
    let mut bridge = EncoderBridge::over(out, limit);
    let start = bridge.start;
    let before = bridge.buffer.len() - start;
    bridge.hand_out(before);
    // The whole bridge is what the routine is handed, as `grow` looks at all of it.
    let handed = (&raw mut bridge).cast::<CEncoder>();
    // SAFETY: the routine is one for this value, and the encoder leads to bytes that are the buffer's
    // and initialised.
    let is_encoded = unsafe { routine(handed, value) };
    let written = bridge.written();
    let end = start + written.unwrap_or(before);
    bridge.buffer.truncate(end);
    match (is_encoded, written) {
        (true, Some(_)) => Ok(()),
        (true, None) => Err(CodecError::Fault(CodecFault::OutOfBounds)),
        // SAFETY: the routine has set the failure.
        (false, _) => Err(unsafe { failure(&bridge.encoder.failure) }.of_value()),
    }
}

/// Returns the layout of a value and the bytes of each of its numbers, if a handler can write it into the message: it lies
/// there as in memory, and there is room and memory for it.
#[inline]
pub(super) fn place_in_message<R: CWrite>(
    out: &mut Encoder<'_, R>,
    message: &CMessage,
    limit: usize,
) -> Option<(Layout, usize)> {
    let unit @ (1 | 2 | 4 | 8) = R::unit(message) as usize else {
        return None;
    };
    let layout = Layout::from_size_align(message.size, message.align).ok()?;
    let (buffer, start) = out.parts();
    let before = buffer.len() - start;
    let fits = message.size.is_multiple_of(unit) && before.saturating_add(message.size) <= limit;
    let is_there = fits && buffer.try_reserve(message.size.saturating_add(message.align));
    is_there.then_some((layout, unit))
}

/// Lets a handler read the arguments of a call of ONC RPC and append its result of no more bytes than `limit`.
pub(super) fn handle(
    input: &mut Decoder<'_>,
    out: &mut Encoder<'_>,
    limit: usize,
    handler: impl FnOnce(*mut CDecoder, *mut CEncoder) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut decoder = decoder_over(input, false);
    let mut bridge = EncoderBridge::over(out, limit);
    let before = bridge.buffer.len();
    bridge.hand_out(before - bridge.start);
    let outcome = handler(&raw mut decoder, (&raw mut bridge).cast());
    let end = match (&outcome, bridge.written()) {
        (Ok(()), Some(written)) => bridge.start + written,
        _ => before,
    };
    bridge.buffer.truncate(end);
    outcome
}

/// Reads a value out of a message of ONC RPC.
///
/// # Safety
/// `message` describes the room that `value` leads to, which is zeroed.
#[inline]
pub(super) unsafe fn decode_xdr(
    input: &mut Decoder<'_>,
    message: &CMessage,
    value: *mut c_void,
) -> Result<(), CodecError<DecodeError>> {
    // SAFETY: the caller's promise.
    unsafe { decode(input, 0, message, value) }
}

/// Reads a value out of a lean message.
///
/// # Safety
/// As [`decode_xdr`].
#[inline]
pub(super) unsafe fn decode_lean(
    input: &mut LeanInput<'_>,
    message: &CMessage,
    value: *mut c_void,
) -> Result<(), CodecError<DecodeError>> {
    // SAFETY: the caller's promise.
    unsafe {
        match input {
            LeanInput::Native(input) => decode(input, 0, message, value),
            LeanInput::Swapped(input) => decode(input, 0, message, value),
        }
    }
}

/// Reads the error that stands in the details of an exception, behind its position.
///
/// # Safety
/// As [`decode_xdr`].
pub(super) unsafe fn decode_raised(
    details: LeanInput<'_>,
    align: usize,
    message: &CMessage,
    value: *mut c_void,
) -> Result<(), CodecError<DecodeError>> {
    // SAFETY: the caller's promise.
    unsafe {
        match details {
            LeanInput::Native(input) => decode_behind(input, align, message, value),
            LeanInput::Swapped(input) => decode_behind(input, align, message, value),
        }
    }
}

/// # Safety
/// As [`decode_xdr`].
unsafe fn decode_behind<R: CRead>(
    mut input: Decoder<'_, R>,
    align: usize,
    message: &CMessage,
    value: *mut c_void,
) -> Result<(), CodecError<DecodeError>> {
    let all = input.rest().len();
    let _position: u32 = input.get().map_err(CodecError::Value)?;
    input.align(align, 0).map_err(CodecError::Value)?;
    let behind = all - input.rest().len();
    // SAFETY: the caller's promise.
    unsafe { decode(&mut input, behind, message, value) }?;
    input.finish().map_err(CodecError::Value)
}

/// Reads a value that stands `behind` bytes behind the beginning of its message.
///
/// # Safety
/// `message` describes the room that `value` leads to, which is zeroed; so many bytes of the message were read.
#[inline]
pub(super) unsafe fn decode<R: CRead>(
    input: &mut Decoder<'_, R>,
    behind: usize,
    message: &CMessage,
    value: *mut c_void,
) -> Result<(), CodecError<DecodeError>> {
    // SAFETY: it is NULL or that of an opened interface, which lives as long as its tables.
    if let Some(codec) = unsafe { message.codec.as_ref() } {
        // SAFETY: the caller's promise.
        let decoded = unsafe { R::decode_opened(&*codec.0, input, value.cast()) };
        return decoded.map_err(CodecError::from);
    }
    let routine = R::decode_routine(message).ok_or(CodecError::Fault(NO_ROUTINE))?;
    let mut decoder = decoder_over(input, R::SENDER_SWAPPED);
    let start = decoder.at;
    decoder.base = decoder.base.wrapping_sub(behind);
    // SAFETY: the routine is one for this value, and the decoder leads to the bytes of the message,
    // which are borrowed until it returns.
    if !unsafe { routine(&raw mut decoder, value) } {
        // SAFETY: the routine has set the failure.
        return Err(unsafe { failure(&decoder.failure) }.of_bytes());
    }
    let read = decoder.at.addr().wrapping_sub(start.addr());
    match input.take(read) {
        Ok(_) => Ok(()),
        Err(_) => Err(CodecError::Fault(CodecFault::OutOfBounds)),
    }
}

/// Makes a decoder of C's for the rest of a message.
#[inline]
fn decoder_over<R: Representation>(input: &Decoder<'_, R>, swapped: bool) -> CDecoder {
    let bytes = input.rest().as_ptr_range();
    CDecoder {
        base: bytes.start,
        at: bytes.start,
        end: bytes.end,
        payable: input.memory_left(),
        depth_left: input.depth_left(),
        swapped,
        failure: FINE,
    }
}

/// # Safety
/// The field is NULL or a text of C's that lives as long as the program.
#[cold]
unsafe fn failure(from: &CFailure) -> CodecFailure {
    CodecFailure {
        kind: from.kind,
        offset: from.offset,
        first: from.first,
        second: from.second,
        // SAFETY: the caller's promise.
        field: unsafe { field(from.field) },
    }
}

/// # Safety
/// It is NULL or a text of C's that lives as long as the program.
unsafe fn field(name: *const c_char) -> Cow<'static, str> {
    if name.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    unsafe { CStr::from_ptr(name) }.to_string_lossy()
}

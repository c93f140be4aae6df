//! The types of `tenon.h` that both sides look into, as C has them.

use std::ffi::{c_char, c_void};

use super::runtime_codec::RuntimeCodec;

/// `tenon_failure`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CFailure {
    /// A `tenon_failure_kind`.
    pub kind: u32,
    /// Offset in the received bytes.
    pub offset: usize,
    /// A value that the kind defines.
    pub first: u64,
    /// A value that the kind defines.
    pub second: u64,
    /// The innermost field that is known, or NULL.
    pub field: *const c_char,
}

/// `tenon_encoder`.
#[repr(C)]
#[derive(Debug)]
pub struct CEncoder {
    /// The beginning of the message.
    pub base: *mut u8,
    /// The position at which it goes on.
    pub at: *mut u8,
    /// The end of the room.
    pub end: *mut u8,
    /// Makes more.
    pub grow: unsafe extern "C" fn(*mut CEncoder, usize) -> bool,
    /// Levels of recursive types that may still be entered.
    pub depth_left: u32,
    /// The reason why it was not encoded.
    pub failure: CFailure,
}

/// `tenon_decoder`.
#[repr(C)]
#[derive(Debug)]
pub struct CDecoder {
    /// The beginning of the message.
    pub base: *const u8,
    /// The position at which it goes on.
    pub at: *const u8,
    /// The end of the message.
    pub end: *const u8,
    /// Memory that it may still cost.
    pub payable: usize,
    /// Levels of recursive types that may still be entered.
    pub depth_left: u32,
    /// True if the sender's order of bytes is the other one.
    pub swapped: bool,
    /// The reason why it was not decoded.
    pub failure: CFailure,
}

/// A routine that encodes a value.
pub type Encode = unsafe extern "C" fn(*mut CEncoder, *const c_void) -> bool;

/// A routine that decodes a value.
pub type Decode = unsafe extern "C" fn(*mut CDecoder, *mut c_void) -> bool;

/// `tenon_message`.
#[repr(C)]
#[derive(Debug)]
pub struct CMessage {
    /// Bytes of a value in memory.
    pub size: usize,
    /// Alignment of a value in memory.
    pub align: usize,
    /// For ONC RPC.
    pub encode_xdr: Option<Encode>,
    /// For ONC RPC.
    pub decode_xdr: Option<Decode>,
    /// For the lean protocol.
    pub encode_lean: Option<Encode>,
    /// For the lean protocol.
    pub decode_lean: Option<Decode>,
    /// Gives back what a value owns, if it can own something.
    pub free: Option<unsafe extern "C" fn(*mut c_void)>,
    /// What moves and frees values in place of the functions, in a table of an opened interface; NULL in all others.
    pub codec: *const RuntimeCodec,
    /// Bytes of each number of a value that lies in messages of ONC RPC as in memory, but for the order of its bytes; 0 for
    /// all others.
    pub xdr_unit: u32,
    /// The same in lean messages; 1 if the numbers have several sizes.
    pub lean_unit: u32,
}

// SAFETY: it is constant data, and so is what moves the values of opened interfaces.
unsafe impl Send for CMessage {}

// SAFETY: the same.
unsafe impl Sync for CMessage {}

/// `tenon_procedure`.
#[repr(C)]
#[derive(Debug)]
pub struct CProcedure {
    /// Its number.
    pub number: u32,
    /// Its name, for people.
    pub name: *const c_char,
    /// The type of its arguments, or NULL.
    pub arguments: *const CMessage,
    /// The type of its result, or NULL.
    pub result: *const CMessage,
}

/// `tenon_stream_procedure`.
#[repr(C)]
#[derive(Debug)]
pub struct CStreamProcedure {
    /// Its number.
    pub number: u32,
    /// Its name, for people.
    pub name: *const c_char,
    /// The type of its arguments but the stream, or NULL.
    pub arguments: *const CMessage,
    /// The type of its result, or NULL.
    pub result: *const CMessage,
    /// The type of an item of its last argument, or NULL.
    pub argument_item: *const CMessage,
    /// The type of an item of its result, or NULL.
    pub result_item: *const CMessage,
    /// Bytes that an item of the last argument may have, if it is bytes.
    pub argument_bytes: u32,
    /// Bytes that an item of the result may have, if it is bytes.
    pub result_bytes: u32,
}

/// `tenon_raised_type`.
#[repr(C)]
#[derive(Debug)]
pub struct CRaisedType {
    /// Its position behind `raises`.
    pub position: u32,
    /// The name of its type.
    pub name: *const c_char,
    /// Alignment of a value in lean messages.
    pub align: usize,
    /// Moves a value.
    pub message: *const CMessage,
}

/// `tenon_part`.
#[repr(C)]
#[derive(Debug)]
pub struct CPart {
    /// Its name.
    pub name: *const c_char,
    /// The fingerprint of its definition.
    pub fingerprint: u64,
    /// The same without the names in it.
    pub layout: u64,
    /// The number of a procedure; 0 for a type.
    pub procedure: u32,
}

/// `tenon_interface`.
#[repr(C)]
#[derive(Debug)]
pub struct CInterface {
    /// The program's number.
    pub program: u32,
    /// The version's number.
    pub version: u32,
    /// Its name, for people.
    pub name: *const c_char,
    /// The fingerprint of its definition, or 0.
    pub fingerprint: u64,
    /// The parts that it consists of.
    pub parts: *const CPart,
    /// The number of those.
    pub part_count: usize,
    /// By number, in ascending order.
    pub procedures: *const CProcedure,
    /// The number of those.
    pub procedure_count: usize,
}

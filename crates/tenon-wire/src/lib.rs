//! Foundations of generated stubs and protocol engines: a reusable [`Buffer`], the cursors
//! [`Encoder`] and [`Decoder`], the limits that hostile input meets, and the errors that name
//! field and offset.
//!
//! A cursor is of a [`Representation`], which says how items lie on the wire: [`Xdr`] (RFC 4506)
//! unless another is named. The plan decides *what* is moved; this crate only moves it.
//!
//! ```
//! use tenon_wire::{Buffer, Decoder, Encoder};
//!
//! let mut buffer = Buffer::default();
//! let mut out = Encoder::new(&mut buffer);
//! out.put(7_i32);
//! out.put_opaque(b"seven", 16)?;
//! assert_eq!(buffer.as_slice(), b"\0\0\0\x07\0\0\0\x05seven\0\0\0");
//!
//! let mut input = Decoder::new(buffer.as_slice());
//! assert_eq!(input.get::<i32>()?, 7);
//! assert_eq!(input.get_string(16)?, "seven");
//!
//! // A length that there are no bytes for is an error that says where, and takes no memory.
//! let mut input = Decoder::new(b"\xff\xff\xff\xff");
//! let error = input.get_opaque(u32::MAX).expect_err("nothing follows");
//! assert_eq!(error.offset, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod buffer;
mod decode;
mod encode;
mod error;
pub mod kernels;
mod marshal;
mod members;
mod representation;
#[cfg(feature = "serde")]
pub mod serde;
mod word;

pub use alloc::borrow::Cow;
pub use bstr::{BStr, BString, ByteSlice};
pub use buffer::Buffer;
pub use decode::{Block, DecodeMode, Decoder, Limits};
pub use encode::{BlockMut, Encoder};
pub use error::{
    DecodeError, DecodeErrorKind, DecodeFault, EncodeError, EncodeErrorKind, EncodeFault, Field,
};
pub use kernels::{Blittable, ReservedValue, boxed_array, boxed_copy, map_boxed};
pub use marshal::{Marshal, View};
pub use members::ByNumber;
pub use representation::{Lean, Native, Order, Representation, Swapped, Xdr};
pub use word::Word;

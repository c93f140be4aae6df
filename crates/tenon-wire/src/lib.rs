//! What generated stubs and protocol engines stand on: a reusable [`Buffer`], the cursors
//! [`Encoder`] and [`Decoder`], the limits that hostile input meets, and the errors that name
//! field and offset.
//!
//! A cursor is of a [`Representation`], which says how items lie on the wire: [`Xdr`] (RFC 4506)
//! unless another is named. The plan decides *what* is moved; this crate only moves it.
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
mod representation;
mod word;

pub use alloc::borrow::Cow;
pub use bstr::{BStr, BString, ByteSlice};
pub use buffer::Buffer;
pub use decode::{Block, DecodeMode, Decoder, Limits};
pub use encode::{BlockMut, Encoder};
pub use error::{
    DecodeError, DecodeErrorKind, DecodeFault, EncodeError, EncodeErrorKind, EncodeFault, Field,
};
pub use kernels::{Blittable, boxed_array, map_boxed};
pub use marshal::{Marshal, View};
pub use representation::{Bytewise, Called, Lean, Native, Order, Representation, Swapped, Xdr};
pub use word::Word;

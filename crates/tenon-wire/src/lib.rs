//! What generated stubs and protocol engines stand on: a reusable [`Buffer`], the cursors
//! [`Encoder`] and [`Decoder`], the limits that hostile input meets, and the errors that name
//! field and offset.
//!
//! The representation is XDR (RFC 4506): every item a multiple of four bytes, most significant
//! byte first. The plan decides *what* is moved; this crate only moves it.
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod buffer;
mod decoder;
mod encoder;
mod error;
pub mod kernels;
pub mod xdr;

pub use bstr::{BStr, BString, ByteSlice};
pub use buffer::Buffer;
pub use decoder::{DecodeMode, Decoder, Limits};
pub use encoder::Encoder;
pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Field};
pub use xdr::{Word, Xdr};

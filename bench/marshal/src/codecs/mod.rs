//! How each contestant marshals.

mod libtirpc;
mod memcpy;
mod peers;
mod tenon;
mod wide;

pub use libtirpc::libtirpc;
pub use memcpy::memcpy;
pub use peers::{Bincode, Bitcode, Postcard, Prost, Rkyv, Wincode};
pub use tenon::{Called, Compiled, Interpreted, Lent, Machine, Named, Reusing, Viewed, message};
pub use wide::wide_wincode;

//! Runs plans on memory. The interpreter is what a plan means: whatever else runs or prints a
//! plan is held against it.
//!
//! ```text
//! JSON  <- json ->  Value  <- interp ->  bytes (XDR)
//! ```
//!
//! An [`Interface`] is a schema with its plans; a [`Procedure`] is what a dynamic client needs
//! to know about one procedure.

mod interface;
mod interp;
pub mod json;
mod procedure;
pub mod random;
mod value;

pub use interface::{Interface, InterfaceError};
pub use procedure::{FindError, Procedure};
pub use value::{Union, Value};

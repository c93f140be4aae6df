//! Runs plans on memory. The interpreter is what a plan means: whatever else runs or prints a
//! plan is held against it.
//!
//! ```text
//! JSON  <- json ->  Value  <- frame ->  Frame  <- frame::interp, jit ->  bytes
//! ```
//!
//! An [`Interface`] is a schema with its plans; a [`Procedure`] is what a dynamic client needs
//! to know about one procedure.

mod example;
pub mod frame;
mod interface;
#[cfg(feature = "jit")]
mod jit;
pub mod json;
pub mod layout;
mod procedure;
mod program;
pub mod random;
mod unpaid;
mod value;

pub use frame::{Frame, Message, Slot};
pub use interface::Interface;
pub use procedure::{FindError, Procedure};
pub use unpaid::{Unpaid, unpaid};
pub use value::{Union, Value};

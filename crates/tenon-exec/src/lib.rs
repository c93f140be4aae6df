//! Runs plans on memory. The interpreter is what a plan means: whatever else runs or prints a
//! plan is held against it.
//!
//! ```text
//! JSON  <- json ->  Value  <- frame ->  Frame  <- frame::interp, jit ->  bytes
//! ```
//!
//! An [`Interface`] is a schema with its plans; a [`Procedure`] is what a dynamic client needs
//! to know about one procedure; a [`Message`] is what is moved, and a [`Slot`] a place for one value of it after
//! the other.
//!
//! ```
//! use tenon_exec::Interface;
//! use tenon_wire::{Buffer, Decoder, Encoder};
//!
//! let text = "
//!     struct visitor { string name<64>; int visits; };
//!     program GREETER { version V1 { visitor GREET(visitor) = 1; } = 1; } = 0x20001234;";
//! let parsed = tenon_idl::parse_text("greeter.x", text, &Default::default());
//! let interface = Interface::new(parsed.schema.ok_or("no interface")?)?;
//! let procedure = interface.procedure("GREET", Some(1))?;
//!
//! // From JSON to bytes,
//! let ada = serde_json::json!({"name": "Ada", "visits": 1});
//! let arguments = procedure.read_arguments(Some(&ada))?;
//! let mut buffer = Buffer::default();
//! procedure.encode_arguments(&arguments, &mut Encoder::new(&mut buffer))?;
//! assert_eq!(buffer.as_slice(), b"\0\0\0\x03Ada\0\0\0\0\x01");
//!
//! // and back: the result has the same type here.
//! let result = procedure.decode_result(&mut Decoder::new(buffer.as_slice()))?;
//! assert_eq!(procedure.write_result(&result)?, ada);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whoever moves many messages of one type keeps them as [`Frame`]s. Of a message that has been moved a thousand
//! times machine code is made, without being asked for.

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

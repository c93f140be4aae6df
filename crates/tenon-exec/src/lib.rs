//! Runs plans on memory. The interpreter defines the meaning of a plan: everything else that runs or prints a
//! plan is tested against it.
//!
//! ```text
//! JSON  <- json ->  Value  <- frame ->  Frame  <- frame::interp, jit ->  bytes
//! ```
//!
//! An [`Interface`] is a schema with its plans; a [`Procedure`] has all that a dynamic client needs to know about
//! one procedure; a [`Message`] is a type of which values are encoded and decoded, and a [`Slot`] holds one decoded
//! value of it after the other.
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
//! Programs that encode or decode many messages of one type keep them as [`Frame`]s. A message that has been encoded
//! or decoded a thousand times is compiled to machine code, without being asked for.

mod amplification;
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
mod resolved;
mod value;

pub use amplification::{AmplifyingType, amplifying_types};
pub use frame::{
    CMessage, CValue, CValues, CValuesError, Frame, Message, MessageId, NumberMover, Slot,
    WholeNumberMover,
};
pub use interface::Interface;
pub use procedure::{FindError, Procedure, RaisedError};
pub use value::{Union, Value};

//! Clients and services of interfaces that become known at run time: values instead of generated types.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tenon::{Client, Refusal, Server};
//! use tenon_dynamic::{DynamicCall, DynamicInterface, DynamicService};
//! use tenon_exec::Value;
//!
//! let text = "program DOUBLING { version DOUBLING_V1 { int DOUBLE(int) = 1; } = 1; } = 0x20000001;";
//! let parsed = tenon_idl::parse_text("doubling.x", text, &tenon_idl::Options::default());
//! let interface = Arc::new(DynamicInterface::new(parsed.schema.expect("no mistake in it"))?);
//!
//! // One handler for all procedures, which are told apart by their names.
//! let handler = |call: &DynamicCall<'_>, arguments: Value| {
//!     let Value::Struct(arguments) = arguments else {
//!         unreachable!("the arguments of a procedure are a struct");
//!     };
//!     match (call.procedure().name(), &arguments[..]) {
//!         ("DOUBLE", [Value::Int(number)]) => Ok(Value::Int(2 * number)),
//!         _ => Err(Refusal::ProcedureUnavailable),
//!     }
//! };
//! let mut builder = Server::builder().listen("tcp://127.0.0.1:0")?;
//! for service in DynamicService::of_all(&interface, handler) {
//!     builder = builder.service(service);
//! }
//! let server = builder.start()?;
//!
//! let client = Client::connect(&server.addresses()[0].to_string(), 0x2000_0001, 1)?;
//! let procedure = interface.of(client.protocol()).procedure("DOUBLE", None)?;
//! let doubled = tenon_dynamic::call(&client, procedure, &Value::Struct(vec![Value::Int(21)]))?;
//! assert_eq!(doubled, Value::Int(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod interface;
mod service;
mod streams;

pub use client::{call, raised};
pub use interface::{DynamicInterface, lean_interface, representation};
pub use service::{DynamicCall, DynamicHandler, DynamicService, DynamicStreams};
pub use streams::{OpenedCall, StreamedProcedure, open};

//! The lean protocol: calls between two ends that are both Tenon, over a stream of bytes. It is
//! specified to the byte in `docs/lean-protocol.md`; the bodies of its messages are specified in
//! `docs/lean.md`.
//!
//! Each end begins with a [preamble](Preamble). Then come messages, each a [header](Header) of 16
//! bytes and what belongs to it. A client [binds](client::ClientEngine::bind) the version of a
//! program to a small number before it calls it for the first time, and waits for nothing: preamble,
//! binding and first call travel together.
//!
//! A call from the first byte to the last, over a stream that both sides reach into:
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use tenon_proto::lean::client::{ClientEngine, Event, Outgoing};
//! use tenon_proto::lean::server::{Catalog, Received, Reply, ServerEngine};
//! use tenon_proto::lean::{ByteOrder, MessageDraft, Extras, Incoming, Interface, MessageReader, Preamble};
//! use tenon_wire::Buffer;
//!
//! /// What `write` and `read` do between two sockets.
//! fn carry(bytes: &mut Buffer, reader: &mut MessageReader) {
//!     reader.room()[..bytes.len()].copy_from_slice(bytes.as_slice());
//!     reader.filled(bytes.len());
//!     bytes.clear();
//! }
//!
//! // The client writes its arguments behind a header. Number and service are stamped on it when it
//! // is sent, behind what the engine itself has to say: here its preamble and the binding.
//! let mut client = ClientEngine::new(Preamble::client(1 << 20), 0x5eed);
//! let mut call = Buffer::default();
//! let draft = MessageDraft::call(&mut call, ByteOrder::NATIVE, 7, &Extras::default());
//! call.extend(b"ping");
//! let size = draft.seal(&mut call);
//! let service = client.bind(&Arc::new(Interface::unknown(300, 1)))?;
//! let deadline = Instant::now() + Duration::from_secs(5);
//! let outgoing = Outgoing { service, procedure: 7, size, deadline };
//! let id = client.start(&outgoing, "whoever waits")?;
//! draft.stamp(&mut call, id, service);
//! let mut wire = Buffer::default();
//! client.poll_transmit(&mut wire);
//! wire.extend(call.as_slice());
//!
//! // The server: which service is meant, and the result behind a header.
//! let mut catalog = Catalog::default();
//! catalog.add(Arc::new(Interface::unknown(300, 1)));
//! let mut server = ServerEngine::new(Preamble::server(1 << 20, 64));
//! let mut reader = MessageReader::new(1 << 20);
//! carry(&mut wire, &mut reader);
//! while let Some(incoming) = reader.next_message()? {
//!     match incoming {
//!         Incoming::Preamble(theirs) => server.handle_preamble(&theirs, &mut wire)?,
//!         Incoming::Message(message) => {
//!             if let Received::Call(call) = server.handle_message(&catalog, &message, &mut wire)? {
//!                 assert_eq!((call.procedure, call.arguments), (7, &b"ping"[..]));
//!                 let reply = Reply::begin(&mut wire, call.caller);
//!                 wire.extend(b"pong");
//!                 reply.seal(&mut wire);
//!             }
//!         }
//!     }
//! }
//!
//! // The client again: whose answer is it, and what does it say?
//! let mut reader = MessageReader::new(1 << 20);
//! carry(&mut wire, &mut reader);
//! let mut results: Vec<u8> = Vec::new();
//! while let Some(incoming) = reader.next_message()? {
//!     match incoming {
//!         Incoming::Preamble(theirs) => client.handle_preamble(&theirs)?,
//!         Incoming::Message(message) => {
//!             if let Event::Answer(answer) = client.handle_message(&message)? {
//!                 assert_eq!(answer.waiter, "whoever waits");
//!                 results.extend(answer.outcome.expect("a result"));
//!             }
//!         }
//!     }
//! }
//! assert_eq!(results, b"pong");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
pub mod client;
mod close;
mod exception;
mod extension;
mod fault;
mod header;
mod interface;
mod message;
mod order;
mod preamble;
mod reader;
mod reply;
pub mod server;
mod stamps;
mod text;

pub use calls::{CallState, Calls};
pub use close::{Close, Close as Goodbye, CloseReason, CloseReason as Reason};
pub use exception::{Exception, Status};
pub use extension::{Extension, Extensions};
pub use fault::{Fault, Violation};
pub use header::{CommonHeader, Flags, HEADER, Header, Kind, PIECE, SYNC};
pub(crate) use interface::{Bind, Unbound, put_bound};
pub use interface::{BindRefusal, Difference, Interface, Part};
pub use message::{Extras, Message, MessageDraft, MessageDraft as Draft, Parts};
pub(crate) use message::{plain, put_message};
pub use order::ByteOrder;
pub(crate) use order::{ALIGNMENT, padding_of};
pub(crate) use preamble::check_magic;
pub use preamble::{
    CALLS_MIN, Features, MAGIC, MESSAGE_MIN, PREAMBLE, Preamble, RefusalReason, Refused, VERSION,
    Versions,
};
pub use reader::{Incoming, MessageReader};
pub use reply::{Caller, ReplyDraft};
pub(crate) use server::{Refusal, refusal};
pub use stamps::{Stamps, stamp_sent};

//! ONC RPC version 2 (RFC 5531): [messages](message), [credentials](auth),
//! [record marking](record), the [client's](client) and the [server's](server) bookkeeping, and
//! the [cache of replies](duplicates) that makes calls over datagrams happen at most once.
//!
//! Every message is built in a [`Buffer`](tenon_wire::Buffer) with [`MARK`](record::MARK) bytes in
//! front for the record mark. A stream [seals](record::seal) the record there; a datagram is the
//! [message](record::message) behind it.
//!
//! A call from the first byte to the last, over a stream that both sides reach into:
//! ```
//! use std::time::{Duration, Instant};
//! use tenon_proto::onc::auth::Credential;
//! use tenon_proto::onc::client::ClientEngine;
//! use tenon_proto::onc::message::{CallTemplate, set_xid};
//! use tenon_proto::onc::record::{FRAGMENT_MAX, RecordReader, seal};
//! use tenon_proto::onc::server::{Programs, Received, Reply, ServerCounters};
//! use tenon_wire::Buffer;
//!
//! /// What `write` and `read` do to a record between two sockets.
//! fn carry(record: &Buffer, reader: &mut RecordReader) {
//!     reader.room()[..record.len()].copy_from_slice(record.as_slice());
//!     reader.filled(record.len());
//! }
//!
//! // The client: a template made once, and for every call its xid and its arguments.
//! let mut client = ClientEngine::stream(0x5eed);
//! let template = CallTemplate::new(300, 1, &Credential::None);
//! let mut call = Buffer::default();
//! template.begin(&mut call, 7);
//! call.extend(b"ping");
//! let now = Instant::now();
//! let xid = client.start(now, now + Duration::from_secs(5), "whoever waits");
//! set_xid(&mut call, xid);
//! seal(&mut call, 0, FRAGMENT_MAX);
//!
//! // The server: which service is meant, and the result behind a header.
//! let mut programs = Programs::default();
//! programs.add(300, 1);
//! let mut reader = RecordReader::new(1 << 20);
//! carry(&call, &mut reader);
//! let message = reader.next_record()?.expect("a whole record");
//! let mut reply = Buffer::default();
//! match programs.handle_message(message, &mut ServerCounters::default()) {
//!     Received::Call(call) => {
//!         assert_eq!((call.procedure, call.arguments), (7, &b"ping"[..]));
//!         let header = Reply::begin(&mut reply, call.xid);
//!         reply.extend(b"pong");
//!         header.seal(&mut reply, FRAGMENT_MAX);
//!     }
//!     other => unreachable!("{other:?}"),
//! }
//!
//! // The client again: whose reply is it, and what does it say?
//! let mut reader = RecordReader::new(1 << 20);
//! carry(&reply, &mut reader);
//! let message = reader.next_record()?.expect("a whole record");
//! let answer = client.handle_reply(message)?.expect("somebody waits");
//! assert_eq!((answer.waiter, answer.outcome), ("whoever waits", Ok(&b"pong"[..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod auth;
pub mod client;
pub mod duplicates;
pub mod message;
pub mod record;
pub mod reply;
pub mod server;
mod words;

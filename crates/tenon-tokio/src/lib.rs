//! Tenon on tokio: the same calls, connections and rules as those of the [`tenon`] crate, for programs
//! that do their work by tasks. Errors, options, addresses, services and their limits are those of
//! `tenon`. Each end can be used from the other: a [`Client`] calls a [`tenon::Server`] and a [`Server`]
//! answers a [`tenon::Client`].
//!
//! `build.rs` asks for stubs of tasks, here for the interface of the tutorial, `greeter.x`,
//!
//! ```no_run
//! # mod tenon_build {
//! #     pub type Error = std::io::Error;
//! #     pub struct Builder;
//! #     impl Builder {
//! #         pub fn new() -> Self { Self }
//! #         pub fn tokio(self, _: bool) -> Self { self }
//! #         pub fn compile(&self, _: &str) -> Result<(), Error> { Ok(()) }
//! #     }
//! # }
//! fn main() -> Result<(), tenon_build::Error> {
//!     tenon_build::Builder::new().tokio(true).compile("greeter.x")?;
//!     Ok(())
//! }
//! ```
//!
//! and a server and its client use them:
//!
//! ```
//! use tenon::{CallInfo, Refusal};
//! use tenon_tokio::Server;
//!
//! // tenon::stubs!(mod greeter;);
//! # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/greeter.rs")); }
//! use greeter::{GreeterV1Async, GreeterV1AsyncClient, GreeterV1AsyncService, Greeting, Visitor};
//!
//! struct Host;
//!
//! impl GreeterV1Async for Host {
//!     async fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
//!         Ok(match visitor.visits {
//!             0 => Greeting::Void,
//!             _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
//!         })
//!     }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let builder = Server::builder().listen("tcp://127.0.0.1:0")?;
//!     let server = builder.service(GreeterV1AsyncService(Host)).start().await?;
//!     let address = server.addresses()[0].to_string();
//!
//!     let client = GreeterV1AsyncClient::connect(&address).await?;
//!     let ada = Visitor { name: "Ada".into(), visits: 1 };
//!     let charles = Visitor { name: "Charles".into(), visits: 0 };
//!     // Both calls are in flight at the same time, over one connection.
//!     let (known, stranger) = tokio::join!(client.greet(&ada), client.greet(&charles));
//!     assert_eq!(known?, Greeting::Text("Welcome back, Ada".into()));
//!     assert_eq!(stranger?, Greeting::Void);
//!     Ok(())
//! }
//! ```
//!
//! # What a call costs
//!
//! A warm call allocates nothing; it has no task and no timer of its own. One that finds no other in
//! flight is sent at once, with one system call. Those that are made while others are in flight are
//! sent together, up to 64 with one system call, and the replies that have come are received
//! together. Between them tokio waits in its poller, which is one more.
//!
//! The task of a server's connection sends the replies that are there together, too. Calls that a
//! service answers at once allocate nothing; those that have tasks of their own allocate these.
//!
//! # From threads
//!
//! Code that blocks uses a channel of a run time by [`Handle::block_on`](tokio::runtime::Handle):
//! `handle.block_on(client.call(...))`, from a thread that is not one of the run time's. It pays for
//! waking the driver's thread and its own; where all of a program blocks, `tenon::Client` is faster.

mod client;
mod erased;
mod established;
#[cfg(unix)]
mod event_source;
#[cfg(windows)]
mod event_source_windows;
mod layered;
mod relayed_bytes;
mod server;
mod streams;
mod watch;

pub use client::{
    CallbackFuture, Channel, Client, ClientView, LayeredCall, LeanCalls, MakeAsyncCalls, OncCalls,
    PendingCall,
};
#[cfg(unix)]
pub use established::memory;
pub use server::{
    Answer, AsyncCallbacks, AsyncService, Call, Request, RequestCodec, RequestedProcedure,
    ReservedReply, Server, ServerBuilder,
};
pub use streams::{ArgumentSink, AsyncStreamPair, ItemSink, ItemStream, OpenAsyncStreams};
pub use tenon::{ChannelCounters, InOrder, Protocol};
pub use tenon_core::options::{CallOptions, ChannelOptions};

/// The examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/streams.md")]
struct StreamsPage;

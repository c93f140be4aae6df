//! Remote procedure calls, by ONC RPC (RFC 5531) and by a lean protocol of their own, over TCP, UDP, Unix
//! sockets and shared memory. Interfaces are written in the `.x` language (RFC 4506); `tenon-build` makes
//! clients and services of them, and everything that it makes needs this crate alone.
//!
//! An interface, `greeter.x`, beside `Cargo.toml`:
//!
//! ```c
//! struct visitor {
//!     string name<64>;
//!     int    visits;          /* before this one */
//! };
//!
//! union greeting switch (bool known) {
//! case TRUE:
//!     string text<>;
//! case FALSE:
//!     void;
//! };
//!
//! program GREETER {
//!     version GREETER_V1 {
//!         greeting GREET(visitor) = 1;
//!     } = 1;
//! } = 0x20001234;
//! ```
//!
//! `build.rs` has the stubs made of it,
//!
//! ```no_run
//! # mod tenon_build {
//! #     pub type Error = std::io::Error;
//! #     pub fn compile(_: &str) -> Result<(), Error> { Ok(()) }
//! # }
//! fn main() -> Result<(), tenon_build::Error> {
//!     tenon_build::compile("greeter.x")?;
//!     Ok(())
//! }
//! ```
//!
//! and a server and its client use them:
//!
//! ```
//! use tenon::{CallInfo, Refusal, Server};
//!
//! // tenon::stubs!(mod greeter;);
//! # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/greeter.rs")); }
//! use greeter::{GreeterV1, GreeterV1Client, GreeterV1Service, Greeting, Visitor};
//!
//! struct Host;
//!
//! impl GreeterV1 for Host {
//!     fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
//!         Ok(match visitor.visits {
//!             0 => Greeting::Void,
//!             _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder()
//!     .listen("tcp://127.0.0.1:0")?
//!     .service(GreeterV1Service(Host))
//!     .start()?;
//! let address = server.addresses()[0].to_string();
//!
//! let ada = Visitor { name: "Ada".into(), visits: 1 };
//! // By ONC RPC, as every other client of the server, and by the lean protocol, at the same port.
//! for address in [address.clone(), format!("lean+{address}")] {
//!     let client = GreeterV1Client::connect(&address)?;
//!     assert_eq!(client.greet(&ada)?, Greeting::Text("Welcome back, Ada".into()));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Where stubs are not wanted, [`Service`] and [`Client::onc`] show how to do without.
//!
//! # What is where
//!
//! | you want to | see |
//! | --- | --- |
//! | bring generated stubs in | [`stubs!`] |
//! | call, from any number of threads | [`Client`], or the client that was generated; [`PendingCall`] where calls overlap, [`Batch`] where they go out together |
//! | say how a connection is made and how large messages may be | [`ChannelOptions`] |
//! | serve several programs at several addresses | [`Server`], [`ServerBuilder`], [`ServerLimits`] |
//! | serve and call from an event loop of your own | [`SteppedServer`], [`ChannelStepper`] |
//! | be called by the server, over the connection of a client | [`Callbacks`], [`CallbackClient`] |
//! | put something around all calls of a client or a service | [`Middleware`], [`Layered`]; the crate `tenon-middleware` has what is commonly wanted |
//! | refuse a call, or identify the caller | [`Refusal`], [`CallInfo`] |
//! | know which side was at fault, and whether the call may have been executed | [`CallError`] |
//! | choose between waking up late and keeping a processor busy | [`Waiting`] |
//! | see where the time of calls goes | [`CallProfile`] |
//! | find a server by its program's number | [`rpcbind`] |
//! | say whether a server and its services serve | [`health`] |
//! | move values by hand | [`wire`] |
//!
//! # Threads
//!
//! A client has none of its own: of the threads that wait for replies on a connection one reads for all. A server has
//! a few, and an idle connection has none of them.
//!
//! # Limits
//!
//! Every call has a deadline, 25 seconds unless another is set. Whatever comes from a peer is held against what is
//! there before memory is taken for it; what a message, a connection and a server may cost is bounded, and the bounds
//! can be set.

#![cfg_attr(
    not(all(feature = "udp", feature = "xdp")),
    allow(
        clippy::large_enum_variant,
        reason = "where a part is left out are types without values"
    )
)]

#[cfg(feature = "threads")]
mod client;
#[cfg(feature = "threads")]
mod established;
pub mod health;
#[cfg(not(feature = "rpcbind"))]
mod no_rpcbind;
#[cfg(not(feature = "threads"))]
mod no_threads;
#[cfg(feature = "rpcbind")]
pub mod rpcbind;
#[cfg(feature = "threads")]
mod server;
#[cfg(feature = "threads")]
mod spawn;
#[cfg_attr(
    not(feature = "threads"),
    allow(
        dead_code,
        unused_imports,
        reason = "streams of clients are opened by the client of threads"
    )
)]
mod streams;

#[cfg(feature = "threads")]
pub use client::{
    Batch, Channel, ChannelStepper, Client, ClientView, LeanCalls, OncCalls, PendingCall,
};
#[cfg(feature = "threads")]
#[doc(hidden)]
pub use client::{UntypedCall, UntypedStreams};
#[cfg(feature = "threads")]
pub use established::{EstablishedConnection, memory};
#[cfg(not(feature = "rpcbind"))]
#[doc(hidden)]
pub use no_rpcbind::default_resolver;
#[cfg(not(feature = "threads"))]
pub use no_threads::{Channel, Client};
#[cfg(feature = "rpcbind")]
#[doc(hidden)]
pub use rpcbind::default_resolver;
#[cfg(feature = "threads")]
pub use server::{Server, ServerBuilder, SteppedServer};
pub use streams::{
    ArgumentWriter, DecodeItem, EncodeItem, ItemReader, ItemWriter, OpenStreams, StreamPair,
};
pub use tenon_core::Refusal;
pub use tenon_core::callbacks::{CallbackChannel, CallbackClient, Callbacks, PendingCallbackReply};
pub use tenon_core::client::ChannelCounters;
pub use tenon_core::error::{CallError, CallErrorKind, ConnectError, LeanException, Misbehavior};
pub use tenon_core::middleware::{
    CallOutcome, CallScope, Hedging, Layered, LayeredPending, Middleware, Rejection,
};
pub use tenon_core::options::{CallOptions, ChannelOptions};
pub use tenon_core::procedure::{
    CallCodec, CalledProcedure, LeanInterface, Ping, ProcedureCall, ProcedureError, ProcedureInfo,
};
pub use tenon_core::profile::{
    CallProfile, Leg, Owner, PacketCoverage, PacketStep, Part, PartStats, ProfileStats, Summary,
    Trace, Way,
};
pub use tenon_core::propagation::{EnteredContext, PropagatedContext, Propagation};
pub use tenon_core::serve::{EndOfStream, ServerCounters, ServerLimits, StartError};
pub use tenon_core::service::{CallInfo, CancelFlag, LeanService, Peer, Service};
pub use tenon_core::streams::ServedStreams;
pub use tenon_core::wait::{WaitCounters, Waiting, WaitingError};
pub use tenon_core::{
    CallTarget, InOrder, LeanInput, MakeCalls, PendingReply, ReplyMetadata, WithOptions,
};
pub use tenon_core::{in_process, resolve, stubs};
pub use tenon_net::{
    Address, AddressError, Endpoint, FollowedPackets, Host, PacketCosts, PacketStamps, Protocol,
    Transport,
};
pub use tenon_proto::connection::{BindError, OutgoingCounters};
pub use tenon_proto::endpoint::DuplicateLimits;
pub use tenon_proto::lean;
pub use tenon_proto::lean::{Metadata, MetadataError, MetadataIter, MetadataView};
pub use tenon_proto::onc::auth::{AuthStat, AuthSys, Credential, CredentialError};
pub use tenon_proto::onc::message::{Refused, Violation};
pub use tenon_wire as wire;

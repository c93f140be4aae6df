//! Tenon on tokio: the same calls, connections and rules as those of the [`tenon`] crate, for programs
//! whose work is done by tasks. Errors, options, addresses, services and their limits are those of
//! `tenon`. Each end can be used from the other: a [`Client`] calls a [`tenon::Server`] and a [`Server`]
//! answers a [`tenon::Client`].
//!
//! ```
//! use tenon::wire::{Decoder, Encoder};
//! use tenon::{CallInfo, Refusal, Server, Service};
//! use tenon_tokio::Client;
//!
//! /// What generated code does for an interface: here one procedure that doubles a number.
//! struct Doubling;
//!
//! impl Service for Doubling {
//!     fn program(&self) -> u32 {
//!         0x2000_0001
//!     }
//!
//!     fn version(&self) -> u32 {
//!         1
//!     }
//!
//!     fn call(
//!         &self,
//!         call: &CallInfo<'_>,
//!         arguments: &mut Decoder<'_>,
//!         result: &mut Encoder<'_>,
//!     ) -> Result<(), Refusal> {
//!         match call.procedure() {
//!             1 => result.put(2 * arguments.get::<u32>()?),
//!             _ => return Err(Refusal::ProcedureUnavailable),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(Doubling).start()?;
//! let address = server.addresses()[0].to_string();
//!
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let client = Client::connect(&address, 0x2000_0001, 1).await?;
//!     let double = async |number: u32| {
//!         let encode = |out: &mut Encoder<'_>| {
//!             out.put(number);
//!             Ok(())
//!         };
//!         client.onc().call(1, encode, |input| input.get::<u32>()).await
//!     };
//!     // Both are in flight at the same time, over one connection.
//!     let (small, large) = tokio::join!(double(21), double(2100));
//!     assert_eq!((small?, large?), (42, 4200));
//!     client.channel().close().await;
//!     Ok(())
//! })
//! # }
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
mod established;
mod server;
mod watch;

pub use client::{Channel, Client, ClientView, LeanCalls, MakeAsyncCalls, OncCalls, PendingCall};
pub use established::memory;
pub use server::{Answer, AsyncService, Call, Request, Server, ServerBuilder};
pub use tenon::{ChannelCounters, InOrder, Protocol};
pub use tenon_core::options::{CallOptions, ChannelOptions};

/// The examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/streams.md")]
struct StreamsPage;

//! Remote procedure calls, by ONC RPC (RFC 5531) and by a lean protocol of their own, over TCP, UDP, Unix
//! sockets and shared memory. Interfaces are written in the `.x` language (RFC 4506); `tenon-build` makes
//! clients and services of them, and everything that it makes needs this crate alone.
//!
//! ```
//! use tenon::wire::{Decoder, Encoder};
//! use tenon::{CallInfo, Client, Refusal, Server, Service};
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
//! let client = Client::connect(&address, 0x2000_0001, 1)?;
//! let encode = |out: &mut Encoder<'_>| {
//!     out.put(21);
//!     Ok(())
//! };
//! let doubled: u32 = client.onc().call(1, encode, |input| input.get())?;
//! assert_eq!(doubled, 42);
//! # Ok(())
//! # }
//! ```
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
//! | refuse a call, or know who calls | [`Refusal`], [`CallInfo`] |
//! | know whose fault it was, and whether the call may have been executed | [`CallError`] |
//! | choose between waking up late and keeping a processor busy | [`Waiting`] |
//! | see where the time of calls goes | [`Account`] |
//! | find a server by its program's number | [`rpcbind`] |
//! | move values by hand | [`wire`] |
//!
//! # Threads
//!
//! A client has none of its own: of those who wait for replies on a connection one reads for all. A server has
//! a few, and an idle connection has none of them.
//!
//! # Limits
//!
//! Every call has a deadline, 25 seconds unless another is set. Whatever comes from a peer is held against what is
//! there before memory is taken for it; what a message, a connection and a server may cost is bounded, and the bounds
//! can be set.

mod client;
mod established;
pub mod rpcbind;
mod server;

pub use client::{
    Batch, Channel, ChannelStepper, Client, ClientView, LeanCalls, OncCalls, PendingCall,
};
pub use established::{EstablishedConnection, memory};
#[doc(hidden)]
pub use rpcbind::default_resolver;
pub use server::{Server, ServerBuilder, SteppedServer};
pub use tenon_core::client::ChannelCounters;
pub use tenon_core::error::{CallError, CallErrorKind, ConnectError, LeanException, Misbehavior};
pub use tenon_core::options::{CallOptions, ChannelOptions};
pub use tenon_core::procedure::{LeanInterface, ProcedureCall};
pub use tenon_core::profile::{Account, Figures, Owner, Part, PartFigures, Summary, Trace, Way};
pub use tenon_core::serve::{EndOfStream, ServerCounters, ServerLimits, StartError};
pub use tenon_core::service::{CallInfo, CancelFlag, LeanService, Refusal, Service};
pub use tenon_core::wait::{WaitCounters, Waiting, WaitingError};
pub use tenon_core::{InOrder, LeanInput, MakeCalls};
pub use tenon_core::{in_process, resolve, stubs};
pub use tenon_net::{Address, AddressError, Endpoint, Host, Protocol, Transport};
pub use tenon_proto::connection::{BindError, OutgoingCounters};
pub use tenon_proto::endpoint::DuplicateLimits;
pub use tenon_proto::lean;
pub use tenon_proto::onc::auth::{AuthStat, AuthSys, Credential, CredentialError};
pub use tenon_proto::onc::message::{Refused, Violation};
pub use tenon_wire as wire;

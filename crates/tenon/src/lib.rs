//! The run time that programs and generated code stand on.
//!
//! Everything generated for an interface needs this crate alone; what marshalling needs is in
//! [`wire`], what names a caller and a refusal comes from the protocol's own crate.

mod account;
mod caller;
mod channel;
mod client;
mod error;
mod lean_input;
mod options;
mod pending;
mod procedure;
pub mod rpcbind;
#[doc(hidden)]
pub mod runtime;
mod server;
mod service;
mod stubs;
mod trains;
mod waiting;

pub use account::{Account, Figures, Owner, Part, PartFigures, Summary, Trace, Way};
pub use channel::{Batch, Channel, ChannelCounters};
pub use client::Client;
pub use error::{CallError, ConnectError, LeanException, Misbehavior};
pub use lean_input::LeanInput;
pub use options::ChannelOptions;
pub use pending::PendingCall;
pub use procedure::{LeanInterface, ProcedureCall};
pub use server::{Server, ServerBuilder, ServerCounters, ServerLimits, StartError};
pub use service::{CallInfo, LeanService, Refusal, Service};
pub use tenon_net::{Address, AddressError, Protocol, Transport};
pub use tenon_proto::lean;
pub use tenon_proto::onc::auth::{AuthStat, AuthSys, Credential, CredentialError};
pub use tenon_proto::onc::client::ClientCounters;
pub use tenon_proto::onc::duplicates::DuplicateLimits;
pub use tenon_proto::onc::message::{Refused, Violation};
pub use tenon_wire as wire;
pub use waiting::{WaitCounters, Waiting, WaitingError};

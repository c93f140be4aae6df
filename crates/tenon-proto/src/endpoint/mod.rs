//! One socket for datagrams, at either end: to which call each datagram belongs, which calls are repeated, and what is
//! sent again.
//!
//! A [`ServerEndpoint`] has all clients of a port: calls of ONC RPC, which it lets through once, and the conversations
//! of the packet [`exchange`]. A [`ClientEndpoint`] has the calls to one server, by either protocol. What a datagram
//! means is found out by `handle_datagram`, what is to be sent is asked for with `poll_transmit`, and what is due with
//! `poll_timeout`.

mod call_failure;
mod client;
pub mod duplicates;
#[cfg_attr(not(feature = "exchange"), path = "no_exchange/mod.rs")]
pub mod exchange;
mod onc_client;
mod server;

pub use call_failure::{CallFailure, FailedCall};
pub use client::{ClientEndpoint, DatagramCallId};
pub use duplicates::DuplicateLimits;
pub use onc_client::Retransmission;
pub use server::{
    DATAGRAM_SIZE_MAX, DatagramCall, DatagramCallKey, EndpointCounters, OncCallKey, ReplyTooLarge,
    ServerEndpoint,
};

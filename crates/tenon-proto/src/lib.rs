//! The protocols without input or output: no socket, no clock, no thread. Bytes and the time are handed in
//! (`handle_*`), what is to be done next is asked for (`poll_*`, `next_*`).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`config`] | limits, with their defaults |
//! | [`codec`] | messages as bytes, without any state: [`onc`] (RFC 5531), [`lean`] (`docs/lean-protocol.md`), and how [the first bytes](sniff) of a connection tell them apart |
//! | [`connection`] | one connection over a stream, at either end: calls in both directions, services, what is sent next |
//! | [`endpoint`] | one socket for datagrams: calls of ONC RPC at most once, and the packet [`exchange`] (`docs/exchange.md`) |

#![cfg_attr(
    not(feature = "exchange"),
    allow(
        dead_code,
        irrefutable_let_patterns,
        unused_imports,
        reason = "some of it only the exchange needs"
    )
)]

pub mod codec;
pub mod config;
pub mod connection;
pub mod endpoint;
mod in_flight;
pub mod left_out;
mod sorted;

pub use codec::{lean, onc, sniff};
pub use connection::framing::ROOM_FIRST;
pub use endpoint::exchange;

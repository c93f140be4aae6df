//! What a user of Tenon meets whichever driver runs: what a call is and how it ends, services and how they refuse,
//! options, limits and counters, how to wait, and where the time of calls goes. The drivers for threads (`tenon`)
//! and for tasks (`tenon-tokio`) stand on it. It has no thread but those that relay the bytes of connections in packets.

#![cfg_attr(
    not(all(feature = "udp", feature = "exchange", feature = "account")),
    allow(
        clippy::needless_update,
        unreachable_code,
        reason = "where a part is left out are types without values"
    )
)]

pub mod back_off;
mod built;
#[cfg_attr(
    not(all(feature = "exchange", feature = "_datagrams")),
    path = "no_byte_relay.rs"
)]
mod byte_relay;
pub mod callbacks;
pub mod caller;
pub mod client;
mod client_socket;
mod datagram_failure;
mod datagrams;
mod destination;
pub mod error;
mod error_kind;
mod in_order;
pub mod in_process;
mod kind_of_error;
mod lean_exception;
mod lean_input;
mod make_calls;
pub mod middleware;
pub mod options;
#[cfg_attr(not(feature = "_datagrams"), path = "no_probing.rs")]
mod probing;
pub mod procedure;
pub mod profile;
pub mod propagation;
mod refusal;
mod reply_metadata;
pub mod resolve;
pub mod serve;
pub mod service;
pub mod streams;
mod stubs;
pub mod timer;
pub mod trains;
pub mod wait;

pub use byte_relay::RelayHost;
pub use client_socket::ClientSocket;
pub use datagram_failure::datagram_error;
pub use destination::Destination;
pub use in_order::InOrder;
pub use lean_input::LeanInput;
pub use make_calls::{CallTarget, MakeCalls, PendingReply, WithOptions};
pub use refusal::Refusal;
pub use reply_metadata::ReplyMetadata;
#[doc(hidden)]
pub use tenon_net as net;
#[doc(hidden)]
pub use tenon_proto as proto;
#[doc(hidden)]
pub use tenon_wire as wire;

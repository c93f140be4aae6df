//! ONC RPC version 2 (RFC 5531): [messages](message), [credentials](auth), [replies](reply) and
//! [record marking](record).
//!
//! Every message is built in a [`Buffer`](tenon_wire::Buffer) with [`MARK`](record::MARK) bytes in
//! front for the record mark. A stream [seals](record::seal) the record there; a datagram is the
//! [message](record::message) behind it.

pub mod auth;
pub mod message;
pub mod record;
pub mod reply;
mod words;

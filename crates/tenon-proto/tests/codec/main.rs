//! Messages as bytes, without any state: ONC RPC (RFC 5531) and the lean protocol (docs/lean-protocol.md).
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod lean_drafts;
mod lean_preamble;
mod lean_texts;
mod onc_messages;
mod onc_replies;
mod record_marks;
mod sniffing;

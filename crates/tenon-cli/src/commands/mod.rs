//! One file per command.

pub mod account;
pub mod call;
mod call_streams;
pub mod check;
pub mod completions;
pub mod connect;
pub mod cost;
pub mod demo;
pub mod describe;
pub mod descriptor;
pub mod explain;
pub mod generate;
pub mod health;
pub mod list;
pub mod man;
pub mod ping;
pub mod reflected;
pub mod rpcgen;
pub mod serve;
pub mod study;
pub mod table;

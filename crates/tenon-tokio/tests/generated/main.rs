//! What is generated for tasks.
#![allow(clippy::unwrap_used)]

#[path = "../../../tenon-gen/tests/golden/callbacks_async.rs"]
mod callback_stubs;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tenon-gen/tests/golden/raises.rs"]
mod keys;
#[path = "../../../tenon-gen/tests/golden/reserved_async.rs"]
mod reserved_stubs;
#[path = "../../../tenon-gen/tests/golden/streams_async.rs"]
mod streams_stubs;
#[path = "../../../tenon-gen/tests/golden/tasks.rs"]
mod tasks;
#[path = "../../../tenon-gen/tests/golden/tasks_onc.rs"]
mod tasks_onc;

mod callbacks;
mod calls;
mod interface;
mod raises;
mod reserved;
mod services;
mod streams;

//! What is generated from interface files: its calls, and stubs that stand in the repository.
#![allow(clippy::unwrap_used)]

#[path = "../../../tenon-gen/tests/golden/borrowed.rs"]
mod borrowed;
#[path = "../../../tenon-gen/tests/golden/callbacks.rs"]
mod callback_stubs;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tenon-gen/tests/golden/demo.rs"]
mod demo;
#[path = "../../../tenon-gen/tests/golden/directions.rs"]
mod directions;
#[path = "../../../tenon-gen/tests/golden/mount3.rs"]
mod mount3;
#[path = "../../../tenon-gen/tests/golden/raises_onc.rs"]
mod raises_onc;
#[path = "../../../tenon-gen/tests/golden/raises_views.rs"]
mod raises_views;
#[path = "../../../tenon-gen/tests/golden/reserved.rs"]
mod reserved;
#[path = "../../../tenon-gen/tests/golden/results.rs"]
mod results;
#[path = "../../../tenon-gen/tests/golden/service.rs"]
mod service;

#[path = "../../../tenon-gen/tests/golden/streams.rs"]
mod streams_stubs;

mod callbacks;
mod calls;
mod doc_stubs;
mod interface;
mod raises;
mod reserved_results;
mod rpcbind;
mod streams;

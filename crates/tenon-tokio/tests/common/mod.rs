//! What tests have in common: with those of `tenon`, and a service and peers for tasks.
#![allow(dead_code, reason = "every program of tests uses its own part")]

pub mod log;
pub mod obliging;
pub mod raw;

#[path = "../../../tenon/tests/common/caller.rs"]
pub mod caller;
#[path = "../../../tenon/tests/common/counting.rs"]
pub mod counting;
#[path = "../../../tenon/tests/common/gate.rs"]
pub mod gate;
#[path = "../../../tenon/tests/common/half_closed.rs"]
pub mod half_closed;
#[path = "../../../tenon/tests/common/hosts.rs"]
pub mod hosts;
#[path = "../../../tenon/tests/common/lean_caller.rs"]
pub mod lean_caller;
#[path = "../../../tenon/tests/common/own_process.rs"]
pub mod own_process;
#[path = "../../../tenon/tests/common/place.rs"]
pub mod place;
#[path = "../../../tenon/tests/common/relay.rs"]
pub mod relay;
#[path = "../../../tenon/tests/common/restarts.rs"]
pub mod restarts;
#[path = "../../../tenon/tests/common/serving.rs"]
pub mod serving;
#[path = "../../../tenon/tests/common/slow_path.rs"]
pub mod slow_path;
#[path = "../../../tenon/tests/common/swallowing.rs"]
pub mod swallowing;

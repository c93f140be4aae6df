//! Tests that count what a whole process does or has, or change it: each of them runs in a process of its own.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod client_allocations;
mod idle;
mod memory;
mod refusals;
mod server_replies;
mod too_large_replies;

use std::alloc::System;

use common::own_process::run;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn client_allocations() {
    run(
        "client_allocations",
        client_allocations::a_warm_call_allocates_nothing,
    );
}

#[test]
fn idle() {
    run("idle", idle::nothing_is_burnt_when_idle);
}

#[test]
fn memory() {
    run("memory", memory::idle_connections_keep_little_of_a_burst);
}

#[test]
fn refusals() {
    run(
        "refusals",
        refusals::a_caller_learns_of_its_arguments_and_the_log_of_the_failure,
    );
}

#[test]
fn server_replies() {
    run(
        "server_replies",
        server_replies::replies_that_were_sent_take_no_memory_while_others_are,
    );
}

#[test]
fn too_large_replies() {
    run(
        "too_large_replies",
        too_large_replies::the_log_says_which_procedure_had_a_result_too_large_for_a_datagram,
    );
}

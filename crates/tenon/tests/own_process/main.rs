//! Tests that count what a whole process does or has, or change it: each of them runs in a process of its own.
#![allow(clippy::unwrap_used)]

#[path = "../../../tenon-gen/tests/golden/borrowed.rs"]
mod borrowed;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tenon-gen/tests/golden/hprpc.rs"]
mod hprpc;
#[path = "../common/hprpc_service.rs"]
mod hprpc_service;

mod client_allocations;
mod client_lean_allocations;
mod generated_allocations;
mod generated_borrowed;
mod out_of_memory;
mod server_allocations;
mod server_crowds;
mod server_hostile;
mod server_lean_allocations;
mod server_lean_hostile;
mod server_many_connections;
mod shm_waiting_costs;
mod waiting_costs;

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
fn client_lean_allocations() {
    run(
        "client_lean_allocations",
        client_lean_allocations::a_warm_lean_call_allocates_nothing,
    );
}

#[test]
fn generated_allocations() {
    run(
        "generated_allocations",
        generated_allocations::a_warm_generated_call_allocates_nothing,
    );
}

#[test]
fn generated_borrowed() {
    run(
        "generated_borrowed",
        generated_borrowed::what_is_only_looked_at_takes_no_memory,
    );
}

#[test]
fn out_of_memory() {
    run(
        "out_of_memory",
        out_of_memory::a_message_without_memory_ends_its_connection_alone,
    );
}

#[test]
fn server_allocations() {
    run(
        "server_allocations",
        server_allocations::no_allocation_per_call,
    );
}

#[test]
fn server_crowds() {
    run("server_crowds", server_crowds::crowds);
}

#[test]
fn server_hostile() {
    run(
        "server_hostile",
        server_hostile::hostile_peers_are_answered_or_closed_and_leave_nothing_behind,
    );
}

#[test]
fn server_lean_allocations() {
    run(
        "server_lean_allocations",
        server_lean_allocations::no_allocation_per_lean_call,
    );
}

#[test]
fn server_lean_hostile() {
    run(
        "server_lean_hostile",
        server_lean_hostile::hostile_clients_are_answered_or_closed_and_leave_nothing_behind,
    );
}

#[test]
fn server_many_connections() {
    run(
        "server_many_connections",
        server_many_connections::no_connection_starves_among_many_busy_ones,
    );
}

#[test]
fn shm_waiting_costs() {
    run(
        "shm_waiting_costs",
        shm_waiting_costs::a_connection_in_memory_that_waits_costs_nothing,
    );
}

#[test]
fn waiting_costs() {
    run(
        "waiting_costs",
        waiting_costs::waiting_costs_what_its_policy_says,
    );
}

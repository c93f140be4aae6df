//! A warm call through middleware takes no memory at either end. In a process of its own, as all of it is counted.

#![allow(clippy::unwrap_used, missing_docs)]

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon::{CallInfo, ItemWriter, Layered, Refusal, Server};
use tenon_middleware::{
    AccessLog, Authorization, ConcurrencyLimit, Hedge, LoadShed, Metrics, RateLimit, Retry, Timeout,
};

#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(clippy::all, clippy::pedantic)]
#[path = "../../tenon-gen/tests/golden/idempotent.rs"]
mod generated;

use generated::{Item, ShelfV1, ShelfV1Client, ShelfV1Service};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Shelf;

impl ShelfV1 for Shelf {
    fn get(&self, _: &CallInfo<'_>, _: tenon::wire::BString) -> Result<Item, Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn put(&self, _: &CallInfo<'_>, item: Item) -> Result<Item, Refusal> {
        Ok(item)
    }

    fn list(&self, _: &CallInfo<'_>, _: i32, _: &mut ItemWriter<Item>) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

#[test]
fn a_warm_call_through_middleware_allocates_nothing() {
    let metrics = Arc::new(Metrics::new());
    let rules: Authorization = "allow SHELF_V1.* transport=unix\nallow *".parse().unwrap();
    let service = Layered::new(ShelfV1Service(Shelf), AccessLog::new())
        .with(Arc::clone(&metrics))
        .with(LoadShed::new(Duration::from_secs(60)))
        .with(ConcurrencyLimit::new(100))
        .with(rules);
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.service(service).start().unwrap();
    let tcp = server.addresses()[0].to_string();
    for address in [tcp.clone(), format!("lean+{tcp}")] {
        let client = ShelfV1Client::connect(&address).unwrap();
        let around = Layered::new(client.0, AccessLog::new())
            .with(Arc::clone(&metrics))
            .with(Timeout::new(Duration::from_secs(60)))
            .with(ConcurrencyLimit::new(100).waiting(10))
            .with(RateLimit::per_second(1e9, 1_000_000))
            .with(Hedge::new(Duration::from_secs(60), 2))
            .with(Retry::new(3));
        let client = ShelfV1Client(around);
        let item = Item::default();
        let call = || assert_eq!(client.put(&item).unwrap(), item);
        (0..1000).for_each(|_| call());
        // The quietest of several rounds: a busy machine may let the server believe that its peer is silent.
        let rounds = (0..20).map(|_| {
            let region = Region::new(ALLOCATOR);
            (0..100).for_each(|_| call());
            let change = region.change();
            change.allocations + change.reallocations
        });
        assert_eq!(rounds.min().unwrap(), 0, "{address}");
    }
    assert!(metrics.snapshot().iter().all(|of| of.failures() == 0));
}

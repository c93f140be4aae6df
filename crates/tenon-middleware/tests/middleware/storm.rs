//! A server that refuses everything, and clients that try again: the load must not multiply.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tenon::Layered;
use tenon_middleware::{Retry, RetryBudget};

use crate::generated::ShelfV1Client;
use crate::shelf::plain;

#[test]
fn retries_stay_within_their_budget() {
    const THREADS: u32 = 8;
    const CALLS: u32 = 250;
    let (_server, client, shelf) = plain();
    let budget = Arc::new(RetryBudget::new(0.2, 0));
    let retry = Retry::new(5)
        .backoff(Duration::from_micros(10), Duration::from_micros(50))
        .budget(budget);
    let client = ShelfV1Client(Layered::new(client.0, retry));
    shelf.next(&shelf.overloaded, u32::MAX);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    assert!(client.get("a").is_err());
                }
            });
        }
    });
    let calls = THREADS * CALLS;
    let attempts = shelf.calls();
    assert!(attempts > calls, "{attempts}");
    assert!(attempts <= calls + calls / 5, "{attempts} of {calls}");
}

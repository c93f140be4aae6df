//! Middleware around a client of threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tenon::{
    CallError, CallErrorKind, CallOptions, CallScope, Layered, MakeCalls, Middleware, Rejection,
};
use tenon_middleware::{ConcurrencyLimit, Hedge, Metrics, RateLimit, Retry, RetryBudget, Timeout};

use crate::generated::{Item, ShelfV1Client, ShelfV1Service};
use crate::shelf::{SharedShelf, item, plain, serve};

fn quick_retry(attempts: u32) -> Retry {
    Retry::new(attempts).backoff(Duration::from_millis(1), Duration::from_millis(2))
}

#[test]
fn what_was_not_carried_out_is_tried_again() {
    let (_server, client, shelf) = plain();
    let client = ShelfV1Client(Layered::new(client.0, quick_retry(3)));
    shelf.next(&shelf.overloaded, 2);
    client.get("a").unwrap();
    assert_eq!(shelf.calls(), 3);
    // It is so whether the interface calls the procedure idempotent or not.
    shelf.next(&shelf.overloaded, 2);
    client.put(&item("a")).unwrap();
    assert_eq!(shelf.calls(), 3);
    shelf.next(&shelf.overloaded, 3);
    let error = client.get("a").unwrap_err();
    assert_eq!((error.kind(), shelf.calls()), (CallErrorKind::Busy, 3));
}

#[test]
fn what_may_have_been_carried_out_is_tried_again_if_that_is_declared() {
    let (_server, client, shelf) = plain();
    let retry = quick_retry(3).kinds([CallErrorKind::Failed]);
    let client = ShelfV1Client(Layered::new(client.0, retry));
    shelf.next(&shelf.failing, 2);
    client.get("a").unwrap();
    assert_eq!(shelf.calls(), 3);
    shelf.next(&shelf.failing, 1);
    let error = client.put(&item("a")).unwrap_err();
    assert_eq!((error.kind(), shelf.calls()), (CallErrorKind::Failed, 1));
    // Another kind is not asked for.
    shelf.next(&shelf.overloaded, 1);
    assert!(client.get("a").is_err());
    assert_eq!(shelf.calls(), 1);
}

/// The names of the items that a list has, up to an error.
fn names(items: impl Iterator<Item = Result<Item, CallError>>) -> (usize, Option<CallErrorKind>) {
    let mut count = 0;
    for item in items {
        match item {
            Ok(item) => assert_eq!(item.name, "listed"),
            Err(error) => return (count, Some(error.kind())),
        }
        count += 1;
    }
    (count, None)
}

#[test]
fn calls_with_streams_are_tried_again_before_their_first_item() {
    let (_server, client, shelf) = plain();
    let metrics = Arc::new(Metrics::new());
    let retry = quick_retry(3).kinds([CallErrorKind::Busy, CallErrorKind::Failed]);
    let around = Layered::new(client.0, retry).with(Arc::clone(&metrics));
    let client = ShelfV1Client(around);
    for count in [&shelf.overloaded, &shelf.failing] {
        shelf.next(count, 2);
        assert_eq!(names(client.list(5).unwrap()), (5, None));
        assert_eq!(shelf.calls(), 3);
    }
    shelf.next(&shelf.overloaded, 3);
    let busy = Some(CallErrorKind::Busy);
    assert_eq!(names(client.list(5).unwrap()), (0, busy));
    assert_eq!(shelf.calls(), 3);
    // Items that were read cannot be taken back.
    shelf.next(&shelf.failing_late, 1);
    assert_eq!(names(client.list(5).unwrap()), (5, busy));
    assert_eq!(shelf.calls(), 1);
    // One that has none is as at its beginning.
    shelf.next(&shelf.failing_late, 1);
    assert_eq!(names(client.list(0).unwrap()), (0, None));
    assert_eq!(shelf.calls(), 2);
    let listed = metrics.snapshot().remove(0);
    assert_eq!((listed.calls(), listed.failures()), (12, 9));
}

#[test]
fn calls_with_streams_are_tried_again_until_there_is_a_server() {
    let (server, client, shelf) = plain();
    let listen = server.addresses()[0].to_string();
    server.shutdown(Duration::ZERO);
    let retry = Retry::new(1000).backoff(Duration::from_millis(10), Duration::from_millis(10));
    let retry = retry.budget(Arc::new(RetryBudget::new(1000.0, 1000)));
    let client = ShelfV1Client(Layered::new(client.0, retry));
    let later = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        let builder = tenon::Server::builder().listen(&listen).unwrap();
        let service = ShelfV1Service(SharedShelf(shelf));
        builder.service(service).start().unwrap()
    });
    assert_eq!(names(client.list(5).unwrap()), (5, None));
    later.join().unwrap().shutdown(Duration::from_secs(5));
}

#[test]
fn what_stands_further_in_sees_each_attempt() {
    let (_server, client, shelf) = plain();
    let [outer, inner] = [(); 2].map(|()| Arc::new(Metrics::new()));
    let around = Layered::new(client.0, Arc::clone(&outer))
        .with(quick_retry(5))
        .with(Arc::clone(&inner));
    let client = ShelfV1Client(around);
    shelf.next(&shelf.overloaded, 2);
    client.get("a").unwrap();
    let [outer, inner] = [outer, inner].map(|metrics| metrics.snapshot().remove(0));
    assert_eq!((outer.calls(), outer.failures()), (1, 0));
    assert_eq!((inner.calls(), inner.failures()), (3, 2));
    assert_eq!(inner.failed, [(CallErrorKind::Busy, 2)]);
    assert_eq!(
        (inner.service.as_str(), inner.procedure.as_str()),
        ("SHELF_V1", "SHELF_GET")
    );
    assert!(!inner.is_at_server && inner.in_flight == 0);
    let by_time: u64 = inner.buckets.iter().map(|(_, count)| count).sum();
    assert_eq!(by_time, 3);
}

#[test]
fn a_timeout_bounds_all_attempts_together() {
    let (_server, client, shelf) = plain();
    let retry = Retry::new(u32::MAX)
        .backoff(Duration::from_millis(30), Duration::from_millis(30))
        .budget(Arc::new(RetryBudget::new(1.0, 1000)));
    let limit = Timeout::new(Duration::from_millis(300));
    let client = ShelfV1Client(Layered::new(client.0, limit).with(retry));
    shelf.next(&shelf.overloaded, u32::MAX);
    let error = client.get("a").unwrap_err();
    let kind = error.kind();
    assert!(
        matches!(kind, CallErrorKind::Busy | CallErrorKind::TimedOut),
        "{error:?}"
    );
    assert!(shelf.calls() > 1, "{}", shelf.calls());
    shelf.next(&shelf.overloaded, 0);
    // The server is told how much time there is.
    let told = client.get("a").unwrap().value;
    assert!((0..=300).contains(&told), "{told}");
}

#[test]
fn a_call_that_takes_long_is_made_once_more() {
    let (_server, client, shelf) = plain();
    let metrics = Arc::new(Metrics::new());
    let hedge = Hedge::new(Duration::from_millis(30), 3);
    let around = Layered::new(client.0, Arc::clone(&metrics)).with(hedge);
    let client = ShelfV1Client(around);
    client.get("warm").unwrap();
    shelf.next(&shelf.slow, 1);
    client.get("a").unwrap();
    // A busy machine may make all three.
    assert!((2..=3).contains(&shelf.calls()), "{}", shelf.calls());
    assert_eq!(metrics.snapshot()[0].calls(), 2);
    // It is not declared that this does no harm.
    shelf.next(&shelf.slow, 1);
    client.put(&item("a")).unwrap();
    assert_eq!(shelf.calls(), 1);
}

#[test]
fn the_first_error_that_says_something_ends_a_hedged_call() {
    let (_server, client, shelf) = plain();
    let hedge = Hedge::new(Duration::from_secs(3600), 2);
    let client = ShelfV1Client(Layered::new(client.0, hedge));
    shelf.next(&shelf.failing, 1);
    let error = client.get("a").unwrap_err();
    assert_eq!((error.kind(), shelf.calls()), (CallErrorKind::Failed, 1));
    // What is refused for want of room is made again at once, and not after an hour.
    shelf.next(&shelf.overloaded, 1);
    client.get("a").unwrap();
    assert_eq!(shelf.calls(), 2);
}

#[test]
fn a_server_says_when_to_come_again() {
    let shelf = SharedShelf::default();
    let limit = RateLimit::per_second(4.0, 1);
    let (_server, address) = serve(Layered::new(ShelfV1Service(shelf.clone()), limit));
    let client = ShelfV1Client::connect(&address).unwrap();
    let none = ShelfV1Client(client.0.clone());
    none.get("a").unwrap();
    let error = none.get("a").unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Busy);
    assert!(!error.may_have_executed());
    let metadata = &error.exception().unwrap().metadata;
    let told: u64 = metadata.get("retry-after-ms").unwrap().parse().unwrap();
    assert!((1..=250).contains(&told), "{told}");
    // Its own pauses would be far longer.
    let retry = Retry::new(100).backoff(Duration::from_secs(3600), Duration::from_secs(3600));
    let obeying = ShelfV1Client(Layered::new(client.0, retry));
    for _ in 0..3 {
        obeying.get("a").unwrap();
    }
    assert_eq!(shelf.0.calls(), 4);
}

/// A middleware that has no room yet, but soon.
struct Soon;

impl Middleware for Soon {
    type State = ();

    fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        Err(Rejection::busy("not yet").retry_after(Duration::from_micros(1)))
    }
}

#[test]
fn a_caller_is_never_told_to_come_before_its_turn() {
    let service = Layered::new(ShelfV1Service(SharedShelf::default()), Soon);
    let (_server, address) = serve(service);
    let client = ShelfV1Client::connect(&address).unwrap();
    let error = client.get("a").unwrap_err();
    let metadata = &error.exception().unwrap().metadata;
    assert_eq!(metadata.get("retry-after-ms"), Some("1"));
}

#[test]
fn a_limit_of_concurrency_refuses_or_has_calls_wait() {
    let (_server, client, shelf) = plain();
    let limited = |limit| ShelfV1Client(Layered::new(client.0.clone(), limit));
    let refusing = limited(ConcurrencyLimit::new(1));
    shelf.next(&shelf.slow, 1);
    thread::scope(|scope| {
        let slow = scope.spawn(|| refusing.get("slow"));
        while shelf.calls() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let error = refusing.get("a").unwrap_err();
        assert!(matches!(&error, CallError::Rejected(_)), "{error:?}");
        assert_eq!(error.kind(), CallErrorKind::Busy);
        assert!(!error.may_have_executed());
        let text = error.to_string();
        assert_eq!(
            text,
            "the call was not made: busy: 1 calls are carried out already"
        );
        slow.join().unwrap().unwrap();
    });
    refusing.get("a").unwrap();
    shelf.most.store(0, Ordering::Relaxed);
    let waiting = limited(ConcurrencyLimit::new(2).waiting(100));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..20 {
                    waiting.get("a").unwrap();
                }
            });
        }
    });
    assert!(shelf.most.load(Ordering::Relaxed) <= 2);
    // None waits for longer than it has time.
    shelf.next(&shelf.slow, 2);
    thread::scope(|scope| {
        let slow: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| waiting.get("slow")))
            .collect();
        while shelf.calls() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        let hurried = CallOptions::new().timeout(Duration::from_millis(20));
        let error = waiting.with_options(hurried).get("a").unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::TimedOut);
        assert!(!error.may_have_executed());
        for slow in slow {
            slow.join().unwrap().unwrap();
        }
    });
    waiting.get("a").unwrap();
}

#[test]
fn calls_that_are_started_go_through_middleware_once() {
    let (_server, client, shelf) = plain();
    let metrics = Arc::new(Metrics::new());
    let around = Layered::new(client.0, quick_retry(3)).with(Arc::clone(&metrics));
    let client = ShelfV1Client(around);
    let (first, second) = (
        client.start_get("a").unwrap(),
        client.start_get("b").unwrap(),
    );
    assert_eq!(metrics.snapshot()[0].in_flight, 2);
    second.wait().unwrap();
    drop(first);
    let counted = metrics.snapshot().remove(0);
    assert_eq!((counted.in_flight, counted.succeeded), (0, 1));
    assert_eq!(counted.failed, [(CallErrorKind::Cancelled, 1)]);
    shelf.next(&shelf.overloaded, 1);
    assert!(client.start_get("a").unwrap().wait().is_err());
    assert_eq!(shelf.calls(), 1);
    // Procedure 0 has middleware, too.
    client.0.ping().unwrap();
    assert_eq!(metrics.snapshot()[0].procedure, "NULL");
}

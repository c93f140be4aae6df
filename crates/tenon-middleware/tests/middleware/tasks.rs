//! Middleware around clients and services of tasks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenon::{CallErrorKind, CallOptions, ChannelOptions, Layered};
use tenon_middleware::{
    BearerCheck, ConcurrencyLimit, Hedge, LoadShed, Metrics, RateLimit, Retry, Timeout,
};
use tenon_tokio::{AsyncService, ItemStream, Server};

use crate::generated::{Item, ShelfV1AsyncClient, ShelfV1AsyncService};
use crate::shelf::{SharedShelf, Shelf, item};

async fn serve(service: impl AsyncService) -> (Server, ShelfV1AsyncClient) {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.service(service).start().await.unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let options = ChannelOptions::default().allow_insecure(true);
    let client = ShelfV1AsyncClient::connect_with(&address, options)
        .await
        .unwrap();
    (server, client)
}

async fn plain() -> (Server, ShelfV1AsyncClient, Arc<Shelf>) {
    let shelf = SharedShelf::default();
    let (server, client) = serve(ShelfV1AsyncService(shelf.clone())).await;
    (server, client, shelf.0)
}

async fn until(what: impl Fn() -> bool) {
    let seen = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    in_time(seen).await;
}

async fn in_time<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, future).await.expect("it hangs")
}

fn quick_retry(attempts: u32) -> Retry {
    Retry::new(attempts).backoff(Duration::from_millis(1), Duration::from_millis(2))
}

#[tokio::test]
async fn calls_are_tried_again_and_counted() {
    let (_server, client, shelf) = plain().await;
    let metrics = Arc::new(Metrics::new());
    let around = Layered::new(client.0, quick_retry(3)).with(Arc::clone(&metrics));
    let client = ShelfV1AsyncClient(around);
    shelf.next(&shelf.overloaded, 2);
    client.get("a").await.unwrap();
    assert_eq!(shelf.calls(), 3);
    shelf.next(&shelf.overloaded, 3);
    let error = client.put(&item("a")).await.unwrap_err();
    assert_eq!((error.kind(), shelf.calls()), (CallErrorKind::Busy, 3));
    let counted = metrics.snapshot();
    assert_eq!((counted[0].calls(), counted[1].calls()), (3, 3));
    // A client of tasks is shared by tasks, with middleware, too.
    let shared = Arc::new(client);
    let calls = (0..8).map(|_| {
        let client = Arc::clone(&shared);
        tokio::spawn(async move { client.get("a").await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        in_time(call).await.unwrap();
    }
    assert_eq!(metrics.snapshot()[0].succeeded, 9);
}

/// The number of items that a list has, up to an error.
async fn count(mut items: ItemStream<Item>) -> (usize, Option<CallErrorKind>) {
    let mut count = 0;
    while let Some(item) = in_time(items.next()).await {
        match item {
            Ok(item) => assert_eq!(item.name, "listed"),
            Err(error) => return (count, Some(error.kind())),
        }
        count += 1;
    }
    (count, None)
}

#[tokio::test]
async fn calls_with_streams_are_tried_again_before_their_first_item() {
    let shelf = SharedShelf::default();
    let (_server, client) = serve(ShelfV1AsyncService(shelf.clone())).await;
    let shelf = shelf.0;
    let metrics = Arc::new(Metrics::new());
    let retry = quick_retry(3).kinds([CallErrorKind::Busy, CallErrorKind::Failed]);
    let plain_client = client.0.clone();
    let around = Layered::new(client.0, retry).with(Arc::clone(&metrics));
    let client = ShelfV1AsyncClient(around);
    for failing in [&shelf.overloaded, &shelf.failing] {
        shelf.next(failing, 2);
        assert_eq!(count(client.list(5).await.unwrap()).await, (5, None));
        assert_eq!(shelf.calls(), 3);
    }
    shelf.next(&shelf.overloaded, 3);
    let busy = Some(CallErrorKind::Busy);
    assert_eq!(count(client.list(5).await.unwrap()).await, (0, busy));
    assert_eq!(shelf.calls(), 3);
    shelf.next(&shelf.failing_late, 1);
    assert_eq!(count(client.list(5).await.unwrap()).await, (5, busy));
    assert_eq!(shelf.calls(), 1);
    let listed = metrics.snapshot().remove(0);
    assert_eq!((listed.calls(), listed.failures()), (10, 8));
    // One whose reader goes while it waits for its turn is given up.
    shelf.next(&shelf.overloaded, 1);
    let patient = Retry::new(3).backoff(Duration::from_secs(3600), Duration::from_secs(3600));
    let client = ShelfV1AsyncClient(Layered::new(plain_client, patient));
    let mut items = client.list(5).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(50), items.next());
    let waited = waits.await;
    assert!(waited.is_err(), "{waited:?}");
    drop(items);
    assert_eq!(shelf.calls(), 1);
}

#[tokio::test]
async fn a_call_that_takes_long_is_made_once_more_and_the_late_one_given_up() {
    let (_server, client, shelf) = plain().await;
    let hedge = Hedge::new(Duration::from_millis(30), 2);
    let client = ShelfV1AsyncClient(Layered::new(client.0, hedge));
    client.get("warm").await.unwrap();
    shelf.next(&shelf.slow, 1);
    client.get("a").await.unwrap();
    assert_eq!(shelf.calls(), 2);
    // The server is told that nobody waits for the first any more.
    until(|| shelf.dropped.load(Ordering::Relaxed) == 1).await;
    shelf.next(&shelf.overloaded, 1);
    client.get("a").await.unwrap();
    assert_eq!(shelf.calls(), 2);
}

#[tokio::test]
async fn calls_wait_for_their_turn() {
    let (_server, client, shelf) = plain().await;
    let limit = ConcurrencyLimit::new(2).waiting(1000);
    let limited = Arc::new(ShelfV1AsyncClient(Layered::new(client.0.clone(), limit)));
    let calls = (0..200).map(|_| {
        let client = Arc::clone(&limited);
        tokio::spawn(async move { client.get("a").await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        in_time(call).await.unwrap();
    }
    assert!(shelf.most.load(Ordering::Relaxed) <= 2);
    // One that is dropped while it waits takes no place.
    shelf.next(&shelf.slow, 2);
    let slow: Vec<_> = (0..2)
        .map(|_| {
            let client = Arc::clone(&limited);
            tokio::spawn(async move { client.get("slow").await.unwrap() })
        })
        .collect();
    until(|| shelf.calls() == 2).await;
    let hurried = CallOptions::new().timeout(Duration::from_millis(20));
    let error = limited.with_options(hurried).get("a").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    let waiting = limited.get("a");
    assert!(
        tokio::time::timeout(Duration::from_millis(20), waiting)
            .await
            .is_err()
    );
    for slow in slow {
        in_time(slow).await.unwrap();
    }
    in_time(limited.get("a")).await.unwrap();
    // One that is started cannot wait.
    let limit = RateLimit::per_second(0.001, 1).waiting(Duration::from_secs(10_000));
    let limited = ShelfV1AsyncClient(Layered::new(client.0, limit));
    limited.get("a").await.unwrap();
    let error = limited.start_get("a").unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Busy);
    assert!(error.to_string().contains("cannot wait"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_an_outcome_too() {
    let (_server, client, shelf) = plain().await;
    let metrics = Arc::new(Metrics::new());
    let client = ShelfV1AsyncClient(Layered::new(client.0, Arc::clone(&metrics)));
    shelf.next(&shelf.slow, 1);
    let call = client.get("a");
    assert!(
        tokio::time::timeout(Duration::from_millis(30), call)
            .await
            .is_err()
    );
    let counted = metrics.snapshot().remove(0);
    assert_eq!(counted.failed, [(CallErrorKind::Cancelled, 1)]);
    let (first, second) = (
        client.start_get("a").unwrap(),
        client.start_get("b").unwrap(),
    );
    in_time(second).await.unwrap();
    drop(first);
    let counted = metrics.snapshot().remove(0);
    assert_eq!((counted.in_flight, counted.succeeded), (0, 1));
    assert_eq!(counted.failed, [(CallErrorKind::Cancelled, 2)]);
}

#[tokio::test]
async fn a_service_of_tasks_has_middleware() {
    let shelf = SharedShelf::default();
    let metrics = Arc::new(Metrics::new());
    let check = BearerCheck::new(|token, call| {
        let _ = call.metadata_mut().set("tenant", token);
        Ok(())
    });
    let service = Layered::new(ShelfV1AsyncService(shelf.clone()), Arc::clone(&metrics))
        .with(LoadShed::new(Duration::from_secs(60)))
        .with(check)
        .with(Timeout::new(Duration::from_millis(300)));
    let (server, client) = serve(service).await;
    let error = client.get("a").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unauthenticated);
    let client = ShelfV1AsyncClient(client.0.with_bearer_token("ada").unwrap());
    let got = client.get("a").await.unwrap();
    assert_eq!(got.name, "ada");
    assert!((0..=300).contains(&got.value), "{}", got.value);
    shelf.0.next(&shelf.0.panicking, 1);
    assert_eq!(
        client.get("a").await.unwrap_err().kind(),
        CallErrorKind::Failed
    );
    shelf.0.next(&shelf.0.failing, 1);
    assert_eq!(
        client.get("a").await.unwrap_err().kind(),
        CallErrorKind::Failed
    );
    // A handler that takes longer is dropped.
    let dropped = shelf.0.dropped.load(Ordering::Relaxed);
    shelf.0.next(&shelf.0.slow, 1);
    let error = in_time(client.get("a")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut, "{error}");
    assert_eq!(shelf.0.dropped.load(Ordering::Relaxed), dropped + 1);
    let counted = metrics.snapshot().remove(0);
    assert!(counted.is_at_server);
    assert_eq!((counted.succeeded, counted.in_flight), (1, 0));
    let failed = [
        (CallErrorKind::Unauthenticated, 1),
        (CallErrorKind::Failed, 2),
        (CallErrorKind::TimedOut, 1),
    ];
    assert_eq!(counted.failed, failed);
    assert_eq!(server.counters().panics, 1);
}

#[tokio::test]
async fn calls_wait_at_a_service_of_tasks() {
    let shelf = SharedShelf::default();
    let limit = ConcurrencyLimit::new(1).waiting(1);
    let service = Layered::new(ShelfV1AsyncService(shelf.clone()), limit);
    let (_server, client) = serve(service).await;
    shelf.0.next(&shelf.0.slow, 1);
    let call = |name| {
        let client = client.clone();
        tokio::spawn(async move { client.get(name).await })
    };
    let slow = call("slow");
    until(|| shelf.0.calls() == 1).await;
    let finished = Arc::new(AtomicU32::new(0));
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (call, finished) = (call("a"), Arc::clone(&finished));
            tokio::spawn(async move {
                let result = call.await.unwrap();
                finished.fetch_add(1, Ordering::Relaxed);
                result
            })
        })
        .collect();
    // One of both finds a place to wait.
    until(|| finished.load(Ordering::Relaxed) == 1).await;
    in_time(slow).await.unwrap().unwrap();
    let mut kinds = Vec::new();
    for call in waiting {
        kinds.extend(in_time(call).await.unwrap().err().map(|error| error.kind()));
    }
    assert_eq!(kinds, [CallErrorKind::Busy]);
}

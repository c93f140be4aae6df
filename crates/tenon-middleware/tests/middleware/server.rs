//! Middleware around a service of threads.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tenon::{
    AuthStat, CallError, CallErrorKind, CallOutcome, CallScope, ChannelOptions, Layered, Metadata,
    Middleware, Refused, Rejection, Server, ServerLimits,
};
use tenon_middleware::{Authorization, BearerCheck, ConcurrencyLimit, LoadShed, Metrics, Timeout};

use crate::generated::{ShelfV1Client, ShelfV1Service};
use crate::shelf::{SharedShelf, item, serve};

#[test]
fn a_bearer_token_lets_in_and_says_who_calls() {
    let check = BearerCheck::new(|token, call| match token.strip_prefix("of-") {
        Some(tenant) => {
            let set = call.metadata_mut().set("tenant", tenant);
            set.map_err(|_| Rejection::denied("no name"))
        }
        None => Err(Rejection::unauthenticated("the token is unknown")),
    });
    let shelf = SharedShelf::default();
    let (server, address) = serve(Layered::new(ShelfV1Service(shelf), check));
    let options = ChannelOptions::default().allow_insecure(true);
    let client = ShelfV1Client::connect_with(&address, options).unwrap();
    let with_token = |token| ShelfV1Client(client.0.with_bearer_token(token).unwrap());

    let error = client.get("a").unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unauthenticated);
    assert!(!error.may_have_executed());
    assert!(error.to_string().contains("carries no token"), "{error}");
    let error = with_token("other").get("a").unwrap_err();
    assert!(
        error.to_string().contains("the token is unknown"),
        "{error}"
    );
    assert_eq!(with_token("of-ada").get("a").unwrap().name, "ada");
    // What a caller says of itself does not get through.
    let mut claimed = Metadata::new();
    claimed.append("tenant", "bob").unwrap();
    let claiming = with_token("of-ada").0.with_metadata(&claimed).unwrap();
    assert_eq!(ShelfV1Client(claiming).get("a").unwrap().name, "ada");
    // ONC RPC carries no token.
    let onc = ShelfV1Client::connect(&server.addresses()[0].to_string()).unwrap();
    match onc.get("a").unwrap_err() {
        CallError::Refused(Refused::Authentication(status)) => {
            assert_eq!(status, AuthStat::REJECTED_CRED);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_of_tokens_is_compared_whole() {
    let check = BearerCheck::tokens(["first", "second"]);
    let (_server, address) = serve(Layered::new(ShelfV1Service(SharedShelf::default()), check));
    let options = ChannelOptions::default().allow_insecure(true);
    let client = ShelfV1Client::connect_with(&address, options).unwrap();
    for (token, is_good) in [
        ("first", true),
        ("second", true),
        ("secon", false),
        ("second2", false),
    ] {
        let client = ShelfV1Client(client.0.with_bearer_token(token).unwrap());
        assert_eq!(client.get("a").is_ok(), is_good, "{token}");
    }
}

#[test]
fn rules_say_who_may_call_what() {
    let user = rustix::process::geteuid().as_raw();
    let rules: Authorization = format!("allow SHELF_V1.SHELF_GET\nallow * user={user}\n")
        .parse()
        .unwrap();
    let folder = std::env::temp_dir().join(format!("tenon-middleware-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let unix = format!("unix://{}", folder.join("shelf").display());
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .listen(&unix)
        .unwrap()
        .service(Layered::new(ShelfV1Service(SharedShelf::default()), rules))
        .start()
        .unwrap();
    let tcp = server.addresses()[0].to_string();
    for (address, may_put) in [
        (tcp.clone(), false),
        (format!("lean+{tcp}"), false),
        (unix.clone(), true),
        (format!("lean+{unix}"), true),
    ] {
        let client = ShelfV1Client::connect(&address).unwrap();
        client.get("a").unwrap();
        match client.put(&item("a")) {
            Ok(_) => assert!(may_put, "{address}"),
            Err(error) => {
                assert!(!may_put, "{address}: {error}");
                assert_eq!(error.kind(), CallErrorKind::Denied, "{address}");
                assert!(!error.may_have_executed(), "{address}");
                if address.starts_with("lean") {
                    let text = error.to_string();
                    assert!(text.contains("SHELF_V1.SHELF_PUT"), "{text}");
                }
            }
        }
    }
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_server_refuses_what_is_too_much_for_it() {
    let shelf = SharedShelf::default();
    let limit = ConcurrencyLimit::new(1);
    let (_server, address) = serve(Layered::new(ShelfV1Service(shelf.clone()), limit));
    let client = ShelfV1Client::connect(&address).unwrap();
    shelf.0.next(&shelf.0.slow, 1);
    thread::scope(|scope| {
        let slow = scope.spawn(|| client.get("slow"));
        while shelf.0.calls() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let error = client.get("a").unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Busy, "{error}");
        assert!(!error.may_have_executed());
        slow.join().unwrap().unwrap();
    });
    assert_eq!(shelf.0.calls(), 1);
    client.get("a").unwrap();
}

#[test]
fn load_is_shed_when_calls_take_too_long() {
    let shelf = SharedShelf::default();
    let shed = Arc::new(LoadShed::new(Duration::from_millis(200)).between(1, 2));
    let service = Layered::new(ShelfV1Service(shelf.clone()), Arc::clone(&shed));
    let (_server, address) = serve(service);
    let client = ShelfV1Client::connect(&address).unwrap();
    client.get("a").unwrap();
    assert_eq!(shed.limit(), 2);
    shelf.0.next(&shelf.0.slow, 1);
    client.get("slow").unwrap();
    // A tenth less than two.
    assert_eq!(shed.limit(), 1);
    shelf.0.next(&shelf.0.slow, 1);
    thread::scope(|scope| {
        let slow = scope.spawn(|| client.get("slow"));
        while shelf.0.calls() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let error = client.get("a").unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Busy, "{error}");
        slow.join().unwrap().unwrap();
    });
}

#[test]
fn middleware_sees_panics_refusals_and_results() {
    let shelf = SharedShelf::default();
    let metrics = Arc::new(Metrics::new());
    let service = Layered::new(ShelfV1Service(shelf.clone()), Arc::clone(&metrics));
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let limits = ServerLimits::default();
    let server = builder.limits(limits).service(service).start().unwrap();
    let tcp = server.addresses()[0].to_string();
    for address in [tcp.clone(), format!("lean+{tcp}")] {
        let client = ShelfV1Client::connect(&address).unwrap();
        client.get("a").unwrap();
        shelf.0.next(&shelf.0.panicking, 1);
        assert_eq!(client.get("a").unwrap_err().kind(), CallErrorKind::Failed);
        shelf.0.next(&shelf.0.overloaded, 1);
        assert!(client.get("a").is_err());
    }
    let counted = metrics.snapshot().remove(0);
    assert!(counted.is_at_server);
    assert_eq!((counted.succeeded, counted.in_flight), (2, 0));
    assert_eq!(
        counted.failed,
        [(CallErrorKind::Busy, 2), (CallErrorKind::Failed, 2)]
    );
    assert_eq!(counted.procedure, "SHELF_GET");
    assert_eq!(server.counters().panics, 2);
}

#[test]
fn a_handler_sees_the_time_that_middleware_gives_it() {
    let limit = Timeout::new(Duration::from_millis(500));
    let (server, address) = serve(Layered::new(ShelfV1Service(SharedShelf::default()), limit));
    for address in [address, server.addresses()[0].to_string()] {
        let client = ShelfV1Client::connect(&address).unwrap();
        let left = client.get("a").unwrap().value;
        assert!((0..=500).contains(&left), "{address}: {left}");
    }
}

/// Refuses every call in the midst of others.
struct Refusing;

impl Middleware for Refusing {
    type State = ();

    fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        Err(Rejection::new(
            CallErrorKind::InvalidArguments,
            "not this one",
        ))
    }

    fn end(&self, (): (), _call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        panic!("it has not begun: {outcome}");
    }
}

#[test]
fn a_rejection_is_an_outcome_for_what_stands_further_out() {
    let (outer, inner) = (Arc::new(Metrics::new()), Arc::new(Metrics::new()));
    let shelf = SharedShelf::default();
    let service = Layered::new(ShelfV1Service(shelf.clone()), Arc::clone(&outer))
        .with(Refusing)
        .with(Arc::clone(&inner));
    let (_server, address) = serve(service);
    let client = ShelfV1Client::connect(&address).unwrap();
    let error = client.get("a").unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidArguments);
    assert!(error.to_string().contains("not this one"), "{error}");
    assert_eq!(
        outer.snapshot()[0].failed,
        [(CallErrorKind::InvalidArguments, 1)]
    );
    assert!(inner.snapshot().is_empty());
    assert_eq!(shelf.0.calls(), 0);
}

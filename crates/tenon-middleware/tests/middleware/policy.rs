//! Policies of calls from a file.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use tenon::{CallErrorKind, Layered};
use tenon_middleware::Policy;

use crate::generated::ShelfV1Client;
use crate::shelf::{item, plain};

fn retrying(attempts: u32) -> String {
    format!(
        r#"{{ "methodConfig": [
            {{ "name": [{{ "service": "SHELF_V1", "method": "SHELF_GET" }}], "retryPolicy": {{
                "maxAttempts": {attempts}, "initialBackoff": "0.001s", "maxBackoff": "0.002s",
                "backoffMultiplier": 1.5, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"] }} }},
            {{ "name": [{{ "service": "SHELF_V1" }}], "timeout": "10s" }}
        ], "retryThrottling": {{ "maxTokens": 1000, "tokenRatio": 0.5 }} }}"#
    )
}

#[test]
fn policies_hold_for_their_procedures_and_change_with_the_file() {
    let (_server, client, shelf) = plain();
    let path = std::env::temp_dir().join(format!("tenon-policy-{}.json", std::process::id()));
    fs::write(&path, retrying(2)).unwrap();
    let policy = Policy::watch(&path).unwrap();
    let client = ShelfV1Client(Layered::new(client.0, policy));
    shelf.next(&shelf.overloaded, 1);
    client.get("a").unwrap();
    assert_eq!(shelf.calls(), 2);
    shelf.next(&shelf.overloaded, 1);
    assert!(client.put(&item("a")).is_err());
    assert_eq!(shelf.calls(), 1);
    let told = client.put(&item("a")).unwrap().value;
    assert!((5000..=10_000).contains(&told), "{told}");

    // A wrong file leaves all as it is; the next that is right holds.
    fs::write(&path, "{ not json").unwrap();
    thread::sleep(Duration::from_millis(1100));
    shelf.next(&shelf.overloaded, 1);
    client.get("a").unwrap();
    fs::write(&path, retrying(4)).unwrap();
    let begun = Instant::now();
    loop {
        shelf.next(&shelf.overloaded, 3);
        match client.get("a") {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), CallErrorKind::Busy),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it is not read again"
        );
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(shelf.calls(), 4);
    // Without its file it goes on, too.
    fs::remove_file(&path).unwrap();
    thread::sleep(Duration::from_millis(1100));
    shelf.next(&shelf.overloaded, 3);
    client.get("a").unwrap();
}

#[test]
fn a_policy_hedges() {
    let (_server, client, shelf) = plain();
    let policy = Policy::parse(
        r#"{ "methodConfig": [{ "name": [{ "service": "SHELF_V1" }],
            "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.03s" } }] }"#,
    );
    let client = ShelfV1Client(Layered::new(client.0, policy.unwrap()));
    shelf.next(&shelf.slow, 1);
    client.get("a").unwrap();
    assert_eq!(shelf.calls(), 2);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Policy::watch("/nonexistent/policy.json")
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nonexistent/policy.json: "), "{error}");
}

//! Calls of tasks that are larger than their server takes: a client finds out quickly, and says what the limits are.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{ECHO, call, connect, every_way, listening, obliging};
use tenon::{CallError, Protocol};

/// More than a socket takes on its way, and more than a server takes.
const LARGE: usize = 32 << 20;

/// Far less than the time of a call.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_call_that_its_server_does_not_take_is_an_error_that_names_the_limits() {
    let server = listening().service(obliging()).start().unwrap();
    let large = vec![7; LARGE];
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        let begun = Instant::now();
        let error = call(&client, ECHO, &large).await.unwrap_err();
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert!(!error.may_have_executed());
        let text = error.to_string();
        let connections = client.channel().counters().connections;
        match (client.protocol(), &error) {
            (Protocol::Onc, CallError::CutOff { size, .. }) => {
                assert!((LARGE..LARGE + 200).contains(size), "{size}");
                assert!(text.contains("message_bytes"), "{text}");
                assert_eq!(connections, 2);
            }
            (Protocol::Lean, CallError::TooLargeForPeer { .. }) => {
                // 4 MiB there, 64 MiB here.
                assert!(
                    text.contains("4194304") && text.contains("67108864"),
                    "{text}"
                );
                assert_eq!(connections, 1);
            }
            _ => panic!("{address}: {error}"),
        }
        assert_eq!(call(&client, ECHO, b"small").await.unwrap(), b"small");
    }
    drop(server);
}

//! Calls of tasks that are larger than their server takes: a client says what the limits are.

use crate::common::obliging::{ECHO, call, connect, connect_with, every_way, listening, obliging};
use tenon::{CallError, CallErrorKind, ChannelOptions, Protocol};

/// More than a socket takes on its way, and more than a server takes.
const LARGE: usize = 32 << 20;

#[tokio::test]
async fn a_call_that_its_server_does_not_take_is_an_error_that_names_the_limits() {
    let server = listening().service(obliging()).start().unwrap();
    let large = vec![7; LARGE];
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        let error = call(&client, ECHO, &large).await.unwrap_err();
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

/// All of its bytes may find room on their way, and count as sent.
#[tokio::test]
async fn the_error_of_a_call_somewhat_over_the_limit_says_how_large_it_was() {
    const SIZE: usize = 5 << 20;
    let server = listening().service(obliging()).start().unwrap();
    let bytes = vec![7; SIZE];
    for address in server.addresses() {
        for _ in 0..4 {
            let before = server.counters().connections_accepted;
            let options = ChannelOptions::default().send_max(6 << 20);
            let client = connect_with(&address.to_string(), options).await;
            let error = call(&client, ECHO, &bytes).await.unwrap_err();
            assert_eq!(error.kind(), CallErrorKind::Disconnected, "{error}");
            let text = error.to_string();
            // A mark, a header, and a channel's own limit.
            let size = (SIZE + 44).to_string();
            assert!(text.contains(&size) && text.contains("6291456"), "{text}");
            assert!(text.contains("message_bytes"), "{text}");
            let connections = server.counters().connections_accepted - before;
            assert!((1..=2).contains(&connections), "{address}: {connections}");
            assert_eq!(call(&client, ECHO, b"small").await.unwrap(), b"small");
        }
    }
    assert_eq!(server.counters().calls, 8, "only the small ones");
}

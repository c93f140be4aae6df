//! Peers over TCP that fall silent are found out by the kernel, as the options of a channel of tasks say.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::{ECHO, call, connect_with};
use tenon::{CallError, ChannelOptions};

#[tokio::test]
async fn a_peer_that_takes_nothing_is_given_up() {
    // Its backlog connects, and nothing reads.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let options = ChannelOptions::default().peer_timeout(Some(Duration::from_millis(300)));
    let client = connect_with(&address, options).await;
    let begun = Instant::now();
    let error = call(&client, ECHO, &vec![7; 32 << 20]).await.unwrap_err();
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    assert!(matches!(error, CallError::CutOff { .. }), "{error}");
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(client.channel().counters().connections, 2);
}

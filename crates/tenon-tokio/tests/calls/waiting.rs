//! How tasks wait for replies: they look for them within a poll, if their channel may.

use std::time::Instant;

use crate::common::obliging::{ECHO, PATIENCE, call, connect_with, in_time, obliging};
use crate::common::place::{fresh_host, fresh_path};
use tenon::{ChannelOptions, Server, WaitCounters, Waiting};

/// A server of threads that is awake when a call comes, so that its reply can be found by looking.
fn server() -> Server {
    let addresses = [
        format!("tcp://{}:0", fresh_host()),
        format!("unix://{}", fresh_path().display()),
        format!("shm://{}", fresh_path().display()),
    ];
    let mut builder = Server::builder().waiting(Waiting::Spin);
    for address in addresses {
        builder = builder.listen(&address).unwrap();
    }
    builder.service(obliging()).start().unwrap()
}

/// Makes calls one after the other until their waits are as they are to be, a hundred at least.
async fn waits_until(
    address: &str,
    waiting: Waiting,
    is_enough: impl Fn(&WaitCounters) -> bool,
) -> WaitCounters {
    let options = ChannelOptions::default().waiting(waiting);
    let client = connect_with(address, options).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        for _ in 0..100 {
            assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
        }
        let waits = client.channel().counters().waits;
        if is_enough(&waits) || Instant::now() > deadline {
            return waits;
        }
    }
}

#[tokio::test]
async fn a_lone_task_finds_replies_by_looking_if_it_may() {
    let server = server();
    for address in server.addresses() {
        let address = address.to_string();
        for waiting in [Waiting::Adaptive, Waiting::Spin] {
            let found = waits_until(&address, waiting, |waits| waits.spins > 20).await;
            assert!(found.spins > 20, "{address}, {waiting}: {found:?}");
        }
        let slept = in_time(waits_until(&address, Waiting::Block, |_| true)).await;
        let looks = (slept.spins, slept.misses, slept.attempts);
        assert_eq!(looks, (0, 0, 0), "{address}: {slept:?}");
    }
}

/// Looking ends with the poll: another task has its turn between calls whose replies are all found at once.
#[tokio::test]
async fn a_task_that_finds_its_replies_leaves_others_their_turn() {
    let server = server();
    for address in server.addresses() {
        let options = ChannelOptions::default().waiting(Waiting::Spin);
        let client = connect_with(&address.to_string(), options).await;
        let calling = tokio::spawn(async move {
            loop {
                call(&client, ECHO, b"four").await.unwrap();
            }
        });
        let turns = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        in_time(turns).await;
        calling.abort();
    }
}

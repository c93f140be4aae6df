//! The health of a server of tasks, which turns before the server ends.

use std::time::Duration;

use crate::common::obliging::{PATIENCE, eventually};
use tenon::health::{Health, HealthQuestion, HealthStatus, HealthV1Client};
use tenon_tokio::Server;
use tokio::task::spawn_blocking;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_that_it_does_not_serve_before_it_is_gone() {
    let health = Health::new();
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.health(&health).start().await.unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let watching = spawn_blocking(move || {
        let client = HealthV1Client::connect(&address).unwrap();
        let client = client.with_timeout(PATIENCE);
        assert_eq!(client.check("").unwrap(), HealthStatus::Serving);
        let question = HealthQuestion {
            service: "".into(),
            known: HealthStatus::Serving,
            milliseconds: 60_000,
        };
        client.watch(&question).unwrap()
    });
    eventually("the call", || server.counters().calls == 2).await;
    server.shutdown(Duration::from_secs(30)).await;
    assert_eq!(watching.await.unwrap(), HealthStatus::NotServing);
}

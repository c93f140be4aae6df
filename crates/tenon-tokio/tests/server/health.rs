//! The health of a server of tasks, which turns before the server ends.

use std::time::{Duration, Instant};

use crate::common::obliging::{PATIENCE, eventually};
use crate::common::place::fresh_path;
use tenon::health::{Health, HealthQuestion, HealthStatus, HealthV1Client};
use tenon::{CallErrorKind, Transport};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_statuses_end_before_a_server_that_stops() {
    let health = Health::new();
    let path = || fresh_path().display().to_string();
    let mut builder = Server::builder();
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        builder = builder.listen(&listen).unwrap();
    }
    let server = builder.health(&health).start().await.unwrap();
    let addresses = server.addresses().to_vec();
    let (begin, mut begun) = tokio::sync::mpsc::channel(3);
    let followed: Vec<_> = addresses
        .into_iter()
        .map(|address| {
            let begin = begin.clone();
            spawn_blocking(move || {
                let protocol = match address.transport() {
                    Transport::Shm => "",
                    _ => "lean+",
                };
                let client = HealthV1Client::connect(&format!("{protocol}{address}")).unwrap();
                let mut statuses = client.follow("").unwrap();
                assert_eq!(statuses.next().unwrap().unwrap(), HealthStatus::Serving);
                begin.blocking_send(()).unwrap();
                assert_eq!(statuses.next().unwrap().unwrap(), HealthStatus::NotServing);
                let end = statuses.next().unwrap().unwrap_err();
                assert_eq!(end.kind(), CallErrorKind::Stopping);
            })
        })
        .collect();
    for _ in 0..3 {
        begun.recv().await.unwrap();
    }
    // They do not take the time of the drain.
    let stopping = Instant::now();
    server.shutdown(2 * PATIENCE).await;
    assert!(stopping.elapsed() < PATIENCE);
    for follower in followed {
        follower.await.unwrap();
    }
}

//! Generated clients in tasks, beside those in threads, at one generated service.

use crate::common::obliging::{every_way, in_time, listening};
use crate::tasks::{Job, Jobs, TasksV1, TasksV1AsyncClient, TasksV1Client, TasksV1Service};
use tenon::wire::BString;
use tenon::{CallInfo, ChannelOptions, Protocol, Refusal, Server};
use tokio::task::JoinSet;

struct Worker;

impl TasksV1 for Worker {
    fn do_(&self, _: &CallInfo<'_>, job: Job) -> Result<u32, Refusal> {
        match job.work {
            0 => Err(Refusal::SystemError("there is no work".to_owned())),
            _ => Ok(job.name.len() as u32),
        }
    }

    fn add(&self, _: &CallInfo<'_>, left: u64, right: u64) -> Result<u64, Refusal> {
        Ok(left.wrapping_add(right))
    }

    fn sort(&self, _: &CallInfo<'_>, mut jobs: Jobs, descending: bool) -> Result<Jobs, Refusal> {
        jobs.sort_by_key(|job| job.work);
        if descending {
            jobs.reverse();
        }
        Ok(jobs)
    }

    fn name(&self, _: &CallInfo<'_>, job: Job) -> Result<BString, Refusal> {
        Ok(job.name)
    }

    fn meet(&self, _: &CallInfo<'_>, _: u32) -> Result<(), Refusal> {
        Err(Refusal::SystemError("that needs tasks".to_owned()))
    }

    fn forget(&self, _: &CallInfo<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

fn server() -> Server {
    let builder = listening().listen("udp://127.0.0.1:0").unwrap();
    builder.service(TasksV1Service(Worker)).start().unwrap()
}

fn job(name: &str, work: u64) -> Job {
    Job {
        name: name.into(),
        work,
    }
}

#[tokio::test]
async fn a_client_in_tasks_speaks_what_the_address_says() {
    let server = server();
    let mut lean = 0;
    for address in every_way(server.addresses()) {
        let client = in_time(TasksV1AsyncClient::connect(&address)).await;
        let client = client.unwrap();
        in_time(client.null()).await.unwrap();
        let done = in_time(client.do_(&job("sweep", 1))).await;
        assert_eq!(done.unwrap(), 5, "{address}");
        let refused = in_time(client.do_(&job("rest", 0))).await;
        assert!(refused.is_err(), "{address}");
        let other = TasksV1AsyncClient::over(client.0.channel().clone());
        assert_eq!(in_time(other.add(u64::MAX, 2)).await.unwrap(), 1);
        lean += u32::from(client.0.protocol() == Protocol::Lean);
    }
    assert_eq!(lean, 3);
}

#[tokio::test]
async fn a_client_connects_with_the_options_that_it_is_given() {
    let server = server();
    for address in every_way(server.addresses()) {
        let options = ChannelOptions::default().calls_max(2);
        let client = TasksV1AsyncClient::connect_with(&address, options.clone());
        let client = in_time(client).await.unwrap();
        assert_eq!(in_time(client.add(1, 2)).await.unwrap(), 3, "{address}");
        let given = client.0.channel().options();
        assert_eq!(given.calls_max, options.calls_max, "{address}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_many_tasks_are_in_flight_together() {
    let server = server();
    for address in every_way(server.addresses()) {
        if address.starts_with("udp") {
            continue;
        }
        let client = TasksV1AsyncClient::connect(&address).await.unwrap();
        let mut calls = JoinSet::new();
        for number in 0..200 {
            let client = client.clone();
            calls.spawn(async move {
                let sum = in_time(client.add(number, 1)).await;
                assert_eq!(sum.unwrap(), number + 1);
            });
        }
        while let Some(done) = calls.join_next().await {
            done.unwrap();
        }
    }
}

#[test]
fn a_client_in_threads_is_made_from_the_same_interface() {
    let server = server();
    for address in every_way(server.addresses()) {
        let client = TasksV1Client::connect(&address).unwrap();
        assert_eq!(client.add(40, 2).unwrap(), 42);
    }
}

//! What an idle connection costs of the processor, at both ends.

use std::fs;
use std::time::Duration;

use crate::common::obliging::{ECHO, Patient, call, connect_with, in_time, obliging};
use crate::common::place::{fresh_host, fresh_path};
use tenon::{ChannelOptions, Waiting};
use tenon_tokio::{Server, ServerBuilder};

/// Calls before that: so many that functions are known to be quick.
const CALLS: usize = 100;

/// How long nothing is called.
const IDLE: Duration = Duration::from_millis(300);

/// What the processors may do for the process meanwhile: the timers of the run time, also on a slow machine. One thread
/// that looks takes ten times as much.
const MOST: Duration = Duration::from_millis(30);

/// Times of [`IDLE`] of which one has to be quiet: what the last calls have left to do may take a while.
const LOOKS: usize = 20;

/// The least that was burnt while nothing was called.
async fn least_burnt() -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..LOOKS {
        let before = processor_time();
        tokio::time::sleep(IDLE).await;
        least = least.min(processor_time().saturating_sub(before));
        if least < MOST {
            break;
        }
    }
    least
}

/// Time that the processors have spent on all threads of this process.
fn processor_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let nanos = |task: fs::DirEntry| {
        // A thread may end meanwhile.
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    let nanos = tasks.filter_map(|task| nanos(task.unwrap()));
    Duration::from_nanos(nanos.sum())
}

fn builder(waiting: Waiting) -> ServerBuilder {
    let host = fresh_host();
    let addresses = [
        format!("tcp://{host}:0"),
        format!("unix://{}", fresh_path().display()),
        format!("shm://{}", fresh_path().display()),
        format!("udp://{host}:0"),
    ];
    let mut builder = Server::builder().waiting(waiting);
    for address in addresses {
        builder = builder.listen(&address).unwrap();
    }
    builder
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub async fn nothing_is_burnt_when_idle() {
    for (_, waiting) in Waiting::ALL {
        let functions = builder(waiting).sync_service(obliging());
        let tasks = builder(waiting).service(Patient::default());
        for builder in [functions, tasks] {
            let server = builder.start().await.unwrap();
            let mut clients = Vec::new();
            for address in server.addresses().iter().map(ToString::to_string) {
                let options = ChannelOptions::default().waiting(waiting);
                let client = connect_with(&address, options).await;
                let client = client.with_timeout(Duration::from_secs(10));
                for _ in 0..CALLS {
                    let echoed = in_time(call(&client, ECHO, b"four")).await;
                    let echoed =
                        echoed.unwrap_or_else(|error| panic!("{waiting}, {address}: {error:?}"));
                    assert_eq!(echoed, b"four", "{address}");
                }
                clients.push(client);
            }
            let burnt = least_burnt().await;
            assert!(burnt < MOST, "{waiting}: {burnt:?} of {IDLE:?}");
        }
    }
}

//! Handlers that take their time: calls of one connection, or at one port, are carried out at the same time, and none
//! waits for the handler of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging;
use crate::common::obliging::{
    ECHO, PATIENCE, PROGRAM, VERSION, call, connect, eventually, hold, in_time, interface, obliging,
};
use crate::common::place::{fresh_host, fresh_path};
use crate::common::serving::Serving;
use tenon::lean::Interface;
use tenon::{Protocol, Refusal};
use tenon_tokio::{Answer, AsyncService, Call, Server, ServerBuilder};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// How long a handler takes.
const TIME: Duration = Duration::from_millis(10);

/// Returns when as many calls of it are there as its argument says.
const MEET: u16 = 1;

/// Returns after [`TIME`].
const PAUSE_PROCEDURE: u16 = 2;

/// What handlers count.
#[derive(Clone, Default)]
struct Met {
    /// Calls of MEET that have come, of which as many as meet go on together.
    come: Arc<AtomicU32>,
    /// Calls of PAUSE_PROCEDURE that run, and the most that have run at the same time.
    resting: Arc<AtomicU32>,
    most_resting: Arc<AtomicU32>,
}

impl Met {
    /// Notes that a call has come; returns how many have when all are there.
    fn come(&self, count: u32) -> u32 {
        self.come.fetch_add(1, Ordering::SeqCst) / count * count + count
    }

    fn are_there(&self, last: u32) -> bool {
        self.come.load(Ordering::SeqCst) >= last
    }

    fn begin_rest(&self) {
        let resting = self.resting.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_resting.fetch_max(resting, Ordering::SeqCst);
    }

    fn end_rest(&self) {
        self.resting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Serves MEET and PAUSE_PROCEDURE by functions.
    fn by_functions(self) -> impl tenon::Service {
        let body = move |procedure, arguments: &[u8]| {
            if procedure == u32::from(PAUSE_PROCEDURE) {
                self.begin_rest();
                thread::sleep(TIME);
                self.end_rest();
                return Ok(arguments.to_vec());
            }
            let last = self.come(number(arguments));
            let begin = Instant::now();
            while !self.are_there(last) && begin.elapsed() < PATIENCE {
                thread::sleep(TIME);
            }
            outcome(self.are_there(last), arguments)
        };
        Serving {
            interface: interface(),
            body,
        }
    }
}

fn number(arguments: &[u8]) -> u32 {
    u32::from_be_bytes(arguments[..4].try_into().unwrap())
}

fn outcome(are_there: bool, arguments: &[u8]) -> Result<Vec<u8>, Refusal> {
    if are_there {
        Ok(arguments.to_vec())
    } else {
        Err(Refusal::SystemError("they did not meet".to_owned()))
    }
}

/// Serves MEET and PAUSE_PROCEDURE by tasks.
struct ByTasks(Met);

impl AsyncService for ByTasks {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(interface()))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let is_lean = call.protocol() == Protocol::Lean;
        let arguments = if is_lean {
            call.decode_lean(obliging::get_lean)?
        } else {
            call.decode(obliging::get)?
        };
        if call.procedure() == u32::from(PAUSE_PROCEDURE) {
            self.0.begin_rest();
            tokio::time::sleep(TIME).await;
            self.0.end_rest();
        } else {
            let last = self.0.come(number(&arguments));
            let begin = Instant::now();
            while !self.0.are_there(last) && begin.elapsed() < PATIENCE {
                tokio::time::sleep(TIME).await;
            }
            outcome(self.0.are_there(last), &arguments)?;
        }
        if is_lean {
            call.answer_lean(obliging::put_lean(&arguments))
        } else {
            call.answer(obliging::put(&arguments))
        }
    }
}

/// A server of tasks at every kind of address without a service.
fn everywhere() -> ServerBuilder {
    let host = fresh_host();
    Server::builder()
        .listen(&format!("shm://{}", fresh_path().display()))
        .unwrap()
        .listen(&format!("tcp://{host}:0"))
        .unwrap()
        .listen(&format!("unix://{}", fresh_path().display()))
        .unwrap()
        .listen(&format!("udp://{host}:0"))
        .unwrap()
}

/// Every address that a client may write for these. In shared memory there is the lean protocol alone.
fn every_way(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .flat_map(|address| {
            let lean = (!address.starts_with("shm")).then(|| format!("lean+{address}"));
            [address].into_iter().chain(lean)
        })
        .collect()
}

async fn both_kinds() -> [(&'static str, Server, Met); 2] {
    let (by_functions, by_tasks) = (Met::default(), Met::default());
    let functions = everywhere().sync_service(by_functions.clone().by_functions());
    let tasks = everywhere().service(ByTasks(by_tasks.clone()));
    [
        ("functions", functions.start().await.unwrap(), by_functions),
        ("tasks", tasks.start().await.unwrap(), by_tasks),
    ]
}

async fn handlers_run_together(callers: u32) {
    for (kind, server, _) in both_kinds().await {
        for address in every_way(&server) {
            let client = connect(&address).await.with_timeout(PATIENCE);
            let mut calls = JoinSet::new();
            for _ in 0..callers {
                let client = client.clone();
                calls.spawn(async move { call(&client, MEET, &callers.to_be_bytes()).await });
            }
            for met in in_time(calls.join_all()).await {
                assert!(met.is_ok(), "{kind}, {address}: {met:?}");
            }
            assert_eq!(client.channel().counters().connections, 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_calls_over_one_channel_run_at_the_same_time() {
    handlers_run_together(16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_over_one_channel_run_at_the_same_time() {
    handlers_run_together(64).await;
}

#[tokio::test]
async fn calls_run_at_the_same_time_in_one_thread() {
    handlers_run_together(16).await;
}

/// Calls that follow each other at once keep as many handlers running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_call_on_do_not_wait_for_each_other() {
    const CALLERS: u32 = 64;
    const ROUNDS: u32 = 5;
    // On a machine with much else to do not all callers call within the time of a handler.
    const TOGETHER: u32 = 5;
    for (kind, server, met) in both_kinds().await {
        for address in every_way(&server) {
            let client = connect(&address).await.with_timeout(PATIENCE);
            // Threads are started once.
            let warm = call(&client, PAUSE_PROCEDURE, b"four").await;
            warm.unwrap();
            met.most_resting.store(0, Ordering::SeqCst);
            let mut calls = JoinSet::new();
            for _ in 0..CALLERS {
                let client = client.clone();
                calls.spawn(async move {
                    for _ in 0..ROUNDS {
                        call(&client, PAUSE_PROCEDURE, b"four").await.unwrap();
                    }
                });
            }
            in_time(calls.join_all()).await;
            let most = met.most_resting.load(Ordering::SeqCst);
            assert!(
                most >= TOGETHER,
                "{kind}, {address}: {most} at the same time"
            );
        }
    }
}

/// Calls ECHO while another call of the same connection waits for what happens behind all of them.
async fn call_beside_a_slow_call(server: &Server, address: &str) {
    let client = connect(address).await.with_timeout(PATIENCE);
    call(&client, ECHO, b"four").await.unwrap();
    let (gate, before) = (fresh_gate(), server.counters().calls);
    let slow = tokio::spawn({
        let client = client.clone();
        async move { hold(&client, gate).await }
    });
    eventually("the slow call arrives", || server.counters().calls > before).await;
    for _ in 0..50 {
        in_time(call(&client, ECHO, b"four")).await.unwrap();
    }
    assert!(!slow.is_finished(), "{address}");
    open(gate);
    in_time(slow).await.unwrap().unwrap();
}

fn a_slow_function_delays_no_other_call(runtime: &Runtime) {
    runtime.block_on(async {
        let server = everywhere().sync_service(obliging()).start().await.unwrap();
        for address in every_way(&server) {
            call_beside_a_slow_call(&server, &address).await;
        }
    });
}

#[test]
fn a_slow_function_delays_no_other_call_in_several_threads() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    a_slow_function_delays_no_other_call(&runtime.unwrap());
}

#[test]
fn a_slow_function_delays_no_other_call_in_one_thread() {
    let runtime = Builder::new_current_thread().enable_all().build();
    a_slow_function_delays_no_other_call(&runtime.unwrap());
}

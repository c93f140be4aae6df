//! Servers of tasks at UDP addresses: messages of ONC RPC, each carried out once, and the packet exchange.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging;
use crate::common::obliging::{
    ECHO, HOLD, Held, InOrder, PATIENCE, PROGRAM, Patient, VERSION, call, connect,
    connect_blocking, eventually, every_way, hold, in_time, obliging,
};
use crate::common::relay::{Faults, Relay};
use tenon::wire::{Decoder, Encoder};
use tenon::{CallError, CallInfo, DuplicateLimits, Refusal, ServerLimits, Service};
use tenon_tokio::{Answer, AsyncService, Call, Server, ServerBuilder};
use tokio::task::{JoinSet, spawn_blocking};

/// How calls are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Functions,
    Tasks,
    InOrder,
}

const KINDS: [Kind; 3] = [Kind::Functions, Kind::Tasks, Kind::InOrder];

fn at_port() -> ServerBuilder {
    Server::builder().listen("udp://127.0.0.1:0").unwrap()
}

/// A server of the test's service, and what became of the calls that were held in tasks.
async fn serve(kind: Kind, builder: ServerBuilder) -> (Arc<Server>, Arc<Held>) {
    let patient = Patient::default();
    let held = Arc::clone(&patient.held);
    let builder = match kind {
        Kind::Functions => builder.sync_service(obliging()),
        Kind::Tasks => builder.service(patient),
        Kind::InOrder => builder.service(InOrder(patient)),
    };
    (Arc::new(builder.start().await.unwrap()), held)
}

fn place(server: &Server) -> SocketAddr {
    let address = server.addresses()[0].to_string();
    address["udp://".len()..].parse().unwrap()
}

/// A client that does nothing by itself.
struct Caller(UdpSocket);

impl Caller {
    async fn of(server: &Server) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(place(server)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn send(&self, xid: u32, procedure: u16, arguments: &[u32]) {
        let mut words = vec![xid, 0, 2, PROGRAM, VERSION, procedure.into(), 0, 0, 0, 0];
        words.extend(arguments);
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        self.0.send(&bytes).unwrap();
    }

    /// The words of the next reply.
    async fn receive(&self) -> Vec<u32> {
        let socket = self.0.try_clone().unwrap();
        let received = spawn_blocking(move || {
            let mut room = vec![0; 1 << 16];
            let length = socket.recv(&mut room).unwrap();
            room.truncate(length);
            room
        });
        let bytes = received.await.unwrap();
        let words = bytes.chunks(4);
        words
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect()
    }
}

fn success(xid: u32, results: &[u32]) -> Vec<u32> {
    [&[xid, 1, 0, 0, 0, 0], results].concat()
}

/// Counts its calls, and returns the number of this one and as many words as it is asked for.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Counting {
    fn count(&self, out: &mut Encoder<'_>, words: u32) {
        out.put(self.0.fetch_add(1, Ordering::SeqCst) as u32);
        (0..words).for_each(|word| out.put(word));
    }
}

impl Service for Counting {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let words = arguments.get::<u32>()?;
        self.count(result, words);
        Ok(())
    }
}

struct CountingTasks(Counting);

impl AsyncService for CountingTasks {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let words = call.decode(|input| input.get::<u32>())?;
        tokio::task::yield_now().await;
        call.answer(|out| {
            self.0.count(out, words);
            Ok(())
        })
    }
}

async fn serve_counting(kind: Kind) -> (Server, Counting) {
    // Over datagrams this is to mean nothing.
    serve_counting_at(kind, at_port().fragment_max(1)).await
}

async fn serve_counting_at(kind: Kind, builder: ServerBuilder) -> (Server, Counting) {
    let counting = Counting::default();
    let builder = match kind {
        Kind::Functions => builder.sync_service(counting.clone()),
        Kind::Tasks => builder.service(CountingTasks(counting.clone())),
        Kind::InOrder => builder.service(InOrder(CountingTasks(counting.clone()))),
    };
    (builder.start().await.unwrap(), counting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_repeated_is_carried_out_once() {
    for kind in KINDS {
        let (server, counting) = serve_counting(kind).await;
        let caller = Caller::of(&server).await;
        for xid in 0..3 {
            for _ in 0..4 {
                caller.send(xid, ECHO, &[2]);
                assert_eq!(
                    caller.receive().await,
                    success(xid, &[xid, 0, 1]),
                    "{kind:?}"
                );
            }
        }
        assert_eq!(counting.0.load(Ordering::SeqCst), 3, "{kind:?}");
        assert_eq!(server.counters().duplicates_answered, 9, "{kind:?}");
    }
}

/// Makes so many calls, some at a time.
fn call_busily(place: SocketAddr, calls: u32) {
    const TOGETHER: u32 = 16;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(place).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let caller = Caller(socket);
    for first in (0..calls).step_by(TOGETHER as usize) {
        for xid in first..first + TOGETHER {
            caller.send(xid, ECHO, &[0]);
        }
        for _ in 0..TOGETHER {
            caller.0.recv(&mut [0; 100]).unwrap();
        }
    }
}

/// A client whose replies are lost asks again after half a second and more, while another one is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_replies_are_lost_are_carried_out_once_beside_a_busy_client() {
    const BUSY: u32 = 20_000;
    const LOST: u32 = 8;
    for kind in KINDS {
        for bytes in [DuplicateLimits::default().bytes, 128 << 10] {
            // On a busy machine the calls may take longer than replies are kept for.
            let limits = DuplicateLimits {
                bytes,
                age: Duration::from_secs(3600),
                protected_age: Duration::from_secs(3600),
                ..DuplicateLimits::default()
            };
            let builder = at_port().duplicate_limits(limits);
            let (server, counting) = serve_counting_at(kind, builder).await;
            let caller = Caller::of(&server).await;
            let mut replies = Vec::new();
            for xid in 0..LOST {
                caller.send(xid, ECHO, &[1]);
                replies.push(caller.receive().await);
            }
            let lost_at = Instant::now();
            let place = place(&server);
            spawn_blocking(move || call_busily(place, BUSY))
                .await
                .unwrap();
            let half_a_second = lost_at + Duration::from_millis(500);
            tokio::time::sleep_until(half_a_second.into()).await;
            for xid in 0..LOST {
                caller.send(xid, ECHO, &[1]);
                let reply = caller.receive().await;
                assert_eq!(reply, replies[xid as usize], "{kind:?} {bytes}");
            }
            let executed = counting.0.load(Ordering::SeqCst) as u32;
            assert_eq!(executed, BUSY + LOST, "{kind:?} {bytes}");
            let counters = server.counters();
            assert_eq!(counters.duplicates_answered, u64::from(LOST));
            assert_eq!(counters.replies_evicted > 0, bytes < 1 << 20, "{bytes}");
            assert_eq!(counters.replies_evicted_early, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_repeated_while_it_is_carried_out_is_answered_once() {
    for kind in KINDS {
        let (server, _) = serve(kind, at_port()).await;
        let (caller, gate) = (Caller::of(&server).await, fresh_gate());
        for _ in 0..3 {
            caller.send(1, HOLD, &[gate]);
        }
        eventually("two are dropped", || {
            server.counters().datagrams_dropped == 2
        })
        .await;
        open(gate);
        assert_eq!(caller.receive().await, success(1, &[gate]), "{kind:?}");
        caller.send(2, ECHO, &[7]);
        assert_eq!(caller.receive().await, success(2, &[7]), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_does_not_fit_into_a_datagram_is_refused() {
    for kind in KINDS {
        let (server, _) = serve_counting(kind).await;
        let caller = Caller::of(&server).await;
        let most = (65_507 - 24) / 4 - 1;
        caller.send(1, ECHO, &[most]);
        let reply = caller.receive().await;
        assert_eq!(reply.len() as u32, 6 + 1 + most, "{kind:?}");
        for _ in 0..2 {
            caller.send(2, ECHO, &[most + 1]);
            // SYSTEM_ERR, which is remembered as any other.
            assert_eq!(caller.receive().await, [2, 1, 0, 0, 0, 5], "{kind:?}");
        }
        assert_eq!(server.counters().replies_too_large, 1, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_no_room_for_is_dropped_or_refused_and_the_server_serves_on() {
    for kind in KINDS {
        let limits = ServerLimits {
            calls: 1,
            ..ServerLimits::default()
        };
        let (server, _) = serve(kind, at_port().limits(limits)).await;
        let lean = connect(&format!("lean+udp://{}", place(&server))).await;
        assert_eq!(
            in_time(call(&lean, ECHO, b"four")).await.unwrap(),
            b"four",
            "{kind:?}"
        );
        let (caller, gate) = (Caller::of(&server).await, fresh_gate());
        caller.send(1, HOLD, &[gate]);
        eventually("the call", || server.counters().calls == 2).await;
        caller.send(2, ECHO, &[7]);
        eventually("one is dropped", || {
            server.counters().datagrams_dropped == 1
        })
        .await;
        let refused = in_time(call(&lean, ECHO, b"four")).await.unwrap_err();
        assert!(
            matches!(refused, CallError::Exception(_)),
            "{kind:?}: {refused:?}"
        );
        open(gate);
        assert_eq!(caller.receive().await, success(1, &[gate]), "{kind:?}");
        // It was not carried out before.
        caller.send(2, ECHO, &[7]);
        assert_eq!(caller.receive().await, success(2, &[7]), "{kind:?}");
        assert_eq!(
            in_time(call(&lean, ECHO, b"four")).await.unwrap(),
            b"four",
            "{kind:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_through_a_relay_that_loses_doubles_delays_and_reorders_are_carried_out_once() {
    const TASKS: usize = 6;
    const CALLS: usize = 12;
    for kind in KINDS {
        let (server, _) = serve(kind, at_port()).await;
        let faults = Faults {
            loss: 50,
            duplication: 100,
            delay_us: 2000,
        };
        let relay = Relay::before(place(&server), faults);
        let address = format!("lean+udp://{}", relay.address);
        let client = connect(&address).await.with_timeout(PATIENCE);
        let mut calls = JoinSet::new();
        for task in 0..TASKS {
            let client = client.clone();
            calls.spawn(async move {
                for number in 0..CALLS {
                    let size = match number % 6 {
                        0 => 100_000,
                        3 => 9000,
                        _ => 100 * number,
                    };
                    let sent = vec![(task * CALLS + number) as u8; size];
                    assert!(call(&client, ECHO, &sent).await.unwrap() == sent);
                }
            });
        }
        in_time(calls.join_all()).await;
        assert!(relay.lost() > 0);
        assert_eq!(server.counters().calls, (TASKS * CALLS) as u64, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_and_tasks_share_a_port() {
    for kind in KINDS {
        let (server, _) = serve(kind, at_port()).await;
        let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut callers = JoinSet::new();
        for address in every_way(server.addresses()) {
            let sizes: &[usize] = match address.starts_with("lean") {
                true => &[0, 4, 1400, 1500, 70_000, 3_000_000],
                false => &[0, 4, 1400, 60_000],
            };
            for _ in 0..4 {
                let (address, large) = (address.clone(), large.clone());
                callers.spawn(async move {
                    let client = connect(&address).await.with_timeout(PATIENCE);
                    for size in sizes {
                        let echoed = call(&client, ECHO, &large[..*size]).await.unwrap();
                        assert!(echoed == large[..*size], "{kind:?}, {address}: {size}");
                    }
                });
            }
            let large = large.clone();
            callers.spawn_blocking(move || {
                let client = connect_blocking(&address).with_timeout(PATIENCE);
                for size in sizes {
                    let echoed = obliging::call_blocking(&client, ECHO, &large[..*size]).unwrap();
                    assert!(echoed == large[..*size], "{kind:?}, {address}: {size}");
                }
            });
        }
        in_time(callers.join_all()).await;
        assert_eq!(server.counters().panics, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_ends_where_it_waits() {
    for kind in [Kind::Tasks, Kind::InOrder] {
        let (server, held) = serve(kind, at_port()).await;
        let client = connect(&format!("lean+udp://{}", place(&server))).await;
        let gate = fresh_gate();
        let (mut first, mut others) = (JoinSet::new(), JoinSet::new());
        for count in 1..=3 {
            let client = client.clone();
            let calls = match count {
                1 => &mut first,
                _ => &mut others,
            };
            calls.spawn(async move { hold(&client, gate).await });
            eventually("the call", || server.counters().calls == count).await;
        }
        others.shutdown().await;
        // The server hears that they are given up before it hears of this one, and only then of the first.
        in_time(call(&client, 0, b"")).await.unwrap();
        first.shutdown().await;
        // Those that wait for their turn are never begun.
        let begun = match kind {
            Kind::InOrder => 1,
            Kind::Functions | Kind::Tasks => 3,
        };
        eventually("they end", || held.over.load(Ordering::SeqCst) == begun).await;
        assert_eq!(
            in_time(call(&client, ECHO, b"four")).await.unwrap(),
            b"four",
            "{kind:?}"
        );
        assert_eq!(held.over.load(Ordering::SeqCst), begun, "{kind:?}");
        assert_eq!(held.to_the_end.load(Ordering::SeqCst), 0, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_carried_out_one_after_the_other_where_that_is_asked_for() {
    for kind in [Kind::Tasks, Kind::InOrder] {
        let (server, _) = serve(kind, at_port()).await;
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            let (gate, before) = (fresh_gate(), server.counters().calls);
            let held = tokio::spawn({
                let client = client.clone();
                async move { hold(&client, gate).await }
            });
            eventually("the first", || server.counters().calls == before + 1).await;
            let other = tokio::spawn({
                let client = client.clone();
                async move { call(&client, ECHO, b"four").await }
            });
            eventually("the second", || server.counters().calls == before + 2).await;
            match kind {
                Kind::Tasks => drop(in_time(other).await.unwrap().unwrap()),
                Kind::InOrder | Kind::Functions => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    assert!(!other.is_finished(), "{address}: it overtook the first");
                    open(gate);
                    in_time(other).await.unwrap().unwrap();
                }
            }
            open(gate);
            in_time(held).await.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_down_answers_what_was_begun_to_the_last_packet() {
    /// Returns a lot when the gate is open.
    struct Large(u32);
    impl AsyncService for Large {
        fn program(&self) -> u32 {
            PROGRAM
        }

        fn version(&self) -> u32 {
            VERSION
        }

        fn interface(&self) -> Option<Arc<tenon::lean::Interface>> {
            Some(Arc::new(obliging::interface()))
        }

        async fn call(&self, call: Call) -> Result<Answer, Refusal> {
            while !crate::common::gate::is_open(self.0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            call.answer_lean(|out| {
                out.room(2_000_000).fill(7);
                Ok(())
            })
        }
    }

    let gate = fresh_gate();
    let builder = at_port().service(Large(gate));
    let server = Arc::new(builder.start().await.unwrap());
    let client = connect(&format!("lean+udp://{}", place(&server))).await;
    let client = client.with_timeout(PATIENCE);
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let client = client.clone();
        calls.spawn(async move { call(&client, ECHO, b"").await });
    }
    eventually("the calls", || server.counters().calls == 4).await;
    let stopping = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.shutdown(PATIENCE).await }
    });
    // It begins nothing any more, and waits for the calls.
    in_time(async { while call(&client, 0, b"").await.is_ok() {} }).await;
    assert!(!stopping.is_finished());
    open(gate);
    for answered in in_time(calls.join_all()).await {
        assert!(answered.unwrap() == vec![7; 2_000_000]);
    }
    in_time(stopping).await.unwrap();
    let late = client.with_timeout(Duration::from_millis(50));
    assert!(in_time(call(&late, ECHO, b"")).await.is_err());
    UdpSocket::bind(place(&server)).expect("the port is free again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_down_waits_no_longer_than_it_is_told() {
    for kind in [Kind::Tasks, Kind::InOrder] {
        let (server, _) = serve(kind, at_port()).await;
        let client = connect(&format!("lean+udp://{}", place(&server))).await;
        let gate = fresh_gate();
        let held = tokio::spawn(async move { hold(&client, gate).await });
        eventually("the call", || server.counters().calls == 1).await;
        in_time(server.shutdown(Duration::from_millis(20))).await;
        let error = in_time(held).await.unwrap().unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
        assert!(error.may_have_executed());
        open(gate);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_dropped() {
    for kind in KINDS {
        let (server, _) = serve(kind, at_port()).await;
        let caller = Caller::of(&server).await;
        for junk in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0x7f; 40], &[0; 3]] {
            caller.0.send(junk).unwrap();
        }
        let lean = connect(&format!("lean+udp://{}", place(&server))).await;
        assert_eq!(
            in_time(call(&lean, ECHO, b"four")).await.unwrap(),
            b"four",
            "{kind:?}"
        );
        caller.send(1, ECHO, &[7]);
        assert_eq!(caller.receive().await, success(1, &[7]), "{kind:?}");
    }
}

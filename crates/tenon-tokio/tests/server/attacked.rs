//! Servers of tasks whose peers write without end, and whose run time ends, or whose owner leaves them, while calls
//! are under way.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::gate::{fresh_gate, hold as hold_thread, open};
use crate::common::obliging::{
    ECHO, HOLD, PATIENCE, PROGRAM, Patient, VERSION, call, connect, eventually, every_way, hold,
    in_time, interface, listening_in_tasks, serving_at, warm_up,
};
use crate::common::place::fresh_path;
use crate::common::raw::Raw;
use crate::common::serving::Serving;
use tenon::lean::Interface;
use tenon::{CallError, Refusal, ServerLimits};
use tenon_tokio::Client;
use tokio::runtime::{Builder, Handle};
use tokio::task::{JoinSet, spawn_blocking};

/// Lets other tasks have their turn, and has the next one behind theirs: nothing else is waited for, as by tokio's own.
async fn next_turn() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How often another task had its turn since a call of HOLD was over.
const TURNS: u32 = 2;

/// Serves HOLD and TURNS where they are received, beside a task that counts its turns, in one thread.
fn serve_in_one_thread(path: &Path) -> thread::JoinHandle<()> {
    let (turns, before) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let body = move |procedure, arguments: &[u8]| {
        let now = || counted.load(Ordering::SeqCst);
        if procedure == TURNS {
            return Ok((now() - before.load(Ordering::SeqCst))
                .to_be_bytes()
                .to_vec());
        }
        hold_thread(u32::from_be_bytes(arguments.try_into().unwrap()));
        before.store(now(), Ordering::SeqCst);
        Ok(arguments.to_vec())
    };
    let limits = ServerLimits {
        ring_bytes: 4 << 20,
        ..ServerLimits::default()
    };
    let builder = serving_at(&format!("shm://{}", path.display()), limits, body);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(builder.start());
    let server = server.unwrap();
    thread::spawn(move || {
        let counting = runtime.spawn(async move {
            while server.counters().connections_accepted == 0
                || server.counters().connections_open > 0
            {
                turns.fetch_add(1, Ordering::SeqCst);
                next_turn().await;
            }
        });
        runtime.block_on(in_time(counting)).unwrap();
    })
}

#[test]
fn a_peer_whose_bytes_never_end_leaves_other_tasks_their_turn() {
    let (path, gate) = (fresh_path(), fresh_gate());
    let serving = serve_in_one_thread(&path);
    let mut peer = Raw::connect(&format!("shm://{}", path.display()));
    let service = peer.bind(interface());
    peer.call(service, HOLD, 1, &gate.to_be_bytes());
    peer.cancel_nothing(2 << 20);
    peer.call(service, TURNS as u16, 2, b"");
    peer.send();
    open(gate);
    let turns = peer.result(2);
    let turns = u32::from_be_bytes(turns[..4].try_into().unwrap());
    assert!(turns > 0, "2 MiB are received in one turn");
    drop(peer);
    serving.join().unwrap();
}

/// Bytes of an answer that takes a slow peer some time.
const LARGE: usize = 40 * (64 << 10);

/// Reads a large answer, up to `at_a_time` and then nothing for a moment, until all is there or the server has had
/// enough; says whether it has.
async fn is_closed_for(at_a_time: usize, limit: Duration) -> bool {
    let address = format!("unix://{}", fresh_path().display());
    let limits = ServerLimits {
        send_timeout: Some(limit),
        idle_timeout: Some(limit.saturating_mul(1000)),
        ..ServerLimits::default()
    };
    let builder = serving_at(&address, limits, |_, _| Ok(vec![7; LARGE]));
    let server = Arc::new(builder.start().await.unwrap());
    let seen = Arc::clone(&server);
    let is_closed = move || seen.counters().slow_readers > 0;
    let reading = spawn_blocking(move || {
        let mut peer = Raw::connect(&format!("lean+{address}"));
        let service = peer.bind(interface());
        peer.call(service, ECHO, 1, b"");
        peer.send();
        let (mut room, mut left, until) = (vec![0; at_a_time], LARGE, Instant::now() + PATIENCE);
        while left > 0 && !is_closed() {
            thread::sleep(Duration::from_millis(100));
            let read = peer.stream.recv_until(&mut room, until).unwrap();
            left = left.saturating_sub(read);
        }
        is_closed()
    });
    in_time(reading).await.unwrap()
}

#[tokio::test]
async fn a_peer_has_a_time_for_each_part_of_an_answer() {
    let (limit, begin) = (Duration::from_secs(3), Instant::now());
    assert!(!is_closed_for(64 << 10, limit).await);
    assert!(begin.elapsed() > limit, "all of it takes longer");
}

#[tokio::test]
async fn times_may_be_longer_than_any() {
    assert!(!is_closed_for(64 << 10, Duration::MAX).await);
}

#[tokio::test]
async fn a_peer_that_reads_a_byte_now_and_then_is_closed_in_the_end() {
    assert!(is_closed_for(1, Duration::from_millis(300)).await);
}

/// A call of ONC RPC with so many bytes of arguments, as a record.
fn large_call(bytes: usize) -> Vec<u8> {
    let mark = 1 << 31 | (40 + bytes) as u32;
    let head = [mark, 1, 0, 2, PROGRAM, VERSION, ECHO.into(), 0, 0, 0, 0];
    let head = head.iter().flat_map(|word| word.to_be_bytes());
    head.chain((0..bytes).map(|_| 1)).collect()
}

/// Sends parts of a large call, and nothing for a moment behind each; says whether the server has had enough, or
/// else answers.
async fn is_closed_to(parts: Vec<Vec<u8>>, limit: Duration) -> bool {
    let path = fresh_path();
    let limits = ServerLimits {
        receive_timeout: Some(limit),
        ..ServerLimits::default()
    };
    let address = format!("unix://{}", path.display());
    let builder = serving_at(&address, limits, |_, arguments| Ok(arguments.to_vec()));
    let server = builder.start().await.unwrap();
    let sending = spawn_blocking(move || {
        let mut peer = UnixStream::connect(path).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        for part in parts {
            if peer.write_all(&part).is_err() {
                return true;
            }
            thread::sleep(Duration::from_millis(40));
        }
        peer.read_exact(&mut [0; 28]).is_err()
    });
    let is_closed = in_time(sending).await.unwrap();
    assert_eq!(server.counters().slow_senders, is_closed.into());
    is_closed
}

#[tokio::test]
async fn half_of_a_large_call_is_not_waited_for_long() {
    let (limit, half) = (
        Duration::from_millis(300),
        large_call(LARGE)[..100 << 10].to_vec(),
    );
    assert!(is_closed_to(vec![half.clone()], limit).await);
    let dripping = [half].into_iter().chain((0..1000).map(|_| vec![1]));
    assert!(is_closed_to(dripping.collect(), limit).await);
}

#[tokio::test]
async fn a_large_call_may_take_longer_if_it_goes_on() {
    let (limit, begin) = (Duration::from_secs(3), Instant::now());
    let parts = large_call(LARGE);
    let parts = parts.chunks(24 << 10).map(<[u8]>::to_vec);
    assert!(!is_closed_to(parts.collect(), limit).await);
    assert!(begin.elapsed() > limit, "all of it takes longer");
}

#[tokio::test]
async fn others_have_their_turn_between_connections_that_are_taken_in() {
    const MANY: u64 = 100;
    let path = fresh_path();
    let builder = tenon_tokio::Server::builder()
        .listen(&format!("unix://{}", path.display()))
        .unwrap();
    let server = builder.start().await.unwrap();
    // All of them wait before the server has its turn.
    let connect = |_| UnixStream::connect(&path).unwrap();
    let clients: Vec<_> = (0..MANY).map(connect).collect();
    let counting = tokio::spawn(async move {
        let mut turns = 0;
        loop {
            match server.counters().connections_accepted {
                0 => {}
                MANY => return turns,
                _ => turns += 1,
            }
            next_turn().await;
        }
    });
    let turns = in_time(counting).await.unwrap();
    assert!(turns > 0, "they were taken in at once");
    drop(clients);
}

/// Returns once the run time that it is in takes no task any more: one that would go on for ever is over at once.
fn wait_for_the_end_of_the_run_time() {
    let runtime = Handle::current();
    let deadline = Instant::now() + PATIENCE;
    while !runtime.spawn(std::future::pending::<()>()).is_finished() {
        assert!(Instant::now() < deadline, "the run time does not end");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_time_ends_that_has_yet_to_begin_a_call() {
    let other = Interface::unknown(0x2000_0043, 1);
    let (begun, has_begun) = mpsc::channel();
    let body = move |_, _: &[u8]| {
        begun.send(()).unwrap();
        wait_for_the_end_of_the_run_time();
        Err(Refusal::ProcedureUnavailable)
    };
    let inline = Serving {
        interface: other.clone(),
        body,
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let builder = listening_in_tasks()
        .sync_service(inline)
        .service(Patient::default());
    let server = runtime.block_on(builder.start()).unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    let mut peer = Raw::connect(&address);
    let (first, second) = (peer.bind(other), peer.bind(interface()));
    peer.call(first, 1, 1, b"");
    peer.call(second, ECHO, 2, b"four");
    peer.send();
    has_begun.recv_timeout(PATIENCE).unwrap();
    let (ended, has_ended) = mpsc::channel();
    thread::spawn(move || {
        drop(runtime);
        ended.send(()).unwrap();
    });
    let hangs = has_ended.recv_timeout(2 * PATIENCE).is_err();
    assert!(!hangs, "the call that was begun last waits for itself");
}

/// Calls that wait take all the room there is, and keep nobody from being answered who needs none.
#[tokio::test]
async fn what_needs_no_room_is_answered_though_there_is_none() {
    let other = Interface::unknown(0x2000_0043, 1);
    let inline = Serving {
        interface: other.clone(),
        body: |_, arguments: &[u8]| Ok(arguments.to_vec()),
    };
    let limits = ServerLimits {
        calls: 1,
        ..ServerLimits::default()
    };
    let builder = listening_in_tasks().limits(limits).sync_service(inline);
    let server = builder.service(Patient::default()).start().await.unwrap();
    let gate = fresh_gate();
    let address = format!("lean+{}", server.addresses()[0]);
    let quick = Client::connect(&address, other.program, other.version).await;
    warm_up(
        &server,
        &quick.unwrap().with_interface(Arc::new(other.clone())),
    )
    .await;
    let begun = server.counters().calls;
    let first = connect(&server.addresses()[0].to_string()).await;
    let held = tokio::spawn({
        let client = first.clone().with_timeout(PATIENCE);
        async move { hold(&client, gate).await }
    });
    eventually("it is held", || server.counters().calls > begun).await;
    for address in every_way(server.addresses()) {
        let client = connect(&address).await.with_timeout(PATIENCE);
        in_time(call(&client, 0, b"")).await.unwrap();
    }
    let address = format!("lean+{}", server.addresses()[1]);
    let answered = spawn_blocking(move || {
        let mut peer = Raw::connect(&address);
        let (inline, tasks) = (peer.bind(other), peer.bind(interface()));
        peer.call(inline, ECHO, 1, b"in front");
        peer.call(tasks, ECHO, 2, b"held");
        peer.call(inline, ECHO, 3, b"behind");
        peer.send();
        let first = peer.result(1);
        open(gate);
        (first, peer.result(3))
    });
    let (first, behind) = in_time(answered).await.unwrap();
    assert_eq!(
        (&first[..], &behind[..]),
        (&b"in front"[..], &b"behind"[..])
    );
    in_time(held).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_is_dropped_ends_calls_that_never_do() {
    let builder = listening_in_tasks().service(Patient::default());
    let server = builder.start().await.unwrap();
    let gate = fresh_gate();
    let mut calls = JoinSet::new();
    for address in every_way(server.addresses()) {
        let client = connect(&address).await.with_timeout(PATIENCE);
        calls.spawn(async move { hold(&client, gate).await });
    }
    eventually("the calls arrive", || server.counters().calls == 4).await;
    drop(server);
    for ended in in_time(calls.join_all()).await {
        let error = ended.unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
    }
}

/// The numbers of calls have come round while one is still carried out: the second call of its number waits for it.
#[tokio::test]
async fn a_number_that_is_still_in_use_waits_for_its_first_call() {
    let (path, gate) = (fresh_path(), fresh_gate());
    let builder = tenon_tokio::Server::builder();
    let builder = builder
        .listen(&format!("unix://{}", path.display()))
        .unwrap();
    let server = builder.service(Patient::default()).start().await.unwrap();
    let calling = spawn_blocking(move || {
        let mut peer = Raw::connect(&format!("lean+unix://{}", path.display()));
        let service = peer.bind(interface());
        peer.call(service, HOLD, 1, &gate.to_be_bytes());
        // As far ahead as a number may be.
        for id in [1 + i32::MAX as u32, u32::MAX] {
            peer.call(service, ECHO, id, b"between");
        }
        peer.call(service, ECHO, 1, b"again");
        peer.send();
        assert_eq!(peer.result(u32::MAX), b"between");
        open(gate);
        assert_eq!(peer.result(1), gate.to_be_bytes());
        assert_eq!(peer.result(1), b"again");
    });
    in_time(calling).await.unwrap();
    drop(server);
}

//! Memory that is written over while calls go through it: by a client, by a server, and by somebody who has the
//! memory of a client and a server that are both honest. Who has it can say anything, as a peer can over any
//! socket: what comes may be wrong. But nobody crashes or waits beyond his time, others are not hurt, and what is
//! decoded does not change any more.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, eventually, fresh_path, limited};
use crate::common::interloper::Interloper;
use crate::common::lean_caller::{ECHO, LeanObliging, Memory, interface};
use crate::common::serving::{Serving, rest};
use tenon::{CallError, ChannelOptions, Client, Server, ServerBuilder, Service, Waiting};
use tenon_shm::AtomicU64;

/// For calls that may have no chance.
const SHORT: Duration = Duration::from_millis(100);

fn builder(address: &str) -> ServerBuilder {
    let builder = Server::builder().listen(address).unwrap();
    builder.service(LeanObliging)
}

fn fresh_address() -> String {
    format!("shm://{}", fresh_path().display())
}

fn client(address: &str) -> Client {
    let client = Client::connect(address, PROGRAM, VERSION).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(PATIENCE)
}

fn echo(client: &Client, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    echo_and(client, bytes, || ())
}

/// Does something else before it looks at the result.
fn echo_and(client: &Client, bytes: &[u8], act: impl Fn()) -> Result<Vec<u8>, CallError> {
    client.lean().call(
        ECHO.into(),
        |out| {
            out.room(bytes.len()).copy_from_slice(bytes);
            Ok(())
        },
        |input| {
            act();
            Ok(rest(input).to_vec())
        },
    )
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + salt) as u8).collect()
}

/// Where in a segment rings begin, and where the two blocks in front of them have what is scribbled over, in words:
/// see `docs/shm.md`.
const RINGS: usize = 512;
const SERVER: usize = 0;
const CLIENT: usize = 32;
const ENDED: usize = 16;
const RECEIVER_SLEEPS: usize = 17;
const SENDER_SLEEPS: usize = 18;

/// Which ring is which.
const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

/// Words of a cell, of which the first is the mark.
const CELL: usize = 8;

/// Sizes that one cell carries, that many do, that lie in the annex, and that are larger than the ring.
const SIZES: [usize; 5] = [10, 400, 3000, 60_000, 700_000];

/// Writes over all bytes of messages in one of the two rings, which are as large as each other, but over no mark of
/// a cell.
fn write_over_bytes(memory: &[AtomicU64], ring: usize) {
    let rings = &memory[RINGS..];
    let ring = rings.chunks(rings.len() / 2).nth(ring).unwrap();
    for word in ring.chunks(CELL).flat_map(|line| &line[1..]) {
        word.store(0xdead_dead_dead_dead, Ordering::Relaxed);
    }
}

/// What a client decodes is its own.
#[test]
fn a_result_does_not_change_while_it_is_looked_at() {
    let address = fresh_address();
    let _server = builder(&address).start().unwrap();
    let interloper = Interloper::default();
    let client = client(&interloper.before(&address, fresh_path()));
    for size in SIZES {
        let sent = pattern(size, 3);
        let write_over = || write_over_bytes(&interloper.memory().unwrap(), TO_CLIENT);
        let echoed = echo_and(&client, &sent, write_over).unwrap();
        assert!(echoed == sent, "{size} bytes");
    }
    assert_eq!(client.channel().counters().connections, 1);
}

/// Echoes its arguments, after everything was written over by which they came.
fn written_over(interloper: Interloper) -> impl Service {
    let body = move |_: u32, arguments: &[u8]| {
        write_over_bytes(&interloper.memory().unwrap(), TO_SERVER);
        Ok(arguments.to_vec())
    };
    let interface = interface();
    Serving { interface, body }
}

/// So is what a server does.
#[test]
fn arguments_do_not_change_while_they_are_looked_at() {
    let interloper = Interloper::default();
    for on_workers in [false, true] {
        let address = fresh_address();
        let service = written_over(interloper.clone());
        let builder = Server::builder().listen(&address).unwrap();
        let builder = match on_workers {
            false => builder.service(service),
            true => builder.service(service),
        };
        let _server = builder.start().unwrap();
        let client = client(&interloper.before(&address, fresh_path()));
        for size in SIZES {
            let sent = pattern(size, 5);
            assert!(echo(&client, &sent).unwrap() == sent, "{size} bytes");
        }
        assert_eq!(client.channel().counters().connections, 1);
    }
}

/// What came of calls whose memory somebody scribbled over.
#[derive(Debug, Default)]
struct Outcomes {
    right: usize,
    /// Possible only where bytes of messages, or what says where they are, were hit.
    wrong: usize,
    failed: usize,
}

/// Calls until there is `enough`, while `spoil` writes once more into the memory behind its last connection, again
/// and again. A caller of the same server over memory of its own gets its answers.
fn call_while(
    spoil: impl Fn(&[AtomicU64], u64) + Sync,
    enough: impl Fn(&Outcomes) -> bool,
) -> Outcomes {
    let address = fresh_address();
    let limits = limited(|limits| limits.send_timeout = Some(SHORT));
    let server = builder(&address).limits(limits).start().unwrap();
    let interloper = Interloper::default();
    let honest = client(&address);
    let caller = client(&interloper.before(&address, fresh_path())).with_timeout(SHORT);
    let stop = AtomicBool::new(false);
    let mut outcomes = Outcomes::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 1_u64;
            while !stop.load(Ordering::Relaxed) {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                if let Some(memory) = interloper.memory() {
                    spoil(&memory, random);
                }
            }
        });
        let begin = Instant::now();
        for number in 0.. {
            if number >= 100 && enough(&outcomes) || begin.elapsed() > PATIENCE {
                break;
            }
            let sent = pattern(SIZES[number % 4], number);
            let call = Instant::now();
            match echo(&caller, &sent) {
                Ok(echoed) if echoed == sent => outcomes.right += 1,
                Ok(_) => outcomes.wrong += 1,
                Err(_) => outcomes.failed += 1,
            }
            assert!(call.elapsed() < PATIENCE, "it hangs");
            assert!(echo(&honest, &sent).unwrap() == sent);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(enough(&outcomes), "{outcomes:?}");
    assert_eq!(honest.channel().counters().connections, 1);
    assert_eq!(server.counters().panics, 0);
    outcomes
}

/// Words that say who sleeps, and who has ended, hold up the call or end the connection.
#[test]
fn what_is_written_over_who_sleeps_or_has_ended_makes_no_answer_wrong() {
    const SLEEPERS: [usize; 2] = [RECEIVER_SLEEPS, SENDER_SLEEPS];
    let sleepers = |memory: &[AtomicU64], random: u64| {
        // Not so often that nobody who sleeps is ever woken.
        thread::sleep(Duration::from_micros(100));
        let at = [SERVER, CLIENT][random as usize >> 40 & 1] + SLEEPERS[random as usize >> 41 & 1];
        memory[at].store(random >> 33 & 1, Ordering::Relaxed);
    };
    let outcomes = call_while(sleepers, |outcomes| outcomes.right > 10);
    assert_eq!(outcomes.wrong, 0, "{outcomes:?}");
    let ended = |memory: &[AtomicU64], random: u64| {
        let at = [SERVER, CLIENT][random as usize >> 40 & 1] + ENDED;
        // Not so often that nobody gets as far as to call.
        thread::sleep(Duration::from_micros(300));
        memory[at].store(random >> 33 & 3, Ordering::Relaxed);
    };
    let outcomes = call_while(ended, |outcomes| {
        outcomes.right > 10 && outcomes.failed > 10
    });
    assert_eq!(outcomes.wrong, 0, "{outcomes:?}");
}

/// Anything anywhere: answers of the server's, other answers, or errors, and all of them in time.
#[test]
fn whatever_is_written_anywhere_calls_end() {
    let anything = |memory: &[AtomicU64], random: u64| {
        // Not so often that nobody gets as far as to call.
        thread::sleep(Duration::from_micros(100));
        let at = (random >> 33) as usize % memory.len();
        // What is in front of the rings, and their first cells, are hit as often as all the rest.
        let at = match random >> 20 & 3 {
            0 => at % 64,
            1 => RINGS + at % 256,
            _ => at,
        };
        memory[at].store(random >> (random % 64), Ordering::Relaxed);
    };
    call_while(anything, |outcomes| {
        outcomes.right > 10 && outcomes.failed > 10
    });
}

/// An end that sleeps is woken by the end of a peer, too, that was killed when it had cleared the word that says so and had
/// not rung yet.
#[test]
fn a_peer_that_dies_before_it_rings_is_missed() {
    let address = fresh_address();
    let server = builder(&address).start().unwrap();
    for _ in 0..20 {
        let dying = Memory::connect(&address);
        eventually("it is taken", || server.counters().connections_open == 1);
        dying.joined.end.memory()[SERVER + RECEIVER_SLEEPS].store(0, Ordering::SeqCst);
        let half = b"\x7ftenon\r\n\0\x01";
        assert_eq!(dying.joined.end.send(half, || ()).unwrap(), half.len());
        drop(dying);
        eventually("it is missed", || server.counters().connections_open == 0);
    }
    drop(server);

    let path = address.strip_prefix("shm://").unwrap();
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (socket, _) = listener.accept().unwrap();
            let sizes = tenon_shm::Sizes::new(1 << 16, 1 << 16).unwrap();
            let joined = tenon_shm::invite(socket.as_fd(), sizes).unwrap();
            let sleeps = &joined.end.memory()[CLIENT + RECEIVER_SLEEPS];
            eventually("the client sleeps", || sleeps.load(Ordering::SeqCst) != 0);
            sleeps.store(0, Ordering::SeqCst);
        });
        let options = ChannelOptions::default().waiting(Waiting::Block);
        let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
        let client = client.with_interface(Arc::new(interface()));
        let error = echo(&client.with_timeout(PATIENCE), b"anybody there").unwrap_err();
        let is_told = matches!(error, CallError::Disconnected { .. });
        assert!(is_told, "{error:?}");
    });
    std::fs::remove_file(path).unwrap();
}

/// Writes anything anywhere in the memory until it is to stop.
fn scribble(memory: &[AtomicU64], seed: u64, stop: &AtomicBool) {
    let mut random = seed;
    while !stop.load(Ordering::Relaxed) {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = (random >> 33) as usize % memory.len();
        // What is in front of the rings is hit as often as all the rest.
        let at = match random & 1 {
            0 => at % 64,
            _ => at,
        };
        memory[at].store(random >> (random % 64), Ordering::Relaxed);
    }
}

#[test]
fn clients_that_scribble_hurt_nobody_but_themselves() {
    let address = fresh_address();
    let limits = limited(|limits| limits.send_timeout = Some(Duration::from_millis(200)));
    let server = builder(&address).limits(limits).start().unwrap();
    let stop = AtomicBool::new(false);
    let honest = client(&address);
    thread::scope(|scope| {
        for seed in 1..4 {
            let (address, stop) = (&address, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Memory { socket, joined } = Memory::connect(address);
                    let enough = AtomicBool::new(false);
                    thread::scope(|inner| {
                        inner.spawn(|| scribble(joined.end.memory(), seed, &enough));
                        let mut room = vec![0; 1 << 16];
                        for round in 0..50_u8 {
                            // Wakes up the server each time, and some bytes are right.
                            let _ = std::io::Write::write(&mut &socket, &[round]);
                            let _ = joined.end.send(b"\x7ftenon\r\n\0\x01\0\x01", || ());
                            let _ = joined.end.receive(&mut room, || ());
                        }
                        enough.store(true, Ordering::Relaxed);
                    });
                }
            });
        }
        for number in 0..400 {
            let bytes = pattern(number * 11, number);
            assert_eq!(echo(&honest, &bytes).unwrap(), bytes);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(honest.channel().counters().connections, 1);
    let begin = Instant::now();
    drop(honest);
    while server.counters().connections_open > 0 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", server.counters());
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server that does nothing else: its client never waits beyond its time.
#[test]
fn a_server_that_only_scribbles_is_survived() {
    for seed in 1..9 {
        let path = fresh_path();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let scribbler = scope.spawn(|| {
                let (socket, _) = listener.accept().unwrap();
                let sizes = tenon_shm::Sizes::new(1 << 16, 1 << 16).unwrap();
                let joined = tenon_shm::invite(socket.as_fd(), sizes).unwrap();
                scribble(joined.end.memory(), seed, &stop);
            });
            let address = format!("shm://{}", path.display());
            let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
            let client = client
                .with_interface(Arc::new(interface()))
                .with_timeout(SHORT);
            for size in [10, 100_000] {
                let begin = Instant::now();
                echo(&client, &pattern(size, 0)).unwrap_err();
                assert!(begin.elapsed() < PATIENCE);
            }
            stop.store(true, Ordering::Relaxed);
            scribbler.join().unwrap();
        });
        std::fs::remove_file(&path).unwrap();
    }
}

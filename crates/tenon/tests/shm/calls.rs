//! Calls over shared memory: what differs from sockets, and peers that do with the memory what they like.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, eventually, fresh_path, limited};
use crate::common::lean_caller::{ECHO, LeanCaller, LeanObliging, Memory, SLEEP, interface};
use tenon::{
    CallError, ChannelOptions, Client, LeanInput, Server, ServerBuilder, ServerLimits, Waiting,
};
use tenon_shm::AtomicU64;

/// For calls that have no chance.
const SHORT: Duration = Duration::from_millis(100);

fn builder(address: &str) -> ServerBuilder {
    Server::builder()
        .listen(address)
        .unwrap()
        .service(LeanObliging)
}

fn fresh_address() -> String {
    format!("shm://{}", fresh_path().display())
}

fn client(address: &str, waiting: Waiting) -> Client {
    let options = ChannelOptions::default().waiting(waiting);
    let client = Client::connect_with(address, PROGRAM, VERSION, options).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(PATIENCE)
}

fn echo(client: &Client, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    client.lean().call(
        ECHO.into(),
        |out| {
            out.room(bytes.len()).copy_from_slice(bytes);
            Ok(())
        },
        |input| match input {
            LeanInput::Native(input) => Ok(input.take(input.left())?.to_vec()),
            LeanInput::Swapped(input) => Ok(input.take(input.left())?.to_vec()),
        },
    )
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + salt) as u8).collect()
}

/// All pairs of ways to wait, of a client and a server.
fn ways() -> impl Iterator<Item = (Waiting, Waiting)> {
    let all = Waiting::ALL.map(|(_, waiting)| waiting);
    all.into_iter()
        .flat_map(move |client| all.map(|server| (client, server)))
}

#[test]
fn every_size_is_answered_however_both_wait() {
    for (at_client, at_server) in ways() {
        let address = fresh_address();
        let _server = builder(&address).waiting(at_server).start().unwrap();
        let client = client(&address, at_client);
        for size in [0, 1, 7, 8, 100, 8191, 65_536, 262_144, 262_145, 1_000_000] {
            let bytes = pattern(size, 1);
            let back = echo(&client, &bytes).unwrap();
            assert!(back == bytes, "{at_client} {at_server}: {size} bytes");
        }
    }
}

#[test]
fn rings_have_the_bytes_that_the_server_says() {
    for (said, bytes) in [(0, 4096), (10_000, 16_384), (1 << 20, 1 << 20)] {
        let (address, at) = (fresh_address(), Waiting::Adaptive);
        let limits = ServerLimits {
            ring_bytes: said,
            ..ServerLimits::default()
        };
        let _server = builder(&address).limits(limits).start().unwrap();
        let socket = UnixStream::connect(address.strip_prefix("shm://").unwrap()).unwrap();
        let joined = tenon_shm::join(socket.as_fd(), Instant::now() + PATIENCE).unwrap();
        let segment = size_of_val(&**joined.end.memory());
        assert_eq!(segment, 4096 + 2 * bytes, "{said}");
        for size in [0, 100, bytes, 3 * bytes + 1] {
            let message = pattern(size, said);
            assert!(echo(&client(&address, at), &message).unwrap() == message);
        }
    }
}

/// The server's connection is parked meanwhile, and the client's looked at before it is used again.
#[test]
fn a_connection_that_rested_goes_on() {
    for (_, waiting) in Waiting::ALL {
        let address = fresh_address();
        let server = builder(&address).waiting(waiting).start().unwrap();
        let client = client(&address, waiting);
        for round in 0..3 {
            let bytes = pattern(3000, round);
            assert_eq!(echo(&client, &bytes).unwrap(), bytes);
            thread::sleep(Duration::from_millis(150));
        }
        assert_eq!(client.channel().counters().connections, 1);
        assert_eq!(server.counters().connections_accepted, 1);
    }
}

#[test]
fn many_threads_and_connections_get_their_own_answers() {
    let address = fresh_address();
    let _server = builder(&address).start().unwrap();
    thread::scope(|scope| {
        for connection in 0..4 {
            let client = client(&address, Waiting::default());
            for caller in 0..3 {
                let client = client.clone();
                scope.spawn(move || {
                    for call in 0..200 {
                        let bytes = pattern(call * 97 % 5000, connection * 10 + caller);
                        assert_eq!(echo(&client, &bytes).unwrap(), bytes);
                    }
                });
            }
        }
    });
}

#[test]
fn one_thread_serves_many_clients_however_all_wait() {
    for (at_client, at_server) in ways() {
        let address = fresh_address();
        let one_thread = ServerLimits {
            threads: 1,
            ..ServerLimits::default()
        };
        let server = builder(&address).limits(one_thread).waiting(at_server);
        let server = server.start().unwrap();
        thread::scope(|scope| {
            for salt in 0..4 {
                let client = client(&address, at_client);
                scope.spawn(move || {
                    for call in 0..20 {
                        let bytes = pattern(call * 997, salt);
                        assert_eq!(echo(&client, &bytes).unwrap(), bytes);
                    }
                });
            }
        });
        assert_eq!(server.counters().connections_accepted, 4);
    }
}

#[test]
fn a_server_that_comes_again_is_found_again() {
    let address = fresh_address();
    let server = builder(&address).start().unwrap();
    let client = client(&address, Waiting::Spin);
    echo(&client, b"first").unwrap();
    drop(server);
    echo(&client.with_timeout(SHORT), b"nobody").unwrap_err();
    let _server = builder(&address).start().unwrap();
    let begin = Instant::now();
    while echo(&client, b"second").is_err() {
        assert!(begin.elapsed() < PATIENCE);
    }
    assert_eq!(client.channel().counters().connections, 2);
}

#[test]
fn a_server_that_stops_answers_what_it_has_begun() {
    let address = fresh_address();
    let server = Server::builder()
        .listen(&address)
        .unwrap()
        .service(LeanObliging)
        .start()
        .unwrap();
    let client = client(&address, Waiting::Block);
    let slow = client.lean().start(
        SLEEP.into(),
        |out| {
            out.put(100_u32);
            Ok(())
        },
        |_| Ok(()),
    );
    let slow = slow.unwrap();
    while server.counters().calls == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    server.shutdown(PATIENCE);
    slow.wait().unwrap();
    echo(&client.with_timeout(SHORT), b"").unwrap_err();
    assert!(!Path::new(address.strip_prefix("shm://").unwrap()).exists());
}

#[test]
fn only_the_users_that_may_connect() {
    let own = rustix_user();
    let address = fresh_address();
    let _server = builder(&address).users([own]).start().unwrap();
    echo(&client(&address, Waiting::default()), b"").unwrap();

    let address = fresh_address();
    let unix = format!("unix://{}", fresh_path().display());
    let builder = builder(&address).listen(&unix).unwrap();
    let _server = builder.users([own + 1]).start().unwrap();
    let refused = Client::connect(&address, PROGRAM, VERSION).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("may not connect"), "{refused}");
    let client = Client::connect(&unix, PROGRAM, VERSION).unwrap();
    let client = client.with_timeout(SHORT);
    client.onc().call(0, |_| Ok(()), |_| Ok(())).unwrap_err();
}

/// The number of the user of this process.
fn rustix_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn whoever_is_at_the_wrong_kind_of_socket_is_told() {
    let shm = fresh_address();
    let unix = format!("unix://{}", fresh_path().display());
    let server = builder(&shm).listen(&unix).unwrap().start().unwrap();
    let connect = |address: String| Client::connect(&address, PROGRAM, VERSION);

    let error = connect(unix.replace("unix:", "shm:")).unwrap_err();
    assert!(error.to_string().contains("unix://"), "{error}");

    // These reach something that says what it is, and give up when they hear it.
    for scheme in ["unix:", "lean+unix:"] {
        let wrong = connect(shm.replace("shm:", scheme)).unwrap();
        let error = wrong
            .with_timeout(PATIENCE)
            .onc()
            .call(0, |_| Ok(()), |_| Ok(()));
        error.unwrap_err();
    }
    echo(&client(&shm, Waiting::default()), b"still there").unwrap();
    let error = "onc+shm:///x".parse::<tenon::Address>().unwrap_err();
    assert!(error.to_string().contains("only the lean"), "{error}");
    drop(server);
}

/// Where in a segment what the tests spoil is, in words: see `docs/shm.md`.
const SERVER: usize = 0;
const CLIENT: usize = 32;
const RINGS: usize = 512;

/// In an end's block: cells and lines that it says it has emptied, what it does no more, and who sleeps.
const HEAD: usize = 0;
const ANNEX_HEAD: usize = 1;
const ENDED: usize = 16;
const SLEEPERS: usize = 17;

/// What the mark of the first cell says that carries so many bytes.
const fn first(length: u64) -> u64 {
    1 << 8 | length
}

/// What refers to bytes of the annex.
const REFERS: u64 = 255;

/// Words of the first cell of a ring that no honest peer writes.
const SPOILED_CELLS: [(&str, [u64; 2]); 9] = [
    ("nothing carried", [first(0), 0]),
    ("more than a cell carries", [first(57), 0]),
    ("far more than a cell carries", [first(254), 0]),
    ("the cell behind it", [first(8) + 256, 0]),
    ("a cell of another round", [first(8) + (1 << 40), 0]),
    ("anything", [u64::MAX, u64::MAX]),
    ("a reference to nothing", [first(REFERS), 0]),
    ("a reference to too much", [first(REFERS), 4097]),
    ("a reference to everything", [first(REFERS), u64::MAX]),
];

/// Words in front of the rings that a client spoils: none of them says that the other end has to give up.
const SPOILED_FRONTS: [(&str, usize, u64); 7] = [
    ("its head", CLIENT + HEAD, u64::MAX),
    ("its head in the annex", CLIENT + ANNEX_HEAD, 1 << 63),
    ("that it sleeps", CLIENT + SLEEPERS, u64::MAX),
    ("that its sender sleeps", CLIENT + SLEEPERS + 1, u64::MAX),
    ("the server's head", SERVER + HEAD, u64::MAX),
    ("that the server sleeps", SERVER + SLEEPERS, 0),
    ("that the server ends", SERVER + ENDED, u64::MAX),
];

fn store(memory: &[AtomicU64], at: usize, words: &[u64]) {
    // The mark last, as an honest sender does.
    for (word, value) in memory[at..].iter().zip(words).rev() {
        word.store(*value, Ordering::Release);
    }
}

/// Waits until the server has closed the connection.
fn is_closed(memory: &Memory, what: &str) {
    let mut room = [0; 64];
    loop {
        match std::io::Read::read(&mut &memory.socket, &mut room) {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            // A notifier.
            Ok(_) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[test]
fn cells_that_cannot_be_end_the_connection_and_no_other() {
    let address = fresh_address();
    let server = builder(&address).start().unwrap();
    let honest = client(&address, Waiting::default());
    for (number, (what, words)) in SPOILED_CELLS.iter().enumerate() {
        let hostile = Memory::connect(&address);
        store(hostile.joined.end.memory(), RINGS, words);
        hostile.ring();
        is_closed(&hostile, what);
        let bytes = pattern(3000 + number, number);
        assert_eq!(echo(&honest, &bytes).unwrap(), bytes, "{what}");
    }
    let counters = server.counters();
    assert_eq!(
        counters.broken_connections,
        SPOILED_CELLS.len() as u64,
        "{counters:?}"
    );
}

#[test]
fn what_is_spoiled_in_front_of_the_rings_hurts_nobody_else() {
    let address = fresh_address();
    let limits = limited(|limits| limits.send_timeout = Some(SHORT));
    let server = builder(&address).limits(limits).start().unwrap();
    let honest = client(&address, Waiting::default());
    let call = LeanCaller::first_call(interface(), ECHO, &pattern(40_000, 1));
    for (what, at, value) in SPOILED_FRONTS {
        let hostile = Memory::connect(&address);
        // Answers fill the ring: the server has to look how far the client is.
        for _ in 0..8 {
            store(hostile.joined.end.memory(), at, &[value]);
            // It may be this end that finds it out.
            let _ = hostile.joined.end.send(&call, || ());
            hostile.ring();
        }
        drop(hostile);
        let bytes = pattern(30_000, at);
        assert_eq!(echo(&honest, &bytes).unwrap(), bytes, "{what}");
    }
    assert_eq!(honest.channel().counters().connections, 1);
    eventually("only the honest one is left", || {
        server.counters().connections_open == 1
    });
}

/// A server that spoils the ring by which its client receives.
#[test]
fn a_server_that_spoils_its_cells_is_told_apart_from_one_that_answers() {
    for (what, words) in SPOILED_CELLS {
        let path = fresh_path();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        thread::scope(|scope| {
            let spoiler = scope.spawn(|| {
                let (socket, _) = listener.accept().unwrap();
                let sizes = tenon_shm::Sizes::new(1 << 16, 1 << 16).unwrap();
                let joined = tenon_shm::invite(socket.as_fd(), sizes).unwrap();
                store(joined.end.memory(), RINGS + (1 << 16) / 8, &words);
                // Wakes the client, and stays until it has gone.
                let mut room = [0; 64];
                let _ = std::io::Write::write(&mut &socket, &[1]);
                while std::io::Read::read(&mut &socket, &mut room).is_ok_and(|read| read > 0) {}
            });
            let address = format!("shm://{}", path.display());
            let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
            let client = client
                .with_interface(Arc::new(interface()))
                .with_timeout(PATIENCE);
            let error = echo(&client, b"anybody there").unwrap_err();
            assert!(error.to_string().contains("the peer"), "{what}: {error}");
            drop(client);
            spoiler.join().unwrap();
        });
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_hello_that_is_none_ends_the_connection() {
    // From a hello of a client as it should be: magic, version, side, and the check at the end.
    let mut right = b"\x7fshmten\n\0\x04\x01".to_vec();
    right.resize(28, 0);
    let sealed = |mut hello: Vec<u8>| {
        let check = hello.iter().fold(0x811c_9dc5_u32, |check, byte| {
            (check ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        hello.extend(check.to_be_bytes());
        hello
    };
    let with = |at: usize, byte| {
        let mut hello = right.clone();
        hello[at] = byte;
        sealed(hello)
    };
    let mut wrong_check = sealed(right.clone());
    wrong_check[31] ^= 1;
    let hellos = [
        ("magic", with(0, b'x')),
        ("version", with(9, 2)),
        ("later version", with(8, 1)),
        ("side", with(10, 2)),
        ("check", wrong_check),
        ("preamble of the lean protocol", b"\x7ftenon\r\n".repeat(4)),
        ("zeros", vec![0; 32]),
    ];
    let address = fresh_address();
    let server = builder(&address).start().unwrap();
    let honest = client(&address, Waiting::default());
    let greets = |hello: &[u8]| {
        let path = address.strip_prefix("shm://").unwrap();
        let mut socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        std::io::Write::write_all(&mut socket, hello).unwrap();
        socket
    };
    for (what, hello) in hellos {
        let mut socket = greets(&hello);
        let mut said = Vec::new();
        let closed = std::io::Read::read_to_end(&mut socket, &mut said);
        if let Err(error) = closed {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}");
        }
        assert_eq!(echo(&honest, b"still there").unwrap(), b"still there");
    }
    assert_eq!(server.counters().broken_connections, 7);
    // As the test itself would say it, it is taken.
    let _right = greets(&sealed(right.clone()));
    eventually("it is taken", || server.counters().connections_open == 2);
    assert_eq!(server.counters().broken_connections, 7);
}

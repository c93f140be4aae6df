//! Channels that call by the packet exchange, at live servers and through a relay that does to real
//! datagrams what networks do.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::caller;
use crate::common::caller::{PATIENCE, PROGRAM, VERSION};
use crate::common::gate;
use crate::common::lean_caller::{ECHO, FAIL, HOLD, LeanObliging, SLEEP, interface};
use crate::common::relay::{Faults, Relay};
use crate::common::serving::Serving;
use tenon::lean::{Interface, Status};
use tenon::wire::{DecodeError, EncodeError, Encoder, Lean};
use tenon::{
    CallError, ChannelOptions, Client, ConnectError, LeanInput, PendingCall, Server, ServerBuilder,
    ServerLimits, Service, Waiting,
};

fn put(bytes: &[u8]) -> impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

fn get(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    match input {
        LeanInput::Native(input) => Ok(input.take(input.left())?.to_vec()),
        LeanInput::Swapped(input) => Ok(input.take(input.left())?.to_vec()),
    }
}

fn call(client: &Client, procedure: u16, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    client.lean().call(procedure.into(), put(bytes), get)
}

fn start(client: &Client, procedure: u16, bytes: &[u8]) -> PendingCall<Vec<u8>> {
    client
        .lean()
        .start(procedure.into(), put(bytes), get)
        .unwrap()
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// A server that takes large messages, of workers where there are any.
fn server(workers: usize) -> Server {
    let limits = ServerLimits {
        message_bytes: 64 << 20,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    start_server(builder.listen("udp://127.0.0.1:0").unwrap(), workers)
}

fn start_server(builder: ServerBuilder, workers: usize) -> Server {
    match workers {
        0 => builder.service(LeanObliging).start().unwrap(),
        _ => {
            let builder = builder.service(LeanObliging);
            builder.start().unwrap()
        }
    }
}

fn at(server: &Server) -> SocketAddr {
    let address = server.addresses()[0].to_string();
    address.strip_prefix("udp://").unwrap().parse().unwrap()
}

fn client_with(at: SocketAddr, options: ChannelOptions) -> Client {
    let address = format!("lean+udp://{at}");
    let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(PATIENCE)
}

fn client(server: &Server) -> Client {
    client_with(at(server), ChannelOptions::default())
}

/// Arguments and a result of 64 MiB, less the header that counts as part of a message: the most that a client sends
/// and takes unless it is told otherwise.
#[test]
fn messages_of_64_mib_come_back() {
    const HEADER: usize = 64;
    let server = server(0);
    let client = client(&server);
    // What the server takes is known from its welcome.
    call(&client, ECHO, b"").unwrap();
    let sent = pattern((64 << 20) - HEADER);
    assert!(call(&client, ECHO, &sent).unwrap() == sent);
    // One that is larger is not sent at all.
    let error = call(&client, ECHO, &vec![0; (64 << 20) + 1]).unwrap_err();
    assert!(matches!(error, CallError::TooLarge { .. }), "{error:?}");
    assert!(call(&client, ECHO, &sent).unwrap() == sent);
    assert_eq!(client.channel().counters().connections, 1);
}

#[test]
fn messages_of_all_sizes_come_back_however_is_waited() {
    for (_, waiting) in Waiting::ALL {
        for workers in [0, 2] {
            let server = server(workers);
            let options = ChannelOptions::default().waiting(waiting);
            let client = client_with(at(&server), options);
            let sizes = [
                300_000, 0, 1, 8, 1350, 1360, 1370, 1399, 1400, 1401, 1416, 2800,
            ];
            for size in sizes
                .into_iter()
                .chain([20_000, 65_536, 1 << 20, 5_000_000])
            {
                let sent = pattern(size);
                let echoed = call(&client, ECHO, &sent).unwrap();
                assert!(echoed == sent, "{size} bytes, {waiting}");
            }
            let counters = client.channel().counters();
            assert_eq!((counters.connections, counters.in_flight), (1, 0));
            assert_eq!(
                (counters.calls.successes, counters.calls.violations),
                (16, 0)
            );
        }
    }
}

/// What pads the last of several packets is no part of the arguments.
#[test]
fn messages_of_several_packets_have_any_length() {
    let server = server(0);
    let client = client(&server);
    for size in (200_000..200_016).chain(4_000..4_016) {
        let sent = pattern(size);
        assert!(call(&client, ECHO, &sent).unwrap() == sent, "{size} bytes");
    }
}

#[test]
fn many_threads_with_many_calls_share_a_channel() {
    const THREADS: u32 = 6;
    const CALLS: u32 = 100;
    let server = server(3);
    let client = client(&server);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for number in 0..CALLS {
                    let token = (thread << 16 | number).to_be_bytes();
                    let size = 40 * number as usize;
                    let large = start(client, ECHO, &pattern(size));
                    assert_eq!(call(client, ECHO, &token).unwrap(), token);
                    assert!(large.wait().unwrap() == pattern(size));
                }
            });
        }
    });
    let counters = client.channel().counters();
    assert_eq!(counters.calls.successes, u64::from(2 * THREADS * CALLS));
    assert_eq!((counters.in_flight, counters.connections), (0, 1));
    assert_eq!(server.counters().calls, u64::from(2 * THREADS * CALLS));
}

/// More calls than the server grants wait for others, the first of all for the server's word.
#[test]
fn batches_of_calls_are_all_answered() {
    let limits = ServerLimits {
        connection_calls: 20,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    let server = start_server(builder.listen("udp://127.0.0.1:0").unwrap(), 2);
    let client = client(&server);
    for _ in 0..3 {
        let batch = client.channel().batch();
        let calls: Vec<_> = (0..100_u32)
            .map(|number| (number, start(&client, ECHO, &number.to_be_bytes())))
            .collect();
        drop(batch);
        for (number, pending) in calls.into_iter().rev() {
            assert_eq!(pending.wait().unwrap(), number.to_be_bytes());
        }
    }
}

/// Nobody has to wait for it.
#[test]
fn a_batch_sends_what_it_has_gathered() {
    let server = server(0);
    let client = client(&server);
    call(&client, ECHO, b"").unwrap();
    let batch = client.channel().batch();
    let pending = start(&client, ECHO, b"gathered");
    assert_eq!(server.counters().calls, 1);
    drop(batch);
    caller::eventually("the call", || server.counters().calls == 2);
    assert_eq!(pending.wait().unwrap(), b"gathered");
}

#[test]
fn time_runs_out_for_one_call_only() {
    const SHORT: Duration = Duration::from_millis(60);
    let server = server(2);
    let client = client(&server);
    let patient = start(&client, SLEEP, &400_u32.to_ne_bytes());
    let hasty = client.with_timeout(SHORT);
    let error = call(&hasty, SLEEP, &300_u32.to_ne_bytes()).unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit: SHORT, .. }),
        "{error:?}"
    );
    assert!(error.may_have_executed());
    assert_eq!(patient.wait().unwrap(), b"slept");
    assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next");
    let calls = client.channel().counters().calls;
    assert_eq!((calls.timeouts, calls.successes), (1, 2));
}

#[test]
fn calls_that_are_given_up_leave_nothing_behind() {
    let server = server(4);
    let client = client(&server);
    for _ in 0..100 {
        drop(start(&client, SLEEP, &1_u32.to_ne_bytes()));
    }
    assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next");
    assert_eq!(client.channel().counters().in_flight, 0);
}

#[test]
fn refusals_say_why() {
    let limits = ServerLimits {
        message_bytes: 100 << 10,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    let server = start_server(builder.listen("udp://127.0.0.1:0").unwrap(), 0);
    let client = client(&server);
    // The first call of all, before the server has said what it takes in.
    for _ in 0..2 {
        let error = call(&client, ECHO, &[7; 200_000]).unwrap_err();
        let CallError::TooLargeForPeer { own_limit, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(own_limit, Some(64 << 20));
        assert!(!error.may_have_executed());
    }
    match call(&client, FAIL, b"").unwrap_err() {
        CallError::Exception(exception) => assert_eq!(exception.status, Status::FAILED),
        other => panic!("{other:?}"),
    }
    let other = client.with_interface(Arc::new(Interface::unknown(77, 1)));
    let error = call(&other, ECHO, b"").unwrap_err();
    assert!(matches!(error, CallError::Unbound(_)), "{error:?}");
    assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next");
    let onc = client.onc().call(1, |_| Ok(()), |_| Ok(())).unwrap_err();
    assert!(matches!(onc, CallError::OtherProtocol { .. }), "{onc:?}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let place = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("lean+udp://{}", place.local_addr().unwrap());
    let hasty = ChannelOptions::default().connect_timeout(Duration::from_secs(1));
    let unreachable = || match Client::connect_with(&address, PROGRAM, VERSION, hasty.clone()) {
        Err(ConnectError::Unreachable { cause, .. }) => cause.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(unreachable(), ErrorKind::TimedOut);
    drop(place);
    assert_eq!(unreachable(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_server_that_has_gone_is_missed() {
    let server = server(0);
    let client = client(&server);
    assert_eq!(call(&client, ECHO, b"").unwrap(), b"");
    drop(server);
    let mut unknown = 0;
    for _ in 0..20 {
        match call(&client, ECHO, b"").unwrap_err() {
            CallError::Disconnected {
                cause,
                may_have_executed,
            } => {
                assert_eq!(cause.kind(), ErrorKind::ConnectionRefused);
                unknown += u32::from(may_have_executed);
            }
            other => panic!("{other:?}"),
        }
    }
    // The server has said that it stops; so the first of them was not carried out either.
    assert_eq!(unknown, 0);
}

/// What the server is doing may be done, and who waits for it need not wait until time runs out.
#[test]
fn a_server_that_stops_in_the_middle_of_a_call_says_so() {
    let server = server(1);
    let relay = Relay::before(at(&server), FAULTLESS);
    let client = client_with(relay.address, ChannelOptions::default());
    let sleeping = start(&client, SLEEP, &2000_u32.to_ne_bytes());
    caller::eventually("the call", || server.counters().calls == 1);
    server.shutdown(Duration::ZERO);
    match sleeping.wait().unwrap_err() {
        CallError::Disconnected {
            cause,
            may_have_executed,
        } => {
            assert_eq!(cause.kind(), ErrorKind::ConnectionAborted);
            assert!(may_have_executed);
        }
        other => panic!("{other:?}"),
    }
}

/// Kinds of packets.
const HELLO: u8 = 1;
const WELCOME: u8 = 2;

const FAULTLESS: Faults = Faults {
    loss: 0,
    duplication: 0,
    delay_us: 0,
};

/// The first hello of a channel, and then the first welcome, do not arrive.
#[test]
fn a_greeting_that_is_lost_is_sent_again() {
    let server = server(0);
    let relay = Relay::losing(&[HELLO, WELCOME], at(&server), FAULTLESS);
    let client = client_with(relay.address, ChannelOptions::default());
    assert_eq!(relay.lost(), 2);
    assert_eq!(call(&client, ECHO, b"greeted").unwrap(), b"greeted");
}

/// Another run of the server at a place that the last one has just left.
fn restart(place: SocketAddr) -> Server {
    let mut server = None;
    caller::eventually("the port", || {
        let builder = Server::builder().listen(&format!("udp://{place}")).unwrap();
        server = builder.service(LeanObliging).start().ok();
        server.is_some()
    });
    server.unwrap()
}

#[test]
fn a_server_that_was_restarted_between_two_calls_is_not_missed() {
    let mut server = server(0);
    let (place, client) = (at(&server), client(&server));
    for round in 0..5 {
        let sent = pattern(1000 * round);
        assert!(call(&client, ECHO, &sent).unwrap() == sent);
        drop(server);
        server = restart(place);
        // What a server remembers that has just started reaches no further back.
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(call(&client, ECHO, b"last").unwrap(), b"last");
    let counters = client.channel().counters();
    assert_eq!((counters.connections, counters.calls.successes), (1, 6));
}

/// What a server was doing may have been done, and who was calling is told so; nobody else is.
#[test]
fn a_server_that_was_restarted_in_the_middle_of_a_call_is_told() {
    let (first, second) = (server(1), server(1));
    let relay = Relay::before(at(&first), FAULTLESS);
    let client = client_with(relay.address, ChannelOptions::default());
    let gate = gate::fresh_gate();
    let held = start(&client, HOLD, &gate.to_ne_bytes());
    caller::eventually("the call", || first.counters().calls == 1);
    relay.lead_to(at(&second));
    match held.wait().unwrap_err() {
        error @ CallError::Disconnected { .. } => assert!(error.may_have_executed()),
        other => panic!("{other:?}"),
    }
    gate::open(gate);
    assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next");
    assert_eq!(client.channel().counters().connections, 1);
}

// ---- The network does what it likes ----

/// How often calls were carried out, by their first bytes.
type Executed = Arc<Mutex<HashMap<Vec<u8>, u32>>>;

fn result_of(arguments: &[u8]) -> Vec<u8> {
    arguments.iter().rev().map(|byte| !byte).collect()
}

/// Says what it was told backwards and inverted, and counts.
fn counting(executed: Executed) -> impl Service {
    let body = move |_: u32, arguments: &[u8]| {
        let name = arguments[..8].to_vec();
        *executed.lock().unwrap().entry(name).or_default() += 1;
        Ok(result_of(arguments))
    };
    let interface = interface();
    Serving { interface, body }
}

/// Two channels with two threads each call a service through a relay; what it has lost.
fn run(faults: Faults, calls: u32, workers: usize) -> u64 {
    let executed = Executed::default();
    let service = counting(Arc::clone(&executed));
    let builder = Server::builder().listen("udp://127.0.0.1:0").unwrap();
    let server = match workers {
        0 => builder.service(service),
        _ => builder.service(service),
    };
    let server = server.start().unwrap();
    let relay = Relay::before(at(&server), faults);
    let clients = [(); 2].map(|()| client_with(relay.address, ChannelOptions::default()));
    thread::scope(|scope| {
        for thread in 0..4_u32 {
            let client = &clients[thread as usize % 2];
            scope.spawn(move || call_again_and_again(client, thread, calls));
        }
    });
    let executed = executed.lock().unwrap();
    assert_eq!(executed.len() as u32, 4 * calls);
    assert!(executed.values().all(|times| *times == 1), "at most once");
    relay.lost()
}

fn call_again_and_again(client: &Client, thread: u32, calls: u32) {
    let client = client.with_timeout(6 * PATIENCE);
    for number in 0..calls {
        let size = match number % 10 {
            0 => 100_000,
            5 => 9000,
            _ => 100 * number as usize,
        };
        let mut arguments = [thread.to_be_bytes(), number.to_be_bytes()].concat();
        arguments.extend(pattern(size));
        let pending = start(&client, ECHO, &arguments);
        assert!(pending.wait().unwrap() == result_of(&arguments));
    }
}

#[test]
fn calls_through_a_relay_that_does_nothing_to_them() {
    assert_eq!(run(FAULTLESS, 40, 0), 0);
}

#[test]
fn calls_through_a_relay_that_loses_doubles_delays_and_reorders() {
    let faults = Faults {
        loss: 50,
        duplication: 100,
        delay_us: 2000,
    };
    assert!(run(faults, 40, 0) > 0);
    assert!(run(faults, 40, 3) > 0);
}

/// More clients than a host may have conversations, one after the other: each closes its own.
#[test]
fn short_lived_clients_leave_no_conversations_behind() {
    let server = server(0);
    let address = format!("lean+{}", server.addresses()[0]);
    for number in 0..600_u32 {
        let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
        let client = client.with_interface(Arc::new(interface()));
        let bytes = number.to_be_bytes();
        assert_eq!(call(&client, ECHO, &bytes).unwrap(), bytes);
    }
}

/// Clients that went without a word make room for others; the one whose conversation was taken goes on in another.
#[test]
fn forgotten_conversations_are_reclaimed_from_those_that_are_silent() {
    let limits = ServerLimits {
        conversations_of_host: 4,
        ..ServerLimits::default()
    };
    let builder = Server::builder().limits(limits);
    let server = start_server(builder.listen("udp://127.0.0.1:0").unwrap(), 0);
    let address = format!("lean+{}", server.addresses()[0]);
    let client = || {
        let client = Client::connect(&address, PROGRAM, VERSION)?;
        Ok::<_, ConnectError>(client.with_interface(Arc::new(interface())))
    };
    let silent: Vec<Client> = (0..4).map(|_| client().unwrap()).collect();
    for (client, number) in silent.iter().zip(0..) {
        assert_eq!(call(client, ECHO, &[number]).unwrap(), [number]);
    }
    // All have been heard of just now.
    let refused = call(&client().unwrap(), ECHO, b"fifth").unwrap_err();
    assert!(refused.to_string().contains("too many"), "{refused}");
    thread::sleep(Duration::from_millis(1100));
    let newest = client().unwrap();
    assert_eq!(call(&newest, ECHO, b"newest").unwrap(), b"newest");
    // The first was silent for longest. It begins again, in the place of the second, without a call being lost, and so
    // on.
    for client in &silent[..3] {
        assert_eq!(call(client, ECHO, b"again").unwrap(), b"again");
    }
}

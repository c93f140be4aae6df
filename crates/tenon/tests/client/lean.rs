//! A client that speaks the lean protocol, at live servers and at peers that do what a script says.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::caller;
use crate::common::caller::{PATIENCE, PROGRAM, VERSION, fresh_path, listening};
use crate::common::lean_caller::{
    ECHO, FAIL, LeanObliging, WHICH_ORDER, interface, lean_everywhere, with_shm,
};
use crate::common::lean_peer::{LeanLine, LeanPeer, PeerEvent};
use tenon::lean::{ByteOrder, CloseReason, Interface, Preamble, RefusalReason, Status};
use tenon::wire::{DecodeError, EncodeError, Encoder, Lean};
use tenon::{
    CallError, Channel, ChannelOptions, Client, LeanInput, Misbehavior, PendingCall, Protocol,
    Server,
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

fn start(client: &Client, bytes: &[u8]) -> PendingCall<Vec<u8>> {
    client.lean().start(ECHO.into(), put(bytes), get).unwrap()
}

/// The lean addresses of a server.
fn addresses(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .filter(|address| !address.starts_with("udp"))
        .map(|address| format!("lean+{address}"))
        .collect()
}

fn clients(server: &Server) -> Vec<Client> {
    let addresses = addresses(server).into_iter();
    let connect = |address: String| Client::connect(&address, PROGRAM, VERSION).unwrap();
    let clients: Vec<_> = addresses
        .map(|address| connect(address).with_interface(Arc::new(interface())))
        .collect();
    assert_eq!(clients.len(), 3, "TCP, Unix and shared memory");
    clients
}

#[test]
fn a_first_call_that_not_every_server_takes_in_waits_for_the_server_to_say_so() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(&server) {
        let bytes = vec![7; 300_000];
        assert_eq!(call(&client, ECHO, &bytes).unwrap(), bytes);
    }
    let peer = LeanPeer::start(|listener| {
        LeanLine::accept_as(listener, &Preamble::server(1 << 17, 16)).echo();
    });
    let client = peer.client();
    let error = call(&client, ECHO, &[7; 1 << 17]).unwrap_err();
    assert!(
        matches!(
            error,
            CallError::TooLargeForPeer {
                limit: 0x2_0000,
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.may_have_executed());
    assert_eq!(call(&client, ECHO, b"less").unwrap(), b"less");
    drop(client);
    peer.join();
}

#[test]
fn whatever_becomes_of_a_call_its_caller_is_told() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(&server) {
        let told = |procedure| match call(&client, procedure, b"").unwrap_err() {
            CallError::Exception(exception) => exception.status,
            other => panic!("{other} is no exception"),
        };
        assert_eq!(told(FAIL), Status::FAILED);
        assert_eq!(told(99), Status::NO_PROCEDURE);
        assert_eq!(call(&client, 0, b"").unwrap(), b"");
        assert_eq!(call(&client, WHICH_ORDER, b"").unwrap(), b"native");
        assert_eq!(client.channel().counters().calls.refusals, 2);
    }
}

#[test]
fn threads_that_share_a_channel_get_their_own_results() {
    const THREADS: u32 = 8;
    const CALLS: u32 = 500;
    let server = with_shm(listening()).service(LeanObliging).start().unwrap();
    for client in clients(&server) {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let client = client.clone();
                scope.spawn(move || {
                    for number in 0..CALLS {
                        let token = (thread << 16 | number).to_be_bytes();
                        assert_eq!(call(&client, ECHO, &token).unwrap(), token);
                    }
                });
            }
        });
        let counters = client.channel().counters();
        assert_eq!(counters.calls.successes, u64::from(THREADS * CALLS));
        assert_eq!(counters.calls.unmatched, 0);
    }
}

#[test]
fn more_calls_than_the_server_takes_wait_for_one_another() {
    let peer = LeanPeer::with_one_line(|mut line| line.echo());
    let client = peer.client();
    let pending: Vec<_> = (0..200_u32)
        .map(|number| start(&client, &number.to_be_bytes()))
        .collect();
    for (number, call) in (0..200_u32).zip(pending) {
        assert_eq!(call.wait().unwrap(), number.to_be_bytes());
    }
    let counters = client.channel().counters();
    assert_eq!(
        (counters.calls.successes, counters.calls.refusals),
        (200, 0)
    );
    drop(client);
    peer.join();
}

#[test]
fn threads_wait_for_a_server_that_takes_few_calls() {
    let peer = LeanPeer::with_one_line(|mut line| line.echo());
    let client = peer.client();
    thread::scope(|scope| {
        for thread in 0..40_u32 {
            let client = &client;
            scope.spawn(move || {
                for number in 0..20_u32 {
                    let token = (thread << 16 | number).to_be_bytes();
                    assert_eq!(call(client, ECHO, &token).unwrap(), token);
                }
            });
        }
    });
    drop(client);
    peer.join();
}

#[test]
fn replies_find_their_calls_in_any_order() {
    let peer = LeanPeer::with_one_line(|mut line| {
        let calls: Vec<_> = (0..5).map(|_| line.call()).collect();
        for call in calls.iter().rev() {
            line.reply(call, &call.arguments);
        }
    });
    let client = peer.client();
    let mut pending: Vec<_> = (0..5)
        .map(|number| Some(start(&client, &[number])))
        .collect();
    for number in [3, 0, 4, 1, 2] {
        let call = pending[number].take().unwrap();
        assert_eq!(call.wait().unwrap(), [number as u8]);
    }
    peer.join();
}

#[test]
fn replies_that_nobody_has_taken_yet_do_not_keep_a_sender_from_receiving() {
    // Together more than a reader has room for at first.
    const CALLS: usize = 16;
    const REPLY: usize = 1500;
    // More than the system keeps for a peer that does not read.
    const LARGE: usize = 16 << 20;
    let peer = LeanPeer::start(|listener| {
        let preamble = Preamble::server(LARGE as u32 + 1000, 100);
        let mut line = LeanLine::accept_as(listener, &preamble);
        let calls: Vec<_> = (0..CALLS).map(|_| line.call()).collect();
        calls.iter().for_each(|call| line.reply(call, &[7; REPLY]));
        // The client has begun to send a large call, and finds replies in its way.
        thread::sleep(Duration::from_millis(100));
        let large = line.call();
        line.reply(&large, b"all of it");
        line.echo();
    });
    let options = ChannelOptions::default().send_max(LARGE + 1000);
    let channel = Channel::connect_with(&peer.address.parse().unwrap(), options).unwrap();
    let client = Client::over(channel, PROGRAM, VERSION).with_timeout(PATIENCE);
    let mut calls: Vec<_> = (0..CALLS).map(|_| start(&client, b"small")).collect();
    // Time for all replies to come, so that one receive takes as many as there is room for.
    thread::sleep(Duration::from_millis(50));
    assert_eq!(calls.remove(0).wait().unwrap(), [7; REPLY]);
    let large = start(&client, &vec![1; LARGE]);
    assert_eq!(large.wait().unwrap(), b"all of it");
    for call in calls {
        assert_eq!(call.wait().unwrap(), [7; REPLY]);
    }
    drop(client);
    peer.join();
}

#[test]
fn results_in_the_other_order_are_handed_out_as_such() {
    let order = match ByteOrder::NATIVE {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    };
    let preamble = Preamble {
        order,
        ..Preamble::server(1 << 20, 16)
    };
    let peer = LeanPeer::start(move |listener| {
        let mut line = LeanLine::accept_as(listener, &preamble);
        for _ in 0..2 {
            let call = line.call();
            line.reply(&call, &0x0102_0304_u32.swap_bytes().to_ne_bytes());
        }
    });
    let client = peer.client();
    let get = |input: &mut LeanInput<'_>| match input {
        LeanInput::Native(_) => panic!("the peer has the other order"),
        LeanInput::Swapped(input) => input.get::<u32>(),
    };
    assert_eq!(
        client.lean().call(ECHO.into(), put(b""), get).unwrap(),
        0x0102_0304
    );
    let mut pending = client.lean().start(ECHO.into(), put(b""), get).unwrap();
    assert!(pending.wait_for(PATIENCE));
    assert_eq!(pending.wait().unwrap(), 0x0102_0304);
    peer.join();
}

#[test]
fn a_time_that_somebody_set_travels_with_the_call() {
    let limit = Duration::from_secs(1000);
    let peer = LeanPeer::with_one_line(move |mut line| {
        let call = line.call();
        assert_eq!(call.time_left, None);
        line.reply(&call, b"");
        let call = line.call();
        assert!(call.time_left.is_some_and(|left| left <= limit));
        line.refuse(&call, Status::DEADLINE);
    });
    let client = Client::connect(&peer.address, PROGRAM, VERSION).unwrap();
    call(&client, ECHO, b"").unwrap();
    let error = call(&client.with_timeout(limit), ECHO, b"").unwrap_err();
    let CallError::TimedOut { limit: told, .. } = error else {
        panic!("{error} is not about time");
    };
    assert_eq!(told, limit);
    peer.join();
}

#[test]
fn who_gives_a_call_up_tells_the_server() {
    let peer = LeanPeer::with_one_line(|mut line| {
        for _ in 0..2 {
            let given_up = line.call();
            match line.told() {
                Some(PeerEvent::Cancel(id)) => assert_eq!(id, given_up.number()),
                other => panic!("{other:?} is no cancellation"),
            }
            line.refuse(&given_up, Status::CANCELLED);
        }
        let call = line.call();
        line.reply(&call, b"still there");
    });
    let client = peer.client();
    drop(start(&client, b"dropped"));
    let hasty = client.with_timeout(Duration::from_millis(20));
    let error = call(&hasty, ECHO, b"late").unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    assert_eq!(call(&client, ECHO, b"").unwrap(), b"still there");
    let counters = client.channel().counters();
    assert_eq!(counters.calls.cancellations, 1);
    assert_eq!(counters.calls.timeouts, 1);
    assert_eq!(counters.calls.unmatched, 2);
    assert_eq!(counters.in_flight, 0);
    peer.join();
}

#[test]
fn a_client_that_waits_answers_a_ping() {
    let peer = LeanPeer::with_one_line(|mut line| {
        let call = line.call();
        let number = line.ping();
        assert!(matches!(line.told(), Some(PeerEvent::Pong(answered)) if answered == number));
        line.reply(&call, b"there");
    });
    assert_eq!(call(&peer.client(), ECHO, b"").unwrap(), b"there");
    peer.join();
}

#[test]
fn numbers_do_not_come_again_over_the_next_connection() {
    let peer = LeanPeer::start(|listener| {
        let mut line = LeanLine::accept(listener);
        let first = line.call().number();
        drop(line);
        let mut line = LeanLine::accept(listener);
        let call = line.call();
        let ahead = call.number().wrapping_sub(first);
        assert!((1..1 << 31).contains(&ahead), "{ahead}");
        line.reply(&call, b"");
    });
    let client = peer.client();
    let error = call(&client, ECHO, b"").unwrap_err();
    assert!(error.may_have_executed(), "{error}");
    call(&client, ECHO, b"").unwrap();
    assert_eq!(client.channel().counters().connections, 2);
    peer.join();
}

#[test]
fn a_server_that_was_started_again_is_called_again() {
    let path = fresh_path();
    let address = format!("unix://{}", path.display());
    let serve = || {
        let builder = Server::builder().listen(&address).unwrap();
        builder.service(LeanObliging).start().unwrap()
    };
    let server = serve();
    let client = Client::connect(&format!("lean+{address}"), PROGRAM, VERSION).unwrap();
    call(&client, ECHO, b"").unwrap();
    drop(server);
    let _server = serve();
    // The first may have been entrusted to the connection of the server that is gone.
    if let Err(error) = call(&client, ECHO, b"") {
        assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
    }
    assert_eq!(call(&client, ECHO, b"again").unwrap(), b"again");
    assert_eq!(client.channel().counters().connections, 2);
}

#[test]
fn threads_outlive_servers_that_come_and_go() {
    const SERVERS: u64 = 10;
    let path = fresh_path();
    let address = format!("unix://{}", path.display());
    let serve = || {
        let builder = Server::builder().listen(&address).unwrap();
        let builder = builder.service(LeanObliging);
        builder.start().unwrap()
    };
    let mut server = serve();
    let options = ChannelOptions::default().wait_for_ready(true);
    let lean = format!("lean+{address}");
    let client = Client::connect_with(&lean, PROGRAM, VERSION, options).unwrap();
    let client = client.with_timeout(PATIENCE);
    let is_over = AtomicBool::new(false);
    // The last server outlives the threads.
    let _server = thread::scope(|scope| {
        for thread in 0..6_u32 {
            let (client, is_over) = (&client, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    match call(client, ECHO, &thread.to_be_bytes()) {
                        Ok(echoed) => assert_eq!(echoed, thread.to_be_bytes()),
                        Err(CallError::Disconnected { .. } | CallError::ConnectionRefused(_)) => {}
                        Err(CallError::Exception(told)) => {
                            assert_eq!(told.status, Status::STOPPING)
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for _ in 0..SERVERS {
            let before = client.channel().counters().calls.successes;
            while client.channel().counters().calls.successes < before + 100 {
                thread::yield_now();
            }
            drop(server);
            server = serve();
        }
        is_over.store(true, Ordering::Relaxed);
        server
    });
    assert_eq!(call(&client, ECHO, b"at last").unwrap(), b"at last");
    let counters = client.channel().counters();
    assert!(counters.connections > SERVERS, "{counters:?}");
    assert_eq!((counters.in_flight, counters.calls.violations), (0, 0));
}

#[test]
fn calls_that_a_server_did_not_begin_may_be_made_again() {
    let (all_started, are_started) = mpsc::channel();
    let peer = LeanPeer::start(move |listener| {
        let mut line = LeanLine::accept(listener);
        let begun = line.call();
        are_started.recv_timeout(PATIENCE).unwrap();
        line.close(CloseReason::STOPPING);
        line.reply(&begun, b"begun");
        LeanLine::accept(listener).echo();
    });
    let client = peer.client();
    let begun = start(&client, b"1");
    let unbegun = [start(&client, b"2"), start(&client, b"3")];
    all_started.send(()).unwrap();
    assert_eq!(begun.wait().unwrap(), b"begun");
    for call in unbegun {
        let error = call.wait().unwrap_err();
        assert!(!error.may_have_executed(), "{error}");
        assert!(
            error
                .to_string()
                .contains("closed the connection: it stops"),
            "{error}"
        );
    }
    assert_eq!(call(&client, ECHO, b"4").unwrap(), b"4");
    drop(client);
    peer.join();
}

#[test]
fn what_a_client_did_wrong_is_told_in_the_peers_words() {
    let peer = LeanPeer::with_one_line(|mut line| {
        line.call();
        line.close(CloseReason::VIOLATION);
    });
    let error = call(&peer.client(), ECHO, b"").unwrap_err().to_string();
    assert!(error.contains("as the test asked"), "{error}");
    peer.join();
}

#[test]
fn a_server_that_takes_no_connection_says_why() {
    let peer = LeanPeer::with_one_line(|mut line| line.refuse_connection(RefusalReason::BUSY));
    let error = call(&peer.client(), ECHO, b"").unwrap_err();
    assert!(matches!(error, CallError::ConnectionRefused(_)), "{error}");
    assert!(!error.may_have_executed());
    assert!(
        error.to_string().contains("too many connections"),
        "{error}"
    );
    peer.join();
}

#[test]
fn an_interface_that_differs_is_an_error_that_names_the_type() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(&server) {
        let mut other = interface();
        other.fingerprint += 1;
        other.parts[0].fingerprint += 1;
        let other = client.with_interface(Arc::new(other));
        for _ in 0..2 {
            let error = call(&other, ECHO, b"").unwrap_err();
            assert!(!error.may_have_executed());
            assert_eq!(
                error.to_string(),
                "the service cannot be called: the server was built from another interface: \
                 point differs"
            );
        }
        assert_eq!(call(&client, ECHO, b"fits").unwrap(), b"fits");
    }
}

#[test]
fn a_service_that_is_not_there_is_named() {
    let server = with_shm(caller::builder()).start().unwrap();
    for client in clients(&server) {
        let error = call(&client, ECHO, b"").unwrap_err();
        assert!(matches!(error, CallError::Unbound(_)), "{error}");
        assert!(
            error.to_string().contains("does not have program"),
            "{error}"
        );
    }
    let server = lean_everywhere().start().unwrap();
    for client in clients(&server) {
        let missing = client.with_interface(Arc::new(Interface::unknown(7, 7)));
        let error = call(&missing, ECHO, b"").unwrap_err().to_string();
        assert!(error.contains("does not have program 7"), "{error}");
    }
}

/// What a client says of a peer that has never heard of the protocol.
fn told_of(answer: &'static [u8]) -> CallError {
    let peer = LeanPeer::start(move |listener: &TcpListener| {
        let mut line = LeanLine::accept(listener);
        line.send_raw(answer);
    });
    let error = call(&peer.client(), ECHO, b"").unwrap_err();
    peer.join();
    error
}

#[test]
fn a_peer_that_speaks_only_onc_is_recognised() {
    let closed = told_of(b"");
    assert!(matches!(closed, CallError::Disconnected { .. }), "{closed}");
    let denied = told_of(b"\x80\0\0\x18\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x02");
    assert!(
        matches!(&denied, CallError::Misbehaved(Misbehavior::Lean { .. })),
        "{denied}"
    );
    for error in [closed, denied] {
        let told = error.to_string();
        assert!(
            told.contains("if it speaks ONC RPC, connect to tcp://")
                || told.contains("if the peer speaks ONC RPC, connect to tcp://"),
            "{told}"
        );
    }
}

#[test]
fn what_is_no_message_is_the_peers_fault() {
    let peer = LeanPeer::with_one_line(|mut line| {
        line.call();
        line.send_raw(&[0; 16]);
    });
    let client = peer.client();
    let error = call(&client, ECHO, b"").unwrap_err();
    assert!(error.to_string().contains("sync word"), "{error}");
    assert!(error.may_have_executed());
    assert_eq!(client.channel().counters().calls.violations, 1);
    peer.join();
}

#[test]
fn a_channel_speaks_the_protocol_of_its_address() {
    let server = lean_everywhere().start().unwrap();
    let address = server.addresses()[0].to_string();
    let onc = Client::connect(&address, PROGRAM, VERSION).unwrap();
    let lean = Client::connect(&format!("lean+{address}"), PROGRAM, VERSION).unwrap();
    assert_eq!(onc.channel().address().protocol(), Protocol::Onc);
    assert_eq!(lean.channel().address().protocol(), Protocol::Lean);
    let wrong = call(&onc, ECHO, b"").unwrap_err();
    assert!(
        wrong.to_string().contains("connect to lean+tcp://"),
        "{wrong}"
    );
    let wrong = lean.onc().call(1, |_| Ok(()), |_| Ok(())).unwrap_err();
    assert!(
        wrong.to_string().contains("speaks the lean protocol"),
        "{wrong}"
    );
    assert_eq!(call(&lean, ECHO, b"right").unwrap(), b"right");
}

#[test]
fn a_number_that_the_protocol_has_no_room_for_is_an_error() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(&server) {
        let error = client.lean().call(1 << 16, put(b""), get).unwrap_err();
        assert!(!error.may_have_executed());
        assert_eq!(
            error.to_string(),
            "procedure 65536 cannot be called by the lean protocol, whose numbers end at 65535; \
             connect to tcp://, udp:// or unix:// for calls by ONC RPC"
        );
        assert_eq!(call(&client, ECHO, b"fits").unwrap(), b"fits");
    }
}

#[test]
fn limits_of_the_channel_hold_for_lean_calls_too() {
    let server = lean_everywhere().start().unwrap();
    let address = addresses(&server)[0].parse().unwrap();
    let options = ChannelOptions::default().send_max(100).calls_max(1);
    let channel = Channel::connect_with(&address, options).unwrap();
    let client = Client::over(channel, PROGRAM, VERSION);
    let error = call(&client, ECHO, &[0; 88]).unwrap_err();
    assert!(
        matches!(
            error,
            CallError::TooLarge {
                size: 104,
                limit: 100,
                ..
            }
        ),
        "{error}"
    );
    let first = start(&client, b"first");
    let error = call(&client, ECHO, b"second").unwrap_err();
    assert!(
        matches!(error, CallError::TooManyCalls { limit: 1 }),
        "{error}"
    );
    assert_eq!(first.wait().unwrap(), b"first");
}

//! Accounts of calls, over every transport and by both protocols: which calls are in them, what is
//! known of their way, and that no nanosecond is missing.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, listening};
use crate::common::lean_caller::{ECHO, FAIL, LeanObliging, SLEEP, lean_builder};
use crate::common::lean_peer::LeanPeer;
use tenon::{
    CallError, CallProfile, Client, Owner, Part, PendingCall, Protocol, Server, Trace, Transport,
    Way,
};

/// Longer than a tick of any clock.
const MOMENT: Duration = Duration::from_millis(10);

fn call(client: &Client, procedure: u16, bytes: &[u8]) -> Result<(), CallError> {
    let procedure = procedure.into();
    match client.protocol() {
        Protocol::Onc => client.onc().call(
            procedure,
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            |input| input.take(input.left()).map(drop),
        ),
        Protocol::Lean => client.lean().call(
            procedure,
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            |input| match input {
                tenon::LeanInput::Native(input) => input.take(input.left()).map(drop),
                tenon::LeanInput::Swapped(input) => input.take(input.left()).map(drop),
            },
        ),
    }
}

/// Echoes nothing, and takes its time to write and to read it.
fn call_slowly(client: &Client, writing: Duration, reading: Duration) -> Result<(), CallError> {
    let procedure = ECHO.into();
    let write = || thread::sleep(writing);
    let read = || thread::sleep(reading);
    match client.protocol() {
        Protocol::Onc => client.onc().call(
            procedure,
            |_| {
                write();
                Ok(())
            },
            |_| {
                read();
                Ok(())
            },
        ),
        Protocol::Lean => client.lean().call(
            procedure,
            |_| {
                write();
                Ok(())
            },
            |_| {
                read();
                Ok(())
            },
        ),
    }
}

/// Clients of every address, by every protocol that it speaks.
fn clients(server: &Server) -> Vec<Client> {
    let onc = server.addresses().iter().map(ToString::to_string);
    let addresses = onc.flat_map(|onc| [format!("lean+{onc}"), onc]);
    let clients: Vec<Client> = addresses
        .map(|address| Client::connect(&address, PROGRAM, VERSION).unwrap())
        .collect();
    assert_eq!(clients.len(), 6);
    clients
}

fn check_sum(trace: &Trace) {
    let sum: u64 = trace.parts().map(|(_, nanos)| nanos).sum();
    assert_eq!(sum, trace.round_trip(), "{trace:?}");
}

/// Of a trace.
fn nanos(trace: &Trace, wanted: Part) -> u64 {
    let mut parts = trace.parts();
    parts.find(|(part, _)| *part == wanted).unwrap().1
}

#[test]
fn the_parts_of_a_call_add_up_to_what_the_caller_measures() {
    let on_workers = || listening().service(LeanObliging).start();
    for server in [lean_builder().start().unwrap(), on_workers().unwrap()] {
        for client in clients(&server) {
            call(&client, ECHO, b"so that the server's preamble has come").unwrap();
            let account = CallProfile::of_every_call();
            let accounted = client.with_profile(&account);
            let begin = Instant::now();
            for size in 0..100 {
                call(&accounted, ECHO, &vec![1; 4 * size]).unwrap();
            }
            let measured = begin.elapsed().as_nanos();
            call(&client, ECHO, b"not in the account").unwrap();
            let traces = account.traces();
            assert_eq!(traces.len(), 100);
            let expected = match client.protocol() {
                Protocol::Onc => Way::Client,
                Protocol::Lean => Way::Whole,
            };
            for trace in &traces {
                assert_eq!(trace.way(), expected, "{:?}", client.channel());
                assert!(trace.round_trip() > 0);
                check_sum(trace);
            }
            let sum: u128 = traces
                .iter()
                .map(|trace| u128::from(trace.round_trip()))
                .sum();
            assert!(sum <= measured, "{sum} {measured}");
        }
    }
}

/// What the service does is the service's time, on any thread that executes it.
#[test]
fn time_is_put_down_to_who_took_it() {
    let on_workers = || listening().service(LeanObliging).start();
    for server in [lean_builder().start().unwrap(), on_workers().unwrap()] {
        for client in clients(&server) {
            if client.protocol() == Protocol::Onc {
                continue;
            }
            call(&client, ECHO, b"").unwrap();
            let account = CallProfile::of_every_call();
            let millis = 20_u32;
            let slept = u64::from(millis) * 1_000_000;
            // Two clocks that count the same time differ by a little.
            let slept = slept - slept / 20;
            let accounted = client.with_profile(&account);
            call(&accounted, SLEEP, &millis.to_ne_bytes()).unwrap();
            let trace = account.traces().remove(0);
            assert!(nanos(&trace, Part::Serve) >= slept, "{trace:?}");
            let others = trace.parts().filter(|(part, _)| *part != Part::Serve);
            let others: u64 = others.map(|(_, nanos)| nanos).sum();
            assert_eq!(others, trace.round_trip() - nanos(&trace, Part::Serve));
            assert_eq!(Part::Serve.owner(), Owner::Server);
        }
    }
}

/// What the caller's own code takes is not lost between two steps.
#[test]
fn writing_and_reading_that_take_long_are_seen() {
    let server = lean_builder().start().unwrap();
    for client in clients(&server) {
        call(&client, ECHO, b"").unwrap();
        let account = CallProfile::of_every_call();
        let accounted = client.with_profile(&account);
        let begin = Instant::now();
        call_slowly(&accounted, MOMENT, 2 * MOMENT).unwrap();
        let measured = begin.elapsed().as_nanos();
        let trace = account.traces().remove(0);
        check_sum(&trace);
        let (encode, decode) = (nanos(&trace, Part::Encode), nanos(&trace, Part::Decode));
        // Two clocks that count the same time differ by a little.
        let slept = |moment: Duration| moment.as_nanos() as u64 * 19 / 20;
        assert!(encode >= slept(MOMENT), "{trace:?}");
        assert!(decode >= slept(2 * MOMENT), "{trace:?}");
        let others = trace
            .parts()
            .filter(|(part, _)| ![Part::Encode, Part::Decode].contains(part));
        let others: u64 = others.map(|(_, nanos)| nanos).sum();
        assert!(u128::from(encode + decode + others) * 19 / 20 <= measured);
    }
}

#[test]
fn a_part_of_the_calls_is_enough_and_those_that_fail_do_not_count() {
    let server = lean_builder().start().unwrap();
    for client in clients(&server) {
        let account = CallProfile::of_one_in(10);
        let client = client.with_profile(&account);
        for _ in 0..95 {
            call(&client, ECHO, b"abcd").unwrap();
        }
        let followed = account.traces().len();
        assert_eq!(followed, 10);
        let every = CallProfile::of_every_call();
        if client.protocol() == Protocol::Lean {
            call(&client.with_profile(&every), FAIL, b"").unwrap_err();
            assert_eq!(every.traces(), []);
        }
    }
}

/// Procedure 0, too, though no service sees it.
#[test]
fn procedure_0_is_accounted_for_like_others() {
    let server = lean_builder().start().unwrap();
    for client in clients(&server) {
        call(&client, 0, b"").unwrap();
        let account = CallProfile::of_every_call();
        let client = client.with_profile(&account);
        for _ in 0..3 {
            call(&client, 0, b"").unwrap();
        }
        let expected = match client.protocol() {
            Protocol::Onc => Way::Client,
            Protocol::Lean => Way::Whole,
        };
        let traces = account.traces();
        assert_eq!(traces.len(), 3);
        for trace in traces {
            assert_eq!(trace.way(), expected, "{:?}", client.channel());
            check_sum(&trace);
        }
    }
}

/// Starts ECHO by the protocol that the channel speaks.
fn start(client: &Client) -> PendingCall<()> {
    let procedure = ECHO.into();
    let started = match client.protocol() {
        Protocol::Onc => client.onc().start(
            procedure,
            |_| Ok(()),
            |input| input.take(input.left()).map(drop),
        ),
        Protocol::Lean => client.lean().start(
            procedure,
            |_| Ok(()),
            |input| match input {
                tenon::LeanInput::Native(input) => input.take(input.left()).map(drop),
                tenon::LeanInput::Swapped(input) => input.take(input.left()).map(drop),
            },
        ),
    };
    started.unwrap()
}

/// On any thread that receives the reply, and however it is waited for.
#[test]
fn calls_that_are_started_are_followed_until_they_were_waited_for() {
    let server = lean_builder().start().unwrap();
    for plain in clients(&server) {
        call(&plain, ECHO, b"").unwrap();
        let account = CallProfile::of_every_call();
        let client = plain.with_profile(&account);
        let way = match client.protocol() {
            Protocol::Onc => Way::Client,
            Protocol::Lean => Way::Whole,
        };
        let check = |handed_over: bool| {
            let [trace] = &account.traces()[..] else {
                panic!("{:?}", account.traces());
            };
            assert_eq!(trace.way(), way, "{:?}", client.channel());
            check_sum(trace);
            let hand_over = nanos(trace, Part::HandOver);
            assert!(!handed_over || hand_over > 0, "{trace:?}");
            account.clear();
        };
        start(&client).wait().unwrap();
        check(false);
        // It is ready before anybody waits for good.
        let mut pending = start(&client);
        assert!(pending.wait_for(PATIENCE));
        thread::sleep(MOMENT);
        pending.wait().unwrap();
        check(true);
        // Another caller receives the reply, with its own.
        let pending = start(&client);
        if client.channel().address().transport() != Transport::Udp {
            call(&plain, ECHO, b"").unwrap();
            thread::sleep(MOMENT);
            pending.wait().unwrap();
            check(client.protocol() == Protocol::Lean);
        }
        // Nobody waits for this one, so it is in no account.
        drop(start(&client));
        call(&plain, ECHO, b"").unwrap();
        assert_eq!(account.traces().len(), 0);
        let account = CallProfile::of_one_in(3);
        let client = plain.with_profile(&account);
        let started: Vec<_> = (0..7).map(|_| start(&client)).collect();
        started.into_iter().for_each(|call| call.wait().unwrap());
        assert_eq!(account.traces().len(), 3);
    }
}

/// Some replies are received by other callers.
#[test]
fn callers_that_share_a_channel_share_an_account() {
    let server = listening().service(LeanObliging).start().unwrap();
    for client in clients(&server) {
        call(&client, ECHO, b"so that the server's preamble has come").unwrap();
        let account = CallProfile::of_every_call();
        let client = client.with_profile(&account);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        call(&client, ECHO, b"abcd").unwrap();
                    }
                });
            }
        });
        let traces = account.traces();
        assert_eq!(traces.len(), 200);
        traces.iter().for_each(check_sum);
        let summary = account.summary().unwrap();
        assert_eq!((summary.calls, summary.left_out), (200, 0));
    }
}

#[test]
fn a_server_that_knows_no_stamps_is_not_asked_for_them() {
    let peer = LeanPeer::with_one_line(|mut line| line.echo());
    let account = CallProfile::of_every_call();
    let client = peer.client().with_profile(&account);
    for _ in 0..3 {
        call(&client, ECHO, b"abcd").unwrap();
    }
    let traces = account.traces();
    assert_eq!(traces.len(), 3);
    for trace in &traces {
        assert_eq!(trace.way(), Way::Client);
        check_sum(trace);
    }
    drop(client);
    peer.join();
}

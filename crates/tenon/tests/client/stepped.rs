//! A client in an event loop of the program's own.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::*;
use crate::common::gate;
use crate::common::lean_caller::{LeanObliging, with_shm};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenon::wire::{DecodeError, Decoder};
use tenon::{
    CallError, ChannelOptions, ChannelStepper, Client, LeanInput, PendingCall, Protocol, Server,
};

fn rest(input: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(input.rest().to_vec())
}

fn lean_rest(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(match input {
        LeanInput::Native(input) => input.take(input.left())?.to_vec(),
        LeanInput::Swapped(input) => input.take(input.left())?.to_vec(),
    })
}

fn start(client: &Client, procedure: u32, bytes: &[u8]) -> PendingCall<Vec<u8>> {
    match client.protocol() {
        Protocol::Onc => client.onc().start(
            procedure,
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            rest,
        ),
        Protocol::Lean => client.lean().start(
            procedure,
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            lean_rest,
        ),
    }
    .unwrap()
}

/// Waits as an event loop does, for nothing but what the stepper tells, and steps.
fn turn(stepper: &mut ChannelStepper) {
    let limit = stepper.next_timeout().unwrap_or(PATIENCE);
    let limit = Timespec::try_from(limit.min(PATIENCE)).unwrap();
    let mut waited = [PollFd::from_borrowed_fd(stepper.as_fd(), PollFlags::IN)];
    poll(&mut waited, Some(&limit)).unwrap();
    stepper.step();
}

/// Turns until all calls have ended, and returns what has become of them.
fn finish(
    stepper: &mut ChannelStepper,
    mut calls: Vec<PendingCall<Vec<u8>>>,
) -> Vec<Result<Vec<u8>, CallError>> {
    let end = Instant::now() + PATIENCE;
    stepper.step();
    while !calls.iter_mut().all(PendingCall::is_ready) {
        assert!(Instant::now() < end, "they never end");
        turn(stepper);
    }
    calls.into_iter().map(PendingCall::wait).collect()
}

fn server() -> Server {
    let limits = limited(|limits| limits.message_bytes = 16 << 20);
    let builder = with_shm(listening()).service(LeanObliging);
    builder.limits(limits).start().unwrap()
}

/// Addresses of both protocols.
fn addresses(server: &Server) -> Vec<String> {
    let plain = server.addresses().iter().map(ToString::to_string);
    let both = plain.flat_map(|address| match address.starts_with("shm") {
        true => vec![address],
        false => vec![format!("lean+{address}"), address],
    });
    both.collect()
}

#[test]
fn calls_end_in_steps_over_every_transport_and_by_both_protocols() {
    let server = server();
    for address in addresses(&server) {
        let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
        let mut stepper = client.channel().stepper().unwrap();
        for round in 0..20 {
            let sent: Vec<_> = (0..15_u8).map(|call| vec![call, round, 0, 1]).collect();
            let calls = sent.iter().map(|bytes| start(&client, ECHO, bytes));
            let got = finish(&mut stepper, calls.collect());
            let got: Vec<_> = got.into_iter().map(Result::unwrap).collect();
            assert_eq!(got, sent, "{address}");
        }
        assert_eq!(client.channel().counters().in_flight, 0);
    }
}

#[test]
fn what_finds_no_room_goes_out_with_the_steps() {
    let server = server();
    let large = vec![0x5a; 8 << 20];
    for address in addresses(&server) {
        if address.contains("udp") {
            continue;
        }
        let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
        let client = client.with_timeout(Duration::from_secs(60));
        let mut stepper = client.channel().stepper().unwrap();
        // What a lean server takes is known once it has said something.
        finish(&mut stepper, vec![start(&client, ECHO, b"once")]);
        // One alone, and several behind each other.
        for count in [1, 3] {
            let calls = (0..count).map(|_| start(&client, ECHO, &large));
            for got in finish(&mut stepper, calls.collect()) {
                let got = got.unwrap_or_else(|error| panic!("{address}: {error}"));
                assert!(got == large, "{address}");
            }
        }
        assert_eq!(client.channel().counters().connections, 1, "{address}");
    }
}

#[test]
fn a_call_ends_when_its_time_is_over() {
    const LIMIT: Duration = Duration::from_millis(150);
    let (of_lean, of_onc) = (server(), builder().start().unwrap());
    let is_lean = |address: &String| !address.starts_with(['t', 'u']);
    let lean = addresses(&of_lean).into_iter().filter(is_lean);
    let onc = of_onc.addresses().iter().map(ToString::to_string);
    for address in lean.chain(onc) {
        let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
        let client = client.with_timeout(LIMIT);
        let mut stepper = client.channel().stepper().unwrap();
        let gate = gate::fresh_gate();
        let begin = Instant::now();
        let gate_word = match client.protocol() {
            Protocol::Onc => gate.to_be_bytes(),
            Protocol::Lean => gate.to_ne_bytes(),
        };
        let held = start(&client, HOLD, &gate_word);
        let quick = start(&client.with_timeout(PATIENCE), ECHO, b"next");
        let ends = finish(&mut stepper, vec![quick, held]);
        assert_eq!(ends[0].as_ref().unwrap(), b"next", "{address}");
        assert!(begin.elapsed() >= LIMIT, "{address}");
        let timed_out = matches!(ends[1], Err(CallError::TimedOut { .. }));
        assert!(timed_out, "{address}: {:?}", ends[1]);
        gate::open(gate);
    }
}

/// A lean server takes 16 calls before it has said how many.
#[test]
fn calls_that_the_peer_does_not_take_yet_are_put_off() {
    let limits = limited(|limits| limits.connection_calls = 20);
    let builder = listening().service(LeanObliging).limits(limits);
    let server = builder.start().unwrap();
    for address in &server.addresses()[..2] {
        let client = Client::connect(&format!("lean+{address}"), PROGRAM, VERSION).unwrap();
        let mut stepper = client.channel().stepper().unwrap();
        for _ in 0..3 {
            let sent: Vec<_> = (0..100_u8).map(|call| vec![call; 4]).collect();
            let begin = Instant::now();
            let calls: Vec<_> = sent.iter().map(|one| start(&client, ECHO, one)).collect();
            assert!(begin.elapsed() < Duration::from_secs(5), "they do not wait");
            let got = finish(&mut stepper, calls).into_iter();
            assert_eq!(got.map(Result::unwrap).collect::<Vec<_>>(), sent);
        }
        // One that is put off has its time, too.
        let hasty = client.with_timeout(Duration::from_millis(50));
        let gate = gate::fresh_gate();
        let held = (0..25).map(|_| start(&hasty, HOLD, &gate.to_ne_bytes()));
        for end in finish(&mut stepper, held.collect()) {
            let timed_out = matches!(end, Err(CallError::TimedOut { .. }));
            assert!(timed_out, "{end:?}");
        }
        gate::open(gate);
        let next = finish(&mut stepper, vec![start(&client, ECHO, b"next")]);
        assert_eq!(next[0].as_ref().unwrap(), b"next");
    }
}

#[test]
fn a_datagram_that_is_lost_is_sent_again_when_the_time_has_come() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", socket.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let mut room = [0; 100];
        socket.recv_from(&mut room).unwrap();
        let (length, from) = socket.recv_from(&mut room).unwrap();
        let xid = u32::from_be_bytes(room[..4].try_into().unwrap());
        assert!(length > 40);
        socket.send_to(&success(xid, b"late"), from).unwrap();
    });
    let again = Duration::from_millis(50);
    let options = ChannelOptions::default().retransmission(again, again);
    let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
    let mut stepper = client.channel().stepper().unwrap();
    let got = finish(&mut stepper, vec![start(&client, ECHO, b"lost")]);
    assert_eq!(got[0].as_ref().unwrap(), b"late");
    answering.join().unwrap();
}

#[test]
fn a_lost_connection_ends_its_calls_and_the_next_call_makes_another() {
    let limits = limited(|limits| limits.idle_timeout = Some(Duration::from_millis(200)));
    let server = builder().limits(limits).start().unwrap();
    for address in &server.addresses()[..2] {
        let client = Client::connect(&address.to_string(), PROGRAM, VERSION).unwrap();
        let mut stepper = client.channel().stepper().unwrap();
        finish(&mut stepper, vec![start(&client, ECHO, b"one!")]);
        // The server closes what is idle, which the loop is told, perhaps behind other news.
        eventually("it is closed", || server.counters().connections_open == 0);
        turn(&mut stepper);
        let got = finish(&mut stepper, vec![start(&client, ECHO, b"two!")]);
        assert_eq!(got[0].as_ref().unwrap(), b"two!");
        assert_eq!(client.channel().counters().connections, 2);
        let gate = gate::fresh_gate();
        let held = start(&client, HOLD, &words(&[gate]));
        stepper.step();
        eventually("the call arrives", || {
            server.counters().calls.is_multiple_of(3)
        });
        thread::scope(|scope| {
            scope.spawn(|| gate::open(gate));
            let got = finish(&mut stepper, vec![held]);
            assert_eq!(got[0].as_ref().unwrap(), &words(&[gate]));
        });
    }
    let client = Client::connect(&server.addresses()[0].to_string(), PROGRAM, VERSION).unwrap();
    let mut stepper = client.channel().stepper().unwrap();
    let gate = gate::fresh_gate();
    let held = start(&client, HOLD, &words(&[gate]));
    stepper.step();
    eventually("the call arrives", || server.counters().calls == 7);
    server.shutdown(Duration::ZERO);
    let got = finish(&mut stepper, vec![held]);
    assert!(got[0].as_ref().unwrap_err().may_have_executed());
    gate::open(gate);
}

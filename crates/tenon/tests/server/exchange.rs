//! The packet exchange at a live server's UDP port, beside ONC RPC.

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller;
use crate::common::gate;
use crate::common::lean_caller;
use crate::common::lean_caller::{ECHO, FAIL, HOLD, SLEEP, lean_builder};
use crate::common::serving::Serving;
use tenon::Server;
use tenon::lean::{ByteOrder, Extras, Interface, MessageDraft, Preamble};
use tenon::wire::{Buffer, Encoder};
use tenon_proto::connection::ReplyError;
use tenon_proto::exchange::client::{ClientEngine, ClientLimits, ClientSecrets, Outgoing};

struct Peer {
    socket: UdpSocket,
    engine: ClientEngine<()>,
    packets: usize,
    /// One packet of so many is lost, whichever way it goes.
    loses_one_in: usize,
}

fn udp(server: &Server) -> String {
    let mut addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .find(|address| address.starts_with("udp"))
        .unwrap()
}

impl Peer {
    fn of(server: &Server) -> Self {
        Self::with_key(server, 1)
    }

    /// Clients of one server have keys of their own.
    fn with_key(server: &Server, key: u8) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&udp(server)["udp://".len()..]).unwrap();
        let (key, seed) = ([key; 16], key.into());
        Self {
            socket,
            engine: ClientEngine::new(
                Preamble::client(4 << 20),
                ClientLimits::default(),
                ClientSecrets { key, seed },
            ),
            packets: 0,
            loses_one_in: usize::MAX,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.packets += 1;
        self.packets.is_multiple_of(self.loses_one_in)
    }

    /// Calls and waits for the answer; an exception as text.
    fn call(&mut self, interface: &Arc<Interface>, procedure: u16, arguments: &[u8]) -> Vec<u8> {
        self.start(interface, procedure, arguments);
        self.finish()
    }

    fn start(&mut self, interface: &Arc<Interface>, procedure: u16, arguments: &[u8]) {
        let mut message = Buffer::default();
        let draft = MessageDraft::call(
            &mut message,
            ByteOrder::NATIVE,
            procedure,
            &Extras::default(),
        );
        message.extend(arguments);
        draft.seal(&mut message);
        let now = Instant::now();
        let call = Outgoing {
            service: self.engine.bind(interface, 1).unwrap(),
            procedure,
            deadline: now + caller::PATIENCE,
        };
        self.engine.start(now, &call, &mut message, ()).unwrap();
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut room = [0; 2048];
        loop {
            self.send();
            assert!(self.engine.poll_event().is_none(), "the call fails");
            let wait = self.engine.poll_timeout().unwrap();
            let wait = wait.saturating_duration_since(Instant::now());
            let wait = wait.max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(wait)).unwrap();
            let Ok(bytes) = self.socket.recv(&mut room) else {
                self.engine.handle_timeout(Instant::now());
                continue;
            };
            if self.is_lost() {
                continue;
            }
            let now = Instant::now();
            let Some(answer) = self.engine.handle_datagram(now, &room[..bytes]) else {
                continue;
            };
            let result = match answer.outcome {
                Ok(result) => result.to_vec(),
                Err(ReplyError::Exception(exception)) => exception.to_string().into_bytes(),
                Err(ReplyError::Unbound(refusal)) => refusal.to_string().into_bytes(),
                Err(other) => panic!("{other:?}"),
            };
            self.send();
            return result;
        }
    }

    fn send(&mut self) {
        let mut packet = Buffer::default();
        while self.engine.poll_transmit(Instant::now(), &mut packet) {
            if !self.is_lost() {
                self.socket.send(packet.as_slice()).unwrap();
            }
            packet.clear();
        }
    }
}

fn interface() -> Arc<Interface> {
    Arc::new(lean_caller::interface())
}

#[test]
fn one_port_serves_exchanges_and_onc_rpc() {
    let server = lean_builder().start().unwrap();
    let onc = tenon::Client::connect(&udp(&server), caller::PROGRAM, caller::VERSION).unwrap();
    let mut peer = Peer::of(&server);
    for round in 0..20_u32 {
        let number = round.to_be_bytes();
        assert_eq!(peer.call(&interface(), ECHO, &number), number);
        let put = |out: &mut Encoder<'_>| {
            out.put(round);
            Ok(())
        };
        let echoed = onc.onc().call(1, put, |input| input.get::<u32>());
        assert_eq!(echoed.unwrap(), round);
    }
    let counters = server.counters();
    assert_eq!((counters.calls, counters.refusals), (40, 0));
}

#[test]
fn messages_of_many_packets_and_exceptions() {
    let server = lean_builder().start().unwrap();
    let mut peer = Peer::of(&server);
    assert_eq!(peer.call(&interface(), 0, b""), b"");
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    assert!(peer.call(&interface(), ECHO, &large) == large);
    assert!(peer.packets > 1400, "{}", peer.packets);
    assert_eq!(peer.call(&interface(), FAIL, b""), b"the service failed");
    let other = Arc::new(Interface::unknown(77, 1));
    let refused = peer.call(&other, 1, b"");
    assert_eq!(refused, b"the server does not have program 77");
    assert_eq!(
        peer.call(&interface(), ECHO, b"still there"),
        b"still there"
    );
}

/// What is lost on the last leg the server has to send again by itself, whether or not anything else
/// comes.
#[test]
fn what_is_lost_is_sent_again_and_every_call_carried_out_once() {
    let server = lean_builder().start().unwrap();
    let mut peer = Peer::of(&server);
    peer.call(&interface(), ECHO, b"warm up");
    peer.loses_one_in = 7;
    let large: Vec<u8> = (0..60_000_u32).map(|n| (n % 251) as u8).collect();
    for round in 0..20 {
        let arguments = &large[..3_000 * round];
        assert!(peer.call(&interface(), ECHO, arguments) == arguments);
    }
    assert_eq!(server.counters().calls, 21);
}

#[test]
fn workers_answer_long_calls() {
    let service = lean_caller::LeanObliging;
    let builder = caller::listening().service(service);
    let server = builder.start().unwrap();
    let mut peer = Peer::of(&server);
    assert_eq!(peer.call(&interface(), ECHO, &[7; 5000]), [7; 5000]);
    let millis = 1200_u32.to_ne_bytes();
    let before = peer.packets;
    assert_eq!(peer.call(&interface(), SLEEP, &millis), b"slept");
    assert!(peer.packets > before + 4, "it was asked for");
    assert_eq!(server.counters().calls, 2);
}

/// The port is a slow handler's, of another service, when the worker has the answer.
#[test]
fn what_workers_answer_does_not_wait_for_handlers_that_answer_at_once() {
    let [begun, may_end, ended, answer] = std::array::from_fn(|_| gate::fresh_gate());
    let slow = Serving {
        interface: Interface::unknown(caller::PROGRAM, caller::VERSION_HIGH),
        body: move |_, _: &[u8]| {
            gate::open(begun);
            gate::hold(may_end);
            gate::open(ended);
            Ok(b"ended".to_vec())
        },
    };
    let slow_interface = Arc::new(slow.interface.clone());
    let builder = caller::listening().service(slow);
    let builder = builder.service(lean_caller::LeanObliging);
    let server = builder.start().unwrap();
    let (mut peer, mut other) = (Peer::of(&server), Peer::with_key(&server, 2));
    peer.call(&interface(), ECHO, b"warm up");
    other.call(&slow_interface, 0, b"");
    peer.start(&interface(), HOLD, &answer.to_ne_bytes());
    peer.send();
    other.start(&slow_interface, 1, b"");
    other.send();
    gate::hold(begun);
    gate::open(answer);
    assert_eq!(peer.finish(), b"held");
    assert!(!gate::is_open(ended), "it waited for the handler");
    gate::open(may_end);
    assert_eq!(other.finish(), b"ended");
}

/// Shuts the server down while an answer of many packets, every seventh of which is lost, is under way.
fn stops_behind_a_large_answer(server: &Server) {
    let mut peer = Peer::of(server);
    peer.call(&interface(), ECHO, b"warm up");
    peer.loses_one_in = 7;
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    thread::scope(|scope| {
        let answer = scope.spawn(|| peer.call(&interface(), ECHO, &large));
        while server.counters().calls < 2 {
            thread::yield_now();
        }
        server.shutdown(caller::PATIENCE);
        assert!(answer.join().unwrap() == large);
    });
}

#[test]
fn a_server_that_stops_sends_large_answers_to_their_end() {
    stops_behind_a_large_answer(&lean_builder().start().unwrap());
    let service = lean_caller::LeanObliging;
    let builder = caller::listening().service(service);
    stops_behind_a_large_answer(&builder.start().unwrap());
}

#[test]
fn a_server_that_stops_waits_for_no_silent_client_for_ever() {
    let server = lean_builder().start().unwrap();
    let mut peer = Peer::of(&server);
    peer.call(&interface(), ECHO, b"warm up");
    peer.start(&interface(), ECHO, &[7; 100_000]);
    peer.socket.set_nonblocking(true).unwrap();
    let mut room = [0; 2048];
    // Until the request is there as a whole, the client listens.
    while server.counters().calls < 2 {
        peer.send();
        if let Ok(bytes) = peer.socket.recv(&mut room) {
            peer.engine.handle_datagram(Instant::now(), &room[..bytes]);
        }
        peer.engine.handle_timeout(Instant::now());
    }
    server.shutdown(Duration::from_millis(100));
    assert_eq!(server.counters().calls, 2);
}

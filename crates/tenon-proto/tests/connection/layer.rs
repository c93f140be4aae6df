//! A layer below the framing: one that scrambles bytes behind a handshake of two round trips.

use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    ByteLayer, Connection, ConnectionError, Event, LayerError, WireProtocol,
};
use tenon_wire::Buffer;

use crate::ends::{End, pair};

/// What each end says in each of the two round trips.
const GREETING: [u8; 2] = [0xa1, 0xa2];

/// What ends the stream in order.
const END: u8 = 0xff;

/// Exchanges two bytes each way, one behind the other, and scrambles all that follows.
#[derive(Debug)]
pub struct Scrambler {
    is_server: bool,
    /// Greetings of the peer that have come.
    greeted: usize,
    /// Greetings of this end that were sent.
    sent: usize,
    out: Vec<u8>,
    has_ended: bool,
}

impl Scrambler {
    pub fn new(is_server: bool) -> Self {
        Self {
            is_server,
            greeted: 0,
            sent: 0,
            out: Vec::new(),
            has_ended: false,
        }
    }

    /// One whose handshake is over.
    fn open(is_server: bool) -> Self {
        Self {
            greeted: GREETING.len(),
            sent: GREETING.len(),
            ..Self::new(is_server)
        }
    }
}

impl Scrambler {
    /// Bytes of the greeting that may be sent: the client begins; each end goes on when the other has.
    fn may_send(&self) -> usize {
        let ahead = usize::from(!self.is_server);
        (self.greeted + ahead).min(GREETING.len())
    }
}

impl ByteLayer for Scrambler {
    fn handle_received(&mut self, wire: &[u8], plain: &mut Buffer) -> Result<(), LayerError> {
        for byte in wire {
            if self.greeted < GREETING.len() {
                if *byte != GREETING[self.greeted] {
                    return Err(LayerError(format!("no greeting: {byte:#x}")));
                }
                self.greeted += 1;
            } else {
                plain.extend(&[byte ^ 0x55]);
            }
        }
        Ok(())
    }

    fn has_transmit(&self) -> bool {
        self.sent < self.may_send() || !self.out.is_empty()
    }

    fn poll_transmit(&mut self, wire: &mut Buffer) {
        while self.sent < self.may_send() {
            wire.extend(&[GREETING[self.sent]]);
            self.sent += 1;
        }
        wire.extend(&std::mem::take(&mut self.out));
    }

    fn is_open(&self) -> bool {
        self.greeted == GREETING.len() && self.sent == GREETING.len()
    }

    fn wrap(&mut self, plain: &[u8], wire: &mut Buffer) {
        let scrambled: Vec<u8> = plain.iter().map(|byte| byte ^ 0x55).collect();
        wire.extend(&scrambled);
    }

    fn peer_identity(&self) -> Option<&str> {
        self.is_open().then_some("the other end")
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

fn carry(from: &mut End, to: &mut End) -> usize {
    let bytes = from.transmit_all();
    let mut taken = 0;
    while taken < bytes.len() {
        taken += to.receive(&bytes[taken..]).unwrap();
    }
    bytes.len()
}

/// Brings to an end what the other has to say, and has `each` look at what it means.
fn carry_each(
    from: &mut End,
    to: &mut End,
    mut each: impl FnMut(&mut Connection<u32>, Event<'_, u32>),
) {
    let bytes = from.transmit_all();
    let mut taken = 0;
    while taken < bytes.len() {
        taken += to.receive(&bytes[taken..]).unwrap();
        while let Some(frame) = to.receiver.next_frame().unwrap() {
            let event = to.connection.handle_frame(frame, &to.services).unwrap();
            each(&mut to.connection, event);
        }
    }
}

/// Makes a call that is answered at once with its arguments.
fn exchange(client: &mut End, server: &mut End, protocol: WireProtocol, arguments: &[u8]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    client.call(protocol, arguments, deadline, 7).unwrap();
    let mut is_answered = false;
    for _ in 0..10 {
        carry_each(client, server, |connection, event| {
            if let Event::Called(call) = event {
                let mut reply = End::<u32>::reply(call.caller, call.arguments);
                connection.push_reply(&mut reply);
            }
        });
        carry_each(server, client, |_, event| {
            if let Event::Answered(answer) = event {
                assert!(answer.outcome == Ok(arguments));
                is_answered = true;
            }
        });
        if is_answered {
            return;
        }
    }
    panic!("no answer");
}

fn both(protocol: WireProtocol) -> (End, End) {
    pair(
        protocol,
        ConnectionConfig::client(),
        ConnectionConfig::server(),
    )
}

#[test]
fn a_layer_holds_messages_back_until_its_handshake_is_over() {
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        let (mut client, mut server) = both(protocol);
        for end in [&mut client, &mut server] {
            let layer = Box::new(Scrambler::new(end.is_server));
            end.connection.put_layer(layer, &mut end.receiver).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        client.call(protocol, b"ping", deadline, 1).unwrap();
        assert!(client.connection.has_transmit(), "of the layer");
        assert!(!server.connection.has_transmit(), "the client begins");
        assert_eq!(client.transmit_all(), [GREETING[0]]);
        assert!(!client.connection.has_transmit(), "messages wait");
        assert_eq!(client.connection.peer_identity(), None);
        server.receive(&GREETING[..1]).unwrap();
        carry(&mut server, &mut client);
        assert_eq!(client.transmit_all(), [GREETING[1]], "two round trips");
        server.receive(&GREETING[1..]).unwrap();
        carry(&mut server, &mut client);
        assert_eq!(client.connection.peer_identity(), Some("the other end"));
        assert!(client.connection.queued_bytes() > 0);
        assert!(carry(&mut client, &mut server) > 0);
        assert_eq!(client.connection.queued_bytes(), 0);
        assert!(server.receiver.next_frame().unwrap().is_some());
        assert!(!client.connection.may_end(), "it would be cut off");
    }
}

#[test]
fn a_layer_may_be_put_in_the_middle_of_a_stream() {
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        let (mut client, mut server) = both(protocol);
        exchange(&mut client, &mut server, protocol, b"plain");
        // The client goes on at once: what it sends arrives before the server has put its layer in.
        let layer = Box::new(Scrambler::new(false));
        client
            .connection
            .put_layer(layer, &mut client.receiver)
            .unwrap();
        carry(&mut client, &mut server);
        let layer = Box::new(Scrambler::new(true));
        server
            .connection
            .put_layer(layer, &mut server.receiver)
            .unwrap();
        exchange(&mut client, &mut server, protocol, b"scrambled");
        let long: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        exchange(&mut client, &mut server, protocol, &long);
        assert!(client.receiver.is_between_frames());
    }
}

/// Much may arrive with the message behind which the layer begins.
#[test]
fn all_that_was_received_before_a_layer_is_put_in_goes_through_it() {
    let long: Vec<u8> = (0..300_000_u32).map(|n| (n >> 3) as u8).collect();
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        let (mut client, mut server) = both(protocol);
        // The server's memory is large then.
        exchange(&mut client, &mut server, protocol, b"hello");
        exchange(&mut client, &mut server, protocol, &long);
        let deadline = Instant::now() + Duration::from_secs(60);
        client.call(protocol, b"plain", deadline, 1).unwrap();
        let mut stream = client.transmit_all();
        let layer = Box::new(Scrambler::open(false));
        let receiver = &mut client.receiver;
        client.connection.put_layer(layer, receiver).unwrap();
        client.call(protocol, &long, deadline, 2).unwrap();
        stream.extend(client.transmit_all());

        let mut at = server.receive(&stream).unwrap();
        assert!(at > 50_000, "{at} bytes at once");
        let frame = server.receiver.next_frame().unwrap().unwrap();
        let event = server.connection.handle_frame(frame, &server.services);
        assert!(matches!(event, Ok(Event::Called(call)) if call.arguments == b"plain"));
        let layer = Box::new(Scrambler::open(true));
        let receiver = &mut server.receiver;
        server.connection.put_layer(layer, receiver).unwrap();
        let mut found = None;
        loop {
            while let Some(frame) = server.receiver.next_frame().unwrap() {
                let event = server.connection.handle_frame(frame, &server.services);
                if let Ok(Event::Called(call)) = event {
                    found = Some(call.arguments.to_vec());
                }
            }
            if at == stream.len() {
                break;
            }
            at += server.receive(&stream[at..]).unwrap();
        }
        assert!(found == Some(long.clone()));
    }
}

/// What the framing has had no room for is still to be taken out.
#[test]
fn a_stream_does_not_end_where_the_layer_has_more() {
    const RECORD: usize = 8 << 10;
    // Memory for two records with their marks.
    let mut receiver = Receiver::onc(2 * RECORD - 12);
    let (mut connection, _) = Connection::<u32>::server(ConnectionConfig::server());
    let layer = Box::new(Scrambler::open(true));
    connection.put_layer(layer, &mut receiver).unwrap();
    let mut record = vec![0; RECORD];
    record[..4].copy_from_slice(&(0x8000_0000 | (RECORD - 4) as u32).to_be_bytes());
    let wire: Vec<u8> = record.repeat(3).iter().map(|byte| byte ^ 0x55).collect();
    let mut taken = 0;
    while taken < wire.len() {
        let room = receiver.room();
        let step = room.len().min(wire.len() - taken);
        room[..step].copy_from_slice(&wire[taken..taken + step]);
        receiver.handle_received(step).unwrap();
        connection.handle_layer_input(&mut receiver).unwrap();
        taken += step;
    }
    for _ in 0..3 {
        assert!(!receiver.is_between_frames());
        assert!(receiver.next_frame().unwrap().is_some());
    }
    assert!(receiver.is_between_frames());
}

#[test]
fn a_peer_that_breaks_the_layer_ends_the_connection() {
    let (_, mut server) = both(WireProtocol::Onc);
    let layer = Box::new(Scrambler::new(true));
    server
        .connection
        .put_layer(layer, &mut server.receiver)
        .unwrap();
    let error = server.receive(&[END]).unwrap_err();
    assert!(matches!(error, ConnectionError::Layer(_)), "{error}");
    assert_eq!(error.to_string(), "no greeting: 0xff");
}

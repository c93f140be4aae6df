//! Calls of ONC RPC in datagrams at their server: which reach a service, which are answered without one, and which are
//! dropped.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Caller, IncomingCounters, ReplyDraft, ServiceTable};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::{
    DATAGRAM_SIZE_MAX, DatagramCallKey, EndpointCounters, ReplyTooLarge, ServerEndpoint,
};
use tenon_proto::exchange::ReassembledMessage;
use tenon_proto::exchange::server::{CloseRecipients, ServerLimits, ServerSecrets};
use tenon_proto::lean::Preamble;
use tenon_wire::Buffer;

use crate::common::{Random, words};
use crate::exchange::support::address;

type Key = DatagramCallKey<SocketAddr>;

struct Server {
    endpoint: ServerEndpoint<SocketAddr>,
    services: ServiceTable,
    now: Instant,
    /// What became of the last reply.
    fits: Result<(), ReplyTooLarge>,
}

impl Server {
    /// A server of program 300 in the versions 2 and 5.
    fn new(onc_reply_max: Option<usize>) -> Self {
        let now = Instant::now();
        let mut services = ServiceTable::default();
        services.add(300, 2, None);
        services.add(300, 5, None);
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let duplicates = DuplicateLimits {
            bytes: DuplicateLimits::BYTES_MIN,
            ..DuplicateLimits::default()
        };
        Self {
            endpoint: ServerEndpoint::new(
                &ConnectionConfig::server(),
                ServerLimits::default(),
                duplicates,
                secrets,
                onc_reply_max,
                now,
            ),
            services,
            now,
            fits: Ok(()),
        }
    }

    /// Takes in a datagram; returns the call for a service, if it is one.
    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<(Key, Caller)> {
        let mut whole = ReassembledMessage::new(&Preamble::server(0, 0));
        let call =
            self.endpoint
                .handle_datagram(self.now, from, datagram, &self.services, &mut whole)?;
        Some((call.key, call.call.caller))
    }

    fn answer(&mut self, (key, caller): (Key, Caller), results: &[u8]) {
        let mut reply = Buffer::default();
        let draft = ReplyDraft::begin(&mut reply, caller);
        reply.extend(results);
        draft.seal(&mut reply);
        self.fits = self.endpoint.answer(self.now, key, &mut reply);
        assert!(reply.is_empty());
    }

    /// The only datagram that is to be sent, and its receiver.
    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut out = Buffer::default();
        let has_transmit = self.endpoint.has_transmit();
        let to = self.endpoint.poll_transmit(self.now, &mut out);
        assert_eq!(to.is_some(), has_transmit);
        assert!(!self.endpoint.has_transmit(), "there is a second one");
        Some((to?, out.as_slice().to_vec()))
    }
}

fn client() -> SocketAddr {
    address(2, 1000)
}

/// A call of procedure 7 of program 300, version 2.
fn call(xid: u32) -> Vec<u8> {
    words(&[xid, 0, 2, 300, 2, 7, 0, 0, 0, 0, 0xaaaa, 0xbbbb])
}

#[test]
fn a_call_reaches_its_service_and_its_reply_the_client() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let datagram = words(&[9, 0, 2, 300, 5, 7, 0, 0, 0, 0, 0xaaaa, 0xbbbb]);
    let mut whole = ReassembledMessage::new(&Preamble::server(0, 0));
    let received = server.endpoint.handle_datagram(
        server.now,
        client(),
        &datagram,
        &server.services,
        &mut whole,
    );
    let received = received.unwrap();
    let call = received.call;
    assert_eq!((call.service, call.procedure), (1, 7));
    assert_eq!(call.arguments.as_ptr_range(), datagram[40..].as_ptr_range());
    assert_eq!(call.caller.number(), 9);
    assert_eq!(call.time_left, None);
    let call = (received.key, call.caller);
    assert_eq!(server.transmit(), None);
    server.answer(call, &words(&[42]));
    assert!(server.endpoint.has_unarrived(), "it is still to be sent");
    let expected = words(&[9, 1, 0, 0, 0, 0, 42]);
    assert_eq!(server.transmit(), Some((client(), expected)));
    assert!(!server.endpoint.has_unarrived());
}

#[test]
fn procedure_0_and_refusals_are_answered_without_a_service() {
    let cases: [(&[u32], &[u32]); 5] = [
        (&[9, 0, 2, 300, 5, 0, 0, 0, 0, 0], &[9, 1, 0, 0, 0, 0]),
        (&[9, 0, 3], &[9, 1, 1, 0, 2, 2]),
        (&[9, 0, 2, 300, 3, 7, 0, 0, 0, 0], &[9, 1, 0, 0, 0, 2, 2, 5]),
        (&[9, 0, 2, 301, 2, 7, 0, 0, 0, 0], &[9, 1, 0, 0, 0, 1]),
        (&[9, 0, 2, 300, 2, 7, 6, 0, 0, 0], &[9, 1, 1, 1, 2]),
    ];
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    for (call, reply) in cases {
        assert!(server.receive(client(), &words(call)).is_none());
        let expected = Some((client(), words(reply)));
        assert_eq!(server.transmit(), expected, "{call:?}");
    }
    let calls = IncomingCounters {
        pings: 1,
        refusals: 4,
        ..IncomingCounters::default()
    };
    assert_eq!(server.endpoint.counters().calls, calls);
}

#[test]
fn datagrams_that_are_no_call_are_not_answered() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let reply = words(&[9, 1, 0, 0, 0, 0]);
    let whole = call(9);
    let datagrams = (0..24).map(|end| &whole[..end]).chain([&reply[..]]);
    for datagram in datagrams {
        assert!(server.receive(client(), datagram).is_none());
        assert_eq!(server.transmit(), None);
    }
    assert_eq!(server.endpoint.counters().calls.violations, 25);
}

#[test]
fn a_server_of_the_packet_exchange_alone_drops_messages_of_onc_rpc() {
    let mut server = Server::new(None);
    assert!(server.receive(client(), &call(9)).is_none());
    assert_eq!(server.transmit(), None);
    assert_eq!(server.endpoint.counters().dropped, 1);
}

#[test]
fn a_repeated_call_is_dropped_while_it_is_carried_out_and_then_answered_from_the_cache() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let first = server.receive(client(), &call(9)).unwrap();
    assert!(server.receive(client(), &call(9)).is_none());
    assert_eq!(server.transmit(), None);
    server.answer(first, b"done");
    let reply = server.transmit().unwrap();
    for _ in 0..3 {
        assert!(server.receive(client(), &call(9)).is_none());
        assert_eq!(server.transmit().as_ref(), Some(&reply));
    }
    let counters = EndpointCounters {
        duplicates_answered: 3,
        dropped: 1,
        ..server.endpoint.counters()
    };
    assert_eq!(server.endpoint.counters(), counters);
    assert_eq!(counters.calls.calls, 1);
}

#[test]
fn the_same_xid_from_another_address_is_another_call() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let others = [address(2, 1001), address(3, 1000)];
    let calls: Vec<_> = std::iter::once(client()).chain(others).collect();
    for from in &calls {
        let received = server.receive(*from, &call(9)).unwrap();
        server.answer(received, b"done");
        assert_eq!(server.transmit().unwrap().0, *from);
    }
    assert_eq!(server.endpoint.counters().calls.calls, 3);
}

#[test]
fn a_call_that_was_dropped_for_want_of_room_is_new_when_it_is_repeated() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let (key, _) = server.receive(client(), &call(9)).unwrap();
    server.endpoint.drop_call(key);
    assert!(server.receive(client(), &call(9)).is_some());
    assert_eq!(server.endpoint.counters().dropped, 1);
}

#[test]
fn further_calls_are_dropped_when_as_many_as_are_remembered_are_carried_out() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    // The smallest cache has room for so many calls and their peer.
    let running: Vec<_> = (0..27)
        .map(|xid| server.receive(client(), &call(xid)).unwrap())
        .collect();
    assert!(server.receive(client(), &call(100)).is_none());
    assert_eq!(server.endpoint.counters().dropped, 1);
    server.answer(running[2], b"");
    server.transmit();
    assert!(server.receive(client(), &call(100)).is_some());
}

#[test]
fn a_reply_that_fits_into_no_datagram_becomes_a_refusal() {
    // What UDP takes; what is more than that; and what a frame takes.
    for (limit, is) in [
        (DATAGRAM_SIZE_MAX, DATAGRAM_SIZE_MAX),
        (usize::MAX, DATAGRAM_SIZE_MAX),
        (1472, 1472),
    ] {
        let mut server = Server::new(Some(limit));
        let call_of = server.receive(client(), &call(9)).unwrap();
        server.answer(call_of, &vec![0; is - 24]);
        let (_, reply) = server.transmit().unwrap();
        assert_eq!(reply.len(), is);
        assert_eq!(server.fits, Ok(()));
        let call_of = server.receive(client(), &call(10)).unwrap();
        server.answer(call_of, &vec![0; is - 23]);
        let too_large = ReplyTooLarge {
            service: 0,
            procedure: 7,
            size: is + 1,
            limit: is,
        };
        assert_eq!(server.fits, Err(too_large));
        let refusal = words(&[10, 1, 0, 0, 0, 5]);
        assert_eq!(server.transmit(), Some((client(), refusal.clone())));
        assert!(server.receive(client(), &call(10)).is_none());
        assert_eq!(server.transmit(), Some((client(), refusal)), "remembered");
        assert_eq!(server.endpoint.counters().replies_too_large, 1);
    }
}

#[test]
fn a_server_that_stops_answers_what_it_has_and_takes_nothing_new() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let running = server.receive(client(), &call(9)).unwrap();
    server.endpoint.close(CloseRecipients::ToIdle);
    assert!(server.receive(client(), &call(10)).is_none());
    assert_eq!(server.transmit(), None, "the next server gets it");
    server.answer(running, b"");
    let reply = server.transmit();
    assert!(reply.is_some());
    assert!(server.receive(client(), &call(9)).is_none());
    assert_eq!(server.transmit(), reply, "the reply may have been lost");
    assert_eq!(server.endpoint.counters().calls.calls, 1);
}

/// A call with any bytes is served, refused or dropped, and what is said of it goes to its sender.
#[test]
fn random_damage_to_a_call_is_survived() {
    let mut server = Server::new(Some(DATAGRAM_SIZE_MAX));
    let mut random = Random(8);
    let mut datagram = call(9);
    for at in 0..datagram.len() {
        for _ in 0..50 {
            let byte = std::mem::replace(&mut datagram[at], random.next() as u8);
            if let Some(received) = server.receive(client(), &datagram) {
                server.answer(received, b"");
            }
            if let Some((to, reply)) = server.transmit() {
                assert_eq!(to, client());
                assert_eq!(reply[..4], datagram[..4]);
            }
            datagram[at] = byte;
        }
    }
    server.now += Duration::from_secs(1000);
    server.endpoint.handle_timeout(server.now);
    assert!(!server.endpoint.has_transmit());
}

//! What a server of the packet exchange makes of any datagrams, sound ones among them: no call is
//! handed out twice, every answer is a packet, nobody unproven gets more than he sent, and what is kept
//! was sent.
#![no_main]

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::exchange::{facts, packet};
use tenon_proto::connection::{Caller, ReplyDraft, ServiceTable};
use tenon_proto::endpoint::exchange::is_packet;
use tenon_proto::endpoint::exchange::server::{CallKey, ServerEngine, ServerLimits, ServerSecrets};
use tenon_proto::lean::{Interface, Preamble};
use tenon_wire::Buffer;

const LIMIT: usize = 64 << 10;

/// Bytes of memory that the lanes of all conversations may take for a few bytes each.
const ROOM: usize = 4 * 16 * (32 << 10);

struct World {
    now: Instant,
    server: ServerEngine<SocketAddr>,
    services: ServiceTable,
    cookie: Vec<u8>,
    begun: HashSet<CallKey>,
    running: Vec<(CallKey, Caller)>,
    received: usize,
    answered: usize,
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut left = data;
    while let [act, a, b, c, rest @ ..] = left {
        let length = (usize::from(*c) * 16).min(rest.len());
        let (body, behind) = rest.split_at(length);
        left = behind;
        world.act(*act, *a, *b, body);
    }
    world.end();
});

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let limits = ServerLimits {
            conversations: 4,
            bytes_of_conversation: LIMIT,
            bytes: 2 * LIMIT,
            ..ServerLimits::default()
        };
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let preamble = Preamble::server(LIMIT as u32, 16);
        let mut services = ServiceTable::default();
        services.add(1, 1, Some(Arc::new(Interface::unknown(1, 1))));
        let mut world = Self {
            now,
            server: ServerEngine::new(preamble, limits, secrets, now),
            services,
            cookie: vec![0; 16],
            begun: HashSet::new(),
            running: Vec::new(),
            received: 0,
            answered: 0,
        };
        let hello = packet([1, 0], 7, [0, 0], [1, 0, 0], &[&facts(), &[0; 28]]);
        world.receive(peer(0), &hello);
        world.received = 0;
        world
    }

    fn act(&mut self, act: u8, a: u8, b: u8, body: &[u8]) {
        let (kind, flags) = (1 + act % 8, a % 4);
        let lane = [u16::from(a >> 5), 0];
        let numbers = [u32::from(b % 4), u32::from(b >> 2 & 7), u32::from(b >> 5)];
        match act >> 3 {
            0 => self.receive(peer(a), body),
            1 => self.reply(b),
            2 => self.now += Duration::from_millis(u64::from(b) * 100),
            3 => self.server.handle_timeout(self.now),
            4..12 => {
                let opening = [&self.cookie[..], &facts(), &[0; 4]].concat();
                let opening = if flags & 1 == 1 { &opening[..] } else { &[] };
                let numbers = match b >> 5 {
                    0 => [numbers[0], 0, 1],
                    _ => numbers,
                };
                let datagram = packet([kind, flags], 7, lane, numbers, &[opening, body]);
                self.receive(peer(0), &datagram);
            }
            _ => {
                // A whole request, of a lane's next call.
                let sequence = u32::from(b);
                let bind = bind();
                let call = [
                    &0xd07e_0100_u32.to_ne_bytes()[..],
                    &sequence.to_ne_bytes(),
                    &[0; 2],
                    &u16::from(act % 3).to_ne_bytes(),
                    &(body.len() as u32).to_ne_bytes(),
                    body,
                    &[0; 8][..body.len().wrapping_neg() & 7],
                ];
                let opening = [&self.cookie[..], &facts(), &[0; 4], &bind].concat();
                let numbers = [sequence, 0, 1];
                let body = [&opening[..], &call.concat()];
                let datagram = packet([3, 1 | flags], 7, lane, numbers, &body);
                self.receive(peer(0), &datagram);
            }
        }
        assert!(self.server.conversations() <= 4);
        let paid = self.received + self.answered;
        assert!(self.server.bytes() <= 2 * paid + ROOM);
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.received += datagram.len();
        let is_proven = self.server.conversations() > 0;
        let request = self
            .server
            .handle_datagram(self.now, from, datagram, &self.services);
        if let Some(request) = request {
            assert!(self.begun.insert(request.key), "a call twice");
            assert!(request.call.procedure != 0 && request.call.service == 0);
            self.running.push((request.key, request.call.caller));
        }
        let sent = self.transmit();
        let is_proven = is_proven || self.server.conversations() > 0;
        assert!(is_proven || sent <= datagram.len(), "amplified");
    }

    fn reply(&mut self, which: u8) {
        if self.running.is_empty() {
            return;
        }
        let index = usize::from(which) % self.running.len();
        let (key, caller) = self.running.swap_remove(index);
        let mut message = Buffer::default();
        let reply = ReplyDraft::begin(&mut message, caller);
        message.extend(&vec![7; usize::from(which) * 40]);
        reply.seal(&mut message);
        self.answered += message.len() + 64;
        self.server.reply(key, &mut message);
        self.transmit();
    }

    fn transmit(&mut self) -> usize {
        let mut bytes = 0;
        let mut out = Buffer::default();
        while self.server.poll_transmit(self.now, &mut out).is_some() {
            assert!(is_packet(out.as_slice()) && out.len() <= 1448);
            if out.as_slice()[6] == 2 {
                self.cookie = out.as_slice()[72..88].to_vec();
            }
            // What the engine answers by itself.
            self.answered += out.len();
            bytes += out.len();
            out.clear();
        }
        bytes
    }

    fn end(&mut self) {
        for _ in 0..20 {
            self.now += Duration::from_secs(20);
            self.server.handle_timeout(self.now);
            self.transmit();
        }
        assert_eq!((self.server.conversations(), self.server.bytes()), (0, 0));
    }
}

fn bind() -> Vec<u8> {
    let mut bind = 0xd07e_0500_u32.to_ne_bytes().to_vec();
    for word in [0, 0, 16, 1, 1, 0, 0_u32] {
        bind.extend(word.to_ne_bytes());
    }
    bind
}

fn peer(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + number % 2], 1))
}

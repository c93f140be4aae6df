//! What a client of the packet exchange makes of any datagrams, sound ones among them: every call ends
//! once, none after its time, and what is kept was sent.
#![no_main]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::exchange::{packet, server_facts};
use tenon_proto::endpoint::exchange::client::{
    CallId, ClientEngine, ClientEvent, ClientLimits, ClientSecrets, Outgoing,
};
use tenon_proto::endpoint::exchange::is_packet;
use tenon_proto::lean::{ByteOrder, Extras, Interface, MessageDraft, Preamble};
use tenon_wire::Buffer;

const LIMIT: u32 = 64 << 10;

/// Bytes of memory that an answer takes at first.
const ROOM_FIRST: usize = 16 << 10;

struct World {
    now: Instant,
    client: ClientEngine<u32>,
    interface: Arc<Interface>,
    waiting: HashMap<u32, (CallId, Instant)>,
    started: u32,
    conversation: u64,
    received: usize,
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
        let (key, seed) = ([2; 16], 2);
        let secrets = ClientSecrets { key, seed };
        let preamble = Preamble::client(LIMIT);
        Self {
            now: Instant::now(),
            client: ClientEngine::new(preamble, ClientLimits::default(), secrets),
            interface: Arc::new(Interface::unknown(1, 1)),
            waiting: HashMap::new(),
            started: 0,
            conversation: 0,
            received: 0,
        }
    }

    fn act(&mut self, act: u8, a: u8, b: u8, body: &[u8]) {
        let lane = u16::from(a >> 6);
        let sequence = u32::from(b % 16);
        let numbers = [sequence, u32::from(b >> 4 & 3), u32::from(b >> 6)];
        match act % 10 {
            0 | 1 => self.start(a, b, body),
            2 => self.cancel(a),
            3 => self.now += Duration::from_millis(u64::from(a) * u64::from(b)),
            4 => self.receive(body),
            5 => {
                let rest = [
                    &[0, 0, 0, 1][..],
                    &[7; 16],
                    &60_000_u32.to_be_bytes(),
                    &[0; 4],
                ];
                let body = [&server_facts()[..], &rest.concat()];
                let numbers = [numbers[0].max(1), 0, 0];
                let welcome = packet([2, 0], self.conversation, [0, 0], numbers, &body);
                self.receive(&welcome);
            }
            6 => {
                // A whole answer.
                let reply = [
                    &0xd07e_0200_u32.to_ne_bytes()[..],
                    &sequence.to_ne_bytes(),
                    &[0; 2],
                    &1_u16.to_ne_bytes(),
                    &(body.len() as u32).to_ne_bytes(),
                    body,
                    &[0; 8][..body.len().wrapping_neg() & 7],
                ];
                let numbers = [sequence, 0, 1];
                let reply = reply.concat();
                let id = self.conversation;
                self.receive(&packet([4, a & 2], id, [lane, 5], numbers, &[&reply]));
            }
            _ => {
                let kind = [4, 5, 8][usize::from(act) / 10 % 3];
                let lane = [lane, u16::from(a & 7)];
                let id = self.conversation;
                self.receive(&packet([kind, a & 2], id, lane, numbers, &[body]));
            }
        }
        self.transmit();
        self.let_time_pass();
        assert_eq!(self.client.in_flight(), self.waiting.len());
        let at_first = self.client.in_flight() * ROOM_FIRST;
        assert!(self.client.bytes() <= 2 * self.received + at_first);
    }

    fn start(&mut self, a: u8, b: u8, body: &[u8]) {
        let mut message = Buffer::default();
        let draft = MessageDraft::call(&mut message, ByteOrder::NATIVE, 1, &Extras::default());
        (0..1 + a % 8).for_each(|_| message.extend(body));
        draft.seal(&mut message);
        let Ok(service) = self.client.bind(&self.interface, 7) else {
            return;
        };
        let deadline = self.now + Duration::from_millis(u64::from(b) * 40);
        let call = Outgoing {
            service,
            procedure: 1,
            deadline,
        };
        let waiter = self.started;
        if let Ok(id) = self.client.start(self.now, &call, &mut message, waiter) {
            self.started += 1;
            self.waiting.insert(waiter, (id, deadline));
        }
    }

    fn cancel(&mut self, which: u8) {
        let waiting = self.waiting.iter().nth(usize::from(which));
        if let Some((waiter, (id, _))) = waiting.map(|(waiter, call)| (*waiter, *call)) {
            assert_eq!(self.client.cancel(id), Some(waiter));
            assert_eq!(self.client.cancel(id), None);
            self.waiting.remove(&waiter);
        }
    }

    fn receive(&mut self, datagram: &[u8]) {
        self.received += datagram.len();
        if let Some(answer) = self.client.handle_datagram(self.now, datagram) {
            let call = self.waiting.remove(&answer.waiter);
            assert_eq!(call.map(|(id, _)| id), Some(answer.id));
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some(ClientEvent::Failed { id, waiter, .. }) = self.client.poll_event() {
            let call = self.waiting.remove(&waiter);
            assert_eq!(call.map(|(id, _)| id), Some(id));
        }
    }

    fn transmit(&mut self) {
        let mut out = Buffer::default();
        while self.client.poll_transmit(self.now, &mut out) {
            let datagram = out.as_slice();
            assert!(is_packet(datagram) && datagram.len() <= 1448);
            if let Some(name) = datagram[8..].first_chunk() {
                self.conversation = u64::from_be_bytes(*name);
            }
            out.clear();
        }
    }

    fn let_time_pass(&mut self) {
        if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.take_events();
        assert!(self.waiting.values().all(|(_, end)| *end > self.now));
    }

    fn end(&mut self) {
        self.transmit();
        while let Some(at) = self.client.poll_timeout() {
            self.now = self.now.max(at);
            self.let_time_pass();
            self.transmit();
        }
        assert_eq!(
            (self.client.in_flight(), self.client.lanes_in_use()),
            (0, 0)
        );
        assert_eq!((self.client.bytes(), self.client.under_way()), (0, 0));
    }
}

//! The client of ONC RPC in datagrams under any sequence of calls, replies, timeouts and cancellations, beside a map
//! that remembers what is in flight.
#![no_main]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_proto::config::{ConnectionConfig, Role};
use tenon_proto::connection::CallDraft;
use tenon_proto::endpoint::exchange::ReassembledMessage;
use tenon_proto::endpoint::{CallFailure, ClientEndpoint, DatagramCallId, Retransmission};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

const STEP: Duration = Duration::from_millis(100);

fuzz_target!(|data: &[u8]| {
    let [seed, steps @ ..] = data else {
        return;
    };
    let seed = u32::MAX - u32::from(*seed);
    let mut model = Model {
        endpoint: ClientEndpoint::onc(seed, Retransmission::default()),
        template: CallTemplate::new(1, 1, &Credential::None),
        whole: ReassembledMessage::of(&ConnectionConfig::client(), Role::Client),
        in_flight: BTreeMap::new(),
        now: Instant::now(),
        calls: 0,
    };
    let mut left = steps;
    while let Some((step, rest)) = left.split_first() {
        let (input, rest) = rest.split_at(rest.len().min(usize::from(step >> 3)));
        model.step(step & 7, input);
        left = rest;
    }
});

struct Model {
    endpoint: ClientEndpoint<u64>,
    template: CallTemplate,
    whole: ReassembledMessage,
    /// The waiter and the deadline of every call, by its number.
    in_flight: BTreeMap<u32, (u64, Instant)>,
    now: Instant,
    calls: u64,
}

impl Model {
    fn step(&mut self, step: u8, input: &[u8]) {
        match step {
            0 | 1 => self.start(input),
            2 => self.reply(input),
            3 | 7 => self.reply_to_one(input),
            4 => self.cancel(input.len()),
            5 => self.cancel_all(),
            _ => self.pass_time(input.len() as u32),
        }
        self.transmit();
        assert_eq!(self.endpoint.in_flight(), self.in_flight.len());
    }

    fn start(&mut self, input: &[u8]) {
        self.calls += 1;
        let deadline = self.now + STEP * input.len() as u32;
        let mut message = Buffer::default();
        self.template.begin(&mut message, 1);
        message.extend(input);
        let draft = CallDraft::Onc;
        let endpoint = &mut self.endpoint;
        let started = endpoint.start_call(self.now, &draft, &mut message, deadline, self.calls);
        let Ok(DatagramCallId::Onc(xid)) = started else {
            panic!("it can always be started: {started:?}");
        };
        let before = self.in_flight.insert(xid, (self.calls, deadline));
        assert_eq!(before, None, "a number in flight is not taken again");
    }

    fn reply(&mut self, message: &[u8]) {
        if let Some(xid) = self.any(message.len()) {
            let id = DatagramCallId::Onc(xid);
            if let Some(place) = self.endpoint.take_common(self.now, message, id) {
                assert_eq!(place.end, message.len());
                self.in_flight.remove(&xid).expect("in flight");
                return;
            }
        }
        let (now, whole) = (self.now, &mut self.whole);
        if let Some(answer) = self.endpoint.handle_datagram(now, message, whole) {
            let (waiter, _) = self.in_flight.remove(&answer.number).expect("in flight");
            assert_eq!(answer.waiter, waiter);
            assert!(message.starts_with(&answer.number.to_be_bytes()));
        }
    }

    fn reply_to_one(&mut self, input: &[u8]) {
        if let Some(xid) = self.any(input.len()) {
            self.reply(&[&xid.to_be_bytes(), &[0, 0, 0, 1], input].concat());
        }
    }

    fn cancel(&mut self, which: usize) {
        if let Some(xid) = self.any(which) {
            let (waiter, _) = self.in_flight.remove(&xid).expect("in flight");
            assert_eq!(self.endpoint.cancel(DatagramCallId::Onc(xid)), Some(waiter));
            assert_eq!(self.endpoint.cancel(DatagramCallId::Onc(xid)), None);
        }
    }

    fn cancel_all(&mut self) {
        let mut given_up = self.endpoint.cancel_all();
        let calls = std::mem::take(&mut self.in_flight);
        let mut expected: Vec<u64> = calls.into_values().map(|(waiter, _)| waiter).collect();
        given_up.sort_unstable();
        expected.sort_unstable();
        assert_eq!(given_up, expected);
    }

    fn pass_time(&mut self, steps: u32) {
        self.now += STEP * steps;
        self.endpoint.handle_timeout(self.now);
        while let Some(failed) = self.endpoint.poll_failure() {
            assert_eq!(failed.failure, CallFailure::Expired);
            let of_waiter = |(_, (waiter, _)): &(&u32, &(u64, Instant))| *waiter == failed.waiter;
            let (xid, (_, deadline)) = self.in_flight.iter().find(of_waiter).expect("in flight");
            assert!(*deadline <= self.now);
            let xid = *xid;
            self.in_flight.remove(&xid);
        }
        for (xid, (_, deadline)) in &self.in_flight {
            let next = self.endpoint.call_timeout(DatagramCallId::Onc(*xid));
            assert!(next.is_some_and(|next| next > self.now && next <= *deadline));
        }
    }

    /// What is sent is a call that is in flight.
    fn transmit(&mut self) {
        let mut datagram = Buffer::default();
        while self.endpoint.poll_transmit(self.now, &mut datagram) {
            let xid = datagram.as_slice().first_chunk().expect("a whole call");
            assert!(self.in_flight.contains_key(&u32::from_be_bytes(*xid)));
            datagram.clear();
        }
        assert!(!self.endpoint.has_transmit());
    }

    fn any(&self, which: usize) -> Option<u32> {
        let count = self.in_flight.len().max(1);
        self.in_flight.keys().nth(which % count).copied()
    }
}

//! The client's bookkeeping under any sequence of calls, replies, timeouts and cancellations,
//! beside a map that remembers what is in flight.
#![no_main]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_proto::onc::client::{ClientEngine, Retransmission, Timeout};

const STEP: Duration = Duration::from_millis(100);

fuzz_target!(|data: &[u8]| {
    let [kind, seed, steps @ ..] = data else {
        return;
    };
    let seed = u32::MAX - u32::from(*seed);
    let mut model = Model {
        engine: match kind % 2 {
            0 => ClientEngine::stream(seed),
            _ => ClientEngine::datagram(seed, Retransmission::default()),
        },
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
    engine: ClientEngine<u64>,
    /// The waiter and the deadline of every call, by xid.
    in_flight: BTreeMap<u32, (u64, Instant)>,
    now: Instant,
    calls: u64,
}

impl Model {
    fn step(&mut self, step: u8, input: &[u8]) {
        match step {
            0 | 1 => self.start(input.len() as u32),
            2 => self.reply(input),
            3 => self.reply_to_somebody(input),
            4 => self.cancel(input.len()),
            5 => self.cancel_all(),
            _ => self.pass_time(input.len() as u32),
        }
        assert_eq!(self.engine.in_flight(), self.in_flight.len());
    }

    fn start(&mut self, steps: u32) {
        self.calls += 1;
        let deadline = self.now + STEP * steps;
        let xid = self.engine.start(self.now, deadline, self.calls);
        let before = self.in_flight.insert(xid, (self.calls, deadline));
        assert_eq!(before, None, "an xid in flight is not taken again");
    }

    fn reply(&mut self, message: &[u8]) {
        if let Ok(Some(answer)) = self.engine.handle_reply(message) {
            let (waiter, _) = self.in_flight.remove(&answer.xid).expect("in flight");
            assert_eq!(answer.waiter, waiter);
            assert!(message.starts_with(&answer.xid.to_be_bytes()));
        }
    }

    fn reply_to_somebody(&mut self, input: &[u8]) {
        if let Some(xid) = self.any(input.len()) {
            let reply = [&xid.to_be_bytes(), &[0, 0, 0, 1], input].concat();
            self.reply(&reply);
        }
    }

    fn cancel(&mut self, which: usize) {
        if let Some(xid) = self.any(which) {
            let (waiter, _) = self.in_flight.remove(&xid).expect("in flight");
            assert_eq!(self.engine.cancel(xid), Some(waiter));
        }
    }

    fn cancel_all(&mut self) {
        for (xid, waiter) in self.engine.cancel_all() {
            let (expected, _) = self.in_flight.remove(&xid).expect("in flight");
            assert_eq!(waiter, expected);
        }
    }

    fn pass_time(&mut self, steps: u32) {
        self.now += STEP * steps;
        let xids: Vec<u32> = self.in_flight.keys().copied().collect();
        for xid in xids {
            let (waiter, deadline) = self.in_flight[&xid];
            match self.engine.handle_timeout(xid, self.now) {
                Some(Timeout::Expired(expired)) => {
                    assert!(expired == waiter && self.now >= deadline);
                    self.in_flight.remove(&xid);
                }
                Some(Timeout::Wait(next) | Timeout::Retransmit(next)) => {
                    assert!(next > self.now && next <= deadline);
                    assert_eq!(self.engine.next_timeout(xid), Some(next));
                }
                None => panic!("a call in flight is not known"),
            }
        }
    }

    fn any(&self, which: usize) -> Option<u32> {
        let count = self.in_flight.len().max(1);
        self.in_flight.keys().nth(which % count).copied()
    }
}

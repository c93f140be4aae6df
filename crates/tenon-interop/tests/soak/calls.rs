//! A caller that does by turns everything that a caller may do.

use std::fmt;
use std::time::{Duration, Instant};

use tenon::wire::{BStr, BString};
use tenon::{CallError, PendingCall};
use tenon_exec::random::Random;
use tenon_interop::compiled::hprpc::{HprpcVersionClient, LargeData, Numbers, Packet};
use tenon_interop::services::rand_nums;

/// Time that a call has that should succeed: more than any pause.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Most calls that a caller has in flight.
pub const IN_FLIGHT_MAX: u64 = 40;

/// What has become of the calls of a caller.
#[derive(Debug, Default)]
pub struct Tally {
    /// Calls whose result was right.
    pub right: u64,
    /// Calls that failed as calls may over such a way.
    pub failed: u64,
    /// Calls whose result nobody waited for.
    pub given_up: u64,
    /// What should not have happened; the first few.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Whether something has come of it: over a way on which calls fail, some have.
    pub fn is_enough(&self, is_faulty: bool) -> bool {
        self.right > 0 && (!is_faulty || self.failed + self.given_up > 0)
    }

    /// Takes down what became of a call, and whether its result was right: over a way on which calls fail, they may.
    pub fn note(&mut self, is_faulty: bool, outcome: Result<bool, CallError>) {
        let wrong = match outcome {
            Ok(true) => {
                self.right += 1;
                return;
            }
            Ok(false) => "a wrong result".to_owned(),
            Err(
                CallError::Disconnected { .. } | CallError::TimedOut { .. } | CallError::Connect(_),
            ) if is_faulty => {
                self.failed += 1;
                return;
            }
            Err(error) => error.to_string(),
        };
        if self.wrong.len() < 5 {
            self.wrong.push(wrong);
        }
    }

    /// Whether it is over, at this moment, for a caller that is to call until `end`, or until there was enough of
    /// everything if that takes longer.
    pub fn is_over(&self, is_faulty: bool, end: Instant) -> bool {
        let now = Instant::now();
        match self.is_enough(is_faulty) {
            true => now >= end,
            false => now >= end + PATIENCE,
        }
    }
}

/// Bytes of the largest argument or result by the channel to this address: by ONC RPC a datagram carries a call.
pub fn size_max(address: &str) -> u64 {
    match address.starts_with("udp:") {
        true => 1500,
        false => 60_000,
    }
}

/// Bytes of a result or an argument over a way that is not to have more than `most`: mostly few, seldom many.
pub fn size(random: &mut Random, most: u64) -> u32 {
    let bits = random.below(17);
    random.below(1 << bits).min(most) as u32
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (right, failed, given_up) = (self.right, self.failed, self.given_up);
        write!(f, "{right} right, {failed} failed, {given_up} given up")?;
        self.wrong
            .iter()
            .try_for_each(|wrong| write!(f, "; {wrong}"))
    }
}

/// A caller, which shares its channel.
pub struct Caller {
    client: HprpcVersionClient,
    /// Whether the way to the server is one on which calls fail.
    is_faulty: bool,
    size_max: u64,
    random: Random,
    tally: Tally,
}

/// A call in flight, with the result that it should have.
enum Pending {
    Null(PendingCall<()>),
    Hello(PendingCall<BString>, BString),
    Mean(PendingCall<f64>, f64),
    Numbers(PendingCall<Numbers>, u32),
    Record(PendingCall<LargeData>, Box<LargeData>),
    Packet(PendingCall<Packet>),
}

impl Pending {
    /// Waits for the result, and says whether it is right.
    fn succeed(self) -> Result<bool, CallError> {
        Ok(match self {
            Self::Null(call) => call.wait().map(|()| true)?,
            Self::Hello(call, greeting) => call.wait()? == greeting,
            Self::Mean(call, mean) => call.wait()? == mean,
            Self::Numbers(call, count) => call.wait()? == rand_nums(count),
            Self::Record(call, record) => call.wait()? == *record,
            Self::Packet(call) => call
                .wait()?
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == at as u8),
        })
    }
}

impl Caller {
    pub fn new(client: HprpcVersionClient, is_faulty: bool, seed: u64) -> Self {
        let size_max = size_max(&client.0.channel().address().to_string());
        Self {
            client: client.with_timeout(PATIENCE),
            is_faulty,
            size_max,
            random: Random::new(seed),
            tally: Tally::default(),
        }
    }

    /// Calls until `end`, or until there was enough of everything if that takes longer, and says what came
    /// of it.
    pub fn call_until(&mut self, end: Instant) -> Tally {
        while !self.tally.is_over(self.is_faulty, end) {
            match self.random.below(8) {
                0 => self.call_in_a_hurry(),
                1..4 => self.call_many_at_once(),
                _ => {
                    let client = self.client.clone();
                    let outcome = self.start(&client).and_then(Pending::succeed);
                    self.note(outcome);
                }
            }
        }
        std::mem::take(&mut self.tally)
    }

    /// A call that has hardly any time: whether it succeeds is left to chance.
    fn call_in_a_hurry(&mut self) {
        let limit = Duration::from_micros(self.random.below(300));
        let client = self.client.with_timeout(limit);
        match self.start(&client).and_then(Pending::succeed) {
            Err(CallError::TimedOut { .. }) => self.tally.failed += 1,
            outcome => self.note(outcome),
        }
    }

    /// Many calls, perhaps in a batch, of which some are given up, and whose results are fetched in any
    /// order, the batch over or not.
    fn call_many_at_once(&mut self) {
        let client = self.client.clone();
        let mut batch = (self.random.below(2) == 0).then(|| client.0.channel().batch());
        let mut calls = Vec::new();
        for _ in 0..=self.random.below(IN_FLIGHT_MAX) {
            match self.start(&client) {
                Ok(call) => calls.push(call),
                Err(error) => self.note(Err(error)),
            }
        }
        if self.random.below(4) > 0 {
            batch = None;
        }
        while !calls.is_empty() {
            let at = self.random.below(calls.len() as u64) as usize;
            let call = calls.swap_remove(at);
            match self.random.below(10) {
                0 => {
                    drop(call);
                    self.tally.given_up += 1;
                }
                _ => self.note(call.succeed()),
            }
        }
        drop(batch);
    }

    fn start(&mut self, client: &HprpcVersionClient) -> Result<Pending, CallError> {
        let size = size(&mut self.random, self.size_max);
        Ok(match self.random.below(6) {
            0 => Pending::Null(client.start_null_call()?),
            1 => {
                let name: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
                let greeting = BString::from([b"Hello ", &name[..]].concat());
                Pending::Hello(client.start_say_hello(BStr::new(&name))?, greeting)
            }
            2 => {
                let numbers: Numbers = (0..size as i32 / 4).collect();
                let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
                let mean = sum as f64 / numbers.len().max(1) as f64;
                Pending::Mean(client.start_average(&numbers)?, mean)
            }
            3 => Pending::Numbers(client.start_get_rand_nums(size / 4)?, size / 4),
            4 => {
                let record = Box::new(LargeData {
                    member1: self.random.bits() as i32,
                    member77: -1,
                    member128: self.random.bits() as i32,
                    ..LargeData::default()
                });
                Pending::Record(client.start_send_rcv_large_data(&record)?, record)
            }
            _ => Pending::Packet(client.start_max_result()?),
        })
    }

    fn note(&mut self, outcome: Result<bool, CallError>) {
        self.tally.note(self.is_faulty, outcome);
    }
}

//! Results that asynchronous procedures write where they are sent from: clients see no difference, by either protocol,
//! however long a procedure waits, and nothing is left of a result that is refused or given up.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::lean_caller::LeanCaller;
use crate::common::obliging::{self, eventually, every_way, in_time};
use crate::reserved_stubs::*;
use tenon::lean::{ByteOrder, Extras, Preamble};
use tenon::wire::BString;
use tenon::{CallError, CallInfo, CallOptions, Protocol, Refusal, Refused, ReplyMetadata};
use tenon_tokio::Server;
use tokio::sync::Barrier;
use tokio::task::{JoinSet, spawn_blocking, yield_now};

/// A call with it is refused when the result is written.
const REFUSED: u32 = 0;
/// The service panics when the result is written.
const PANIC: u32 = 13;
/// The call waits until it is given up when the result is written.
const HELD: u32 = 14;
/// The calls with this and what follows wait for each other when half of the result is written.
const MEET: u32 = 100;
const MEETING: u32 = 8;
/// The reply has metadata.
const TOLD: u32 = 15;

const NAME: &[u8] = b"there";

/// Writes its results where they are sent from.
struct Writing {
    all_are_there: Barrier,
    /// Calls that are held.
    held: Arc<AtomicUsize>,
}

impl Default for Writing {
    fn default() -> Self {
        Self {
            all_are_there: Barrier::new(MEETING as usize),
            held: Arc::default(),
        }
    }
}

/// Counts a call that is held.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(held: &Arc<AtomicUsize>) -> Self {
        held.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(held))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Writing {
    /// Writes a result into a place that is zeroed, and waits before and behind.
    async fn write<T: Clone + Debug + PartialEq>(
        &self,
        (call, seed): (&CallInfo<'_>, u32),
        reply: &mut T,
        (zero, value): (T, T),
    ) -> Result<(), Refusal> {
        yield_now().await;
        assert!(*reply == zero, "the place of a result is zeroed");
        *reply = value;
        match seed {
            REFUSED => Err(Refusal::SystemError("as the test asked".to_owned())),
            PANIC => std::panic::resume_unwind(Box::new("as the test asked")),
            HELD => {
                let _held = Held::new(&self.held);
                std::future::pending().await
            }
            TOLD => {
                call.append_reply_metadata("told", b"so").unwrap();
                Ok(())
            }
            MEET.. => {
                self.all_are_there.wait().await;
                Ok(())
            }
            _ => {
                yield_now().await;
                Ok(())
            }
        }
    }
}

fn packet(seed: u32) -> [u8; 1440] {
    std::array::from_fn(|at| (at as u32 + seed) as u8 | 1)
}

fn vertex(seed: u32) -> Vertex {
    Vertex {
        at: [1.0, 2.0, seed as f32],
        color: seed,
    }
}

fn stamp(seed: u32) -> Stamp {
    Stamp {
        seconds: 0x0102_0304_0506_0708,
        fraction: -(seed as i32),
        zone: 0x0A0B,
        name: *b"ab",
    }
}

fn both(seed: u32) -> ResultsBothResult {
    ResultsBothResult {
        least: seed,
        most: u32::MAX,
    }
}

fn lamp(seed: u32) -> Lamp {
    Lamp {
        of: Shade::Light,
        at: seed as i32,
    }
}

const TAG: Tag = [1, 2, 3, 4, 5];
const COUNTERS: Counters = [0x0102_0304_0506_0708; 33];
const SAMPLES: Samples = [-2; 7];

impl ResultsV1Async for Writing {
    async fn packet(&self, call: &CallInfo<'_>, seed: u32, to: &mut Packet) -> Result<(), Refusal> {
        let of = ([0; 1440], packet(seed));
        self.write((call, seed), to, of).await
    }

    async fn tag(&self, call: &CallInfo<'_>, seed: u32, to: &mut Tag) -> Result<(), Refusal> {
        self.write((call, seed), to, ([0; 5], TAG)).await
    }

    async fn counters(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        to: &mut Counters,
    ) -> Result<(), Refusal> {
        self.write((call, seed), to, ([0; 33], COUNTERS)).await
    }

    async fn samples(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        to: &mut Samples,
    ) -> Result<(), Refusal> {
        self.write((call, seed), to, ([0; 7], SAMPLES)).await
    }

    async fn page(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        to: &mut [u8; 8192],
    ) -> Result<(), Refusal> {
        self.write((call, seed), to, ([0; 8192], [7; 8192])).await
    }

    async fn steps(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        to: &mut [i32; 2000],
    ) -> Result<(), Refusal> {
        self.write((call, seed), to, ([0; 2000], [-7; 2000])).await
    }

    async fn vertex(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        name: BString,
        to: &mut Vertex,
    ) -> Result<(), Refusal> {
        assert_eq!(name, NAME);
        let of = (Vertex::default(), vertex(seed));
        self.write((call, seed), to, of).await
    }

    async fn stamp(&self, call: &CallInfo<'_>, seed: u32, to: &mut Stamp) -> Result<(), Refusal> {
        let of = (Stamp::default(), stamp(seed));
        self.write((call, seed), to, of).await
    }

    async fn lamp(&self, _: &CallInfo<'_>, seed: u32) -> Result<Lamp, Refusal> {
        Ok(lamp(seed))
    }

    async fn number(&self, _: &CallInfo<'_>, seed: u32) -> Result<u64, Refusal> {
        Ok(seed.into())
    }

    async fn name(&self, _: &CallInfo<'_>, _: u32) -> Result<BString, Refusal> {
        Ok("name".into())
    }

    async fn both(
        &self,
        call: &CallInfo<'_>,
        seed: u32,
        to: &mut ResultsBothResult,
    ) -> Result<(), Refusal> {
        let of = (ResultsBothResult::default(), both(seed));
        self.write((call, seed), to, of).await
    }
}

async fn server() -> Server {
    let service = ResultsV1AsyncService(Writing::default());
    let builder = obliging::listening_in_tasks().service(service);
    builder.start().await.unwrap()
}

async fn check(calls: &impl ResultsV1AsyncCalls, seed: u32) {
    assert_eq!(in_time(calls.packet(seed)).await.unwrap(), packet(seed));
    assert_eq!(in_time(calls.tag(seed)).await.unwrap(), TAG);
    assert_eq!(in_time(calls.counters(seed)).await.unwrap(), COUNTERS);
    assert_eq!(in_time(calls.samples(seed)).await.unwrap(), SAMPLES);
    assert_eq!(in_time(calls.page(seed)).await.unwrap()[..], [7; 8192]);
    assert_eq!(in_time(calls.steps(seed)).await.unwrap()[..], [-7; 2000]);
    let found = in_time(calls.vertex(seed, NAME)).await.unwrap();
    assert_eq!(found, vertex(seed));
    assert_eq!(in_time(calls.stamp(seed)).await.unwrap(), stamp(seed));
    assert_eq!(in_time(calls.lamp(seed)).await.unwrap(), lamp(seed));
    assert_eq!(in_time(calls.number(seed)).await.unwrap(), seed.into());
    assert_eq!(in_time(calls.name(seed)).await.unwrap(), "name");
    assert_eq!(in_time(calls.both(seed)).await.unwrap(), both(seed));
}

#[tokio::test]
async fn clients_see_no_difference() {
    let server = server().await;
    let mut lean = 0;
    for address in every_way(server.addresses()) {
        let client = ResultsV1AsyncClient::connect(&address).await.unwrap();
        lean += u32::from(client.0.protocol() == Protocol::Lean);
        // As calls that are tried where they were received, and as others.
        for seed in 1..6 {
            check(&client, seed).await;
        }
    }
    assert_eq!(lean as usize, server.addresses().len());
}

#[tokio::test]
async fn a_caller_in_the_process_sees_no_difference() {
    let calls = ResultsV1AsyncInProcess(Writing::default());
    check(&calls, 1).await;
    let refused = calls.packet(REFUSED).await.unwrap_err();
    assert!(matches!(refused, CallError::Exception(_)), "{refused:?}");
}

#[tokio::test]
async fn a_reply_may_have_metadata_beside_the_result() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = ResultsV1AsyncClient::connect(&address).await.unwrap();
        let is_lean = client.0.protocol() == Protocol::Lean;
        let told: [_; 2] = std::array::from_fn(|_| Arc::new(ReplyMetadata::new()));
        let [of_packet, of_samples] = &told;
        let options = CallOptions::new().reply_metadata(of_packet);
        let found = in_time(client.with_options(options).packet(TOLD)).await;
        assert_eq!(found.unwrap(), packet(TOLD), "{address}");
        let options = CallOptions::new().reply_metadata(of_samples);
        let found = in_time(client.with_options(options).samples(TOLD)).await;
        assert_eq!(found.unwrap(), SAMPLES, "{address}");
        for told in &told {
            assert_eq!(told.get().get("told").is_some(), is_lean, "{address}");
        }
    }
}

/// Calls that wait at the same time have a room each.
#[tokio::test]
async fn calls_of_one_connection_write_at_the_same_time() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = ResultsV1AsyncClient::connect(&address).await.unwrap();
        let mut calls = JoinSet::new();
        for seed in MEET..MEET + MEETING {
            let client = client.clone();
            calls.spawn(async move {
                let found = in_time(client.packet(seed)).await.unwrap();
                assert_eq!(found, packet(seed));
            });
        }
        while let Some(met) = calls.join_next().await {
            met.unwrap();
        }
    }
}

#[tokio::test]
async fn a_result_that_is_refused_is_followed_by_others() {
    let server = server().await;
    for address in every_way(server.addresses()) {
        let client = ResultsV1AsyncClient::connect(&address).await.unwrap();
        let is_lean = client.0.protocol() == Protocol::Lean;
        for seed in [REFUSED, PANIC] {
            let refused = [
                in_time(client.packet(seed)).await.map(drop).unwrap_err(),
                in_time(client.tag(seed)).await.map(drop).unwrap_err(),
                in_time(client.page(seed)).await.map(drop).unwrap_err(),
                in_time(client.stamp(seed)).await.map(drop).unwrap_err(),
            ];
            for error in refused {
                match (&error, is_lean) {
                    (CallError::Refused(Refused::SystemError), false) => {}
                    (CallError::Exception(_), true) => {}
                    (error, _) => panic!("{address}: {error:?}"),
                }
            }
            check(&client, 1).await;
        }
    }
}

/// The future of a call with a result in the reply is dropped where it waits.
#[tokio::test]
async fn a_result_that_is_given_up_is_followed_by_others() {
    let service = Writing::default();
    let held = Arc::clone(&service.held);
    let builder = obliging::listening_in_tasks().service(ResultsV1AsyncService(service));
    let server = builder.start().await.unwrap();
    let lean = every_way(server.addresses()).into_iter();
    for address in lean.filter(|way| way.starts_with("lean+")) {
        let client = ResultsV1AsyncClient::connect(&address).await.unwrap();
        let packet = client.start_packet(HELD).unwrap();
        let samples = client.start_samples(HELD).unwrap();
        eventually("both calls wait", || held.load(Ordering::SeqCst) == 2).await;
        drop((packet, samples));
        eventually("both are dropped", || held.load(Ordering::SeqCst) == 0).await;
        check(&client, 1).await;
    }
}

/// The answer to a call by a lean client, of either order of bytes.
async fn lean_answer(address: &str, order: ByteOrder, procedure: u32, seed: u32) -> String {
    let preamble = Preamble {
        order,
        ..Preamble::client(1 << 20)
    };
    let address = address.to_owned();
    let arguments = match order {
        ByteOrder::Little => seed.to_le_bytes(),
        ByteOrder::Big => seed.to_be_bytes(),
    };
    let called = spawn_blocking(move || {
        let mut caller = LeanCaller::connect_as(&address, &preamble);
        let interface = RESULTS_V1_INTERFACE.shared();
        let extras = Extras::default();
        caller.call_of(&interface, procedure as u16, &arguments, &extras)
    });
    in_time(called).await.unwrap()
}

/// Results lie in the server's order of bytes, whatever the client's is, and nothing of one that was written is behind a
/// refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bytes_of_a_lean_reply_are_the_result_or_the_refusal() {
    let server = server().await;
    let samples: Vec<u8> = SAMPLES.into_iter().flat_map(i16::to_ne_bytes).collect();
    let counters: Vec<u8> = COUNTERS.into_iter().flat_map(i64::to_ne_bytes).collect();
    for address in server.addresses().iter().map(ToString::to_string) {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for (procedure, bytes) in [
                (RESULTS_PACKET, &packet(1)[..]),
                (RESULTS_TAG, &TAG),
                (RESULTS_SAMPLES, &samples),
                (RESULTS_COUNTERS, &counters),
            ] {
                let answer = lean_answer(&address, order, procedure, 1).await;
                let expected = format!(": {}", bytes.escape_ascii());
                assert!(answer.ends_with(&expected), "{procedure}: {answer}");
                for seed in [REFUSED, PANIC] {
                    let answer = lean_answer(&address, order, procedure, seed).await;
                    let few = bytes[..5].escape_ascii().to_string();
                    assert!(!answer.contains(&few), "{procedure}: {answer}");
                }
            }
        }
    }
}

/// The bytes of the answer to a call by ONC RPC over TCP, behind its number.
async fn onc_answer(address: &str, procedure: u32, seed: u32) -> Vec<u8> {
    let address = address.strip_prefix("tcp://").unwrap().to_owned();
    let called = spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let none = [0; 4];
        let call = [7, 0, 2, RESULTS, RESULTS_V1, procedure];
        let words = call.into_iter().chain(none).chain([seed]);
        let message: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        let mark = 1 << 31 | message.len() as u32;
        stream.write_all(&mark.to_be_bytes()).unwrap();
        stream.write_all(&message).unwrap();
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).unwrap();
        let length = u32::from_be_bytes(mark) & !(1 << 31);
        let mut answer = vec![0; length as usize];
        stream.read_exact(&mut answer).unwrap();
        answer.split_off(4)
    });
    in_time(called).await.unwrap()
}

/// The bytes of a reply of ONC RPC behind its number: accepted, without a verifier, with this status.
fn onc_reply(status: u32, result: &[u8]) -> Vec<u8> {
    let header = [1, 0, 0, 0, status].into_iter().flat_map(u32::to_be_bytes);
    header.chain(result.iter().copied()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bytes_of_a_reply_of_onc_rpc_are_the_result_or_the_refusal() {
    let server = server().await;
    let addresses = server.addresses().iter().map(ToString::to_string);
    let tag = [1, 2, 3, 4, 5, 0, 0, 0];
    let samples: Vec<u8> = SAMPLES
        .into_iter()
        .flat_map(|number| i32::from(number).to_be_bytes())
        .collect();
    let counters: Vec<u8> = COUNTERS.into_iter().flat_map(i64::to_be_bytes).collect();
    for address in addresses.filter(|address| address.starts_with("tcp://")) {
        for (procedure, bytes) in [
            (RESULTS_PACKET, &packet(1)[..]),
            (RESULTS_TAG, &tag),
            (RESULTS_SAMPLES, &samples),
            (RESULTS_COUNTERS, &counters),
        ] {
            let answer = onc_answer(&address, procedure, 1).await;
            assert!(answer == onc_reply(0, bytes), "{procedure}: {answer:?}");
            for seed in [REFUSED, PANIC] {
                let answer = onc_answer(&address, procedure, seed).await;
                // SYSTEM_ERR.
                assert_eq!(answer, onc_reply(5, &[]), "{procedure}");
            }
        }
    }
}

//! Results that a service writes where they are sent from: the bytes are those of results that are
//! returned, by either protocol and wherever they lie, and nothing is left of a result that is refused.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::caller;
use crate::reserved;
use crate::results;
use crate::results::{RESULTS_BOTH, RESULTS_PACKET, RESULTS_VERTEX};
use tenon::wire::{
    BString, Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Representation, Swapped,
    Xdr,
};
use tenon::{CallError, CallInfo, Credential, LeanInput, Refusal, Service, Transport};

/// A call with it is refused when half of the result is written.
const REFUSED: u32 = 0;

/// The service panics when half of the result is written.
const PANIC: u32 = 13;

/// A thing to be returned, none of whose bytes is zero, or a refusal.
fn made<T>(seed: u32, value: T) -> Result<T, Refusal> {
    match seed {
        REFUSED => Err(Refusal::SystemError("as the test asked".to_owned())),
        PANIC => std::panic::resume_unwind(Box::new("as the test asked")),
        _ => Ok(value),
    }
}

/// Writes a result into a place that is zeroed.
fn write<T: Clone + Debug + PartialEq>(
    reply: &mut T,
    zero: T,
    value: T,
    seed: u32,
) -> Result<(), Refusal> {
    assert!(*reply == zero, "the place of a result is zeroed");
    *reply = value;
    made(seed, ())
}

fn packet(seed: u32) -> [u8; 1440] {
    std::array::from_fn(|at| (at as u32 + seed) as u8 | 1)
}

/// The name of what the module `$stubs` calls so, made of a seed.
macro_rules! values {
    ($stubs:ident) => {
        fn vertex(seed: u32) -> $stubs::Vertex {
            $stubs::Vertex {
                at: [1.0, 2.0, seed as f32],
                color: seed,
            }
        }

        fn stamp(seed: u32) -> $stubs::Stamp {
            $stubs::Stamp {
                seconds: 0x0102_0304_0506_0708,
                fraction: -(seed as i32),
                zone: 0x0A0B,
                name: *b"ab",
            }
        }

        fn both(seed: u32) -> $stubs::ResultsBothResult {
            $stubs::ResultsBothResult {
                least: seed,
                most: u32::MAX,
            }
        }

        fn lamp(seed: u32) -> $stubs::Lamp {
            $stubs::Lamp {
                of: $stubs::Shade::Light,
                at: seed as i32,
            }
        }
    };
}

mod by_value {
    use super::*;
    use crate::results::*;

    values!(results);

    /// Returns its results.
    pub struct Returning;

    impl ResultsV1 for Returning {
        fn packet(&self, _: &CallInfo<'_>, seed: u32) -> Result<Packet, Refusal> {
            made(seed, super::packet(seed))
        }

        fn tag(&self, _: &CallInfo<'_>, seed: u32) -> Result<Tag, Refusal> {
            made(seed, [1, 2, 3, 4, 5])
        }

        fn counters(&self, _: &CallInfo<'_>, seed: u32) -> Result<Counters, Refusal> {
            made(seed, [0x0102_0304_0506_0708; 33])
        }

        fn samples(&self, _: &CallInfo<'_>, seed: u32) -> Result<Samples, Refusal> {
            made(seed, [-2; 7])
        }

        fn page(&self, _: &CallInfo<'_>, seed: u32) -> Result<Page, Refusal> {
            made(seed, Box::new([7; 8192]))
        }

        fn steps(&self, _: &CallInfo<'_>, seed: u32) -> Result<Steps, Refusal> {
            made(seed, Box::new([-7; 2000]))
        }

        fn vertex(&self, _: &CallInfo<'_>, seed: u32, _: BString) -> Result<Vertex, Refusal> {
            made(seed, vertex(seed))
        }

        fn stamp(&self, _: &CallInfo<'_>, seed: u32) -> Result<Stamp, Refusal> {
            made(seed, stamp(seed))
        }

        fn lamp(&self, _: &CallInfo<'_>, seed: u32) -> Result<Lamp, Refusal> {
            made(seed, lamp(seed))
        }

        fn number(&self, _: &CallInfo<'_>, seed: u32) -> Result<u64, Refusal> {
            made(seed, seed.into())
        }

        fn name(&self, _: &CallInfo<'_>, seed: u32) -> Result<BString, Refusal> {
            made(seed, "name".into())
        }

        fn both(&self, _: &CallInfo<'_>, seed: u32) -> Result<ResultsBothResult, Refusal> {
            made(seed, both(seed))
        }
    }
}

mod in_place {
    use super::*;
    use crate::reserved::*;

    values!(reserved);

    /// Writes its results where they are sent from.
    pub struct Writing;

    impl ResultsV1 for Writing {
        fn packet(&self, _: &CallInfo<'_>, seed: u32, reply: &mut Packet) -> Result<(), Refusal> {
            write(reply, [0; 1440], super::packet(seed), seed)
        }

        fn tag(&self, _: &CallInfo<'_>, seed: u32, reply: &mut Tag) -> Result<(), Refusal> {
            write(reply, [0; 5], [1, 2, 3, 4, 5], seed)
        }

        fn counters(
            &self,
            _: &CallInfo<'_>,
            seed: u32,
            reply: &mut Counters,
        ) -> Result<(), Refusal> {
            write(reply, [0; 33], [0x0102_0304_0506_0708; 33], seed)
        }

        fn samples(&self, _: &CallInfo<'_>, seed: u32, reply: &mut Samples) -> Result<(), Refusal> {
            write(reply, [0; 7], [-2; 7], seed)
        }

        fn page(&self, _: &CallInfo<'_>, seed: u32, reply: &mut [u8; 8192]) -> Result<(), Refusal> {
            write(reply, [0; 8192], [7; 8192], seed)
        }

        fn steps(
            &self,
            _: &CallInfo<'_>,
            seed: u32,
            reply: &mut [i32; 2000],
        ) -> Result<(), Refusal> {
            write(reply, [0; 2000], [-7; 2000], seed)
        }

        fn vertex(
            &self,
            _: &CallInfo<'_>,
            seed: u32,
            _: BString,
            reply: &mut Vertex,
        ) -> Result<(), Refusal> {
            write(reply, Vertex::default(), vertex(seed), seed)
        }

        fn stamp(&self, _: &CallInfo<'_>, seed: u32, reply: &mut Stamp) -> Result<(), Refusal> {
            write(reply, Stamp::default(), stamp(seed), seed)
        }

        fn lamp(&self, _: &CallInfo<'_>, seed: u32) -> Result<Lamp, Refusal> {
            made(seed, lamp(seed))
        }

        fn number(&self, _: &CallInfo<'_>, seed: u32) -> Result<u64, Refusal> {
            made(seed, seed.into())
        }

        fn name(&self, _: &CallInfo<'_>, seed: u32) -> Result<BString, Refusal> {
            made(seed, "name".into())
        }

        fn both(
            &self,
            _: &CallInfo<'_>,
            seed: u32,
            reply: &mut ResultsBothResult,
        ) -> Result<(), Refusal> {
            write(reply, ResultsBothResult::default(), both(seed), seed)
        }
    }
}

const RETURNING: results::ResultsV1Service<by_value::Returning> =
    results::ResultsV1Service(by_value::Returning);
const WRITING: reserved::ResultsV1Service<in_place::Writing> =
    reserved::ResultsV1Service(in_place::Writing);

/// How a call comes in.
#[derive(Debug, Clone, Copy)]
enum Way {
    Onc,
    Lean,
    LeanSwapped,
}

const WAYS: [Way; 3] = [Way::Onc, Way::Lean, Way::LeanSwapped];

fn arguments<R: Representation>(procedure: u32, seed: u32) -> Vec<u8> {
    let mut buffer = Buffer::default();
    let mut out = Encoder::<R>::over(&mut buffer);
    out.put(seed);
    if procedure == RESULTS_VERTEX {
        out.put_opaque(b"somewhere", 16).unwrap();
    }
    buffer.as_slice().to_vec()
}

/// Has `service` carry out a call and append its result behind `before` bytes; whatever else the
/// buffer held is not zero.
fn carried_out(
    service: &dyn Service,
    way: Way,
    (procedure, seed): (u32, u32),
    before: usize,
) -> (Vec<u8>, Result<(), Refusal>) {
    fn input<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
        Decoder::over(bytes, DecodeMode::Strict, Limits::default())
    }
    let mut buffer = Buffer::default();
    buffer.extend(&[0xA5; 20000]);
    buffer.truncate(before);
    let call = CallInfo::new(procedure, Credential::None, Transport::Tcp);
    let done = catch_unwind(AssertUnwindSafe(|| match way {
        Way::Onc => {
            let bytes = arguments::<Xdr>(procedure, seed);
            let mut out = Encoder::new(&mut buffer);
            service.call(&call, &mut input(&bytes), &mut out)
        }
        Way::Lean => {
            let bytes = arguments::<Lean<Native>>(procedure, seed);
            let mut out = Encoder::over(&mut buffer);
            let input = LeanInput::Native(input(&bytes));
            service.lean().unwrap().call_lean(&call, input, &mut out)
        }
        Way::LeanSwapped => {
            let bytes = arguments::<Lean<Swapped>>(procedure, seed);
            let mut out = Encoder::over(&mut buffer);
            let input = LeanInput::Swapped(input(&bytes));
            service.lean().unwrap().call_lean(&call, input, &mut out)
        }
    }));
    let panicked = || Err(Refusal::SystemError("it panicked".to_owned()));
    let done = done.unwrap_or_else(|_| panicked());
    (buffer.as_slice().to_vec(), done)
}

#[test]
fn the_bytes_are_those_of_results_that_are_returned() {
    for procedure in RESULTS_PACKET..=RESULTS_BOTH {
        for (way, before) in WAYS
            .into_iter()
            .flat_map(|way| [0, 16, 28, 33].map(|of| (way, of)))
        {
            let call = (procedure, 5);
            let (expected, done) = carried_out(&RETURNING, way, call, before);
            done.unwrap();
            let (found, done) = carried_out(&WRITING, way, call, before);
            done.unwrap();
            assert!(found.len() > before, "{call:?} {way:?}");
            assert!(found == expected, "{call:?} {way:?} behind {before}");
        }
    }
}

#[test]
fn nothing_is_left_of_a_result_that_is_refused() {
    for procedure in RESULTS_PACKET..=RESULTS_BOTH {
        for (way, seed) in WAYS
            .into_iter()
            .flat_map(|way| [REFUSED, PANIC].map(|of| (way, of)))
        {
            let (left, done) = carried_out(&WRITING, way, (procedure, seed), 28);
            assert!(done.is_err(), "{procedure} {way:?}");
            assert_eq!(left, [0xA5; 28], "{procedure} {way:?} {seed}");
        }
    }
}

#[test]
fn clients_see_no_difference() {
    let builder = caller::listening().service(WRITING);
    let server = builder.start().unwrap();
    let addresses = server.addresses().iter().map(ToString::to_string);
    let both = addresses.flat_map(|address| match address.starts_with("udp") {
        true => vec![address],
        false => vec![format!("lean+{address}"), address],
    });
    for address in both {
        // Made without the option: what is on the wire is the same interface.
        let client = results::ResultsV1Client::connect(&address).unwrap();
        for seed in [1, 200] {
            assert_eq!(client.packet(seed).unwrap(), packet(seed), "{address}");
            assert_eq!(client.tag(seed).unwrap(), [1, 2, 3, 4, 5]);
            assert_eq!(client.samples(seed).unwrap(), [-2; 7]);
            assert_eq!(client.page(seed).unwrap()[..], [7; 8192]);
            assert_eq!(client.steps(seed).unwrap()[..], [-7; 2000]);
            let vertex = client.vertex(seed, "there").unwrap();
            assert_eq!((vertex.at[2], vertex.color), (seed as f32, seed));
            assert_eq!(client.stamp(seed).unwrap().zone, 0x0A0B);
            let refused = client.packet(REFUSED).unwrap_err();
            let is_said = matches!(refused, CallError::Refused(_) | CallError::Exception(_));
            assert!(is_said, "{address}: {refused:?}");
            let bounds = client.both(seed).unwrap();
            assert_eq!((bounds.least, bounds.most), (seed, u32::MAX));
            assert_eq!(client.name(seed).unwrap(), "name");
        }
    }
}

#[test]
fn a_caller_in_the_process_sees_no_difference() {
    use crate::reserved::ResultsV1Calls as _;
    let server = reserved::ResultsV1InProcess(WRITING.0);
    assert_eq!(server.packet(200).unwrap(), packet(200));
    assert_eq!(server.page(1).unwrap()[..], [7; 8192]);
    assert_eq!(server.steps(1).unwrap()[..], [-7; 2000]);
    assert_eq!(server.vertex(3, b"there").unwrap().color, 3);
    assert_eq!(server.name(1).unwrap(), "name");
    let refused = server.packet(REFUSED).unwrap_err();
    assert!(matches!(refused, CallError::Exception(_)), "{refused:?}");
}

//! Compiled stubs against the interpreter: both make the same of any bytes, of every type of the
//! torture interface, in both modes.
//!
//! The first byte of an input chooses the type, the second the mode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon::wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, Encoder, Limits, Marshal,
};
use tenon_fuzz::TORTURE;
use tenon_schema::TypeId;

tenon::stubs!(
    mod torture;
);

/// Reads a value and writes it again.
type Recode = fn(&mut Decoder<'_>) -> Result<Buffer, DecodeError>;

/// The compiled types in the order of the interface.
const TYPES: &[Recode] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));

fuzz_target!(|input: &[u8]| {
    let [which, mode, bytes @ ..] = input else {
        return;
    };
    let which = usize::from(*which) % TYPES.len();
    let mode = match mode % 2 {
        0 => DecodeMode::Lenient,
        _ => DecodeMode::Strict,
    };
    let compiled = outcome(bytes, mode, TYPES[which]);
    let interpreted = outcome(bytes, mode, |input| interpret(TypeId(which as u32), input));
    // What a value takes in memory is another matter for each.
    if is_too_large(&compiled) || is_too_large(&interpreted) {
        return;
    }
    assert_eq!(compiled, interpreted);
    if let (DecodeMode::Strict, Ok((read, written))) = (mode, compiled) {
        assert_eq!(written, bytes[..read]);
    }
});

/// How many bytes were read and what was written again, or what is wrong and where. Fields bear
/// other names in the wrappers around the compiled types.
type Outcome = Result<(usize, Vec<u8>), (DecodeErrorKind, usize)>;

fn outcome(
    bytes: &[u8],
    mode: DecodeMode,
    recode: impl Fn(&mut Decoder<'_>) -> Result<Buffer, DecodeError>,
) -> Outcome {
    let mut input = Decoder::with(bytes, mode, Limits::default());
    match recode(&mut input) {
        Ok(written) => Ok((input.position(), written.as_slice().to_vec())),
        Err(error) => Err((error.kind, error.offset)),
    }
}

fn is_too_large(outcome: &Outcome) -> bool {
    matches!(outcome, Err((DecodeErrorKind::TooMuchMemory, _)))
}

fn compiled<T: Marshal>(input: &mut Decoder<'_>) -> Result<Buffer, DecodeError> {
    let value = T::decode(input)?;
    let mut written = Buffer::default();
    let done = value.encode(&mut Encoder::new(&mut written));
    assert_eq!(done, Ok(()));
    Ok(written)
}

fn interpret(id: TypeId, input: &mut Decoder<'_>) -> Result<Buffer, DecodeError> {
    let value = TORTURE.decode(id, input)?;
    let mut written = Buffer::default();
    let done = TORTURE.encode(id, &value, &mut Encoder::new(&mut written));
    assert_eq!(done, Ok(()), "{value:?}");
    Ok(written)
}

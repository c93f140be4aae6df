//! Compiled stubs, machine code and the interpreter make the same of any bytes, of every type of the
//! torture interface, in every representation and both modes.
//!
//! The first byte of an input chooses the type, the second the mode and the representation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon::wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, Encoder, Lean, Limits, Marshal,
    Native, Representation, Swapped, Xdr,
};
use tenon_exec::{Interface, Message};
use tenon_fuzz::{TORTURE, TORTURE_LEAN};
use tenon_schema::TypeId;

tenon::stubs!(
    mod torture;
);

/// Reads a value and writes it again.
type Recode<R> = fn(&mut Decoder<'_, R>) -> Result<Buffer, DecodeError>;

/// The compiled types in the order of the interface.
trait Compiled: Representation {
    const TYPES: &[Recode<Self>];

    /// Whether both find the same error first. Stubs look at the holes of a block before its values.
    const HAS_NO_HOLES: bool = false;

    /// What is written: always the order of this machine, whoever sent what is read.
    type Written: Representation;
}

impl Compiled for Xdr {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
    const HAS_NO_HOLES: bool = true;
    type Written = Self;
}

impl Compiled for Lean<Native> {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
    type Written = Self;
}

impl Compiled for Lean<Swapped> {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
    type Written = Lean<Native>;
}

fuzz_target!(|input: &[u8]| {
    let [which, how, bytes @ ..] = input else {
        return;
    };
    let mode = match how % 2 {
        0 => DecodeMode::Lenient,
        _ => DecodeMode::Strict,
    };
    let which = usize::from(*which);
    match how / 2 % 3 {
        0 => agree::<Xdr>(&TORTURE, which, mode, bytes),
        1 => agree::<Lean<Native>>(&TORTURE_LEAN, which, mode, bytes),
        _ => agree::<Lean<Swapped>>(&TORTURE_LEAN, which, mode, bytes),
    }
});

fn agree<R: Compiled>(interface: &Interface, which: usize, mode: DecodeMode, bytes: &[u8]) {
    let which = which % R::TYPES.len();
    let id = TypeId(which as u32);
    let outcome = |recode: &dyn Fn(&mut Decoder<'_, R>) -> Result<Buffer, DecodeError>| {
        let mut input = Decoder::<R>::over(bytes, mode, Limits::default());
        match recode(&mut input) {
            Ok(written) => Ok((input.position(), written.as_slice().to_vec())),
            Err(error) => Err((error.kind, error.offset)),
        }
    };
    let interpreted = outcome(&|input| interpret(interface, id, input));
    if let Ok(message) = interface.message(id) {
        by_machine::<R>(message, mode, bytes, &interpreted);
    }
    let compiled = outcome(&R::TYPES[which]);
    // What a value takes in memory is another matter for each.
    if is_too_large(&compiled) || is_too_large(&interpreted) {
        return;
    }
    match (&compiled, &interpreted) {
        (Err(_), Err(_)) if !R::HAS_NO_HOLES => {}
        (compiled, interpreted) => assert_eq!(compiled, interpreted),
    }
    if let (DecodeMode::Strict, Ok((read, written))) = (mode, compiled) {
        let is_of_our_order = R::SWAPPED == R::Written::SWAPPED;
        assert!(!is_of_our_order || written == bytes[..read]);
    }
}

/// How many bytes were read and what was written again, or what is wrong and where. Fields bear
/// other names in the wrappers around the compiled types.
type Outcome = Result<(usize, Vec<u8>), (DecodeErrorKind, usize)>;

/// Machine code accepts what the interpreter does, and reads the same from it.
fn by_machine<R: Compiled>(
    message: Message<'_>,
    mode: DecodeMode,
    bytes: &[u8],
    interpreted: &Outcome,
) {
    let mut input = Decoder::<R>::over(bytes, mode, Limits::default());
    let frame = message.decode_by_machine(&mut input);
    let read = frame.map(|frame| {
        let mut written = Buffer::default();
        assert!(frame.encode_by_machine(&mut Encoder::<R::Written>::over(&mut written)));
        (input.position(), written.as_slice().to_vec())
    });
    assert_eq!(read.as_ref(), interpreted.as_ref().ok());
}

fn is_too_large(outcome: &Outcome) -> bool {
    matches!(outcome, Err((DecodeErrorKind::TooMuchMemory, _)))
}

fn compiled<T, R>(input: &mut Decoder<'_, R>) -> Result<Buffer, DecodeError>
where
    T: Marshal<R> + Marshal<R::Written>,
    R: Compiled,
{
    let value: T = Marshal::<R>::decode(input)?;
    let mut written = Buffer::default();
    let done = value.encode(&mut Encoder::<R::Written>::over(&mut written));
    assert_eq!(done, Ok(()));
    Ok(written)
}

fn interpret<R: Compiled>(
    interface: &Interface,
    id: TypeId,
    input: &mut Decoder<'_, R>,
) -> Result<Buffer, DecodeError> {
    let value = interface.decode(id, input)?;
    let mut written = Buffer::default();
    let done = interface.encode(id, &value, &mut Encoder::<R::Written>::over(&mut written));
    assert_eq!(done, Ok(()), "{value:?}");
    Ok(written)
}

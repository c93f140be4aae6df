//! Compiled stubs, machine code and the interpreter make the same of any bytes, of every type of the
//! torture interface, in every representation and both modes.
//!
//! The first byte of an input chooses the type, the second the mode and the representation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon::wire::{
    Buffer, DecodeError, DecodeMode, Decoder, Encoder, Lean, Marshal, Native, Swapped, Xdr,
};
use tenon_exec::Interface;
use tenon_fuzz::engines::{self, Read, is_too_much};
use tenon_fuzz::{TORTURE, TORTURE_LEAN};
use tenon_schema::TypeId;

tenon::stubs!(
    mod torture;
);

/// Reads a value and writes it again.
type Recode<R> = fn(&mut Decoder<'_, R>) -> Result<Buffer, DecodeError>;

/// The compiled types in the order of the interface.
trait Compiled: Read {
    const TYPES: &[Recode<Self>];

    /// Whether both find the same error first. Stubs look at the holes of a block before its values.
    const HAS_NO_HOLES: bool = false;
}

impl Compiled for Xdr {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
    const HAS_NO_HOLES: bool = true;
}

impl Compiled for Lean<Native> {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
}

impl Compiled for Lean<Swapped> {
    const TYPES: &[Recode<Self>] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
}

fuzz_target!(|input: &[u8]| {
    let [which, how, bytes @ ..] = input else {
        return;
    };
    let (mode, how) = engines::mode(*how);
    let which = usize::from(*which);
    match how % 3 {
        0 => agree::<Xdr>(&TORTURE, which, (mode, bytes)),
        1 => agree::<Lean<Native>>(&TORTURE_LEAN, which, (mode, bytes)),
        _ => agree::<Lean<Swapped>>(&TORTURE_LEAN, which, (mode, bytes)),
    }
});

fn agree<R: Compiled>(interface: &Interface, which: usize, read: (DecodeMode, &[u8])) {
    let which = which % R::TYPES.len();
    let interpreted = engines::agreed::<R>(interface, TypeId(which as u32), read);
    let compiled = engines::outcome::<R>(read, R::TYPES[which]);
    // What a value takes in memory is another matter for each.
    if is_too_much(&compiled) || is_too_much(&interpreted) {
        return;
    }
    match (&compiled, &interpreted) {
        (Err(_), Err(_)) if !R::HAS_NO_HOLES => {}
        (compiled, interpreted) => assert_eq!(compiled, interpreted),
    }
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

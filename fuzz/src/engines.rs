//! What the interpreter makes of bytes, and whether machine code makes the same of them.

use tenon_exec::{Interface, Message};
use tenon_schema::TypeId;
use tenon_wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, Encoder, Lean, Limits, Native,
    Representation, Swapped, Xdr,
};

/// A representation that is read.
pub trait Read: Representation {
    /// What is written: always the order of this machine, whichever order what is read has.
    type Written: Representation;
}

impl Read for Xdr {
    type Written = Self;
}

impl Read for Lean<Native> {
    type Written = Self;
}

impl Read for Lean<Swapped> {
    type Written = Lean<Native>;
}

/// How many bytes were read and what was written again, or what is wrong and where.
pub type Outcome = Result<(usize, Vec<u8>), (DecodeErrorKind, usize)>;

/// What comes of `bytes`, of which `recode` reads a value and writes it again.
pub fn outcome<R: Read>(
    (mode, bytes): (DecodeMode, &[u8]),
    recode: impl FnOnce(&mut Decoder<'_, R>) -> Result<Buffer, DecodeError>,
) -> Outcome {
    let mut input = Decoder::<R>::over(bytes, mode, Limits::default());
    match recode(&mut input) {
        Ok(written) => Ok((input.position(), written.as_slice().to_vec())),
        Err(error) => Err((error.kind, error.offset)),
    }
}

/// What the interpreter makes of bytes.
///
/// # Panics
/// Machine code makes something else of them, or a reader of a [`Value`](tenon_exec::Value), or strict mode
/// has accepted other bytes than are written.
pub fn agreed<R: Read>(interface: &Interface, id: TypeId, read: (DecodeMode, &[u8])) -> Outcome {
    let valued = by_value::<R>(interface, id, read);
    let Ok(message) = interface.message(id) else {
        return valued;
    };
    let interpreted = outcome::<R>(read, |input| {
        let frame = message.decode_by_interpreter(input)?;
        let mut written = Buffer::default();
        let done = frame.encode_by_interpreter(&mut Encoder::<R::Written>::over(&mut written));
        assert_eq!(done, Ok(()));
        Ok(written)
    });
    by_machine::<R>(message, read, &interpreted);
    // A value knows its type everywhere, so it may take too much memory where what it is read through does not.
    if !is_too_much(&valued) {
        assert_eq!(valued, interpreted);
    }
    let is_of_our_order = R::SWAPPED == R::Written::SWAPPED;
    if let (DecodeMode::Strict, true, Ok((length, written))) =
        (read.0, is_of_our_order, &interpreted)
    {
        assert_eq!(*written, read.1[..*length]);
    }
    interpreted
}

/// Whether what came of bytes is that their value would take more memory than it may.
pub fn is_too_much(outcome: &Outcome) -> bool {
    matches!(outcome, Err((DecodeErrorKind::TooMuchMemory, _)))
}

/// What a client makes of bytes that has no stubs.
fn by_value<R: Read>(interface: &Interface, id: TypeId, read: (DecodeMode, &[u8])) -> Outcome {
    outcome::<R>(read, |input| {
        let value = interface.decode(id, input)?;
        let mut written = Buffer::default();
        let done = interface.encode(id, &value, &mut Encoder::<R::Written>::over(&mut written));
        assert_eq!(done, Ok(()), "{value:?}");
        Ok(written)
    })
}

/// Machine code accepts what the interpreter does, and reads the same from it.
fn by_machine<R: Read>(
    message: Message<'_>,
    (mode, bytes): (DecodeMode, &[u8]),
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

/// The mode that a byte of an input chooses, and the rest of it.
pub fn mode(how: u8) -> (DecodeMode, u8) {
    match how % 2 {
        0 => (DecodeMode::Lenient, how / 2),
        _ => (DecodeMode::Strict, how / 2),
    }
}

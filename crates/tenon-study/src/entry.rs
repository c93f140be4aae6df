//! How stubs and engines are called wherever they are timed, by the study and for the cost model.

use std::hint::black_box;

use tenon_exec::{Frame, Message};
use tenon_wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Limits, Marshal, Representation,
};

use crate::measure::Contest;

/// Those who write messages and those who read them.
#[derive(Default)]
pub struct Contests<'a> {
    /// Into a buffer that is used again.
    pub encode: Contest<'a>,
    /// To an owned value, which is dropped.
    pub decode: Contest<'a>,
}

impl<'a> Contests<'a> {
    /// Lets a compiled stub enter, with a value and its bytes.
    pub fn enter_stub<T, R>(&mut self, name: &str, value: T, bytes: &'a [u8])
    where
        T: Marshal<R> + 'a,
        R: Representation,
    {
        let mut buffer = Buffer::default();
        self.encode
            .enter(name, move || write(black_box(&value), &mut buffer));
        self.decode
            .enter(name, move || read::<T, R>(black_box(bytes)));
    }

    /// Lets an engine that learns interfaces at run time enter, with a frame and its bytes.
    pub fn enter_frame<E: Run, R: Representation>(
        &mut self,
        name: &str,
        (message, frame): (Message<'a>, Frame<'a>),
        bytes: &'a [u8],
    ) {
        let mut buffer = Buffer::default();
        self.encode.enter(name, move || {
            write_frame::<E, R>(black_box(&frame), &mut buffer)
        });
        self.decode.enter(name, move || {
            E::decode(message, &mut decoder::<R>(black_box(bytes)))
        });
    }
}

/// Writes a value over what is in the buffer. Compiled once for each stub, whoever calls it: there
/// are hundreds.
#[inline(never)]
pub fn write<T: Marshal<R>, R: Representation>(
    value: &T,
    buffer: &mut Buffer,
) -> Result<(), EncodeError> {
    buffer.clear();
    let done = value.encode(&mut Encoder::over(buffer));
    // Somebody might read them.
    black_box(buffer.as_slice());
    done
}

/// Reads a value. Compiled once for each stub, as [`write`] is.
#[inline(never)]
pub fn read<T: Marshal<R>, R: Representation>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::decode(&mut decoder(bytes))
}

/// Writes a frame over what is in the buffer.
pub fn write_frame<E: Run, R: Representation>(
    frame: &Frame<'_>,
    buffer: &mut Buffer,
) -> Result<(), String> {
    buffer.clear();
    let done = E::encode::<R>(frame, &mut Encoder::over(buffer));
    black_box(buffer.as_slice());
    done
}

/// Reads a message as one that comes from a peer is read.
#[inline]
pub fn decoder<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Lenient, Limits::default())
}

/// How an engine moves a frame.
pub trait Run: 'static {
    /// Appends a frame to a message.
    fn encode<R: Representation>(frame: &Frame<'_>, out: &mut Encoder<'_, R>)
    -> Result<(), String>;

    /// Reads a frame of a type.
    fn decode<'a, R: Representation>(
        message: Message<'a>,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, String>;
}

/// The interpreter.
pub struct ByInterpreter;

impl Run for ByInterpreter {
    #[inline]
    fn encode<R: Representation>(
        frame: &Frame<'_>,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), String> {
        let done = frame.encode_by_interpreter(out);
        done.map_err(|error| error.to_string())
    }

    #[inline]
    fn decode<'a, R: Representation>(
        message: Message<'a>,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, String> {
        let frame = message.decode_by_interpreter(input);
        frame.map_err(|error| error.to_string())
    }
}

/// Machine code.
pub struct ByMachine;

const REFUSES: &str = "machine code refuses";

impl Run for ByMachine {
    #[inline]
    fn encode<R: Representation>(
        frame: &Frame<'_>,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), String> {
        let done = frame.encode_by_machine(out);
        done.then_some(()).ok_or_else(|| REFUSES.to_owned())
    }

    #[inline]
    fn decode<'a, R: Representation>(
        message: Message<'a>,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, String> {
        let frame = message.decode_by_machine(input);
        frame.ok_or_else(|| REFUSES.to_owned())
    }
}

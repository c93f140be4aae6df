//! How stubs and engines are called wherever they are timed, by the study and for the cost model.

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::needs_drop;

use tenon_exec::{Frame, Message, NumberMover, WholeNumberMover};
use tenon_plan::cost::{Mover, Moves, Unit};
use tenon_wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Limits, Marshal, Representation,
};

use crate::measure::{BenchmarkGroup, STEP};
use crate::moving::{Bytewise, Called};

/// Bytes of a value that is not kept: to move it takes as long as to make it.
const LARGE: usize = 256;

/// The benchmarks of encoding and of decoding.
#[derive(Default)]
pub struct CodecBenchmarks<'a> {
    /// Into a buffer that is used again.
    pub encode: BenchmarkGroup<'a>,
    /// To an owned value, which is dropped.
    pub decode: BenchmarkGroup<'a>,
}

impl<'a> CodecBenchmarks<'a> {
    /// Lets a compiled stub enter, with a value and its bytes.
    pub fn enter_stub<T, R>(&mut self, name: &str, value: T, bytes: &'a [u8])
    where
        T: Marshal<R> + 'a,
        R: Representation,
    {
        let put = |room: &mut EncodeBuffer, place| room.put(place);
        self.encode
            .enter_placed(name, EncodeBuffer::default(), put, move |room| {
                write(black_box(&value), room)
            });
        let work = move || read::<T, R>(black_box(bytes));
        match needs_drop::<T>() && size_of::<T>() <= LARGE {
            true => self.decode.enter_making(name, work),
            false => self.decode.enter(name, work),
        }
    }

    /// Lets an engine that learns interfaces at run time enter, with a frame and its bytes.
    pub fn enter_frame<E: FrameCodec, R: Representation>(
        &mut self,
        name: &str,
        (message, frame): (Message<'a>, Frame<'a>),
        bytes: &'a [u8],
    ) {
        let put = |room: &mut EncodeBuffer, place| room.put(place);
        self.encode
            .enter_placed(name, EncodeBuffer::default(), put, move |room| {
                write_frame::<E, R>(black_box(&frame), room)
            });
        self.decode.enter_making(name, move || {
            E::decode(message, &mut decoder::<R>(black_box(bytes)))
        });
    }
}

/// The buffer that messages are written into: it is used again, and keeps some bytes in front.
#[derive(Default)]
pub struct EncodeBuffer {
    buffer: Buffer,
    /// Bytes that stay.
    head: usize,
}

impl EncodeBuffer {
    /// Has messages begin so many steps into the buffer.
    fn put(&mut self, place: usize) {
        self.head = place * STEP;
        self.buffer.clear();
        self.buffer.room(self.head);
    }

    /// Returns the message that was written last.
    pub fn message(&self) -> &[u8] {
        &self.buffer.as_slice()[self.head..]
    }

    fn cleared(&mut self) -> &mut Buffer {
        self.buffer.truncate(self.head);
        &mut self.buffer
    }
}

/// Writes a value over what is in the buffer. Compiled once for each stub, not for each of its callers: there are
/// hundreds.
#[inline(never)]
pub fn write<T: Marshal<R>, R: Representation>(
    value: &T,
    room: &mut EncodeBuffer,
) -> Result<(), EncodeError> {
    let done = value.encode(&mut Encoder::over(room.cleared()));
    // For all that the compiler knows, they might be read.
    black_box(room.buffer.as_slice());
    done
}

/// Reads a value. Compiled once for each stub, as [`write`] is.
#[inline(never)]
pub fn read<T: Marshal<R>, R: Representation>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::decode(&mut decoder(bytes))
}

/// Writes a frame over what is in the buffer.
pub fn write_frame<E: FrameCodec, R: Representation>(
    frame: &Frame<'_>,
    room: &mut EncodeBuffer,
) -> Result<(), String> {
    let done = E::encode::<R>(frame, &mut Encoder::over(room.cleared()));
    black_box(room.buffer.as_slice());
    done
}

/// Reads a message as one that comes from a peer is read.
#[inline]
pub fn decoder<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Lenient, Limits::default())
}

/// An engine that encodes and decodes frames.
pub trait FrameCodec: 'static {
    /// Appends a frame to a message.
    fn encode<R: Representation>(frame: &Frame<'_>, out: &mut Encoder<'_, R>)
    -> Result<(), String>;

    /// Reads a frame of a type.
    fn decode<'a, R: Representation>(
        message: Message<'a>,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, String>;
}

/// The interpreter, which moves single numbers by `N`.
pub struct InterpreterCodec<N>(PhantomData<N>);

impl<N: NumberMover + 'static> FrameCodec for InterpreterCodec<N> {
    #[inline]
    fn encode<R: Representation>(
        frame: &Frame<'_>,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), String> {
        let done = frame.encode_moving::<N, R>(out);
        done.map_err(|error| error.to_string())
    }

    #[inline]
    fn decode<'a, R: Representation>(
        message: Message<'a>,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, String> {
        let frame = message.decode_moving::<N, R>(input);
        frame.map_err(|error| error.to_string())
    }
}

/// Work with an engine that is chosen when the program runs.
pub trait WithCodec {
    /// The outcome.
    type Output;

    /// Does the work with the engine `E`.
    fn with<E: FrameCodec>(self) -> Self::Output;
}

/// Does some work with the interpreter that moves single numbers in some way.
pub fn with_interpreter<W: WithCodec>(moves: Moves, work: W) -> W::Output {
    match (moves.by, moves.unit) {
        (Mover::Inline, Unit::Item) => work.with::<InterpreterCodec<WholeNumberMover>>(),
        (Mover::Inline, Unit::Byte) => work.with::<InterpreterCodec<Bytewise>>(),
        (Mover::Procedure, Unit::Item) => work.with::<InterpreterCodec<Called<WholeNumberMover>>>(),
        (Mover::Procedure, Unit::Byte) => work.with::<InterpreterCodec<Called<Bytewise>>>(),
    }
}

/// Machine code.
pub struct MachineCodec;

const REFUSES: &str = "machine code refuses";

impl FrameCodec for MachineCodec {
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

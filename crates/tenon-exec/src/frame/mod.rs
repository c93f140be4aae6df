//! Frames: values in the memory layout of C, with all that they point to. The interpreter moves
//! them between memory and bytes, and so does machine code.
//!
//! ```text
//! Value  <- read, write ->  Frame  <- interp, machine code ->  bytes
//! ```
//!
//! This is a room for `unsafe`: frames are filled and read by pointer. The types in front cannot
//! be misused: a [`Frame`] knows which [`Message`] it is, and nobody else writes to its memory.
#![allow(unsafe_code)]

pub(crate) mod arena;
pub(crate) mod array;
mod interp;
mod message;
mod read;
mod slot;
mod write;

use std::mem::MaybeUninit;
#[cfg(feature = "jit")]
use std::mem::offset_of;
use std::{fmt, ptr};

use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder, Representation};

use crate::Value;
#[cfg(feature = "jit")]
use crate::jit::{Spare, When};
use arena::Arena;
use interp::{Sink, Source};
use message::Root;
use read::Reader;

pub(crate) use message::Key;
pub use message::Message;
pub use slot::Slot;

/// A value in memory as C has it. Everything it points to is freed together with it.
pub struct Frame<'a> {
    message: Message<'a>,
    place: Place,
}

/// Where a value is, and all that it points to. Machine code knows where in it these are.
pub(crate) struct Place {
    /// Holds all that the value points to.
    arena: Arena,
    /// The value itself, if it is not small; otherwise null.
    large: *mut u8,
    /// The value itself, if it is small: most messages then take no memory, or only that of an
    /// array. Nothing points here but what `root` gives.
    small: [MaybeUninit<u64>; SMALL],
}

/// Words that a small value takes at most: a counted item and two more.
const SMALL: usize = 4;

// SAFETY: a place owns all memory it points to, and nothing changes what is shared.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// Bytes that a small value has at most.
    pub const SMALL_BYTES: usize = size_of::<[u64; SMALL]>();

    /// Where the value is if it is small, and where what leads to it otherwise.
    #[cfg(feature = "jit")]
    pub const SMALL: usize = offset_of!(Self, small);
    #[cfg(feature = "jit")]
    pub const LARGE: usize = offset_of!(Self, large);

    /// Where the arena is.
    #[cfg(feature = "jit")]
    pub const ARENA: usize = offset_of!(Self, arena);

    /// The place of a value that is small.
    ///
    /// # Safety
    /// There is a place.
    #[inline(always)]
    pub unsafe fn small(place: *mut Self) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*place).small).cast() }
    }

    /// The memory for what the value points to.
    ///
    /// # Safety
    /// There is a place, and nobody else knows this part of it as long as it is borrowed.
    #[inline(always)]
    pub unsafe fn arena<'a>(place: *mut Self) -> &'a mut Arena {
        // SAFETY: the caller's promise.
        unsafe { &mut (*place).arena }
    }

    /// The place of the value itself, and the memory for what it points to.
    #[inline(always)]
    pub fn parts(&mut self) -> (*mut u8, &mut Arena) {
        let root = match self.large.is_null() {
            true => self.small.as_mut_ptr().cast(),
            false => self.large,
        };
        (root, &mut self.arena)
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl Drop for Frame<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.place.large.is_null() {
            // SAFETY: it was allocated so, and goes with the frame.
            unsafe { arena::free(self.place.large, self.message.bytes()) };
        }
    }
}

impl<'a> Frame<'a> {
    /// An empty frame: room for the value itself.
    #[inline(always)]
    fn room(message: Message<'a>) -> Self {
        let bytes = message.bytes();
        let large = match bytes <= Place::SMALL_BYTES {
            true => ptr::null_mut(),
            false => arena::allocate(bytes).as_ptr(),
        };
        let place = Place {
            arena: Arena::new(),
            large,
            small: [MaybeUninit::uninit(); SMALL],
        };
        Self { message, place }
    }

    /// Reads a value into the frame, and forgets what is in it: by machine code, if there is some or it is
    /// worth making now.
    #[inline(always)]
    fn fill<R: Representation>(&mut self, input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        #[cfg(feature = "jit")]
        if self.fill_by_machine(When::Worth, input) {
            return Ok(());
        }
        self.fill_by_interpreter_apart(input)
    }

    /// [`fill_by_interpreter`](Self::fill_by_interpreter) where that is not expected.
    #[inline(never)]
    fn fill_by_interpreter_apart<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<(), DecodeError> {
        self.fill_by_interpreter(input)
    }

    /// As [`fill`](Self::fill), by machine code alone. Whether that was done; if not nothing is
    /// read.
    #[cfg(feature = "jit")]
    #[inline(always)]
    fn fill_by_machine<R: Representation>(
        &mut self,
        when: When,
        input: &mut Decoder<'_, R>,
    ) -> bool {
        if let Some(decoder) = self.message.decoder::<R>() {
            // SAFETY: the frame has room for a value of this message, whose interface is borrowed.
            return unsafe { decoder.run(&mut self.place, input) };
        }
        // By value: a decoder whose address nobody takes lives in registers.
        let Some(behind) = self.fill_by_machine_apart(when, input.clone()) else {
            return false;
        };
        *input = behind;
        true
    }

    /// [`fill_by_machine`](Self::fill_by_machine) where there is something to be done before; gives
    /// the decoder as it is then.
    #[cfg(feature = "jit")]
    #[cold]
    #[inline(never)]
    fn fill_by_machine_apart<'i, R: Representation>(
        &mut self,
        when: When,
        mut input: Decoder<'i, R>,
    ) -> Option<Decoder<'i, R>> {
        let decoder = self.message.make_decoder::<R>(when)?;
        // SAFETY: as above.
        let done = unsafe { decoder.run(&mut self.place, &mut input) };
        done.then_some(input)
    }

    /// As [`fill`](Self::fill), by the interpreter.
    #[inline(always)]
    fn fill_by_interpreter<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<(), DecodeError> {
        let (program, entry) = self.message.program();
        // SAFETY: the frame has room for a value of this message.
        if unsafe { entry.array.decode(&mut self.place, input) } {
            return Ok(());
        }
        let source = Source::of(input, program);
        let (root, arena) = self.place.parts();
        // SAFETY: the frame has room for a value of this message.
        let (left, memory_left) = unsafe { interp::decode(program, entry, root, arena, source)? };
        input.catch_up(left, memory_left);
        Ok(())
    }

    /// What it holds a value of.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// The value itself, until the frame is moved; what counted items and pointers lead to lies
    /// elsewhere.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const u8 {
        match self.place.large.is_null() {
            true => self.place.small.as_ptr().cast(),
            false => self.place.large,
        }
    }

    /// The value that it holds.
    pub fn value(&self) -> Value {
        let Ok(value) = self.value_within(usize::MAX) else {
            unreachable!("no value takes so much memory");
        };
        value
    }

    /// The value that it holds, if that takes no more than so many bytes of memory.
    fn value_within(&self, bytes: usize) -> Result<Value, read::TooMuch> {
        let (interface, layouts) = (self.message.interface(), self.message.layouts());
        let mut reader = Reader {
            interface,
            layouts,
            left: bytes,
        };
        // SAFETY: a frame is filled before anybody sees it, as the layout of its message says.
        unsafe {
            match self.message.root() {
                Root::Body(layout) => reader.value(layout, self.as_ptr()),
                Root::List(element) => reader.counted(element, self.as_ptr()),
            }
        }
    }

    /// Appends the value: by machine code, if there is some or it is worth making now.
    ///
    /// # Errors
    /// It is too long somewhere, or holds a value that its type does not have; what was appended
    /// is to be dropped. Those of the interpreter, which is asked when machine code refuses.
    #[inline]
    pub fn encode<R: Representation>(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        #[cfg(feature = "jit")]
        if self.enter_encoder(When::Worth, out) {
            return Ok(());
        }
        self.encode_by_interpreter(out)
    }

    /// Appends the value by the interpreter.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    pub fn encode_by_interpreter<R: Representation>(
        &self,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        let (program, entry) = self.message.program();
        // SAFETY: the frame is filled as the layout of its message says.
        if unsafe { entry.array.encode(&self.place, out) } {
            return Ok(());
        }
        let depth_left = out.depth_left();
        let (buffer, start) = out.parts();
        let out = Sink {
            buffer,
            start,
            depth_left,
        };
        // SAFETY: the frame is filled as the layout of its message says.
        unsafe { interp::encode(program, entry, self.as_ptr(), out) }
    }

    /// Appends the value by machine code alone. `false`, and nothing appended: there can be no
    /// machine code, or it refuses; the interpreter knows why.
    #[cfg(feature = "jit")]
    #[inline]
    pub fn encode_by_machine<R: Representation>(&self, out: &mut Encoder<'_, R>) -> bool {
        self.enter_encoder(When::Now, out)
    }

    #[cfg(feature = "jit")]
    #[inline(always)]
    fn enter_encoder<R: Representation>(&self, when: When, out: &mut Encoder<'_, R>) -> bool {
        let spare = Spare::of(out);
        match self.message.encoder() {
            // SAFETY: the frame is filled as the layout of its message says, and its interface is
            // borrowed.
            Some(encoder) => unsafe { encoder.run(&self.place, out, spare) },
            None => self.enter_encoder_apart(when, out.again()),
        }
    }

    /// [`enter_encoder`](Self::enter_encoder) where there is something to be done before.
    #[cfg(feature = "jit")]
    #[cold]
    #[inline(never)]
    fn enter_encoder_apart<R: Representation>(&self, when: When, mut out: Encoder<'_, R>) -> bool {
        let Some(encoder) = self.message.make_encoder(when) else {
            return false;
        };
        let spare = Spare::of(&mut out);
        // SAFETY: as above.
        unsafe { encoder.run(&self.place, &mut out, spare) }
    }
}

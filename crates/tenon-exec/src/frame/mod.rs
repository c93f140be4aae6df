//! Frames: values in the memory layout of C, with all that they point to. The interpreter moves
//! them between memory and bytes, and so does machine code.
//!
//! ```text
//! Value  <- read, write ->  Frame  <- interp, machine code ->  bytes
//! ```
//!
//! This is a room for `unsafe`: frames are filled and read by pointer. The types in front cannot
//! be misused: a [`Frame`] knows its [`Message`], and only this module writes to its memory.
#![allow(unsafe_code)]

pub(crate) mod arena;
pub(crate) mod array;
mod c_value;
mod free;
pub(crate) mod heap;
pub(crate) mod interp;
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
use crate::jit::{CompileTrigger, SpareCapacity};
use arena::FrameArena;
use interp::{DecodeSource, EncodeSink, NO_LIMIT};
pub use interp::{NumberMover, WholeNumberMover};
use message::RootLayout;
use read::FrameReader;

pub use c_value::{CMessage, CValue, CValues, CValuesError};
#[cfg(feature = "jit")]
pub(crate) use c_value::{CSource, CTarget};
pub use message::{Message, MessageId};
pub use slot::Slot;

/// A value in memory as C has it. Everything it points to is freed together with it.
pub struct Frame<'a> {
    message: Message<'a>,
    storage: FrameStorage,
}

/// Memory of a value and of all that it points to. Machine code knows the offsets of the fields.
pub(crate) struct FrameStorage {
    /// Holds all that the value points to.
    arena: FrameArena,
    /// The value itself, if it is not small; otherwise null.
    large: *mut u8,
    /// The value itself, if it is small: most messages then take no memory, or only that of an
    /// array. Only the pointer of [`parts`](Self::parts) or [`small`](Self::small) leads here.
    small: [MaybeUninit<u64>; SMALL],
}

/// Words that a small value takes at most: a counted item and two more.
const SMALL: usize = 4;

// SAFETY: it owns all memory it points to, and nothing changes what is shared.
unsafe impl Send for FrameStorage {}
// SAFETY: as above.
unsafe impl Sync for FrameStorage {}

impl FrameStorage {
    /// Bytes that a small value has at most.
    pub const SMALL_BYTES: usize = size_of::<[u64; SMALL]>();

    /// Offset of the value if it is small, and of the pointer to it otherwise.
    #[cfg(feature = "jit")]
    pub const SMALL: usize = offset_of!(Self, small);
    #[cfg(feature = "jit")]
    pub const LARGE: usize = offset_of!(Self, large);

    /// Offset of the arena.
    #[cfg(feature = "jit")]
    pub const ARENA: usize = offset_of!(Self, arena);

    /// The address of a value that is small.
    ///
    /// # Safety
    /// There is a storage at `storage`.
    #[inline(always)]
    pub unsafe fn small(storage: *mut Self) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*storage).small).cast() }
    }

    /// The memory for what the value points to.
    ///
    /// # Safety
    /// There is a storage at `storage`, and its arena is not accessed in any other way as long as it is borrowed.
    #[inline(always)]
    pub unsafe fn arena<'a>(storage: *mut Self) -> &'a mut FrameArena {
        // SAFETY: the caller's promise.
        unsafe { &mut (*storage).arena }
    }

    /// The address of the value itself, and the memory for what it points to.
    #[inline(always)]
    pub fn parts(&mut self) -> (*mut u8, &mut FrameArena) {
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
        if !self.storage.large.is_null() {
            // SAFETY: it was allocated so, and goes with the frame.
            unsafe { arena::free(self.storage.large, self.message.bytes()) };
        }
    }
}

impl<'a> Frame<'a> {
    /// An empty frame: room for the value itself.
    #[inline(always)]
    fn room(message: Message<'a>) -> Self {
        let bytes = message.bytes();
        let large = match bytes <= FrameStorage::SMALL_BYTES {
            true => ptr::null_mut(),
            false => arena::allocate(bytes).as_ptr(),
        };
        let storage = FrameStorage {
            arena: FrameArena::new(),
            large,
            small: [MaybeUninit::uninit(); SMALL],
        };
        Self { message, storage }
    }

    /// Reads a value into the frame, and forgets what is in it: by machine code, if there is some or it is
    /// worth making now.
    #[inline(always)]
    fn fill<R: Representation>(&mut self, input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        #[cfg(feature = "jit")]
        if self.fill_by_machine(CompileTrigger::Hot, input) {
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

    /// As [`fill`](Self::fill), by machine code alone. Returns whether that was done; if not, nothing is read.
    #[cfg(feature = "jit")]
    #[inline(always)]
    fn fill_by_machine<R: Representation>(
        &mut self,
        when: CompileTrigger,
        input: &mut Decoder<'_, R>,
    ) -> bool {
        if let Some(decoder) = self.message.decoder::<R>() {
            // SAFETY: the frame has room for a value of this message, and the interface is borrowed.
            return unsafe { decoder.run(&mut self.storage, input) };
        }
        // By value: a decoder of which no address is taken lives in registers.
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
        when: CompileTrigger,
        mut input: Decoder<'i, R>,
    ) -> Option<Decoder<'i, R>> {
        let decoder = self.message.make_decoder::<R>(when)?;
        // SAFETY: as above.
        let done = unsafe { decoder.run(&mut self.storage, &mut input) };
        done.then_some(input)
    }

    /// As [`fill`](Self::fill), by the interpreter.
    #[inline(always)]
    fn fill_by_interpreter<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<(), DecodeError> {
        self.fill_moving::<WholeNumberMover, R>(input)
    }

    /// The same with single numbers moved by `N`.
    #[inline(always)]
    fn fill_moving<N: NumberMover, R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<(), DecodeError> {
        let (program, entry) = self.message.program();
        // SAFETY: the frame has room for a value of this message.
        if unsafe { entry.array.decode(&mut self.storage, input) } {
            return Ok(());
        }
        let source = DecodeSource::of(input, program);
        let (root, arena) = self.storage.parts();
        // SAFETY: the frame has room for a value of this message.
        let (left, memory_left) =
            unsafe { interp::decode::<N, _>(program, entry, root, arena, source)? };
        input.catch_up(left, memory_left);
        Ok(())
    }

    /// The message that it holds a value of.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// The value itself, until the frame is moved; what counted items and pointers lead to lies
    /// elsewhere.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const u8 {
        match self.storage.large.is_null() {
            true => self.storage.small.as_ptr().cast(),
            false => self.storage.large,
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
    fn value_within(&self, bytes: usize) -> Result<Value, read::MemoryLimitExceeded> {
        let (interface, layouts) = (self.message.interface(), self.message.layouts());
        let mut reader = FrameReader {
            interface,
            layouts,
            left: bytes,
        };
        // SAFETY: a frame is filled before it is handed out, as the layout of its message says.
        unsafe {
            match self.message.root() {
                RootLayout::Body(layout) => reader.value(layout, self.as_ptr()),
                RootLayout::List(element) => reader.counted(element, self.as_ptr()),
            }
        }
    }

    /// Appends the value: by machine code, if there is some or it is worth making now.
    ///
    /// # Errors
    /// It is too long somewhere, or holds a value that its type does not have; what was appended
    /// is to be dropped. The errors are those of the interpreter, which encodes it again when machine code refuses.
    #[inline]
    pub fn encode<R: Representation>(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        #[cfg(feature = "jit")]
        if self.enter_encoder(CompileTrigger::Hot, out) {
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
        self.encode_moving::<WholeNumberMover, R>(out)
    }

    /// Appends the value by the interpreter, single numbers moved by `N`: those that are no part of a block of memory.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    pub fn encode_moving<N: NumberMover, R: Representation>(
        &self,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        let (program, entry) = self.message.program();
        // SAFETY: the frame is filled as the layout of its message says.
        if unsafe { entry.array.encode(&self.storage, out) } {
            return Ok(());
        }
        let depth_left = out.depth_left();
        let (buffer, start) = out.parts();
        let out = EncodeSink {
            buffer,
            start,
            depth_left,
            limit: NO_LIMIT,
        };
        // SAFETY: the frame is filled as the layout of its message says.
        unsafe { interp::encode::<N>(program, entry, self.as_ptr(), out) }
    }

    /// Appends the value by machine code alone. `false`, and nothing appended: there can be no
    /// machine code, or it refuses; the interpreter knows why.
    #[cfg(feature = "jit")]
    #[inline]
    pub fn encode_by_machine<R: Representation>(&self, out: &mut Encoder<'_, R>) -> bool {
        self.enter_encoder(CompileTrigger::Now, out)
    }

    #[cfg(feature = "jit")]
    #[inline(always)]
    fn enter_encoder<R: Representation>(
        &self,
        when: CompileTrigger,
        out: &mut Encoder<'_, R>,
    ) -> bool {
        let spare = SpareCapacity::of(out);
        match self.message.encoder() {
            // SAFETY: the frame is filled as the layout of its message says, and its interface is
            // borrowed.
            Some(encoder) => unsafe { encoder.run(&self.storage, out, spare) },
            None => self.enter_encoder_apart(when, out.again()),
        }
    }

    /// [`enter_encoder`](Self::enter_encoder) where there is something to be done before.
    #[cfg(feature = "jit")]
    #[cold]
    #[inline(never)]
    fn enter_encoder_apart<R: Representation>(
        &self,
        when: CompileTrigger,
        mut out: Encoder<'_, R>,
    ) -> bool {
        let Some(encoder) = self.message.make_encoder(when) else {
            return false;
        };
        let spare = SpareCapacity::of(&mut out);
        // SAFETY: as above.
        unsafe { encoder.run(&self.storage, &mut out, spare) }
    }
}

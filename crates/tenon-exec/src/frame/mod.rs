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
mod interp;
mod message;
mod read;
mod write;

use std::fmt;
use std::mem::MaybeUninit;

use tenon_wire::{EncodeError, Encoder, Representation};

use crate::Value;
#[cfg(feature = "jit")]
use crate::jit::When;
use arena::Arena;
use interp::Sink;
use message::Root;
use read::Reader;

pub(crate) use message::Key;
pub use message::Message;

/// A value in memory as C has it. Everything it points to is freed together with it.
pub struct Frame<'a> {
    message: Message<'a>,
    /// The value itself, if it is small: most messages then take no memory, or only that of an
    /// array. Nothing points here but what `root` gives.
    small: [MaybeUninit<u64>; SMALL],
    /// The value itself, if it is not small; otherwise null.
    large: *mut u8,
    /// Holds `large` and all that the value points to.
    arena: Arena,
}

/// Words that a small value takes at most: a counted item and two more.
const SMALL: usize = 4;

// SAFETY: a frame owns all memory it points to, and nothing changes what is shared.
unsafe impl Send for Frame<'_> {}
// SAFETY: as above.
unsafe impl Sync for Frame<'_> {}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl<'a> Frame<'a> {
    /// An empty frame: room for the value itself.
    #[inline(always)]
    fn room(message: Message<'a>) -> Self {
        let mut arena = Arena::new();
        let bytes = message.bytes();
        let large = match bytes <= size_of::<[u64; SMALL]>() {
            true => std::ptr::null_mut(),
            false => arena.take_before(bytes, message.more()).as_ptr(),
        };
        Self {
            message,
            small: [MaybeUninit::uninit(); SMALL],
            large,
            arena,
        }
    }

    /// The place of the value itself, and the memory for what it points to.
    #[inline(always)]
    fn parts(&mut self) -> (*mut u8, &mut Arena) {
        let root = match self.large.is_null() {
            true => self.small.as_mut_ptr().cast(),
            false => self.large,
        };
        (root, &mut self.arena)
    }

    /// What it holds a value of.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// The value itself, until the frame is moved; what counted items and pointers lead to lies
    /// elsewhere.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const u8 {
        match self.large.is_null() {
            true => self.small.as_ptr().cast(),
            false => self.large,
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
        let depth_left = out.depth_left();
        let (buffer, start) = out.parts();
        let out = Sink {
            buffer,
            start,
            depth_left,
        };
        let (program, entry) = self.message.program();
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
    #[inline]
    fn enter_encoder<R: Representation>(&self, when: When, out: &mut Encoder<'_, R>) -> bool {
        let interface = self.message.interface();
        let encoder = interface
            .machine()
            .encoder(interface, self.message.key(), when);
        // SAFETY: the frame is filled as the layout of its message says, and its interface is
        // borrowed.
        encoder.is_some_and(|encoder| unsafe { encoder.run(self.as_ptr(), out) })
    }
}

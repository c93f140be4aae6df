//! Frames: values in the memory layout of C, with all that they point to. Machine code moves them
//! between memory and bytes; where there is none the interpreter does, by way of [`Value`].
//!
//! ```text
//! Value  <- read, write ->  Frame  <- machine code ->  bytes (XDR)
//! ```
//!
//! This is a room for `unsafe`: frames are filled and read by pointer. The types in front cannot
//! be misused: a [`Frame`] knows which [`Message`] it is, and nobody else writes to its memory.
#![allow(unsafe_code)]

pub(crate) mod arena;
mod message;
mod read;
mod write;

use std::fmt;

use tenon_wire::{EncodeError, Encoder};

use crate::Value;
use crate::layout::Layouts;
use arena::Arena;
use message::Root;
use read::Reader;

pub(crate) use message::Key;
pub use message::Message;

/// A value in memory as C has it. Everything it points to is freed together with it.
pub struct Frame<'a> {
    message: Message<'a>,
    root: *mut u8,
    /// Holds `root` and what it points to.
    arena: Arena,
}

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
    fn room(message: Message<'a>, layouts: &Layouts) -> Self {
        let mut arena = Arena::new();
        let root = arena.take(message.extent(layouts).size as usize);
        Self {
            message,
            root: root.as_ptr(),
            arena,
        }
    }

    /// What it holds a value of.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// The value itself; what counted items and pointers lead to lies elsewhere.
    pub fn as_ptr(&self) -> *const u8 {
        self.root
    }

    /// The value that it holds.
    pub fn value(&self) -> Value {
        let interface = self.message.interface();
        let Ok(layouts) = interface.layouts() else {
            unreachable!("a frame is made by its layout");
        };
        let reader = Reader { interface, layouts };
        // SAFETY: a frame is filled before anybody sees it, as the layout of its message says.
        unsafe {
            match self.message.root() {
                Root::Body(layout) => reader.value(layout, self.root),
                Root::List(element) => reader.counted(element, self.root),
            }
        }
    }

    /// Appends the value.
    ///
    /// # Errors
    /// It is too long somewhere, or holds a value that its type does not have; what was appended
    /// is to be dropped. Those of the interpreter, which is asked when machine code refuses.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        #[cfg(feature = "jit")]
        if self.encode_by_machine(out) {
            return Ok(());
        }
        self.message.interpret_encode(&self.value(), out)
    }

    /// Appends the value by machine code alone. `false`, and nothing appended: there is no
    /// machine code, or it refuses; the interpreter knows why.
    #[cfg(feature = "jit")]
    pub fn encode_by_machine(&self, out: &mut Encoder<'_>) -> bool {
        let machine = self.message.interface().machine();
        // SAFETY: the frame is filled as the layout of its message says.
        machine.is_some_and(|machine| unsafe { machine.encode(self.message.key(), self.root, out) })
    }
}

//! What a frame holds a value of: a named type, or the arguments or the result of a procedure.

use tenon_plan::{Layout, links};
use tenon_schema::TypeId;
use tenon_wire::Encoder;
use tenon_wire::{Buffer, DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind};

use super::Frame;
use super::write::Writer;
use crate::layout::{Extent, LayoutError, Layouts};
use crate::{Interface, Procedure, Value};

/// A message of an interface, or a part of one that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    interface: &'a Interface,
    key: Key,
}

/// Which one. Procedures by their position in the plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Type(TypeId),
    Arguments(usize),
    Result(usize),
}

/// What lies at the beginning of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Root<'a> {
    Body(Layout<'a>),
    /// A linked list of such elements.
    List(Layout<'a>),
}

impl Interface {
    /// A named type; of a linked list the whole list.
    ///
    /// # Errors
    /// C has no layout for some type of this interface.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn message(&self, id: TypeId) -> Result<Message<'_>, LayoutError> {
        assert!((id.0 as usize) < self.schema().types.len(), "a known type");
        self.message_of(Key::Type(id))
    }

    pub(crate) fn message_of(&self, key: Key) -> Result<Message<'_>, LayoutError> {
        self.layouts().map_err(Clone::clone)?;
        Ok(Message {
            interface: self,
            key,
        })
    }
}

impl<'a> Message<'a> {
    /// Puts a value into a frame.
    ///
    /// # Errors
    /// The value is not one of this type: what the interpreter says of it.
    pub fn frame(self, value: &Value) -> Result<Frame<'a>, EncodeError> {
        match self.fill(value) {
            Some(frame) => Ok(frame),
            None => Err(self.why_not(value)),
        }
    }

    /// Reads a value into a frame.
    ///
    /// # Errors
    /// The bytes are not a value of this type: what the interpreter says of them, which is asked
    /// when machine code refuses. Beside that a frame may take more memory than its bytes pay for.
    pub fn decode(self, input: &mut Decoder<'_>) -> Result<Frame<'a>, DecodeError> {
        #[cfg(feature = "jit")]
        if let Some(frame) = self.decode_by_machine(input) {
            return Ok(frame);
        }
        let value = self.interpret_decode(input)?;
        let filled = self.fill(&value);
        filled.ok_or_else(|| input.error(DecodeErrorKind::TooMuchMemory))
    }

    /// Reads a value into a frame by machine code alone. `None`, and nothing read: there is no
    /// machine code, or it refuses; the interpreter knows why.
    #[cfg(feature = "jit")]
    pub fn decode_by_machine(self, input: &mut Decoder<'_>) -> Option<Frame<'a>> {
        let machine = self.interface.machine()?;
        let layouts = self.interface.layouts().ok()?;
        let mut frame = Frame::room(self, layouts);
        let size = self.extent(layouts).size as usize;
        // SAFETY: the frame has room for a value of this message.
        let done = unsafe { machine.decode(self.key, frame.root, size, &mut frame.arena, input) };
        done.then_some(frame)
    }

    /// The interface it is of.
    pub fn interface(self) -> &'a Interface {
        self.interface
    }

    /// The room of the value itself, without what it points to.
    pub(super) fn extent(self, layouts: &Layouts) -> Extent {
        let schema = self.interface.schema();
        match (self.key, self.root()) {
            (_, Root::List(_)) => Extent::COUNTED,
            // Measured already.
            (Key::Type(id), Root::Body(_)) => layouts.extent(schema, Layout::Definition(id)),
            (_, Root::Body(layout)) => layouts.extent(schema, layout),
        }
    }

    #[cfg(feature = "jit")]
    pub(super) fn key(self) -> Key {
        self.key
    }

    pub(super) fn root(self) -> Root<'a> {
        let schema = self.interface.schema();
        match self.key {
            Key::Type(id) if links::is_link(schema, id) => Root::List(Layout::of_type(schema, id)),
            Key::Type(id) => Root::Body(Layout::of_type(schema, id)),
            Key::Arguments(at) => Root::Body(self.procedure(at).arguments_layout()),
            Key::Result(at) => Root::Body(self.procedure(at).result_layout()),
        }
    }

    fn procedure(self, position: usize) -> Procedure<'a> {
        self.interface.procedure_at(position)
    }

    fn fill(self, value: &Value) -> Option<Frame<'a>> {
        let layouts = self.interface.layouts().ok()?;
        let mut frame = Frame::room(self, layouts);
        let root = frame.root;
        let mut writer = Writer::new(self.interface, layouts, &mut frame.arena);
        // SAFETY: the frame has room for a value of this message.
        unsafe {
            match self.root() {
                Root::Body(layout) => writer.root(self.key, layout, value, root)?,
                Root::List(element) => writer.counted(element, self.key.named(), value, root)?,
            }
        }
        Some(frame)
    }

    #[cold]
    fn why_not(self, value: &Value) -> EncodeError {
        let mut scratch = Buffer::default();
        let done = self.interpret_encode(value, &mut Encoder::new(&mut scratch));
        match done {
            Err(error) => error,
            Ok(()) => EncodeError::new(EncodeErrorKind::Shape),
        }
    }

    pub(super) fn interpret_encode(
        self,
        value: &Value,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        match self.key {
            Key::Type(id) => self.interface.encode(id, value, out),
            Key::Arguments(at) => self.procedure(at).encode_arguments(value, out),
            Key::Result(at) => self.procedure(at).encode_result(value, out),
        }
    }

    fn interpret_decode(self, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
        match self.key {
            Key::Type(id) => self.interface.decode(id, input),
            Key::Arguments(at) => self.procedure(at).decode_arguments(input),
            Key::Result(at) => self.procedure(at).decode_result(input),
        }
    }
}

impl Key {
    /// The type whose plan moves it or, of a list, its elements.
    pub(super) fn named(self) -> Option<TypeId> {
        match self {
            Self::Type(id) => Some(id),
            Self::Arguments(_) | Self::Result(_) => None,
        }
    }
}

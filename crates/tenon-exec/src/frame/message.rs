//! What a frame holds a value of: a named type, or the arguments or the result of a procedure.

use tenon_plan::{Layout, links};
use tenon_schema::TypeId;
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, Representation};

use super::Frame;
use super::write::Writer;
use crate::interface::Ready;
#[cfg(feature = "jit")]
use crate::jit::{Decode, Encode, When};
use crate::layout::{LayoutError, Layouts};
use crate::program::{Entry, Movers, Program};
use crate::{Interface, Procedure, Value};

/// A message of an interface, or a part of one that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    interface: &'a Interface,
    ready: &'a Ready,
    movers: &'a Movers,
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
        let ready = self.ready().map_err(Clone::clone)?;
        Ok(Message {
            interface: self,
            ready,
            movers: ready.program.movers(key),
        })
    }
}

impl<'a> Message<'a> {
    /// Puts a value into a frame.
    ///
    /// # Errors
    /// The value does not have the shape of this type, or nests too deep; `type.field` says which
    /// part.
    pub fn frame(self, value: &Value) -> Result<Frame<'a>, EncodeError> {
        let mut frame = Frame::room(self);
        let (root, arena) = frame.place.parts();
        let mut writer = Writer::new(self.interface, self.layouts(), arena);
        // SAFETY: the frame has room for a value of this message.
        unsafe {
            match self.movers.entry.key {
                Key::Type(id) => writer.message(id, value, root)?,
                Key::Arguments(at) => {
                    let procedure = self.procedure(at);
                    let (name, layout) = (procedure.name(), procedure.arguments_layout());
                    writer.part(name, layout, value, root)?;
                }
                Key::Result(at) => {
                    let procedure = self.procedure(at);
                    let (name, layout) = (procedure.name(), procedure.result_layout());
                    writer.part(name, layout, value, root)?;
                }
            }
        }
        Ok(frame)
    }

    /// Reads a value into a frame: by machine code, if there is some or it is worth making now.
    ///
    /// # Errors
    /// The bytes are not a value of this type: what the interpreter says of them, which is asked
    /// when machine code refuses.
    #[inline]
    pub fn decode<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, DecodeError> {
        let mut frame = Frame::room(self);
        frame.fill(input)?;
        Ok(frame)
    }

    /// Reads a value into a frame by the interpreter.
    ///
    /// # Errors
    /// The bytes are not a value of this type; `type.field` and the offset say where. What was
    /// read is not to be read on.
    #[inline]
    pub fn decode_by_interpreter<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, DecodeError> {
        let mut frame = Frame::room(self);
        frame.fill_by_interpreter(input)?;
        Ok(frame)
    }

    /// Reads a value into a frame by machine code alone. `None`, and nothing read: there can be no
    /// machine code, or it refuses; the interpreter knows why.
    #[cfg(feature = "jit")]
    #[inline]
    pub fn decode_by_machine<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Option<Frame<'a>> {
        let mut frame = Frame::room(self);
        let done = frame.fill_by_machine(When::Now, input);
        done.then_some(frame)
    }

    /// The machine code that reads values of this message, if there is some.
    #[cfg(feature = "jit")]
    #[inline(always)]
    pub(super) fn decoder<R: Representation>(&self) -> Option<Decode> {
        self.movers.doors.decoder(R::SWAPPED)
    }

    /// The same, made if it is time to make it.
    #[cfg(feature = "jit")]
    pub(super) fn make_decoder<R: Representation>(&self, when: When) -> Option<Decode> {
        let Movers { entry, doors } = self.movers;
        doors.make_decoder(self.interface, &entry.key, R::SWAPPED, when)
    }

    /// As [`decoder`](Self::decoder), what appends them.
    #[cfg(feature = "jit")]
    #[inline(always)]
    pub(super) fn encoder(&self) -> Option<Encode> {
        self.movers.doors.encoder()
    }

    /// The same, made if it is time to make it.
    #[cfg(feature = "jit")]
    pub(super) fn make_encoder(&self, when: When) -> Option<Encode> {
        let Movers { entry, doors } = self.movers;
        doors.make_encoder(self.interface, &entry.key, when)
    }

    /// Reads a value. It may take as much memory as the frame that it is read through, once more.
    pub(crate) fn decode_value<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        let paid = input.memory_left();
        let mut frame = Frame::room(self);
        frame.fill(input)?;
        let value = frame.value_within(paid);
        value.map_err(|_| input.error(DecodeErrorKind::TooMuchMemory))
    }

    /// The interface it is of.
    pub fn interface(self) -> &'a Interface {
        self.interface
    }

    pub(super) fn layouts(self) -> &'a Layouts {
        &self.ready.layouts
    }

    pub(super) fn program(&self) -> (&'a Program, &'a Entry) {
        (&self.ready.program, &self.movers.entry)
    }

    /// The room of the value itself, without what it points to; at least a byte.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.movers.entry.bytes as usize
    }

    pub(super) fn root(self) -> Root<'a> {
        let schema = self.interface.schema();
        match self.movers.entry.key {
            Key::Type(id) if links::is_link(schema, id) => Root::List(Layout::of_type(schema, id)),
            Key::Type(id) => Root::Body(Layout::of_type(schema, id)),
            Key::Arguments(at) => Root::Body(self.procedure(at).arguments_layout()),
            Key::Result(at) => Root::Body(self.procedure(at).result_layout()),
        }
    }

    fn procedure(self, position: usize) -> Procedure<'a> {
        self.interface.procedure_at(position)
    }
}

//! Messages, of which frames hold values: a named type, or the arguments or the result of a procedure.

use tenon_plan::{Layout, links};
use tenon_schema::TypeId;
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, Representation};

use super::write::FrameWriter;
use super::{Frame, NumberMover};
use crate::interface::ResolvedInterface;
#[cfg(feature = "jit")]
use crate::jit::{CompileTrigger, CompiledDecoder, CompiledEncoder};
use crate::layout::{LayoutError, TypeLayouts};
use crate::program::{InterpreterProgram, MessageCodec, ProgramEntry};
use crate::{Interface, Procedure, Value};

/// A message of an interface, or a part of one that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    interface: &'a Interface,
    resolved: &'a ResolvedInterface,
    codec: &'a MessageCodec,
}

/// Identifies a message of an interface. Procedures are given by their position among all, in the order of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// A value of a named type; of a linked list the whole list.
    Type(TypeId),
    /// The arguments of a procedure.
    Arguments(usize),
    /// The result of a procedure.
    Result(usize),
}

/// Layout of the value at the beginning of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum RootLayout<'a> {
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
        self.message_of(MessageId::Type(id))
    }

    pub(crate) fn message_of(&self, key: MessageId) -> Result<Message<'_>, LayoutError> {
        let resolved = self.resolved().map_err(Clone::clone)?;
        Ok(Message {
            interface: self,
            resolved,
            codec: resolved.program.codec(key),
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
        let (root, arena) = frame.storage.parts();
        let mut writer = FrameWriter::new(self.interface, self.layouts(), arena);
        // SAFETY: the frame has room for a value of this message.
        unsafe {
            match self.codec.entry.key {
                MessageId::Type(id) => writer.message(id, value, root)?,
                MessageId::Arguments(at) => {
                    let procedure = self.procedure(at);
                    let (name, layout) = (procedure.name(), procedure.arguments_layout());
                    writer.part(name, layout, value, root)?;
                }
                MessageId::Result(at) => {
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
    /// The bytes are not a value of this type. The error is that of the interpreter, which decodes them again when
    /// machine code refuses.
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

    /// Reads a value into a frame by the interpreter, single numbers moved by `N`: those that are no part of a block of
    /// memory.
    ///
    /// # Errors
    /// As [`decode_by_interpreter`](Self::decode_by_interpreter).
    #[inline]
    pub fn decode_moving<N: NumberMover, R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Frame<'a>, DecodeError> {
        let mut frame = Frame::room(self);
        frame.fill_moving::<N, R>(input)?;
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
        let done = frame.fill_by_machine(CompileTrigger::Now, input);
        done.then_some(frame)
    }

    /// The machine code that reads values of this message, if there is some.
    #[cfg(feature = "jit")]
    #[inline(always)]
    pub(super) fn decoder<R: Representation>(&self) -> Option<CompiledDecoder> {
        self.codec.entry_points.decoder(R::SWAPPED)
    }

    /// The same; compiled now if `when` says so.
    #[cfg(feature = "jit")]
    pub(super) fn make_decoder<R: Representation>(
        &self,
        when: CompileTrigger,
    ) -> Option<CompiledDecoder> {
        let MessageCodec {
            entry,
            entry_points,
        } = self.codec;
        entry_points.make_decoder(self.interface, &entry.key, R::SWAPPED, when)
    }

    /// The machine code that appends values of this message, if there is some.
    #[cfg(feature = "jit")]
    #[inline(always)]
    pub(super) fn encoder(&self) -> Option<CompiledEncoder> {
        self.codec.entry_points.encoder()
    }

    /// The same; compiled now if `when` says so.
    #[cfg(feature = "jit")]
    pub(super) fn make_encoder(&self, when: CompileTrigger) -> Option<CompiledEncoder> {
        let MessageCodec {
            entry,
            entry_points,
        } = self.codec;
        entry_points.make_encoder(self.interface, &entry.key, when)
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

    pub(super) fn layouts(self) -> &'a TypeLayouts {
        &self.resolved.layouts
    }

    pub(super) fn program(&self) -> (&'a InterpreterProgram, &'a ProgramEntry) {
        (&self.resolved.program, &self.codec.entry)
    }

    /// The room of the value itself, without what it points to; at least a byte.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.codec.entry.bytes as usize
    }

    pub(super) fn root(self) -> RootLayout<'a> {
        let schema = self.interface.schema();
        match self.codec.entry.key {
            MessageId::Type(id) if links::is_link(schema, id) => {
                RootLayout::List(Layout::of_type(schema, id))
            }
            MessageId::Type(id) => RootLayout::Body(Layout::of_type(schema, id)),
            MessageId::Arguments(at) => RootLayout::Body(self.procedure(at).arguments_layout()),
            MessageId::Result(at) => RootLayout::Body(self.procedure(at).result_layout()),
        }
    }

    fn procedure(self, position: usize) -> Procedure<'a> {
        self.interface.procedure_at(position)
    }
}

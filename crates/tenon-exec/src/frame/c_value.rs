//! Values that a program in C holds: they are moved where they lie, and what they point to is C's heap.

use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use tenon_plan::{PlanError, Representation as RepresentationData};
use tenon_schema::{Schema, Type, TypeId, TypeKind};
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Representation};
use thiserror::Error;

use super::free::free;
use super::heap::{self, CHeap, MemoryContent};
use super::interp::{self, DecodeSource, EncodeSink, WholeNumberMover};
use super::message::MessageId;
use crate::Interface;
use crate::interface::ResolvedInterface;
#[cfg(feature = "jit")]
use crate::jit::{CompileTrigger, MAX_COVERED, SpareCapacity};
use crate::layout::{CDialect, LayoutError, MemoryModel, SizeAndAlign};
use crate::program::{MessageCodec, OwnedMemory};

/// The values of an interface as programs in C hold them, in one representation.
#[derive(Debug)]
pub struct CValues {
    interface: Interface,
    /// Set if no machine code is made.
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "none is made"))]
    is_interpreted: bool,
    /// The memory that values own; found when the first one is freed.
    owned: OnceLock<OwnedMemory>,
}

/// A message of values that a program in C holds.
#[derive(Debug, Clone, Copy)]
pub struct CMessage<'a> {
    values: &'a CValues,
    resolved: &'a ResolvedInterface,
    codec: &'a MessageCodec,
}

/// A value as C has it that Rust owns, with all that it points to.
#[derive(Debug)]
pub struct CValue<'a> {
    message: CMessage<'a>,
    /// It is filled.
    room: NonNull<u8>,
}

// SAFETY: it owns all memory that it points to, and nothing changes what is shared.
unsafe impl Send for CValue<'_> {}
// SAFETY: as above.
unsafe impl Sync for CValue<'_> {}

/// A value that machine code reads. It knows the offsets of the fields.
#[cfg(feature = "jit")]
#[repr(C)]
pub(crate) struct CSource {
    /// Its address.
    pub value: *const u8,
    /// Bytes that its message may have.
    pub limit: u64,
}

/// Room for a value that machine code writes. It knows the offsets of the fields.
#[repr(C)]
pub(crate) struct CTarget {
    /// Its address.
    pub value: *mut u8,
    /// The memory that the value points to.
    pub heap: CHeap,
}

/// Programs in C cannot hold values of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CValuesError {
    /// No message can hold them.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// C has no layout for them.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A type is only named: its layout is known where it is declared.
    #[error("`{0}` is declared outside the interface")]
    External(String),
    /// A number is one of 128 bits.
    #[error("C has no type for `quadruple`, which `{0}` holds")]
    Quadruple(String),
}

impl CValues {
    /// Lays the values of an interface out as the C of a dialect does. With `is_interpreted`, no machine code is made.
    ///
    /// # Errors
    /// C has no such values.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(
        schema: Schema,
        representation: RepresentationData,
        dialect: CDialect,
        is_interpreted: bool,
    ) -> Result<Self, CValuesError> {
        check(&schema)?;
        let interface = Interface::in_model(schema, representation, MemoryModel::C(dialect))?;
        interface.resolved().map_err(Clone::clone)?;
        Ok(Self {
            interface,
            is_interpreted,
            owned: OnceLock::new(),
        })
    }

    /// The schema of the interface.
    pub fn schema(&self) -> &Schema {
        self.interface.schema()
    }

    /// A message of the interface.
    ///
    /// # Panics
    /// If it is not of this interface.
    #[inline]
    pub fn message(&self, id: MessageId) -> CMessage<'_> {
        let resolved = self.resolved();
        CMessage {
            values: self,
            resolved,
            codec: resolved.program.codec(id),
        }
    }

    /// Alignment of a value of a named type in messages of its own.
    ///
    /// # Panics
    /// If the type is not of this interface.
    pub fn wire_align(&self, id: TypeId) -> usize {
        self.interface.plans().of_type(id).align as usize
    }

    /// Makes the machine code of all messages now, and not when they have been moved often. Returns whether there is some:
    /// not where Cranelift has no target, the feature `jit` is left out, or values are to be interpreted.
    pub fn compile(&self) -> bool {
        #[cfg(feature = "jit")]
        return !self.is_interpreted && self.interface.compile();
        #[cfg(not(feature = "jit"))]
        return false;
    }

    fn owned(&self) -> &OwnedMemory {
        let find = || OwnedMemory::of(&self.resolved().program);
        self.owned.get_or_init(find)
    }

    #[inline]
    fn resolved(&self) -> &ResolvedInterface {
        let Ok(resolved) = self.interface.resolved() else {
            unreachable!("an interface without layouts is refused")
        };
        resolved
    }
}

impl<'a> CMessage<'a> {
    /// Size and alignment of a value, as `sizeof` and `_Alignof` of its type in C.
    pub fn extent(self) -> SizeAndAlign {
        let (schema, layouts) = (self.values.schema(), &self.resolved.layouts);
        match self.codec.entry.key {
            MessageId::Type(id) => layouts.named(id),
            MessageId::Arguments(at) => {
                let procedure = self.values.interface.procedure_at(at);
                layouts.extent(schema, procedure.arguments_layout())
            }
            MessageId::Result(at) => {
                let procedure = self.values.interface.procedure_at(at);
                layouts.extent(schema, procedure.result_layout())
            }
        }
    }

    /// Appends the value at `value`, to a message of no more bytes than `limit`: by machine code, if there is some or it is
    /// worth making now.
    ///
    /// # Errors
    /// It is too long somewhere, a pointer is null, or it holds a value that its type does not have; or the message
    /// becomes too large, or there is no memory for it. What was appended is to be dropped.
    ///
    /// # Safety
    /// A value of this message lies there, with all that it points to, and nothing changes it meanwhile.
    #[inline]
    pub unsafe fn encode<R: Representation>(
        self,
        value: *const u8,
        out: &mut Encoder<'_, R>,
        limit: usize,
    ) -> Result<(), EncodeError> {
        #[cfg(feature = "jit")]
        // SAFETY: the caller's promise.
        if unsafe { self.encode_by_machine(value, out, limit) } {
            return Ok(());
        }
        let (depth_left, program) = (out.depth_left(), &self.resolved.program);
        let (buffer, start) = out.parts();
        let out = EncodeSink {
            buffer,
            start,
            depth_left,
            limit: limit.min(interp::NO_LIMIT - 1),
        };
        // SAFETY: the caller's promise.
        unsafe { interp::encode::<WholeNumberMover>(program, &self.codec.entry, value, out) }
    }

    /// As [`encode`](Self::encode) by machine code. `false`, and nothing appended: there is none, or it refuses.
    ///
    /// # Safety
    /// As there.
    #[cfg(feature = "jit")]
    #[inline]
    unsafe fn encode_by_machine<R: Representation>(
        self,
        value: *const u8,
        out: &mut Encoder<'_, R>,
        limit: usize,
    ) -> bool {
        if self.values.is_interpreted {
            return false;
        }
        let (entry, points) = (&self.codec.entry, &self.codec.entry_points);
        let encoder = points.encoder().or_else(|| {
            points.make_encoder(&self.values.interface, &entry.key, CompileTrigger::Hot)
        });
        let Some(encoder) = encoder else {
            return false;
        };
        let (buffer, _) = out.parts();
        let before = buffer.len();
        // What code makes room for without asking whether there is memory.
        let is_small = buffer.capacity() - before < MAX_COVERED as usize;
        if is_small && !buffer.try_reserve(MAX_COVERED as usize) {
            return false;
        }
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let source = CSource { value, limit };
        let spare = SpareCapacity::of(out);
        // SAFETY: the caller's promise; the interface is borrowed.
        let is_done = unsafe { encoder.run_in_c(&source, out, spare) };
        // It looks for the limit only where it makes room.
        let (buffer, start) = out.parts();
        let is_too_large = (buffer.len() - start) as u64 > limit;
        if is_too_large {
            buffer.truncate(before);
        }
        is_done && !is_too_large
    }

    /// Reads a value to `value`: by machine code, if there is some or it is worth making now. What the value points to is
    /// taken by malloc, to be given back by [`free`](Self::free).
    ///
    /// # Errors
    /// The bytes are not a value of this message, or there is no memory for it. Then the room is all zero, and what was
    /// read is not to be read on.
    ///
    /// # Safety
    /// There is room for such a value, which is all zero.
    #[inline]
    pub unsafe fn decode<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
        value: *mut u8,
    ) -> Result<(), DecodeError> {
        let mut target = CTarget {
            value,
            heap: CHeap::new(),
        };
        #[cfg(feature = "jit")]
        // SAFETY: the caller's promise.
        if unsafe { self.decode_by_machine(input, &mut target) } {
            target.heap.keep();
            return Ok(());
        }
        let program = &self.resolved.program;
        let source = DecodeSource::of(input, program);
        // SAFETY: the caller's promise.
        let read = unsafe {
            interp::decode::<WholeNumberMover, _>(
                program,
                &self.codec.entry,
                value,
                &mut target.heap,
                source,
            )
        };
        match read {
            Ok((left, memory_left)) => {
                target.heap.keep();
                input.catch_up(left, memory_left);
                Ok(())
            }
            Err(error) => {
                // SAFETY: the caller's promise.
                unsafe { self.zero(value) };
                Err(error)
            }
        }
    }

    /// As [`decode`](Self::decode) by machine code. `false`, nothing read and all zero: there is none, or it refuses.
    ///
    /// # Safety
    /// As there.
    #[cfg(feature = "jit")]
    #[inline]
    unsafe fn decode_by_machine<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
        target: &mut CTarget,
    ) -> bool {
        if self.values.is_interpreted {
            return false;
        }
        let (entry, points) = (&self.codec.entry, &self.codec.entry_points);
        let decoder = points.decoder(R::SWAPPED).or_else(|| {
            let interface = &self.values.interface;
            points.make_decoder(interface, &entry.key, R::SWAPPED, CompileTrigger::Hot)
        });
        let Some(decoder) = decoder else {
            return false;
        };
        // SAFETY: the caller's promise; the interface is borrowed.
        let is_done = unsafe { decoder.run_in_c(target, input) };
        if !is_done {
            target.heap.free_all();
            // SAFETY: the caller's promise.
            unsafe { self.zero(target.value) };
        }
        is_done
    }

    /// Reads a value to memory of its own.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn read<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<CValue<'a>, DecodeError> {
        let mut heap = CHeap::new();
        let bytes = self.extent().size as usize;
        let Some(room) = heap.take(bytes, MemoryContent::Zeros) else {
            return Err(input.error(DecodeErrorKind::NoMemory));
        };
        // SAFETY: there is so much room, and all of it is zero.
        unsafe { self.decode(input, room.as_ptr())? };
        heap.keep();
        let message = self;
        Ok(CValue { message, room })
    }

    /// # Safety
    /// There is room for a value there.
    unsafe fn zero(self, value: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { ptr::write_bytes(value, 0, self.extent().size as usize) };
    }

    /// Returns whether values of this message own memory.
    pub fn owns_memory(self) -> bool {
        let owned = self.values.owned();
        !owned.of_message(self.codec.entry.key).is_empty()
    }

    /// Frees what a value points to, not the value itself, and sets its pointers to null.
    ///
    /// # Safety
    /// A value of this message lies there; what it points to was taken by malloc, and nothing uses it.
    pub unsafe fn free(self, value: *mut u8) {
        let owned = self.values.owned();
        let steps = owned.of_message(self.codec.entry.key);
        // SAFETY: the caller's promise.
        unsafe { free(&self.resolved.program, owned, steps, value) };
    }
}

impl CValue<'_> {
    /// The value, as long as it is not dropped.
    pub fn as_ptr(&self) -> *const u8 {
        self.room.as_ptr()
    }

    /// Appends the value to a message of no more bytes than `limit`.
    ///
    /// # Errors
    /// As [`CMessage::encode`].
    pub fn encode<R: Representation>(
        &self,
        out: &mut Encoder<'_, R>,
        limit: usize,
    ) -> Result<(), EncodeError> {
        // SAFETY: it was decoded, and nothing has changed it.
        unsafe { self.message.encode(self.as_ptr(), out, limit) }
    }
}

impl Drop for CValue<'_> {
    fn drop(&mut self) {
        // SAFETY: it was decoded, and nothing uses it any more; its room was taken by malloc.
        unsafe {
            self.message.free(self.room.as_ptr());
            heap::free(self.room.as_ptr());
        }
    }
}

/// Refuses types that C does not have.
fn check(schema: &Schema) -> Result<(), CValuesError> {
    for def in &schema.types {
        if def.kind == TypeKind::External {
            return Err(CValuesError::External(def.name.clone()));
        }
        check_uses(schema, &def.name, def.kind.types())?;
    }
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    for procedure in versions.flat_map(|version| &version.procedures) {
        let uses = procedure.arguments.iter().map(|field| &field.ty);
        check_uses(
            schema,
            &procedure.name,
            uses.chain(&procedure.result).collect(),
        )?;
    }
    Ok(())
}

fn check_uses(schema: &Schema, name: &str, uses: Vec<&Type>) -> Result<(), CValuesError> {
    for mut ty in uses {
        while let Type::Array(inner, _) | Type::Optional(inner) = schema.resolve(ty) {
            ty = inner;
        }
        if *schema.resolve(ty) == Type::Quadruple {
            return Err(CValuesError::Quadruple(name.to_owned()));
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "jit"))]
mod tests {
    use tenon_wire::{Buffer, Xdr};

    use super::*;
    use crate::random::{Random, schemas};

    /// Machine code says yes to values, and no to bytes that the interpreter refuses.
    fn judge(message: CMessage<'_>, bytes: &[u8], expected: Option<bool>) {
        let size = message.extent().size as usize;
        let mut input = Decoder::<Xdr>::new(bytes);
        let mut heap = CHeap::new();
        let room = heap.take(size, MemoryContent::Zeros).expect("memory");
        let mut target = CTarget {
            value: room.as_ptr(),
            heap: CHeap::new(),
        };
        // SAFETY: there is so much room, which is zero.
        let is_read = unsafe { message.decode_by_machine(&mut input, &mut target) };
        assert!(expected.is_none_or(|expected| is_read == expected));
        if is_read {
            target.heap.keep();
            let mut buffer = Buffer::default();
            let mut out = Encoder::<Xdr>::new(&mut buffer);
            // SAFETY: the value was read, and is freed once.
            let is_sent = unsafe {
                let is_sent = message.encode_by_machine(room.as_ptr(), &mut out, bytes.len());
                message.free(room.as_ptr());
                is_sent
            };
            assert!(is_sent);
            let read = bytes.len() - input.left();
            assert_eq!(buffer.len(), read);
        }
        // SAFETY: what was freed was set to null, so that this frees nothing twice.
        unsafe { message.free(room.as_ptr()) };
    }

    #[test]
    fn machine_code_moves_what_the_interpreter_moves() {
        let mut judged = 0;
        for seed in 0..40 {
            let schema = schemas::schema_for_c(&mut Random::new(seed));
            let xdr = RepresentationData::XDR;
            let Ok(values) = CValues::new(schema.clone(), xdr, CDialect::Rpcgen, false) else {
                continue;
            };
            assert!(values.compile());
            let frames = Interface::new(schema).expect("a plan");
            for id in (0..frames.schema().types.len() as u32).map(TypeId) {
                let value = Random::new(seed).value(frames.schema(), &Type::Named(id), 30);
                let mut buffer = Buffer::default();
                let done = frames.encode(id, &value, &mut Encoder::<Xdr>::new(&mut buffer));
                done.expect("a value");
                let message = values.message(MessageId::Type(id));
                let bytes = buffer.as_slice();
                let known = message.read(&mut Decoder::<Xdr>::new(bytes)).is_ok();
                judge(message, bytes, Some(known));
                judge(message, &bytes[..bytes.len() / 2], None);
                judged += u32::from(known);
            }
        }
        assert!(judged > 100, "{judged}");
    }
}

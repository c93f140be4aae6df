//! Values out of a frame's memory.

use std::{ptr, slice};

use tenon_plan::links::{linked_list, memory_fields};
use tenon_plan::{Layout, Scalar, TypeClass};
use tenon_schema::{Field, Length, Type, TypeId, TypeKind, Union};

use crate::layout::{CountedArray, TypeLayouts};
use crate::{Interface, Value};

/// The value would take more memory than it may.
#[derive(Debug)]
pub(super) struct MemoryLimitExceeded;

type ReadResult = Result<Value, MemoryLimitExceeded>;

/// Reads memory that was filled as its layout says.
pub(super) struct FrameReader<'a> {
    pub interface: &'a Interface,
    pub layouts: &'a TypeLayouts,
    /// Bytes of memory that values may still take.
    pub left: usize,
}

impl<'a> FrameReader<'a> {
    /// The value at `at`.
    ///
    /// # Safety
    /// A value of this layout lies there, and all that it points to is alive.
    pub unsafe fn value(&mut self, layout: Layout<'a>, at: *const u8) -> ReadResult {
        // SAFETY: the caller's promise.
        unsafe {
            match layout {
                Layout::Nothing => Ok(Value::Void),
                Layout::Record(fields) => {
                    let starts = self.layouts.offsets(self.interface.schema(), fields);
                    self.record(fields, &starts, at)
                }
                Layout::Definition(id) => self.named(id, at),
                Layout::Use(ty) => self.used(ty, at),
            }
        }
    }

    /// The elements of the counted item at `at`.
    ///
    /// # Safety
    /// As [`value`](Self::value), for the elements.
    pub unsafe fn counted(&mut self, element: Layout<'a>, at: *const u8) -> ReadResult {
        // SAFETY: the caller's promise.
        unsafe {
            let counted = at.cast::<CountedArray>().read();
            self.elements(element, counted.count, counted.items)
        }
    }

    fn charge(&mut self, count: usize, bytes: usize) -> Result<(), MemoryLimitExceeded> {
        let price = count.checked_mul(bytes).ok_or(MemoryLimitExceeded)?;
        self.left = self.left.checked_sub(price).ok_or(MemoryLimitExceeded)?;
        Ok(())
    }

    unsafe fn elements(&mut self, element: Layout<'a>, count: u32, at: *const u8) -> ReadResult {
        let count = count as usize;
        self.charge(count, size_of::<Value>())?;
        let stride = self.layouts.extent(self.interface.schema(), element).size as usize;
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: the caller's promise: so many elements lie there, one behind the other.
            items.push(unsafe { self.value(element, at.add(index * stride))? });
        }
        Ok(Value::Array(items))
    }

    unsafe fn record(&mut self, fields: &'a [Field], starts: &[u64], at: *const u8) -> ReadResult {
        self.charge(fields.len(), size_of::<Value>())?;
        let mut values = Vec::with_capacity(fields.len());
        for (field, start) in fields.iter().zip(starts) {
            // SAFETY: the caller's promise: the fields lie where the layout says.
            values.push(unsafe { self.used(&field.ty, at.add(*start as usize))? });
        }
        Ok(Value::Struct(values))
    }

    unsafe fn named(&mut self, id: TypeId, at: *const u8) -> ReadResult {
        let (schema, layouts) = (self.interface.schema(), self.layouts);
        // SAFETY: the caller's promise.
        unsafe {
            match &schema.type_def(id).kind {
                TypeKind::Enum(_) => Ok(Value::Enum(ptr::read(at.cast()))),
                TypeKind::Union(union) => self.union(id, union, at),
                TypeKind::Struct(_) => {
                    let fields = memory_fields(schema, id).unwrap_or_default();
                    self.record(fields, layouts.starts(id), at)
                }
                TypeKind::Typedef(_) | TypeKind::External => Ok(Value::Void),
            }
        }
    }

    unsafe fn union(&mut self, id: TypeId, union: &'a Union, at: *const u8) -> ReadResult {
        self.charge(1, size_of::<crate::Union>())?;
        let scalar = Scalar::of(self.interface.schema(), &union.discriminant_type);
        let (Some(scalar), [arms]) = (scalar, self.layouts.starts(id)) else {
            unreachable!("unions without a discriminant are not lowered");
        };
        // SAFETY: the caller's promise: the arm is the one that the discriminant selects.
        unsafe {
            let discriminant = discriminant(scalar, at);
            let held = self.arm(id, union, discriminant, at.add(*arms as usize))?;
            Ok(Value::union(discriminant, held))
        }
    }

    /// Reads the value of the arm at `at`, which `discriminant` selects.
    unsafe fn arm(
        &mut self,
        id: TypeId,
        union: &'a Union,
        discriminant: i32,
        at: *const u8,
    ) -> ReadResult {
        let Some((position, field)) = union.selection(discriminant) else {
            return Ok(Value::Void);
        };
        let held = Layout::of_arm(field);
        let schema = self.interface.schema();
        // SAFETY: the caller's promise: the arm, or a pointer to it, lies there.
        unsafe {
            match self.layouts.boxed_arm(schema, id, position, held) {
                Some(_) => {
                    self.charge(1, size_of::<Value>())?;
                    self.value(held, at.cast::<*const u8>().read())
                }
                None => self.value(held, at),
            }
        }
    }

    unsafe fn used(&mut self, ty: &'a Type, at: *const u8) -> ReadResult {
        let schema = self.interface.schema();
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(list) = linked_list(schema, ty) {
                return self.list(list.element, at);
            }
            match TypeClass::of(schema.resolve(ty)) {
                TypeClass::Scalar(scalar) => Ok(self::scalar(scalar, at)),
                TypeClass::Opaque(Length::Fixed(bytes)) => {
                    Ok(Value::Opaque(self.bytes(bytes, at)?))
                }
                TypeClass::Opaque(Length::Counted(_)) => Ok(Value::Opaque(self.counted_bytes(at)?)),
                TypeClass::String(_) => Ok(Value::String(self.counted_bytes(at)?.into())),
                TypeClass::Array(element, Length::Fixed(count)) => {
                    self.elements(Layout::Use(element), count, at)
                }
                TypeClass::Array(element, Length::Counted(_)) => {
                    self.counted(Layout::Use(element), at)
                }
                TypeClass::Optional(to) => {
                    let held = at.cast::<*const u8>().read();
                    if held.is_null() {
                        return Ok(Value::Optional(None));
                    }
                    self.charge(1, size_of::<Value>())?;
                    Ok(Value::some(self.used(to, held)?))
                }
                TypeClass::Named(id) => match Scalar::of(schema, ty) {
                    Some(scalar) => Ok(self::scalar(scalar, at)),
                    None => self.named(id, at),
                },
            }
        }
    }

    unsafe fn list(&mut self, element: TypeId, at: *const u8) -> ReadResult {
        let layout = Layout::of_type(self.interface.schema(), element);
        // SAFETY: the caller's promise.
        unsafe { self.counted(layout, at) }
    }

    unsafe fn bytes(&mut self, count: u32, at: *const u8) -> Result<Vec<u8>, MemoryLimitExceeded> {
        self.charge(count as usize, 1)?;
        // SAFETY: the caller's promise: so many bytes lie there.
        Ok(unsafe { slice::from_raw_parts(at, count as usize) }.to_vec())
    }

    unsafe fn counted_bytes(&mut self, at: *const u8) -> Result<Vec<u8>, MemoryLimitExceeded> {
        // SAFETY: the caller's promise.
        unsafe {
            let counted = at.cast::<CountedArray>().read();
            self.bytes(counted.count, counted.items)
        }
    }
}

unsafe fn scalar(scalar: Scalar, at: *const u8) -> Value {
    // SAFETY: the caller's promise.
    unsafe {
        match scalar {
            Scalar::I32 => Value::Int(ptr::read(at.cast())),
            Scalar::U32 => Value::Uint(ptr::read(at.cast())),
            Scalar::I64 => Value::Hyper(ptr::read(at.cast())),
            Scalar::U64 => Value::Uhyper(ptr::read(at.cast())),
            Scalar::I16 => Value::Short(ptr::read(at.cast())),
            Scalar::U16 => Value::Ushort(ptr::read(at.cast())),
            Scalar::I8 => Value::Char(ptr::read(at.cast())),
            Scalar::U8 => Value::Uchar(at.read()),
            Scalar::F32 => Value::Float(ptr::read(at.cast())),
            Scalar::F64 => Value::Double(ptr::read(at.cast())),
            Scalar::F128 => Value::Quadruple(ptr::read(at.cast())),
            Scalar::Bool => Value::Bool(at.cast::<i32>().read() != 0),
            Scalar::Enum(_) => Value::Enum(ptr::read(at.cast())),
        }
    }
}

/// Reads the discriminant of the union at `at`.
///
/// # Safety
/// A value of this type lies there.
unsafe fn discriminant(scalar: Scalar, at: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        match scalar {
            Scalar::I16 => at.cast::<i16>().read().into(),
            Scalar::U16 => at.cast::<u16>().read().into(),
            Scalar::I8 => at.cast::<i8>().read().into(),
            Scalar::U8 => at.read().into(),
            _ => at.cast::<i32>().read(),
        }
    }
}

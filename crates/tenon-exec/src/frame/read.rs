//! Values out of a frame's memory.

use std::{ptr, slice};

use tenon_plan::links::linked_list;
use tenon_plan::{Layout, Scalar};
use tenon_schema::{Field, Length, Type, TypeId, TypeKind, Union};

use crate::layout::{Counted, Layouts};
use crate::{Interface, Value};

/// Reads memory that was filled as its layout says.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub interface: &'a Interface,
    pub layouts: &'a Layouts,
}

impl<'a> Reader<'a> {
    /// The value at `at`.
    ///
    /// # Safety
    /// A value of this layout lies there, and all that it points to is alive.
    pub unsafe fn value(self, layout: Layout<'a>, at: *const u8) -> Value {
        // SAFETY: the caller's promise.
        unsafe {
            match layout {
                Layout::Nothing => Value::Void,
                Layout::Record(fields) => self.record(fields, at),
                Layout::Definition(id) => self.definition(id, at),
                Layout::Use(ty) => self.used(ty, at),
            }
        }
    }

    /// The elements of the counted item at `at`.
    ///
    /// # Safety
    /// As [`value`](Self::value), for the elements.
    pub unsafe fn counted(self, element: Layout<'a>, at: *const u8) -> Value {
        // SAFETY: the caller's promise.
        unsafe {
            let counted = at.cast::<Counted>().read();
            self.elements(element, counted.count, counted.items)
        }
    }

    unsafe fn elements(self, element: Layout<'a>, count: u32, at: *const u8) -> Value {
        let stride = self.layouts.extent(self.interface.schema(), element).size as usize;
        let places = (0..count as usize).map(|index| at.wrapping_add(index * stride));
        // SAFETY: the caller's promise: so many elements lie there, one behind the other.
        Value::Array(
            places
                .map(|at| unsafe { self.value(element, at) })
                .collect(),
        )
    }

    unsafe fn record(self, fields: &'a [Field], at: *const u8) -> Value {
        let offsets = self.layouts.offsets(self.interface.schema(), fields);
        let placed = fields.iter().zip(offsets);
        let values = placed.map(|(field, offset)| {
            // SAFETY: the caller's promise: the fields lie where the layout says.
            unsafe { self.used(&field.ty, at.wrapping_add(offset as usize)) }
        });
        Value::Struct(values.collect())
    }

    unsafe fn definition(self, id: TypeId, at: *const u8) -> Value {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.interface.schema().type_def(id).kind {
                TypeKind::Enum(_) => Value::Enum(ptr::read(at.cast())),
                TypeKind::Union(union) => self.union(union, at),
                TypeKind::Struct(_) | TypeKind::Typedef(_) | TypeKind::External => Value::Void,
            }
        }
    }

    unsafe fn union(self, union: &'a Union, at: *const u8) -> Value {
        let schema = self.interface.schema();
        let Some(scalar) = Scalar::of(schema, &union.discriminant_type) else {
            return Value::Void;
        };
        // SAFETY: the caller's promise: the arm is the one that the discriminant selects.
        unsafe {
            let discriminant = discriminant(scalar, at);
            let held = Layout::of_arm(selected(union, discriminant).flatten());
            let arms = at.wrapping_add(self.layouts.arms_offset(schema, union) as usize);
            Value::union(discriminant, self.value(held, arms))
        }
    }

    unsafe fn used(self, ty: &'a Type, at: *const u8) -> Value {
        let schema = self.interface.schema();
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(list) = linked_list(schema, ty) {
                return self.counted(Layout::of_type(schema, list.element), at);
            }
            if let Some(scalar) = Scalar::of(schema, ty) {
                return self::scalar(scalar, at);
            }
            match schema.resolve(ty) {
                Type::Opaque(Length::Fixed(bytes)) => Value::Opaque(self::bytes(*bytes, at)),
                Type::Opaque(Length::Counted(_)) => Value::Opaque(counted_bytes(at)),
                Type::String(_) => Value::String(counted_bytes(at).into()),
                Type::Array(element, Length::Fixed(count)) => {
                    self.elements(Layout::Use(element), *count, at)
                }
                Type::Array(element, Length::Counted(_)) => self.counted(Layout::Use(element), at),
                Type::Optional(to) => {
                    let held = at.cast::<*const u8>().read();
                    let held = (!held.is_null()).then(|| self.used(to, held));
                    Value::Optional(held.map(Box::new))
                }
                Type::Named(id) => self.value(Layout::of_type(schema, *id), at),
                scalar => unreachable!("{scalar:?} is a scalar"),
            }
        }
    }
}

/// The field of the arm that `discriminant` selects; `None` if it selects no arm.
pub(super) fn selected(union: &Union, discriminant: i32) -> Option<Option<&Field>> {
    let selects = |case: &tenon_schema::Case| case.value == discriminant;
    let arm = union.arms.iter().find(|arm| arm.cases.iter().any(selects));
    match arm {
        Some(arm) => Some(arm.field.as_ref()),
        None => union.default.as_ref().map(Option::as_ref),
    }
}

unsafe fn bytes(count: u32, at: *const u8) -> Vec<u8> {
    // SAFETY: the caller's promise: so many bytes lie there.
    unsafe { slice::from_raw_parts(at, count as usize) }.to_vec()
}

unsafe fn counted_bytes(at: *const u8) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe {
        let counted = at.cast::<Counted>().read();
        bytes(counted.count, counted.items)
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

//! Values into a frame's memory.

use std::ptr;

use tenon_plan::links::linked_list;
use tenon_plan::{Layout, Scalar};
use tenon_schema::{Field, Length, Type, TypeId, TypeKind};

use super::Key;
use super::arena::Arena;
use super::read::selected;
use crate::layout::{Counted, Layouts};
use crate::{Interface, Union, Value};

/// How deep a value may nest through recursive types, as in [`tenon_wire::Encoder`].
const DEPTH: u32 = 128;

/// Fills memory. `None`: the value does not have the shape of its type.
pub(super) struct Writer<'a, 'm> {
    interface: &'a Interface,
    layouts: &'a Layouts,
    arena: &'m mut Arena,
    depth_left: u32,
}

impl<'a, 'm> Writer<'a, 'm> {
    pub fn new(interface: &'a Interface, layouts: &'a Layouts, arena: &'m mut Arena) -> Self {
        Self {
            interface,
            layouts,
            arena,
            depth_left: DEPTH,
        }
    }

    /// Puts `value` to `to`.
    ///
    /// # Safety
    /// There is room and alignment for a value of this layout.
    unsafe fn value(&mut self, layout: Layout<'a>, value: &Value, to: *mut u8) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match layout {
                Layout::Nothing => (*value == Value::Void).then_some(()),
                Layout::Record(fields) => self.record(fields, value, to),
                Layout::Definition(id) => self.definition(id, value, to),
                Layout::Use(ty) => self.used(ty, value, to),
            }
        }
    }

    /// Puts a whole message that is no list to `to`.
    ///
    /// # Safety
    /// As [`value`](Self::value).
    pub unsafe fn root(
        &mut self,
        key: Key,
        layout: Layout<'a>,
        value: &Value,
        to: *mut u8,
    ) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match key.named() {
                Some(id) => self.named(id, value, to),
                None => self.value(layout, value, to),
            }
        }
    }

    /// Puts a counted item to `to` and its elements into the arena; elements of the named type
    /// `named`, if there is one, are entered one by one.
    ///
    /// # Safety
    /// There is room and alignment for a [`Counted`].
    pub unsafe fn counted(
        &mut self,
        element: Layout<'a>,
        named: Option<TypeId>,
        value: &Value,
        to: *mut u8,
    ) -> Option<()> {
        let Value::Array(items) = value else {
            return None;
        };
        let stride = self.stride(element);
        let held = self.arena.take(items.len().checked_mul(stride)?).as_ptr();
        for (index, item) in items.iter().enumerate() {
            let at = held.wrapping_add(index * stride);
            // SAFETY: the arena has given room for all of them.
            unsafe {
                match named {
                    Some(id) => self.named(id, item, at)?,
                    None => self.value(element, item, at)?,
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { put_counted(items.len(), held, to) }
    }

    fn stride(&self, element: Layout<'_>) -> usize {
        self.layouts.extent(self.interface.schema(), element).size as usize
    }

    unsafe fn record(&mut self, fields: &'a [Field], value: &Value, to: *mut u8) -> Option<()> {
        let Value::Struct(values) = value else {
            return None;
        };
        if values.len() != fields.len() {
            return None;
        }
        let offsets = self.layouts.offsets(self.interface.schema(), fields);
        let mut placed = fields.iter().zip(offsets).zip(values);
        placed.try_for_each(|((field, offset), value)| {
            // SAFETY: the caller's promise: the fields lie where the layout says.
            unsafe { self.used(&field.ty, value, to.wrapping_add(offset as usize)) }
        })
    }

    /// A value of a struct or union that a plan of its own moves.
    unsafe fn named(&mut self, id: TypeId, value: &Value, to: *mut u8) -> Option<()> {
        let level = u32::from(self.interface.plans().of_type(id).recursive);
        self.depth_left = self.depth_left.checked_sub(level)?;
        let layout = Layout::of_type(self.interface.schema(), id);
        // SAFETY: the caller's promise.
        unsafe { self.value(layout, value, to)? };
        self.depth_left += level;
        Some(())
    }

    unsafe fn definition(&mut self, id: TypeId, value: &Value, to: *mut u8) -> Option<()> {
        let schema = self.interface.schema();
        match (&schema.type_def(id).kind, value) {
            // SAFETY: the caller's promise.
            (TypeKind::Enum(_), Value::Enum(value)) => unsafe { ptr::write(to.cast(), *value) },
            (TypeKind::Union(union), Value::Union(held)) => {
                let scalar = Scalar::of(schema, &union.discriminant_type)?;
                let arm = Layout::of_arm(selected(union, held.discriminant)?);
                let arms = to.wrapping_add(self.layouts.arms_offset(schema, union) as usize);
                // SAFETY: the caller's promise: there is room for discriminant and every arm.
                unsafe {
                    put_discriminant(scalar, held, to)?;
                    self.value(arm, &held.value, arms)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    unsafe fn used(&mut self, ty: &'a Type, value: &Value, to: *mut u8) -> Option<()> {
        let schema = self.interface.schema();
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(list) = linked_list(schema, ty) {
                let element = Layout::of_type(schema, list.element);
                return self.counted(element, Some(list.element), value, to);
            }
            if let Some(scalar) = Scalar::of(schema, ty) {
                return put_scalar(scalar, value, to);
            }
            match (schema.resolve(ty), value) {
                (Type::Opaque(Length::Fixed(count)), Value::Opaque(data)) => {
                    put_bytes(data, *count, to)
                }
                (Type::Opaque(Length::Counted(_)), Value::Opaque(data)) => self.text(data, to),
                (Type::String(_), Value::String(data)) => self.text(data, to),
                (Type::Array(element, Length::Fixed(count)), Value::Array(items)) => {
                    self.elements(element, *count, items, to)
                }
                (Type::Array(element, Length::Counted(_)), value) => {
                    self.counted(Layout::Use(element), None, value, to)
                }
                (Type::Optional(held), Value::Optional(value)) => {
                    self.optional(held, value.as_deref(), to)
                }
                (Type::Named(id), value) => self.named(*id, value, to),
                _ => None,
            }
        }
    }

    unsafe fn elements(
        &mut self,
        element: &'a Type,
        count: u32,
        items: &[Value],
        to: *mut u8,
    ) -> Option<()> {
        if items.len() != count as usize {
            return None;
        }
        let stride = self.stride(Layout::Use(element));
        let mut placed = items.iter().enumerate();
        placed.try_for_each(|(index, item)| {
            // SAFETY: the caller's promise: there is room for all of them.
            unsafe { self.used(element, item, to.wrapping_add(index * stride)) }
        })
    }

    unsafe fn optional(&mut self, ty: &'a Type, value: Option<&Value>, to: *mut u8) -> Option<()> {
        let mut held = ptr::null_mut();
        if let Some(value) = value {
            held = self.arena.take(self.stride(Layout::Use(ty))).as_ptr();
            // SAFETY: the arena has given room for it.
            unsafe { self.used(ty, value, held)? };
        }
        // SAFETY: the caller's promise.
        unsafe { to.cast::<*mut u8>().write(held) };
        Some(())
    }

    unsafe fn text(&mut self, data: &[u8], to: *mut u8) -> Option<()> {
        let held = self.arena.take(data.len()).as_ptr();
        // SAFETY: the arena has given room for the bytes; the caller for what counts them.
        unsafe {
            held.copy_from_nonoverlapping(data.as_ptr(), data.len());
            put_counted(data.len(), held, to)
        }
    }
}

unsafe fn put_counted(count: usize, items: *mut u8, to: *mut u8) -> Option<()> {
    let count = u32::try_from(count).ok()?;
    // SAFETY: the caller's promise.
    unsafe { ptr::write(to.cast(), Counted { count, items }) };
    Some(())
}

unsafe fn put_bytes(data: &[u8], count: u32, to: *mut u8) -> Option<()> {
    if data.len() != count as usize {
        return None;
    }
    // SAFETY: the caller's promise: there is room for so many.
    unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    Some(())
}

unsafe fn put_scalar(scalar: Scalar, value: &Value, to: *mut u8) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match (scalar, value) {
            (Scalar::I32, Value::Int(value)) => ptr::write(to.cast(), *value),
            (Scalar::U32, Value::Uint(value)) => ptr::write(to.cast(), *value),
            (Scalar::I64, Value::Hyper(value)) => ptr::write(to.cast(), *value),
            (Scalar::U64, Value::Uhyper(value)) => ptr::write(to.cast(), *value),
            (Scalar::I16, Value::Short(value)) => ptr::write(to.cast(), *value),
            (Scalar::U16, Value::Ushort(value)) => ptr::write(to.cast(), *value),
            (Scalar::I8, Value::Char(value)) => ptr::write(to.cast(), *value),
            (Scalar::U8, Value::Uchar(value)) => to.write(*value),
            (Scalar::F32, Value::Float(value)) => ptr::write(to.cast(), *value),
            (Scalar::F64, Value::Double(value)) => ptr::write(to.cast(), *value),
            (Scalar::F128, Value::Quadruple(value)) => ptr::write(to.cast(), *value),
            (Scalar::Bool, Value::Bool(value)) => ptr::write(to.cast(), i32::from(*value)),
            (Scalar::Enum(_), Value::Enum(value)) => ptr::write(to.cast(), *value),
            _ => return None,
        }
    }
    Some(())
}

/// `None`: the discriminant is no value of its type.
unsafe fn put_discriminant(scalar: Scalar, union: &Union, to: *mut u8) -> Option<()> {
    let value = union.discriminant;
    // SAFETY: the caller's promise.
    unsafe {
        match scalar {
            Scalar::I16 => ptr::write(to.cast(), i16::try_from(value).ok()?),
            Scalar::U16 => ptr::write(to.cast(), u16::try_from(value).ok()?),
            Scalar::I8 => ptr::write(to.cast(), i8::try_from(value).ok()?),
            Scalar::U8 => to.write(u8::try_from(value).ok()?),
            Scalar::Bool => ptr::write(to.cast(), (0..=1).contains(&value).then_some(value)?),
            _ => ptr::write(to.cast(), value),
        }
    }
    Some(())
}

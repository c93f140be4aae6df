//! Values into a frame's memory. A value that does not have the shape of its type is refused by
//! the name of the field that it is in.

use std::borrow::Cow;
use std::ptr;

use tenon_plan::links::{is_link, linked_list, memory_fields};
use tenon_plan::{Layout, Scalar};
use tenon_schema::{Field, Length, Type, TypeId, TypeKind};
use tenon_wire::{EncodeError, EncodeErrorKind};

use super::arena::FrameArena;
use crate::layout::{CountedArray, TypeLayouts};
use crate::{Interface, Union, Value};

/// Greatest depth of a value that nests through recursive types, as in [`tenon_wire::Encoder`].
const DEPTH: u32 = 128;

type WriteResult = Result<(), EncodeError>;

/// Fills memory.
pub(super) struct FrameWriter<'a, 'm> {
    interface: &'a Interface,
    layouts: &'a TypeLayouts,
    arena: &'m mut FrameArena,
    depth_left: u32,
}

impl<'a, 'm> FrameWriter<'a, 'm> {
    pub fn new(
        interface: &'a Interface,
        layouts: &'a TypeLayouts,
        arena: &'m mut FrameArena,
    ) -> Self {
        Self {
            interface,
            layouts,
            arena,
            depth_left: DEPTH,
        }
    }

    /// Puts a message of a named type to `to`.
    ///
    /// # Safety
    /// There is room and alignment for it.
    pub unsafe fn message(&mut self, id: TypeId, value: &Value, to: *mut u8) -> WriteResult {
        let schema = self.interface.schema();
        let def = schema.type_def(id);
        // SAFETY: the caller's promise.
        let done = unsafe {
            match &def.kind {
                _ if is_link(schema, id) => self.list(id, value, to),
                TypeKind::Typedef(ty) => self.used(ty, value, to),
                _ => self.named(id, value, to),
            }
        };
        done.map_err(|error| in_type(error, &def.name))
    }

    /// Puts a part of the procedure `name` to `to`.
    ///
    /// # Safety
    /// There is room and alignment for it.
    pub unsafe fn part(
        &mut self,
        name: &str,
        layout: Layout<'a>,
        value: &Value,
        to: *mut u8,
    ) -> WriteResult {
        let schema = self.interface.schema();
        // SAFETY: the caller's promise.
        let done = unsafe {
            match layout {
                Layout::Record(fields) => {
                    let starts = self.layouts.offsets(schema, fields);
                    self.record(name, fields, &starts, value, to)
                }
                layout => self.value(layout, value, to),
            }
        };
        done.map_err(|error| in_type(error, name))
    }

    /// Puts `value` to `to`.
    ///
    /// # Safety
    /// There is room and alignment for a value of this layout.
    unsafe fn value(&mut self, layout: Layout<'a>, value: &Value, to: *mut u8) -> WriteResult {
        match layout {
            Layout::Nothing if *value == Value::Void => Ok(()),
            // SAFETY: the caller's promise.
            Layout::Use(ty) => unsafe { self.used(ty, value, to) },
            Layout::Nothing | Layout::Record(_) | Layout::Definition(_) => Err(shape()),
        }
    }

    fn stride(&self, element: Layout<'_>) -> usize {
        self.layouts.extent(self.interface.schema(), element).size as usize
    }

    unsafe fn record(
        &mut self,
        name: &str,
        fields: &'a [Field],
        starts: &[u64],
        value: &Value,
        to: *mut u8,
    ) -> WriteResult {
        let Value::Struct(values) = value else {
            return Err(shape());
        };
        if values.len() != fields.len() {
            return Err(shape());
        }
        let mut placed = fields.iter().zip(starts).zip(values);
        placed.try_for_each(|((field, start), value)| {
            // SAFETY: the caller's promise: the fields lie where the layout says.
            let done = unsafe { self.used(&field.ty, value, to.add(*start as usize)) };
            done.map_err(|error| in_field(error, name, &field.name))
        })
    }

    /// A value that a plan of its own moves.
    unsafe fn named(&mut self, id: TypeId, value: &Value, to: *mut u8) -> WriteResult {
        let level = u32::from(self.interface.plans().of_type(id).recursive);
        let Some(left) = self.depth_left.checked_sub(level) else {
            return Err(EncodeError::new(EncodeErrorKind::TooDeep));
        };
        self.depth_left = left;
        // SAFETY: the caller's promise.
        unsafe { self.definition(id, value, to)? };
        self.depth_left += level;
        Ok(())
    }

    unsafe fn definition(&mut self, id: TypeId, value: &Value, to: *mut u8) -> WriteResult {
        let (schema, layouts) = (self.interface.schema(), self.layouts);
        let def = schema.type_def(id);
        // SAFETY: the caller's promise.
        unsafe {
            match (&def.kind, value) {
                (TypeKind::Enum(_), Value::Enum(value)) => ptr::write(to.cast(), *value),
                (TypeKind::Struct(_), value) => {
                    let fields = memory_fields(schema, id).unwrap_or_default();
                    self.record(&def.name, fields, layouts.starts(id), value, to)?;
                }
                (TypeKind::Union(_), Value::Union(held)) => {
                    let done = self.union(id, held, to);
                    done.map_err(|error| in_type(error, &def.name))?;
                }
                (TypeKind::External, _) => {
                    let error = EncodeError::new(EncodeErrorKind::External);
                    return Err(in_type(error, &def.name));
                }
                (TypeKind::Enum(_) | TypeKind::Union(_) | TypeKind::Typedef(_), _) => {
                    return Err(shape());
                }
            }
        }
        Ok(())
    }

    unsafe fn union(&mut self, id: TypeId, held: &Union, to: *mut u8) -> WriteResult {
        let schema = self.interface.schema();
        let TypeKind::Union(union) = &schema.type_def(id).kind else {
            unreachable!("called for unions");
        };
        let scalar = Scalar::of(schema, &union.discriminant_type);
        let (Some(scalar), [arms]) = (scalar, self.layouts.starts(id)) else {
            unreachable!("unions without a discriminant are not lowered");
        };
        let unknown = EncodeErrorKind::UnknownValue(held.discriminant);
        let Some((position, arm)) = union.selection(held.discriminant) else {
            return Err(EncodeError::new(unknown));
        };
        let layout = Layout::of_arm(arm);
        let boxed = self.layouts.boxed_arm(schema, id, position, layout);
        // SAFETY: the caller's promise: there is room for discriminant and every arm. The arena has given room for
        // what lies behind a pointer.
        unsafe {
            put_discriminant(scalar, held, to).ok_or_else(|| EncodeError::new(unknown))?;
            let mut at = to.add(*arms as usize);
            if let Some(bytes) = boxed {
                let behind = self.arena.take(bytes as usize).as_ptr();
                at.cast::<*mut u8>().write(behind);
                at = behind;
            }
            self.value(layout, &held.value, at)
        }
    }

    unsafe fn used(&mut self, ty: &'a Type, value: &Value, to: *mut u8) -> WriteResult {
        let schema = self.interface.schema();
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(list) = linked_list(schema, ty) {
                return self.list(list.element, value, to);
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
                    match items.len() == *count as usize {
                        true => self.elements(element, items, to),
                        false => Err(shape()),
                    }
                }
                (Type::Array(element, Length::Counted(_)), Value::Array(items)) => {
                    let held = self.room(items.len(), self.stride(Layout::Use(element)))?;
                    self.elements(element, items, held)?;
                    put_counted(items.len(), held, to)
                }
                (Type::Optional(held), Value::Optional(value)) => {
                    self.optional(held, value.as_deref(), to)
                }
                (Type::Named(id), value) => self.named(*id, value, to),
                _ => Err(shape()),
            }
        }
    }

    /// Memory for so many elements.
    fn room(&mut self, count: usize, stride: usize) -> Result<*mut u8, EncodeError> {
        let bytes = count.checked_mul(stride).ok_or_else(shape)?;
        Ok(self.arena.take(bytes).as_ptr())
    }

    unsafe fn elements(&mut self, element: &'a Type, items: &[Value], to: *mut u8) -> WriteResult {
        let stride = self.stride(Layout::Use(element));
        let mut placed = items.iter().enumerate();
        placed.try_for_each(|(index, item)| {
            // SAFETY: the caller's promise: there is room for all of them.
            unsafe { self.used(element, item, to.add(index * stride)) }
        })
    }

    unsafe fn list(&mut self, element: TypeId, value: &Value, to: *mut u8) -> WriteResult {
        let Value::Array(items) = value else {
            return Err(shape());
        };
        let stride = self.stride(Layout::of_type(self.interface.schema(), element));
        let held = self.room(items.len(), stride)?;
        for (index, item) in items.iter().enumerate() {
            // SAFETY: the arena has given room for all of them.
            unsafe { self.named(element, item, held.add(index * stride))? };
        }
        // SAFETY: the caller's promise.
        unsafe { put_counted(items.len(), held, to) }
    }

    unsafe fn optional(&mut self, ty: &'a Type, value: Option<&Value>, to: *mut u8) -> WriteResult {
        let mut held = ptr::null_mut();
        if let Some(value) = value {
            held = self.arena.take(self.stride(Layout::Use(ty))).as_ptr();
            // SAFETY: the arena has given room for it.
            unsafe { self.used(ty, value, held)? };
        }
        // SAFETY: the caller's promise.
        unsafe { to.cast::<*mut u8>().write(held) };
        Ok(())
    }

    unsafe fn text(&mut self, data: &[u8], to: *mut u8) -> WriteResult {
        let held = self.arena.take(data.len()).as_ptr();
        // SAFETY: the arena has given room for the bytes, the caller for the counted array.
        unsafe {
            held.copy_from_nonoverlapping(data.as_ptr(), data.len());
            put_counted(data.len(), held, to)
        }
    }
}

#[cold]
fn shape() -> EncodeError {
    EncodeError::new(EncodeErrorKind::Shape)
}

/// Names the field, if nothing further inside has done so.
#[cold]
fn in_field(mut error: EncodeError, owner: &str, field: &str) -> EncodeError {
    if error.field.is_empty() {
        error.field = Cow::Owned(format!("{owner}.{field}"));
    }
    error
}

/// Names the type, if nothing further inside has named itself.
#[cold]
fn in_type(mut error: EncodeError, name: &str) -> EncodeError {
    if error.field.is_empty() {
        error.field = Cow::Owned(name.to_owned());
    }
    error
}

unsafe fn put_counted(length: usize, items: *mut u8, to: *mut u8) -> WriteResult {
    let Ok(count) = u32::try_from(length) else {
        let bound = u32::MAX;
        return Err(EncodeError::new(EncodeErrorKind::TooLong { length, bound }));
    };
    // SAFETY: the caller's promise.
    unsafe { ptr::write(to.cast(), CountedArray { count, items }) };
    Ok(())
}

unsafe fn put_bytes(data: &[u8], count: u32, to: *mut u8) -> WriteResult {
    if data.len() != count as usize {
        return Err(shape());
    }
    // SAFETY: the caller's promise: there is room for so many.
    unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    Ok(())
}

unsafe fn put_scalar(scalar: Scalar, value: &Value, to: *mut u8) -> WriteResult {
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
            _ => return Err(shape()),
        }
    }
    Ok(())
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

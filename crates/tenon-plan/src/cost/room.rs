//! Bytes of memory that values take where they lie: what an array of them allocates.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use super::symbol::Engine;
use crate::Scalar;
use crate::blittable::ARRAY_MAX;
use crate::links::{linked_list, memory_fields};
use crate::memory;

/// What leads to memory elsewhere.
const POINTER: u64 = 8;

/// Estimates how large values are in memory: exactly for what has numbers only, to a few bytes for
/// the rest, where a compiler has its freedom.
pub(super) struct Rooms<'a> {
    pub schema: &'a Schema,
    pub engine: Engine,
}

impl Rooms<'_> {
    /// Of a value where it is used.
    pub fn of(&self, ty: &Type) -> u64 {
        self.inside(ty, &mut Vec::new())
    }

    /// Of an element of a linked list.
    pub fn of_element(&self, id: TypeId) -> u64 {
        self.named(id, &mut Vec::new())
    }

    /// Whether a fixed array of so many bytes lies elsewhere.
    pub fn is_elsewhere(&self, bytes: u64) -> bool {
        self.engine == Engine::Compiled && bytes > ARRAY_MAX
    }

    /// Whether an optional value lies behind a pointer.
    pub fn is_boxed(&self, is_recursive: bool) -> bool {
        self.engine != Engine::Compiled || is_recursive
    }

    fn counted(&self) -> u64 {
        match self.engine {
            Engine::Compiled => 24,
            Engine::Machine | Engine::Interpreter => 16,
        }
    }

    fn inside(&self, ty: &Type, open: &mut Vec<TypeId>) -> u64 {
        if linked_list(self.schema, ty).is_some() {
            return self.counted();
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return memory::of_scalar(scalar).bytes;
        }
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => self.array(u64::from(*bytes)),
            Type::Array(element, Length::Fixed(count)) => {
                let element = self.inside(element, open);
                self.array(element.saturating_mul(u64::from(*count)))
            }
            Type::Optional(to) if self.engine == Engine::Compiled => {
                self.inside(to, open).saturating_add(POINTER)
            }
            Type::Optional(_) => POINTER,
            Type::Named(id) => self.named(*id, open),
            _ => self.counted(),
        }
    }

    fn array(&self, bytes: u64) -> u64 {
        match self.is_elsewhere(bytes) {
            true => POINTER,
            false => bytes,
        }
    }

    fn named(&self, id: TypeId, open: &mut Vec<TypeId>) -> u64 {
        if open.contains(&id) {
            return POINTER;
        }
        open.push(id);
        let bytes = match &self.schema.type_def(id).kind {
            TypeKind::Union(union) => {
                let arms = union.arms.iter().map(|arm| &arm.field);
                let fields = arms.chain(&union.default).flatten();
                let largest = fields.map(|field| self.inside(&field.ty, open)).max();
                largest.unwrap_or(0).saturating_add(POINTER)
            }
            _ => self.fields(memory_fields(self.schema, id).unwrap_or_default(), open),
        };
        open.pop();
        bytes
    }

    fn fields(&self, fields: &[Field], open: &mut Vec<TypeId>) -> u64 {
        let mut end: u64 = 0;
        let mut widest = 1;
        for field in fields {
            let bytes = self.inside(&field.ty, open);
            let align = match bytes {
                0 | 1 => 1,
                bytes => 1 << bytes.trailing_zeros().min(3),
            };
            end = end.next_multiple_of(align).saturating_add(bytes);
            widest = widest.max(align);
        }
        end.checked_next_multiple_of(widest).unwrap_or(u64::MAX)
    }
}

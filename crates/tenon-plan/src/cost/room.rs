//! Bytes of memory that values take where they lie: what an array of them allocates.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use super::symbol::Engine;
use crate::Scalar;
use crate::blittable::{ARRAY_MAX, NESTED_ARRAY_MAX};
use crate::graph;
use crate::links::{linked_list, memory_fields};
use crate::memory;

/// Bytes of a pointer to memory elsewhere.
const POINTER: u64 = 8;

/// Estimates how large values are in memory: exactly for what has numbers only, to a few bytes for
/// the rest, where a compiler has its freedom.
pub(super) struct MemorySizes<'a> {
    schema: &'a Schema,
    engine: Engine,
    /// Of each named type that has been looked at.
    types: Vec<Option<u64>>,
}

impl<'a> MemorySizes<'a> {
    /// Looks at each type once.
    pub fn new(schema: &'a Schema, engine: Engine) -> Self {
        let mut rooms = Self {
            schema,
            engine,
            types: vec![None; schema.types.len()],
        };
        let components = graph::components(schema);
        for members in graph::components_by(schema, graph::held).order {
            // They are not known to each other: what is inside itself lies elsewhere.
            let definition = |id: &TypeId| {
                let is_recursive = graph::is_recursive(schema, &components, *id);
                rooms.definition(*id, rooms.array_max(is_recursive))
            };
            let found: Vec<u64> = members.iter().map(definition).collect();
            for (id, bytes) in members.into_iter().zip(found) {
                rooms.types[id.0 as usize] = Some(bytes);
            }
        }
        rooms
    }

    /// Of an element of a linked list.
    pub fn of_element(&self, id: TypeId) -> u64 {
        self.types[id.0 as usize].unwrap_or(POINTER)
    }

    /// Most bytes of a fixed array inside a type that does not lie elsewhere.
    pub fn array_max(&self, is_recursive: bool) -> u64 {
        match (self.engine, is_recursive) {
            (Engine::Compiled, true) => NESTED_ARRAY_MAX,
            (Engine::Compiled, false) => ARRAY_MAX,
            (Engine::Machine | Engine::Interpreter, _) => u64::MAX,
        }
    }

    /// Returns whether an optional value lies behind a pointer.
    pub fn is_boxed(&self, is_recursive: bool) -> bool {
        self.engine != Engine::Compiled || is_recursive
    }

    fn counted(&self) -> u64 {
        match self.engine {
            Engine::Compiled => 24,
            Engine::Machine | Engine::Interpreter => 16,
        }
    }

    /// Of a value on its own, or of an element.
    pub fn of(&self, ty: &Type) -> u64 {
        self.inside(ty, self.array_max(false))
    }

    /// Of a value where it is used, among others that lie elsewhere if they are larger arrays than
    /// `array_max`.
    fn inside(&self, ty: &Type, array_max: u64) -> u64 {
        if linked_list(self.schema, ty).is_some() {
            return self.counted();
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return memory::of_scalar(scalar).bytes;
        }
        let array = |bytes: u64| match bytes > array_max {
            true => POINTER,
            false => bytes,
        };
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => array(u64::from(*bytes)),
            Type::Array(element, Length::Fixed(count)) => {
                let element = self.inside(element, array_max);
                array(element.saturating_mul(u64::from(*count)))
            }
            Type::Optional(to) if self.engine == Engine::Compiled => self.optional(to, array_max),
            Type::Optional(_) => POINTER,
            Type::Named(id) => self.types[id.0 as usize].unwrap_or(POINTER),
            _ => self.counted(),
        }
    }

    /// A pointer that may be null needs no more room, and what has a place of its own does.
    fn optional(&self, to: &Type, array_max: u64) -> u64 {
        match self.schema.resolve(to) {
            Type::Named(id) if self.types[id.0 as usize].is_none() => POINTER,
            _ => self.inside(to, array_max).saturating_add(POINTER),
        }
    }

    fn definition(&self, id: TypeId, array_max: u64) -> u64 {
        match &self.schema.type_def(id).kind {
            TypeKind::Union(union) => {
                let fields = union.fields();
                let largest = fields.map(|field| self.inside(&field.ty, array_max)).max();
                largest.unwrap_or(0).saturating_add(POINTER)
            }
            _ => self.fields(
                memory_fields(self.schema, id).unwrap_or_default(),
                array_max,
            ),
        }
    }

    /// Returns the size of fields one behind the other; arrays larger than `array_max` lie elsewhere.
    pub fn fields(&self, fields: &[Field], array_max: u64) -> u64 {
        let mut end: u64 = 0;
        let mut widest = 1;
        for field in fields {
            let bytes = self.inside(&field.ty, array_max);
            let align = match bytes {
                0 | 1 => 1,
                bytes => 1 << bytes.trailing_zeros().min(3),
            };
            let start = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
            end = start.saturating_add(bytes);
            widest = widest.max(align);
        }
        end.checked_next_multiple_of(widest).unwrap_or(u64::MAX)
    }
}

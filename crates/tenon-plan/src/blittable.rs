//! Finds values that lie on the wire as they lie in memory, but for the order of the bytes of each
//! number: HPRPC calls such types blittable.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use crate::graph;
use crate::item::{Blittable, Run, Scalar};
use crate::links::is_link;
use crate::memory::{self, MemoryLayouts};
use crate::representation::Representation;

/// Bytes of a fixed array up to which it lies inside of what contains it: in Rust a larger one has
/// memory of its own, so that it never has to fit on a stack.
pub const ARRAY_MAX: u64 = 4096;

/// The same inside a type that may hold itself. Each level of such a value is on the stack while Rust
/// decodes it, and a message may have as many levels as the limits of a decoder allow.
pub const NESTED_ARRAY_MAX: u64 = 256;

/// Most runs of numbers that one item consists of. A struct may hold another twice, and that one the
/// next, so that runs double with each line of an interface; what has more is moved part by part.
const RUNS_MAX: usize = 1024;

/// Judges the types of an interface, each once.
#[derive(Debug)]
pub(crate) struct BlittableTypes<'a> {
    schema: &'a Schema,
    representation: Representation,
    memory: MemoryLayouts<'a>,
    /// Of each named type, what a value consists of if it is blittable.
    types: Vec<Option<Blittable>>,
}

impl<'a> BlittableTypes<'a> {
    pub fn new(schema: &'a Schema, representation: Representation) -> Self {
        let mut blittables = Self {
            schema,
            representation,
            memory: MemoryLayouts::new(schema),
            types: vec![None; schema.types.len()],
        };
        for id in graph::components(schema).order.into_iter().flatten() {
            blittables.types[id.0 as usize] = blittables.of_definition(id);
        }
        blittables
    }

    fn of_definition(&self, id: TypeId) -> Option<Blittable> {
        match &self.schema.type_def(id).kind {
            TypeKind::Struct(fields) if !is_link(self.schema, id) => self.of_fields(fields),
            _ => None,
        }
    }

    /// Returns what a value of `ty` consists of inside of another value or an array, if it is blittable.
    pub fn of(&self, ty: &Type) -> Option<Blittable> {
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return self.of_scalar(scalar);
        }
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => {
                let is_whole = self.representation.padded(u64::from(*bytes)) == u64::from(*bytes);
                let fits = u64::from(*bytes) <= ARRAY_MAX;
                (is_whole && fits && *bytes > 0).then(|| Blittable::uniform(1, *bytes))
            }
            Type::Array(element, Length::Fixed(count)) => {
                let item = self.of(element)?.times(*count)?;
                (item.bytes() <= ARRAY_MAX).then_some(item)
            }
            Type::Named(id) => self.types[id.0 as usize].clone(),
            _ => None,
        }
    }

    /// Of fields one behind the other without a hole in memory or on the wire.
    pub fn of_fields(&self, fields: &[Field]) -> Option<Blittable> {
        let mut whole = Blittable { runs: Vec::new() };
        for (field, start) in fields.iter().zip(self.memory.offsets(fields)) {
            if whole.bytes() != start {
                return None;
            }
            let item = self.of(&field.ty)?;
            item.runs.into_iter().try_for_each(|run| whole.push(run))?;
            (whole.runs.len() <= RUNS_MAX).then_some(())?;
        }
        let extent = self.memory.of_fields(fields);
        let is_closed = whole.bytes() == extent.bytes && !fields.is_empty();
        is_closed.then_some(whole)
    }

    fn of_scalar(&self, scalar: Scalar) -> Option<Blittable> {
        let bytes = self.representation.bytes(scalar);
        let is_same = memory::of_scalar(scalar).bytes == u64::from(bytes);
        let item = match scalar {
            Scalar::F128 => Blittable::uniform(1, bytes),
            _ => Blittable::uniform(bytes, 1),
        };
        (is_same && !self.representation.is_checked(scalar)).then_some(item)
    }
}

impl Blittable {
    fn push(&mut self, run: Run) -> Option<()> {
        match self.runs.last_mut() {
            Some(last) if last.unit == run.unit => {
                last.units = last.units.checked_add(run.units)?;
            }
            _ => self.runs.push(run),
        }
        Some(())
    }

    /// So many of them as one. Those of several runs are not written out.
    fn times(self, count: u32) -> Option<Self> {
        match self.runs.as_slice() {
            [run] => Some(Self::uniform(run.unit, run.units.checked_mul(count)?)),
            _ => (count == 1).then_some(self),
        }
    }
}

//! Layout of fields in memory as C has it, by which blocks of memory are judged.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use crate::graph;
use crate::item::Scalar;
use crate::links::{linked_list, memory_fields};

/// Bytes of memory that a value takes, and the alignment of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryExtent {
    pub bytes: u64,
    pub align: u64,
}

/// Extent of the pointer to a value of varying size, which lies elsewhere.
const ELSEWHERE: MemoryExtent = MemoryExtent { bytes: 8, align: 8 };

/// The extents of all types of an interface.
#[derive(Debug)]
pub(crate) struct MemoryLayouts<'a> {
    schema: &'a Schema,
    types: Vec<MemoryExtent>,
}

impl<'a> MemoryLayouts<'a> {
    pub fn new(schema: &'a Schema) -> Self {
        let types = vec![ELSEWHERE; schema.types.len()];
        let mut memory = Self { schema, types };
        for id in graph::components(schema).order.into_iter().flatten() {
            memory.types[id.0 as usize] = memory.definition(id);
        }
        memory
    }

    fn definition(&self, id: TypeId) -> MemoryExtent {
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => whole(4),
            TypeKind::Typedef(to) => self.of(to),
            TypeKind::Struct(_) => {
                self.of_fields(memory_fields(self.schema, id).unwrap_or_default())
            }
            TypeKind::Union(_) | TypeKind::External => ELSEWHERE,
        }
    }

    fn of(&self, ty: &Type) -> MemoryExtent {
        if linked_list(self.schema, ty).is_some() {
            return ELSEWHERE;
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return of_scalar(scalar);
        }
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => MemoryExtent {
                bytes: u64::from(*bytes),
                align: 1,
            },
            Type::Array(element, Length::Fixed(count)) => {
                let MemoryExtent { bytes, align } = self.of(element);
                let bytes = bytes.saturating_mul(u64::from(*count));
                MemoryExtent { bytes, align }
            }
            Type::Named(id) => self.types[id.0 as usize],
            _ => ELSEWHERE,
        }
    }

    /// Of fields one behind the other.
    pub fn of_fields(&self, fields: &[Field]) -> MemoryExtent {
        let align = fields.iter().map(|field| self.of(&field.ty).align).max();
        let align = align.unwrap_or(1);
        let last = self.offsets(fields).last().copied().zip(fields.last());
        let end = last.map_or(0, |(at, field)| at.saturating_add(self.of(&field.ty).bytes));
        let bytes = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        MemoryExtent { bytes, align }
    }

    /// Returns the offset of each field.
    pub fn offsets(&self, fields: &[Field]) -> Vec<u64> {
        let mut end: u64 = 0;
        let offsets = fields.iter().map(|field| {
            let MemoryExtent { bytes, align } = self.of(&field.ty);
            let start = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
            end = start.saturating_add(bytes);
            start
        });
        offsets.collect()
    }
}

/// Bytes of a scalar.
pub(crate) fn of_scalar(scalar: Scalar) -> MemoryExtent {
    match scalar {
        Scalar::I8 | Scalar::U8 | Scalar::Bool => whole(1),
        Scalar::I16 | Scalar::U16 => whole(2),
        Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::Enum(_) => whole(4),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => whole(8),
        Scalar::F128 => MemoryExtent {
            bytes: 16,
            align: 1,
        },
    }
}

fn whole(bytes: u64) -> MemoryExtent {
    MemoryExtent {
        bytes,
        align: bytes,
    }
}

//! Memory layout of values: the sizes, alignments and offsets of C (System V), so that a frame has the layout of
//! the structs that `rpcgen` makes.
//!
//! | type | in memory |
//! | --- | --- |
//! | numbers | the C type of the same width; `quadruple` its 16 bytes as on the wire |
//! | `bool`, an enum | a 32-bit integer |
//! | `opaque x[n]` | `n` bytes |
//! | `opaque x<>`, `string`, `T x<>`, a linked list | [`CountedArray`] |
//! | `T x[n]` | `n` elements |
//! | `T *` | a pointer, null for none |
//! | a struct, the arguments of a procedure | the fields in order |
//! | a union | the discriminant, then the largest arm's room; an arm in which it contains itself is a pointer |
//!
//! That is a frame's. Values that C programs hold differ from it in a few ways (`MemoryModel`): a string is a
//! pointer to bytes that end in a NUL, the elements of a linked list are linked by pointers, and a `bool` may be a byte.

use tenon_plan::links::{linked_list, memory_fields, memory_types};
use tenon_plan::{BoxedArms, Layout, Place, Scalar, TypeClass};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};
use thiserror::Error;

/// Most bytes of a value in place. Offsets into it fit the displacements of machine code.
const MAX_SIZE: u64 = 1 << 28;

/// Size at which computed sizes saturate, so that sums of them cannot overflow.
const HUGE: u64 = 1 << 40;

/// How values of an interface lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MemoryModel {
    /// As a [`Frame`](crate::Frame) holds them.
    #[default]
    Frame,
    /// As a program in C holds them.
    C(CDialect),
}

/// The C that declares the types of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CDialect {
    /// That of `tenon gen --lang c`: a `bool` is C's, a struct without fields takes a byte.
    Tenon,
    /// That of rpcgen: a `bool` is an `int`, a struct without fields takes no byte.
    Rpcgen,
}

impl MemoryModel {
    /// Returns whether a program in C holds the values.
    pub fn is_c(self) -> bool {
        matches!(self, Self::C(_))
    }

    /// Size and alignment of a scalar.
    pub fn scalar(self, scalar: Scalar) -> SizeAndAlign {
        match (scalar, self) {
            (Scalar::Bool, Self::C(CDialect::Tenon)) => SizeAndAlign::of::<bool>(),
            (scalar, _) => of_scalar(scalar),
        }
    }

    /// Size and alignment of a struct without fields.
    fn nothing(self) -> SizeAndAlign {
        match self {
            Self::C(CDialect::Tenon) => SizeAndAlign::of::<u8>(),
            Self::C(CDialect::Rpcgen) | Self::Frame => SizeAndAlign::NOTHING,
        }
    }

    /// The fields of a struct in memory.
    fn fields(self, schema: &Schema, id: TypeId) -> &[Field] {
        match (&schema.type_def(id).kind, self) {
            (TypeKind::Struct(fields), Self::C(_)) => fields,
            _ => memory_fields(schema, id).unwrap_or_default(),
        }
    }
}

/// A counted array, of which the elements lie elsewhere, as `rpcgen` has it: `foo_len` and `foo_val`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CountedArray {
    /// Number of elements.
    pub count: u32,
    /// The first element; dangling if there is none.
    pub items: *mut u8,
}

/// Size and alignment of a value in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeAndAlign {
    /// Bytes, a multiple of `align`.
    pub size: u64,
    /// Alignment of the address, at most 8.
    pub align: u64,
}

/// No frame can hold values of this interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A struct holds itself and not a pointer to it.
    #[error("a value of `{0}` would contain another in place")]
    Endless(String),
    /// A value takes more than 256 MiB in place.
    #[error("a value of `{0}` takes too many bytes in memory")]
    TooLarge(String),
}

impl LayoutError {
    /// The type or procedure that cannot be laid out.
    pub fn name(&self) -> &str {
        match self {
            Self::Endless(name) | Self::TooLarge(name) => name,
        }
    }
}

/// Memory layouts of all types of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeLayouts {
    model: MemoryModel,
    types: Vec<Option<TypeLayout>>,
    boxed: BoxedArms,
}

/// Memory layout of a named type.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TypeLayout {
    extent: SizeAndAlign,
    /// Offset of each field of a struct; of a union, the offset of its arms.
    starts: Box<[u64]>,
}

impl SizeAndAlign {
    const NOTHING: Self = Self { size: 0, align: 1 };
    /// Size and alignment of a [`CountedArray`].
    pub const COUNTED: Self = Self::of::<CountedArray>();

    const fn of<T>() -> Self {
        Self {
            size: size_of::<T>() as u64,
            align: align_of::<T>() as u64,
        }
    }

    fn times(self, count: u32) -> Self {
        let size = self.size.saturating_mul(count.into()).min(HUGE);
        Self { size, ..self }
    }

    /// Places `next` behind `self`, and returns both together and the offset of `next`.
    fn then(self, next: Self) -> (Self, u64) {
        let start = self.size.next_multiple_of(next.align);
        let both = Self {
            size: (start + next.size).min(HUGE),
            align: self.align.max(next.align),
        };
        (both, start)
    }

    fn padded(self) -> Self {
        let size = self.size.next_multiple_of(self.align);
        Self { size, ..self }
    }
}

impl TypeLayouts {
    /// Measures all types as frames hold them.
    ///
    /// # Errors
    /// C could not hold a value of some type.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(schema: &Schema) -> Result<Self, LayoutError> {
        Self::in_model(schema, MemoryModel::Frame)
    }

    /// As [`new`](Self::new), as `model` has them.
    pub(crate) fn in_model(schema: &Schema, model: MemoryModel) -> Result<Self, LayoutError> {
        let mut layouts = Self {
            model,
            types: vec![None; schema.types.len()],
            boxed: BoxedArms::of(schema),
        };
        let mut open = vec![false; schema.types.len()];
        for id in (0..schema.types.len() as u32).map(TypeId) {
            layouts.measure(schema, id, &mut open)?;
        }
        layouts.check_procedures(schema)?;
        Ok(layouts)
    }

    /// How the values lie in memory.
    pub(crate) fn model(&self) -> MemoryModel {
        self.model
    }

    /// Offset of the pointer by which an element of a linked list leads to the next one, in C.
    pub(crate) fn link_offset(&self, id: TypeId) -> u64 {
        self.starts(id).last().copied().unwrap_or(0)
    }

    /// Size and alignment of the value that a body moves.
    pub fn extent(&self, schema: &Schema, layout: Layout<'_>) -> SizeAndAlign {
        match layout {
            Layout::Nothing => SizeAndAlign::NOTHING,
            Layout::Record(fields) => self.record(schema, fields),
            Layout::Definition(id) => self.named(id),
            Layout::Use(ty) => self.of_use(schema, ty),
        }
    }

    /// Offset of each field of a named struct; of a union, the offset of its arms.
    pub(crate) fn starts(&self, id: TypeId) -> &[u64] {
        let measured = self.types[id.0 as usize].as_ref();
        measured.map_or(&[], |measured| &measured.starts)
    }

    /// Offset of each field of a record.
    pub fn offsets(&self, schema: &Schema, fields: &[Field]) -> Vec<u64> {
        let mut all = SizeAndAlign::NOTHING;
        let starts = fields.iter().map(|field| {
            let (both, start) = all.then(self.of_use(schema, &field.ty));
            all = both;
            start
        });
        starts.collect()
    }

    /// Returns the layout of the item at `place` of `layout`, and its offset; `None` if a position on the way does
    /// not exist.
    pub fn locate<'a>(
        &self,
        schema: &'a Schema,
        layout: Layout<'a>,
        place: &Place,
    ) -> Option<(Layout<'a>, u64)> {
        place
            .0
            .iter()
            .try_fold((layout, 0), |(at, base), position| {
                let position = *position as usize;
                let field = at.fields(schema)?.get(position)?;
                let offset = self.start_of(schema, at, position)?;
                Some((Layout::Use(&field.ty), base + offset))
            })
    }

    /// Offset of one field of a record.
    fn start_of(&self, schema: &Schema, of: Layout<'_>, position: usize) -> Option<u64> {
        if let Layout::Use(ty) = of
            && let Type::Named(id) = schema.resolve(ty)
        {
            return self.starts(*id).get(position).copied();
        }
        self.offsets(schema, of.fields(schema)?)
            .get(position)
            .copied()
    }

    /// Offset of the arms of a union.
    pub(crate) fn arms_offset(&self, id: TypeId) -> u64 {
        self.starts(id).first().copied().unwrap_or(0)
    }

    /// Bytes of the value behind the pointer of a boxed arm: that at `position` of the union `id`, the default arm
    /// being the last. `None` if the arm lies in place.
    pub(crate) fn boxed_arm(
        &self,
        schema: &Schema,
        id: TypeId,
        position: usize,
        arm: Layout<'_>,
    ) -> Option<u64> {
        let is_boxed = self.boxed.contains(id, position);
        is_boxed.then(|| self.extent(schema, arm).size)
    }

    fn measure(
        &mut self,
        schema: &Schema,
        id: TypeId,
        open: &mut [bool],
    ) -> Result<(), LayoutError> {
        let at = id.0 as usize;
        if self.types[at].is_some() {
            return Ok(());
        }
        let name = || schema.type_def(id).name.clone();
        if std::mem::replace(&mut open[at], true) {
            return Err(LayoutError::Endless(name()));
        }
        for inner in self.in_place(schema, id) {
            self.measure(schema, inner, open)?;
        }
        let extent = self.definition(schema, id);
        let starts = self.starts_in(schema, id).into();
        self.types[at] = Some(TypeLayout { extent, starts });
        match extent.size <= MAX_SIZE && self.elements_fit(schema, memory_types(schema, id)) {
            true => Ok(()),
            false => Err(LayoutError::TooLarge(name())),
        }
    }

    fn check_procedures(&self, schema: &Schema) -> Result<(), LayoutError> {
        let versions = schema.programs.iter().flat_map(|program| &program.versions);
        for procedure in versions.flat_map(|version| &version.procedures) {
            let size = self.record(schema, &procedure.arguments).size;
            let arguments = procedure.arguments.iter().map(|field| &field.ty);
            let used = arguments.chain(&procedure.result).collect();
            if size > MAX_SIZE || !self.elements_fit(schema, used) {
                return Err(LayoutError::TooLarge(procedure.name.clone()));
            }
        }
        Ok(())
    }

    /// The named types that a value holds in place.
    fn in_place(&self, schema: &Schema, id: TypeId) -> Vec<TypeId> {
        let used: Vec<&Type> = match &schema.type_def(id).kind {
            TypeKind::Union(union) => {
                let arms = union.alternatives().enumerate();
                let arms = arms.filter(|(position, _)| !self.boxed.contains(id, *position));
                arms.filter_map(|(_, arm)| Some(&arm?.ty)).collect()
            }
            _ => memory_types(schema, id),
        };
        let used = used.into_iter();
        used.filter_map(|ty| self.by_value(schema, ty)).collect()
    }

    /// Returns whether all that lies elsewhere, behind a pointer or a count, is small enough too. Named types are
    /// checked on their own.
    fn elements_fit(&self, schema: &Schema, uses: Vec<&Type>) -> bool {
        uses.into_iter().all(|ty| {
            let mut at = ty;
            loop {
                if self.by_value(schema, at).is_none() && self.of_use(schema, at).size > MAX_SIZE {
                    return false;
                }
                at = match schema.resolve(at) {
                    Type::Array(element, _) => element,
                    Type::Optional(to) => to,
                    _ => return true,
                };
            }
        })
    }

    fn definition(&self, schema: &Schema, id: TypeId) -> SizeAndAlign {
        match &schema.type_def(id).kind {
            TypeKind::Enum(_) => SizeAndAlign::of::<i32>(),
            TypeKind::Struct(_) => match self.model.fields(schema, id) {
                [] => self.model.nothing(),
                fields => self.record(schema, fields),
            },
            TypeKind::Union(union) => {
                let arms = self.arms(schema, id, union);
                self.discriminant(schema, union).then(arms).0.padded()
            }
            TypeKind::Typedef(to) => self.of_use(schema, to),
            TypeKind::External => SizeAndAlign::NOTHING,
        }
    }

    fn starts_in(&self, schema: &Schema, id: TypeId) -> Vec<u64> {
        match &schema.type_def(id).kind {
            TypeKind::Struct(_) => self.offsets(schema, self.model.fields(schema, id)),
            TypeKind::Union(union) => {
                let arms = self.arms(schema, id, union);
                vec![self.discriminant(schema, union).then(arms).1]
            }
            TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => Vec::new(),
        }
    }

    /// Size and alignment of a value of a named type; of a link, of an element.
    pub(crate) fn named(&self, id: TypeId) -> SizeAndAlign {
        let measured = self.types[id.0 as usize].as_ref();
        measured.map_or(SizeAndAlign::NOTHING, |measured| measured.extent)
    }

    fn record(&self, schema: &Schema, fields: &[Field]) -> SizeAndAlign {
        let extents = fields.iter().map(|field| self.of_use(schema, &field.ty));
        let all = extents.fold(SizeAndAlign::NOTHING, |all, field| all.then(field).0);
        all.padded()
    }

    /// Size and alignment of the largest arm.
    fn arms(&self, schema: &Schema, id: TypeId, union: &Union) -> SizeAndAlign {
        let arms = union.alternatives().enumerate();
        let extents = arms.filter_map(|(position, arm)| match self.boxed.contains(id, position) {
            true => Some(SizeAndAlign::of::<*mut u8>()),
            false => arm.map(|field| self.of_use(schema, &field.ty)),
        });
        let either = |a: SizeAndAlign, b: SizeAndAlign| SizeAndAlign {
            size: a.size.max(b.size),
            align: a.align.max(b.align),
        };
        extents.fold(SizeAndAlign::NOTHING, either)
    }

    fn of_use(&self, schema: &Schema, ty: &Type) -> SizeAndAlign {
        if self.is_sequence(schema, ty) {
            return SizeAndAlign::COUNTED;
        }
        match TypeClass::of(schema.resolve(ty)) {
            TypeClass::Scalar(scalar) => self.model.scalar(scalar),
            TypeClass::String(_) if self.model.is_c() => SizeAndAlign::of::<*mut u8>(),
            TypeClass::Opaque(Length::Fixed(bytes)) => SizeAndAlign::of::<u8>().times(bytes),
            TypeClass::Array(element, Length::Fixed(count)) => {
                self.of_use(schema, element).times(count)
            }
            TypeClass::Opaque(Length::Counted(_))
            | TypeClass::Array(_, Length::Counted(_))
            | TypeClass::String(_) => SizeAndAlign::COUNTED,
            TypeClass::Optional(_) => SizeAndAlign::of::<*mut u8>(),
            TypeClass::Named(id) => match Scalar::of(schema, ty) {
                Some(scalar) => self.model.scalar(scalar),
                None => self.named(id),
            },
        }
    }

    /// Returns whether a use is a linked list of elements that lie one behind the other.
    fn is_sequence(&self, schema: &Schema, ty: &Type) -> bool {
        !self.model.is_c() && linked_list(schema, ty).is_some()
    }

    /// The struct or union that a use holds in place.
    fn by_value(&self, schema: &Schema, ty: &Type) -> Option<TypeId> {
        if self.is_sequence(schema, ty) {
            return None;
        }
        match schema.resolve(ty) {
            Type::Named(id) => Some(*id),
            Type::Array(element, Length::Fixed(_)) => self.by_value(schema, element),
            _ => None,
        }
    }

    fn discriminant(&self, schema: &Schema, union: &Union) -> SizeAndAlign {
        let scalar = Scalar::of(schema, &union.discriminant_type);
        scalar.map_or(SizeAndAlign::NOTHING, |scalar| self.model.scalar(scalar))
    }
}

/// Size and alignment of a scalar in a frame.
fn of_scalar(scalar: Scalar) -> SizeAndAlign {
    match scalar {
        Scalar::I8 | Scalar::U8 => SizeAndAlign::of::<u8>(),
        Scalar::I16 | Scalar::U16 => SizeAndAlign::of::<u16>(),
        Scalar::I32 | Scalar::U32 | Scalar::F32 => SizeAndAlign::of::<u32>(),
        Scalar::Bool | Scalar::Enum(_) => SizeAndAlign::of::<i32>(),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => SizeAndAlign::of::<u64>(),
        Scalar::F128 => SizeAndAlign::of::<[u8; 16]>(),
    }
}

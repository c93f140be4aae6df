//! Items that operations move: their place in memory, and their type.

use tenon_schema::{Length, Schema, Type, TypeId, TypeKind};

/// A place in memory: the fields that lead from `it` to the item. No field means `it` itself.
/// The layout says what a position names (a field, a parameter).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Place(pub Vec<u32>);

/// An item that is moved whole and always takes the same number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// 32-bit integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// 16-bit integer; XDR has a word for it.
    I16,
    /// 16-bit unsigned integer; XDR has a word for it.
    U16,
    /// 8-bit integer; XDR has a word for it.
    I8,
    /// 8-bit unsigned integer; XDR has a word for it.
    U8,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 128-bit floating point, as bytes.
    F128,
    /// A boolean, of as many bytes as the representation says.
    Bool,
    /// A number that must be a value of this enum.
    Enum(TypeId),
}

/// A type as it is written, all scalars that have no name of their own being one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TypeClass<'t> {
    /// A number or a boolean.
    Scalar(Scalar),
    /// Opaque bytes.
    Opaque(Length),
    /// A string of at most so many bytes; `u32::MAX` is no bound.
    String(u32),
    /// An array of such elements.
    Array(&'t Type, Length),
    /// A value that may be missing.
    Optional(&'t Type),
    /// A type of the interface: an enum among them.
    Named(TypeId),
}

/// The numbers that items of fixed size consist of, which are moved as they lie in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Blittable {
    /// In their order; neighbours differ in their units.
    pub runs: Vec<Run>,
}

/// Numbers of one size, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// Bytes of a number, which change their order together: 1, 2, 4 or 8.
    pub unit: u32,
    /// Count of the numbers.
    pub units: u32,
}

impl<'t> TypeClass<'t> {
    /// Returns the class of a type; names are not followed.
    pub fn of(ty: &'t Type) -> Self {
        match ty {
            Type::Int => Self::Scalar(Scalar::I32),
            Type::Uint => Self::Scalar(Scalar::U32),
            Type::Hyper => Self::Scalar(Scalar::I64),
            Type::Uhyper => Self::Scalar(Scalar::U64),
            Type::Short => Self::Scalar(Scalar::I16),
            Type::Ushort => Self::Scalar(Scalar::U16),
            Type::Char => Self::Scalar(Scalar::I8),
            Type::Uchar => Self::Scalar(Scalar::U8),
            Type::Float => Self::Scalar(Scalar::F32),
            Type::Double => Self::Scalar(Scalar::F64),
            Type::Quadruple => Self::Scalar(Scalar::F128),
            Type::Bool => Self::Scalar(Scalar::Bool),
            Type::Opaque(length) => Self::Opaque(*length),
            Type::String(bound) => Self::String(*bound),
            Type::Array(element, length) => Self::Array(element, *length),
            Type::Optional(to) => Self::Optional(to),
            Type::Named(id) => Self::Named(*id),
        }
    }
}

impl Blittable {
    /// So many numbers of one size.
    pub fn uniform(unit: u32, units: u32) -> Self {
        Self {
            runs: vec![Run { unit, units }],
        }
    }

    /// Bytes of one item, in memory as on the wire.
    pub fn bytes(&self) -> u64 {
        let bytes = |run: &Run| u64::from(run.unit) * u64::from(run.units);
        self.runs.iter().map(bytes).sum()
    }

    /// Returns the size of all numbers, if they have the same.
    pub fn unit(&self) -> Option<u32> {
        match self.runs.as_slice() {
            [run] => Some(run.unit),
            _ => None,
        }
    }
}

impl Place {
    /// The value itself.
    pub fn it() -> Self {
        Self::default()
    }

    /// A field of the value.
    pub fn field(position: usize) -> Self {
        Self(vec![position as u32])
    }

    /// Returns the place `inner` as seen from outside, where this is the place of its `it`.
    pub fn then(&self, inner: &Self) -> Self {
        Self([self.0.as_slice(), &inner.0].concat())
    }
}

impl Scalar {
    /// Returns the scalar that `ty` is, typedefs followed, if it is one.
    pub fn of(schema: &Schema, ty: &Type) -> Option<Self> {
        match TypeClass::of(schema.resolve(ty)) {
            TypeClass::Scalar(scalar) => Some(scalar),
            TypeClass::Named(id) => {
                let is_enum = matches!(schema.type_def(id).kind, TypeKind::Enum(_));
                is_enum.then_some(Self::Enum(id))
            }
            _ => None,
        }
    }

    /// Returns whether it may select the arm of a union (RFC 4506 section 4.15; small integers are a
    /// dialect).
    pub fn is_discriminant(self) -> bool {
        match self {
            Self::I32 | Self::U32 | Self::I16 | Self::U16 | Self::I8 | Self::U8 => true,
            Self::Bool | Self::Enum(_) => true,
            Self::I64 | Self::U64 | Self::F32 | Self::F64 | Self::F128 => false,
        }
    }
}

//! Numbers and other scalars, as they lie in memory and on the wire.

use tenon_plan::{Representation, Scalar};

use crate::layout::MemoryModel;

/// Format of a scalar in memory and on the wire. Those that are as long in memory as on the wire, and of which
/// every pattern of bytes is a value, are only told apart by their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    One,
    Two,
    Four,
    Eight,
    /// Sixteen bytes without a byte order.
    Sixteen,
    /// A word on the wire, as the next three.
    I8Word,
    U8Word,
    I16Word,
    U16Word,
    /// An `i32` in memory, a byte on the wire.
    BoolByte,
    /// An `i32` in memory, a word on the wire.
    BoolWord,
    /// A byte in memory and on the wire.
    ByteBoolByte,
    /// A byte in memory, a word on the wire.
    ByteBoolWord,
    /// An `i32` that is a member of the enum at this position.
    Enum(u32),
}

impl NumberFormat {
    /// Returns the format of a scalar; `members` finds the members of an enum.
    pub fn of(
        scalar: Scalar,
        representation: &Representation,
        model: MemoryModel,
        members: impl FnOnce(tenon_schema::TypeId) -> u32,
    ) -> Self {
        let is_word = representation.words;
        let is_byte = model.scalar(Scalar::Bool).size == 1;
        match scalar {
            Scalar::I8 if is_word => Self::I8Word,
            Scalar::U8 if is_word => Self::U8Word,
            Scalar::I16 if is_word => Self::I16Word,
            Scalar::U16 if is_word => Self::U16Word,
            Scalar::I8 | Scalar::U8 => Self::One,
            Scalar::I16 | Scalar::U16 => Self::Two,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => Self::Four,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Self::Eight,
            Scalar::F128 => Self::Sixteen,
            Scalar::Bool => match (is_byte, is_word) {
                (false, false) => Self::BoolByte,
                (false, true) => Self::BoolWord,
                (true, false) => Self::ByteBoolByte,
                (true, true) => Self::ByteBoolWord,
            },
            Scalar::Enum(id) => Self::Enum(members(id)),
        }
    }

    /// Bytes on the wire.
    pub fn wire_bytes(self) -> usize {
        match self {
            Self::One | Self::BoolByte | Self::ByteBoolByte => 1,
            Self::Two => 2,
            Self::Four | Self::BoolWord | Self::ByteBoolWord | Self::Enum(_) => 4,
            Self::I8Word | Self::U8Word | Self::I16Word | Self::U16Word => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    /// Bytes in memory.
    pub fn memory_bytes(self) -> usize {
        match self {
            Self::One | Self::I8Word | Self::U8Word => 1,
            Self::ByteBoolByte | Self::ByteBoolWord => 1,
            Self::Two | Self::I16Word | Self::U16Word => 2,
            Self::Four | Self::BoolByte | Self::BoolWord | Self::Enum(_) => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    /// Bytes that change their order together, if memory and wire differ in nothing else.
    pub fn unit(self) -> Option<u32> {
        match self {
            Self::One | Self::Sixteen => Some(1),
            Self::Two => Some(2),
            Self::Four => Some(4),
            Self::Eight => Some(8),
            Self::I8Word | Self::U8Word | Self::I16Word | Self::U16Word => None,
            Self::BoolByte | Self::BoolWord | Self::Enum(_) => None,
            Self::ByteBoolByte | Self::ByteBoolWord => None,
        }
    }
}

/// The values of an enum.
#[derive(Debug)]
pub(crate) struct EnumValueSet {
    /// The least value, and the distance of the greatest from it.
    first: i32,
    span: u32,
    /// All of them, sorted, if there is a gap.
    scattered: Option<Box<[i32]>>,
}

impl EnumValueSet {
    /// Makes the set of these values.
    pub fn new(mut values: Vec<i32>) -> Self {
        values.sort_unstable();
        values.dedup();
        let first = values.first().copied().unwrap_or(0);
        let span = values
            .last()
            .map_or(0, |last| last.wrapping_sub(first) as u32);
        let is_dense = values.len() as u64 == u64::from(span) + 1;
        Self {
            first,
            span,
            scattered: (!is_dense).then(|| values.into()),
        }
    }

    /// Returns whether `value` is one of them.
    #[inline]
    pub fn has(&self, value: i32) -> bool {
        let is_inside = value.wrapping_sub(self.first) as u32 <= self.span;
        match &self.scattered {
            None => is_inside,
            Some(values) => is_inside && values.binary_search(&value).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EnumValueSet;

    #[test]
    fn members_are_found_whatever_lies_between_them() {
        let all: [&[i32]; 6] = [
            &[],
            &[0],
            &[3, 1, 2],
            &[7, -7],
            &[i32::MIN, i32::MAX],
            &[-1, 0, 1, 5],
        ];
        for values in all {
            let members = EnumValueSet::new(values.to_vec());
            let edges = [i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX];
            for value in (-9..9).chain(edges) {
                assert_eq!(members.has(value), values.contains(&value), "{value}");
            }
        }
    }
}

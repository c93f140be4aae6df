//! Types in bytes.

use std::sync::Arc;

use tenon_schema::{
    Arm, Case, EnumMember, Field, Length, Origin, Type, TypeDef, TypeId, TypeKind, Union,
};
use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder};

use crate::codec::{Described, get_name, get_text, put_name, put_text, unknown};

/// The most arrays and pointers around a type.
const WRAPPERS_MAX: u32 = 8;

/// What is around a type: `desc_wrapper`.
#[derive(Clone, Copy)]
enum Wrapper {
    Array(Length),
    Optional,
}

impl Described for Wrapper {
    const BYTES_MIN: usize = 4;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Array(Length::Fixed(length)) => put_pair(1, *length, out),
            Self::Array(Length::Counted(bound)) => put_pair(2, *bound, out),
            Self::Optional => out.put(3_u32),
        }
        Ok(())
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind: u32 = input.get()?;
        Ok(match kind {
            1 => Self::Array(Length::Fixed(input.get()?)),
            2 => Self::Array(Length::Counted(input.get()?)),
            3 => Self::Optional,
            _ => return Err(unknown(input, kind)),
        })
    }
}

impl Described for Type {
    const BYTES_MIN: usize = 8;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let mut wrappers = Vec::new();
        let mut at = self;
        loop {
            at = match at {
                Self::Array(element, length) => {
                    wrappers.push(Wrapper::Array(*length));
                    element
                }
                Self::Optional(to) => {
                    wrappers.push(Wrapper::Optional);
                    to
                }
                _ => break,
            };
        }
        out.put_vec(&wrappers, WRAPPERS_MAX, Wrapper::put)?;
        put_base(at, out);
        Ok(())
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let wrappers = input.get_vec(WRAPPERS_MAX, Wrapper::BYTES_MIN, Wrapper::get)?;
        let base = get_base(input)?;
        let around = |ty, wrapper: &Wrapper| match wrapper {
            Wrapper::Array(length) => Self::Array(Box::new(ty), *length),
            Wrapper::Optional => Self::Optional(Box::new(ty)),
        };
        Ok(wrappers.iter().rev().fold(base, around))
    }
}

/// Appends a type that has nothing around it: `desc_base`.
fn put_base(ty: &Type, out: &mut Encoder<'_>) {
    out.put::<u32>(match ty {
        Type::Int => 1,
        Type::Uint => 2,
        Type::Hyper => 3,
        Type::Uhyper => 4,
        Type::Short => 5,
        Type::Ushort => 6,
        Type::Char => 7,
        Type::Uchar => 8,
        Type::Float => 9,
        Type::Double => 10,
        Type::Quadruple => 11,
        Type::Bool => 12,
        Type::Opaque(Length::Fixed(length)) => return put_pair(13, *length, out),
        Type::Opaque(Length::Counted(bound)) => return put_pair(14, *bound, out),
        Type::String(bound) => return put_pair(15, *bound, out),
        Type::Named(id) => return put_pair(16, id.0, out),
        Type::Array(..) | Type::Optional(_) => unreachable!("these are around a type"),
    });
}

fn get_base(input: &mut Decoder<'_>) -> Result<Type, DecodeError> {
    let kind: u32 = input.get()?;
    Ok(match kind {
        1 => Type::Int,
        2 => Type::Uint,
        3 => Type::Hyper,
        4 => Type::Uhyper,
        5 => Type::Short,
        6 => Type::Ushort,
        7 => Type::Char,
        8 => Type::Uchar,
        9 => Type::Float,
        10 => Type::Double,
        11 => Type::Quadruple,
        12 => Type::Bool,
        13 => Type::Opaque(Length::Fixed(input.get()?)),
        14 => Type::Opaque(Length::Counted(input.get()?)),
        15 => Type::String(input.get()?),
        16 => Type::Named(TypeId(input.get()?)),
        _ => return Err(unknown(input, kind)),
    })
}

fn put_pair(kind: u32, number: u32, out: &mut Encoder<'_>) {
    out.put(kind);
    out.put(number);
}

impl Described for Field {
    const BYTES_MIN: usize = 16;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        self.ty.put(out)?;
        self.annotations.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            ty: Described::get(input)?,
            annotations: Described::get(input)?,
        })
    }
}

impl Described for EnumMember {
    const BYTES_MIN: usize = 12;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        out.put(self.value);
        self.annotations.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            value: input.get()?,
            annotations: Described::get(input)?,
        })
    }
}

impl Described for Case {
    const BYTES_MIN: usize = 8;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_text(&self.label, out)?;
        out.put(self.value);
        Ok(())
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            label: get_text(input)?,
            value: input.get()?,
        })
    }
}

impl Described for Arm {
    const BYTES_MIN: usize = 8;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.cases.put(out)?;
        self.field.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            cases: Described::get(input)?,
            field: Described::get(input)?,
        })
    }
}

impl Described for Union {
    const BYTES_MIN: usize = 20;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.discriminant, out)?;
        self.discriminant_type.put(out)?;
        self.arms.put(out)?;
        match &self.default {
            None => out.put(0_u32),
            Some(None) => out.put(1_u32),
            Some(Some(field)) => {
                out.put(2_u32);
                field.put(out)?;
            }
        }
        Ok(())
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            discriminant: get_name(input)?,
            discriminant_type: Described::get(input)?,
            arms: Described::get(input)?,
            default: get_default(input)?,
        })
    }
}

fn get_default(input: &mut Decoder<'_>) -> Result<Option<Option<Field>>, DecodeError> {
    let kind: u32 = input.get()?;
    Ok(match kind {
        0 => None,
        1 => Some(None),
        2 => Some(Some(Field::get(input)?)),
        _ => return Err(unknown(input, kind)),
    })
}

impl Described for TypeKind {
    const BYTES_MIN: usize = 4;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Enum(members) => {
                out.put(1_u32);
                members.put(out)
            }
            Self::Struct(fields) => {
                out.put(2_u32);
                fields.put(out)
            }
            Self::Union(union) => {
                out.put(3_u32);
                union.put(out)
            }
            Self::Typedef(to) => {
                out.put(4_u32);
                to.put(out)
            }
            Self::External => {
                out.put(5_u32);
                Ok(())
            }
        }
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind: u32 = input.get()?;
        Ok(match kind {
            1 => Self::Enum(Described::get(input)?),
            2 => Self::Struct(Described::get(input)?),
            3 => Self::Union(Described::get(input)?),
            4 => Self::Typedef(Described::get(input)?),
            5 => Self::External,
            _ => return Err(unknown(input, kind)),
        })
    }
}

impl Described for TypeDef {
    const BYTES_MIN: usize = 12;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        self.kind.put(out)?;
        self.annotations.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            origin: nowhere(),
            kind: Described::get(input)?,
            annotations: Described::get(input)?,
        })
    }
}

/// The place of a definition that is known by its descriptor.
pub fn nowhere() -> Origin {
    Origin {
        file: Arc::from(""),
        line: 0,
        included: false,
    }
}

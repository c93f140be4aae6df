//! Values to bytes.

use std::borrow::Cow;

use tenon_plan::{Arm, Body, Count, Layout, Op, Place, Representation, Scalar};
use tenon_wire::{BlockMut, EncodeError, EncodeErrorKind, Encoder, Word};

use super::{Frame, split_block};
use crate::{Union, Value};

impl<'a> Frame<'a> {
    /// Runs the plan over `value`.
    pub(crate) fn encode(self, value: &Value, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if self.plan.recursive {
            out.enter()?;
        }
        self.put_body(&self.plan.body, self.layout, value, out)
            .map_err(|error| named(error, || Some(self.name.to_owned())))?;
        if self.plan.recursive {
            out.leave();
        }
        Ok(())
    }

    /// Appends a linked list whose elements this plan moves.
    pub(super) fn encode_list(
        self,
        value: &Value,
        first_bare: bool,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        let items = elements(value)?;
        let align = self.plan.align as usize;
        let encode = |item: &Value, out: &mut Encoder<'_>| self.encode(item, out);
        match first_bare {
            true => out.put_bare_list_with(items, align, encode),
            false => out.put_list_with(items, align, encode),
        }
    }

    fn put_body(
        self,
        body: &[Op],
        layout: Layout<'a>,
        it: &Value,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        if !is_shaped(layout, it) {
            return Err(shape());
        }
        let mut ops = body;
        while let [op, rest @ ..] = ops {
            ops = rest;
            let done = match op {
                Op::Reserve { bytes } => {
                    let (items, rest) = split_block(rest);
                    ops = rest;
                    self.put_block(items, *bytes, layout, it, out)
                }
                op => self.put_item(op, layout, it, out),
            };
            done.map_err(|error| named(error, || self.name_of(layout, op)))?;
        }
        Ok(())
    }

    fn put_block(
        self,
        items: &[Op],
        bytes: u32,
        layout: Layout<'a>,
        it: &Value,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        let mut block = out.block_of(bytes as usize);
        items.iter().try_for_each(|op| {
            let shaped = self.is_shaped_inside(op, layout, it);
            let done = match shaped {
                true => self.put_fixed(op, it, &mut block),
                false => Err(shape()),
            };
            done.map_err(|error| named(error, || self.name_of(layout, op)))
        })
    }

    /// Whether the structs that `op` moves the first field of have as many fields as their types.
    /// The body's own is looked at before.
    fn is_shaped_inside(self, op: &Op, layout: Layout<'a>, it: &Value) -> bool {
        let path = op.place().map_or(&[][..], |place| &place.0);
        let begins = |depth: &usize| path[*depth..].iter().all(|position| *position == 0);
        let mut begun = (1..path.len()).rev().take_while(begins);
        begun.all(|depth| match along(it, &path[..depth]) {
            Ok(Value::Struct(fields)) => fields.len() == self.field_count(layout, &path[..depth]),
            _ => false,
        })
    }

    fn put_fixed(self, op: &Op, it: &Value, block: &mut BlockMut<'_>) -> Result<(), EncodeError> {
        match op {
            Op::Put {
                place,
                scalar,
                offset,
            } => self.put_scalar(*scalar, at(it, place)?, block, *offset as usize),
            Op::PutArray {
                place,
                scalar,
                count,
                offset,
            } => {
                let items = exactly(elements(at(it, place)?)?, *count)?;
                let offsets =
                    (*offset as usize..).step_by(Representation::XDR.bytes(*scalar) as usize);
                let mut placed = items.iter().zip(offsets);
                placed.try_for_each(|(item, offset)| self.put_scalar(*scalar, item, block, offset))
            }
            Op::Copy {
                place,
                bytes,
                offset,
            } => {
                let Value::Opaque(data) = at(it, place)? else {
                    return Err(shape());
                };
                block.put_bytes(*offset as usize, exactly(data, *bytes)?);
                Ok(())
            }
            _ => unreachable!("only items of fixed size lie in a block"),
        }
    }

    fn put_scalar(
        self,
        scalar: Scalar,
        value: &Value,
        block: &mut BlockMut<'_>,
        offset: usize,
    ) -> Result<(), EncodeError> {
        match (scalar, value) {
            (Scalar::I32, Value::Int(value)) => block.put(offset, *value),
            (Scalar::U32, Value::Uint(value)) => block.put(offset, *value),
            (Scalar::I64, Value::Hyper(value)) => block.put(offset, *value),
            (Scalar::U64, Value::Uhyper(value)) => block.put(offset, *value),
            (Scalar::I16, Value::Short(value)) => block.put_word(offset, *value),
            (Scalar::U16, Value::Ushort(value)) => block.put_word(offset, *value),
            (Scalar::I8, Value::Char(value)) => block.put_word(offset, *value),
            (Scalar::U8, Value::Uchar(value)) => block.put_word(offset, *value),
            (Scalar::F32, Value::Float(value)) => block.put(offset, *value),
            (Scalar::F64, Value::Double(value)) => block.put(offset, *value),
            (Scalar::F128, Value::Quadruple(value)) => block.put(offset, *value),
            (Scalar::Bool, Value::Bool(value)) => block.put_word(offset, *value),
            (Scalar::Enum(id), Value::Enum(value)) if self.is_member(id, *value) => {
                block.put(offset, *value);
            }
            (Scalar::Enum(_), Value::Enum(value)) => {
                return Err(EncodeError::new(EncodeErrorKind::UnknownValue(*value)));
            }
            _ => return Err(shape()),
        }
        Ok(())
    }

    /// An item that makes its own check.
    fn put_item(
        self,
        op: &Op,
        layout: Layout<'a>,
        it: &Value,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        match op {
            Op::Align { .. }
            | Op::Zero { .. }
            | Op::Blit { .. }
            | Op::BlitCounted { .. }
            | Op::PutElements { .. } => {
                unreachable!("the passes that make these are not run for this")
            }
            Op::CopyCounted { place, bound, text } => match (text, at(it, place)?) {
                (true, Value::String(text)) => out.put_opaque(text, *bound),
                (false, Value::Opaque(data)) => out.put_opaque(data, *bound),
                _ => Err(shape()),
            },
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => out.put_vec(elements(at(it, place)?)?, *bound, |item, out| {
                let mut block = out.block_of(Representation::XDR.bytes(*scalar) as usize);
                self.put_scalar(*scalar, item, &mut block, 0)
            }),
            Op::Loop {
                place, count, body, ..
            } => {
                let element = self.element(layout, place);
                self.put_loop(elements(at(it, place)?)?, *count, body, element, out)
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let Value::Union(union) = at(it, place)? else {
                    return Err(shape());
                };
                let (position, body) = self.choose(*discriminant, union, arms, default.as_ref())?;
                out.put(union.discriminant);
                self.put_body(body, self.arm(layout, place, position), &union.value, out)
            }
            Op::Optional { place, body } => {
                let Value::Optional(held) = at(it, place)? else {
                    return Err(shape());
                };
                let element = self.element(layout, place);
                out.put_optional(held.as_deref(), |held, out| {
                    self.put_body(body, element, held, out)
                })
            }
            Op::List {
                place,
                first_bare,
                element,
            } => {
                let list = at(it, place)?;
                self.of(*element).encode_list(list, *first_bare, out)
            }
            Op::Call { place, plan } => self.of(*plan).encode(at(it, place)?, out),
            Op::External { .. } => Err(EncodeError::new(EncodeErrorKind::External)),
            Op::Reserve { .. } | Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } => {
                unreachable!("items of fixed size lie in a block")
            }
        }
    }

    fn put_loop(
        self,
        items: &[Value],
        count: Count,
        body: &[Op],
        layout: Layout<'a>,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        let encode = |item: &Value, out: &mut Encoder<'_>| self.put_body(body, layout, item, out);
        match count {
            Count::Counted(bound) => out.put_vec(items, bound, encode),
            Count::Fixed(count) => {
                let mut items = exactly(items, count)?.iter();
                items.try_for_each(|item| encode(item, out))
            }
        }
    }

    /// The arm that the discriminant selects, and its position unless it is the default one.
    fn choose<'b>(
        self,
        scalar: Scalar,
        union: &Union,
        arms: &'b [Arm],
        default: Option<&'b Body>,
    ) -> Result<(Option<usize>, &'b Body), EncodeError> {
        let value = union.discriminant;
        if !self.may_select(scalar, value) {
            return Err(EncodeError::new(EncodeErrorKind::UnknownValue(value)));
        }
        match arms.iter().position(|arm| arm.values.contains(&value)) {
            Some(position) => Ok((Some(position), &arms[position].body)),
            None => match default {
                Some(body) => Ok((None, body)),
                None => Err(EncodeError::new(EncodeErrorKind::UnknownValue(value))),
            },
        }
    }

    /// Whether a discriminant is a value of its type.
    fn may_select(self, scalar: Scalar, value: i32) -> bool {
        let word = value as u32;
        match scalar {
            Scalar::I16 => i16::from_word(word, true).is_ok(),
            Scalar::U16 => u16::from_word(word, true).is_ok(),
            Scalar::I8 => i8::from_word(word, true).is_ok(),
            Scalar::U8 => u8::from_word(word, true).is_ok(),
            Scalar::Bool => bool::from_word(word, true).is_ok(),
            Scalar::Enum(id) => self.is_member(id, value),
            Scalar::I32 | Scalar::U32 => true,
            Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64 | Scalar::F128 => false,
        }
    }
}

/// Whether a value holds what a body is about and no more; its parts are looked at as they are
/// moved.
fn is_shaped(layout: Layout<'_>, it: &Value) -> bool {
    match layout {
        Layout::Nothing => *it == Value::Void,
        Layout::Record(fields) => {
            matches!(it, Value::Struct(values) if values.len() == fields.len())
        }
        Layout::Definition(_) | Layout::Use(_) => true,
    }
}

/// What is at `place` of `it`.
fn at<'v>(it: &'v Value, place: &Place) -> Result<&'v Value, EncodeError> {
    along(it, &place.0)
}

/// What is behind these fields of `it`, each inside the one before it.
fn along<'v>(it: &'v Value, path: &[u32]) -> Result<&'v Value, EncodeError> {
    let found = path.iter().try_fold(it, |at, position| match at {
        Value::Struct(fields) => fields.get(*position as usize),
        _ => None,
    });
    found.ok_or_else(shape)
}

fn elements(value: &Value) -> Result<&[Value], EncodeError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(shape()),
    }
}

fn exactly<T>(items: &[T], count: u32) -> Result<&[T], EncodeError> {
    match items.len() == count as usize {
        true => Ok(items),
        false => Err(shape()),
    }
}

#[cold]
fn shape() -> EncodeError {
    EncodeError::new(EncodeErrorKind::Shape)
}

/// Names the field, if nothing further inside has done so.
pub(super) fn named(mut error: EncodeError, name: impl FnOnce() -> Option<String>) -> EncodeError {
    if error.field.is_empty() {
        error.field = name().map_or(Cow::Borrowed(""), Cow::Owned);
    }
    error
}

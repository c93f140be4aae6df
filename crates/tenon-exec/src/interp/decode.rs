//! Bytes to values.

use std::borrow::Cow;

use bstr::BString;
use tenon_plan::{Arm, Body, Count, Layout, Op, Representation, Scalar};
use tenon_wire::{Block, DecodeError, DecodeErrorKind, Decoder};

use super::{Frame, split_block};
use crate::Value;

impl<'a> Frame<'a> {
    /// Runs the plan over `input`.
    pub(crate) fn decode(self, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
        if self.plan.recursive {
            input.enter()?;
        }
        let value = self
            .get_body(&self.plan.body, self.layout, input)
            .map_err(|error| named(error, || Some(self.name.to_owned())))?;
        if self.plan.recursive {
            input.leave();
        }
        Ok(value)
    }

    /// Reads a linked list whose elements this plan moves.
    pub(super) fn decode_list(
        self,
        first_bare: bool,
        input: &mut Decoder<'_>,
    ) -> Result<Value, DecodeError> {
        let (fewest, align) = (self.plan.size.min as usize, self.plan.align as usize);
        let decode = |input: &mut Decoder<'_>| self.decode(input);
        let items = match first_bare {
            true => input.get_bare_list_with(fewest, align, decode),
            false => input.get_list_with(fewest, align, decode),
        };
        items.map(Value::Array)
    }

    fn get_body(
        self,
        body: &[Op],
        layout: Layout<'a>,
        input: &mut Decoder<'_>,
    ) -> Result<Value, DecodeError> {
        let mut it = empty(layout, input)?;
        let mut ops = body;
        while let [op, rest @ ..] = ops {
            ops = rest;
            let done = match op {
                Op::Reserve { bytes } => {
                    let (items, rest) = split_block(rest);
                    ops = rest;
                    self.get_block(items, *bytes, layout, &mut it, input)
                }
                op => self
                    .get_item(op, layout, input)
                    .and_then(|value| self.store(op, value, layout, &mut it, input)),
            };
            done.map_err(|error| named(error, || self.name_of(layout, op)))?;
        }
        Ok(it)
    }

    fn get_block(
        self,
        items: &[Op],
        bytes: u32,
        layout: Layout<'a>,
        it: &mut Value,
        input: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        // A message that ends inside a block ends before all of it; its first item gives the
        // error a name.
        let first = || self.name_of(layout, items.first()?);
        let block = input
            .block_of(bytes as usize)
            .map_err(|error| named(error, first))?;
        for op in items {
            self.get_fixed(op, block, input)
                .and_then(|value| self.store(op, value, layout, it, input))
                .map_err(|error| named(error, || self.name_of(layout, op)))?;
        }
        Ok(())
    }

    /// Puts what `op` has read where it belongs in memory. A struct on the way there comes into
    /// being with its first field.
    fn store(
        self,
        op: &Op,
        value: Value,
        layout: Layout<'a>,
        it: &mut Value,
        input: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        let path = op.place().map_or(&[][..], |place| &place.0);
        let mut at = it;
        for (depth, position) in path.iter().enumerate() {
            if !matches!(at, Value::Struct(_)) {
                *at = record(self.field_count(layout, &path[..depth]), input)?;
            }
            at = field(at, *position as usize);
        }
        *at = value;
        Ok(())
    }

    fn get_fixed(
        self,
        op: &Op,
        block: Block<'_>,
        input: &mut Decoder<'_>,
    ) -> Result<Value, DecodeError> {
        match op {
            Op::Put { scalar, offset, .. } => self.get_scalar(*scalar, block, *offset as usize),
            Op::PutArray {
                scalar,
                count,
                offset,
                ..
            } => {
                input.pay(*count as usize, size_of::<Value>())?;
                let offsets =
                    (*offset as usize..).step_by(Representation::XDR.bytes(*scalar) as usize);
                let items = offsets.take(*count as usize);
                let items = items.map(|offset| self.get_scalar(*scalar, block, offset));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            Op::Copy { bytes, offset, .. } => {
                input.pay(*bytes as usize, 1)?;
                let data = block.get_bytes(*offset as usize, *bytes as usize)?;
                Ok(Value::Opaque(data.to_vec()))
            }
            _ => unreachable!("only items of fixed size lie in a block"),
        }
    }

    fn get_scalar(
        self,
        scalar: Scalar,
        block: Block<'_>,
        offset: usize,
    ) -> Result<Value, DecodeError> {
        Ok(match scalar {
            Scalar::I32 => Value::Int(block.get(offset)),
            Scalar::U32 => Value::Uint(block.get(offset)),
            Scalar::I64 => Value::Hyper(block.get(offset)),
            Scalar::U64 => Value::Uhyper(block.get(offset)),
            Scalar::I16 => Value::Short(block.get_word(offset)?),
            Scalar::U16 => Value::Ushort(block.get_word(offset)?),
            Scalar::I8 => Value::Char(block.get_word(offset)?),
            Scalar::U8 => Value::Uchar(block.get_word(offset)?),
            Scalar::F32 => Value::Float(block.get(offset)),
            Scalar::F64 => Value::Double(block.get(offset)),
            Scalar::F128 => Value::Quadruple(block.get(offset)),
            Scalar::Bool => Value::Bool(block.get_word(offset)?),
            Scalar::Enum(id) => {
                let value = block.get(offset);
                if !self.is_member(id, value) {
                    return Err(block.error(offset, DecodeErrorKind::UnknownValue(value)));
                }
                Value::Enum(value)
            }
        })
    }

    /// An item that makes its own check.
    fn get_item(
        self,
        op: &Op,
        layout: Layout<'a>,
        input: &mut Decoder<'_>,
    ) -> Result<Value, DecodeError> {
        match op {
            Op::Align { .. }
            | Op::Zero { .. }
            | Op::Blit { .. }
            | Op::BlitCounted { .. }
            | Op::PutElements { .. } => {
                unreachable!("the passes that make these are not run for this")
            }

            Op::CopyCounted { bound, text, .. } => {
                let bytes = input.get_opaque(*bound)?;
                Ok(match text {
                    true => Value::String(BString::from(bytes)),
                    false => Value::Opaque(bytes),
                })
            }
            Op::PutCounted { scalar, bound, .. } => {
                let bytes = Representation::XDR.bytes(*scalar) as usize;
                let items = input.get_vec(*bound, bytes, |input| {
                    let block = input.block_of(bytes)?;
                    self.get_scalar(*scalar, block, 0)
                });
                items.map(Value::Array)
            }
            Op::Loop {
                place,
                count,
                element: bytes,
                body,
            } => {
                let element = self.element(layout, place);
                self.get_loop(*count, bytes.min, body, element, input)
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let value = self.get_discriminant(*discriminant, input)?;
                let Some((position, body)) = choose(value, arms, default.as_ref()) else {
                    return Err(input.unknown_value(value, 4));
                };
                input.pay(1, size_of::<crate::Union>())?;
                let held = self.get_body(body, self.arm(layout, place, position), input)?;
                Ok(Value::union(value, held))
            }
            Op::Optional { place, body } => {
                let element = self.element(layout, place);
                let held = input.get_optional(|input| {
                    input.get_boxed(|input| self.get_body(body, element, input))
                });
                held.map(Value::Optional)
            }
            Op::List {
                first_bare,
                element,
                ..
            } => self.of(*element).decode_list(*first_bare, input),
            Op::Call { plan, .. } => self.of(*plan).decode(input),
            Op::External { .. } => Err(input.error(DecodeErrorKind::External)),
            Op::Reserve { .. } | Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } => {
                unreachable!("items of fixed size lie in a block")
            }
        }
    }

    fn get_loop(
        self,
        count: Count,
        element_min: u32,
        body: &[Op],
        layout: Layout<'a>,
        input: &mut Decoder<'_>,
    ) -> Result<Value, DecodeError> {
        let decode = |input: &mut Decoder<'_>| self.get_body(body, layout, input);
        let items = match count {
            Count::Counted(bound) => input.get_vec(bound, element_min as usize, decode),
            Count::Fixed(count) => {
                input.pay(count as usize, size_of::<Value>())?;
                (0..count).map(|_| decode(input)).collect()
            }
        };
        items.map(Value::Array)
    }

    /// The discriminant, checked as its type is.
    fn get_discriminant(self, scalar: Scalar, input: &mut Decoder<'_>) -> Result<i32, DecodeError> {
        let block = input.block_of(4)?;
        Ok(match self.get_scalar(scalar, block, 0)? {
            Value::Int(value) | Value::Enum(value) => value,
            Value::Uint(value) => value as i32,
            Value::Short(value) => value.into(),
            Value::Ushort(value) => value.into(),
            Value::Char(value) => value.into(),
            Value::Uchar(value) => value.into(),
            Value::Bool(value) => value.into(),
            _ => unreachable!("the verifier lets only words select"),
        })
    }
}

/// The arm that a discriminant selects, and its position unless it is the default one.
fn choose<'b>(
    value: i32,
    arms: &'b [Arm],
    default: Option<&'b Body>,
) -> Option<(Option<usize>, &'b Body)> {
    match arms.iter().position(|arm| arm.values.contains(&value)) {
        Some(position) => Some((Some(position), &arms[position].body)),
        None => default.map(|body| (None, body)),
    }
}

/// What a body starts from: a struct whose fields are still to come, or nothing.
fn empty(layout: Layout<'_>, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
    match layout {
        Layout::Record(fields) => record(fields.len(), input),
        Layout::Nothing | Layout::Definition(_) | Layout::Use(_) => Ok(Value::Void),
    }
}

/// A struct whose fields are still to come.
fn record(fields: usize, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
    input.pay(fields, size_of::<Value>())?;
    Ok(Value::Struct(Vec::with_capacity(fields)))
}

/// A field of a struct, which grows as its fields come.
fn field(of: &mut Value, position: usize) -> &mut Value {
    let Value::Struct(fields) = of else {
        unreachable!("it was made one");
    };
    if fields.len() <= position {
        fields.resize(position + 1, Value::Void);
    }
    &mut fields[position]
}

/// Names the field, if nothing further inside has done so.
pub(super) fn named(mut error: DecodeError, name: impl FnOnce() -> Option<String>) -> DecodeError {
    if error.field.is_empty() {
        error.field = name().map_or(Cow::Borrowed(""), Cow::Owned);
    }
    error
}

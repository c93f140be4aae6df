//! Machine code against the words of the specification, in several representations: a writer that
//! knows neither plans nor passes says which bytes a value is.
#![cfg(feature = "jit")]

use crate::support::ids;
use tenon_exec::random::schemas::schema;
use tenon_exec::{Interface, Message, Value, random::Random};
use tenon_plan::links::{linked_list, memory_fields};
use tenon_plan::{Lists, Order, Pass, Representation, Scalar, Sizes, lower, specialize};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Swapped};

const PACKED: Representation = Representation {
    name: "packed",
    order: Order::Little,
    words: false,
    aligned: false,
    padding: 1,
    lists: Lists::Counted,
};

/// The three that there are, lean as each kind of processor sends it, and two that no protocol uses.
fn representations() -> [Representation; 7] {
    let lean = |order| Representation {
        order,
        ..Representation::LEAN
    };
    [
        Representation::XDR,
        Representation::LEAN,
        lean(Order::Big),
        lean(Order::Little),
        PACKED,
        Representation {
            order: Order::Big,
            padding: 8,
            lists: Lists::Flagged,
            ..PACKED
        },
        Representation {
            order: Order::Little,
            padding: 2,
            ..Representation::XDR
        },
    ]
}

/// Writes values as the representation is specified.
struct ReferenceEncoder<'a> {
    schema: &'a Schema,
    sizes: Sizes<'a>,
    is_big: bool,
    bytes: Vec<u8>,
}

impl<'a> ReferenceEncoder<'a> {
    fn new(schema: &'a Schema, representation: Representation) -> Self {
        Self {
            schema,
            sizes: Sizes::new(schema, representation),
            is_big: match representation.order {
                Order::Big => true,
                Order::Little => false,
                Order::Sender => cfg!(target_endian = "big"),
            },
            bytes: Vec::new(),
        }
    }

    fn representation(&self) -> Representation {
        self.sizes.representation()
    }

    fn align(&mut self, to: u32) {
        while !self.bytes.len().is_multiple_of(to as usize) {
            self.bytes.push(0);
        }
    }

    fn number(&mut self, value: i128, bytes: u32) {
        let all = value.to_le_bytes();
        let number = &all[..bytes as usize];
        match self.is_big {
            true => self.bytes.extend(number.iter().rev()),
            false => self.bytes.extend(number),
        }
    }

    /// A number where one may lie.
    fn aligned(&mut self, value: i128, bytes: u32) {
        if self.representation().aligned {
            self.align(bytes);
        }
        self.number(value, bytes);
    }

    fn opaque(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let padded = self.representation().padded(bytes.len() as u64) as usize;
        self.bytes.extend(vec![0; padded - bytes.len()]);
    }

    fn flag(&mut self, flag: bool) {
        let bytes = self.representation().bytes(Scalar::Bool);
        self.aligned(flag.into(), bytes);
    }

    fn used(&mut self, ty: &Type, value: &Value) {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.list(list.element, list.first_bare, elements(value));
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return self.scalar(scalar, value);
        }
        match (self.schema.resolve(ty), value) {
            (Type::Opaque(Length::Fixed(_)), Value::Opaque(bytes)) => self.opaque(bytes),
            (Type::Opaque(_), Value::Opaque(bytes)) => {
                self.aligned(bytes.len() as i128, 4);
                self.opaque(bytes);
            }
            (Type::String(_), Value::String(text)) => {
                self.aligned(text.len() as i128, 4);
                self.opaque(text);
            }
            (Type::Array(element, Length::Fixed(_)), value) => {
                self.align(self.sizes.align(element));
                elements(value)
                    .iter()
                    .for_each(|item| self.used(element, item));
            }
            (Type::Array(element, Length::Counted(_)), value) => {
                if let Some(extent) = self.sizes.fixed(element).filter(|it| it.align > 4) {
                    // The elements begin right behind the count.
                    self.align(4);
                    if !(self.bytes.len() + 4).is_multiple_of(extent.align as usize) {
                        self.number(0, 4);
                    }
                }
                self.aligned(elements(value).len() as i128, 4);
                elements(value)
                    .iter()
                    .for_each(|item| self.used(element, item));
            }
            (Type::Optional(to), Value::Optional(held)) => {
                self.flag(held.is_some());
                if let Some(held) = held {
                    self.used(to, held);
                }
            }
            (Type::Named(id), value) => self.named(*id, value),
            other => unreachable!("{other:?}"),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let value = match value {
            Value::Quadruple(bytes) => return self.bytes.extend(bytes),
            Value::Int(value) | Value::Enum(value) => i128::from(*value),
            Value::Uint(value) => (*value).into(),
            Value::Hyper(value) => (*value).into(),
            Value::Uhyper(value) => (*value).into(),
            Value::Short(value) => (*value).into(),
            Value::Ushort(value) => (*value).into(),
            Value::Char(value) => (*value).into(),
            Value::Uchar(value) => (*value).into(),
            Value::Float(value) => value.to_bits().into(),
            Value::Double(value) => value.to_bits().into(),
            Value::Bool(value) => (*value).into(),
            other => unreachable!("{other:?}"),
        };
        let bytes = self.representation().bytes(scalar);
        self.aligned(value, bytes);
    }

    fn named(&mut self, id: TypeId, value: &Value) {
        match (&self.schema.type_def(id).kind, value) {
            (TypeKind::Struct(_), Value::Struct(values)) => {
                let fields = memory_fields(self.schema, id).unwrap_or_default();
                self.align(self.sizes.align_of_named(id));
                self.record(fields, values);
            }
            (TypeKind::Union(union), Value::Union(value)) => {
                self.union(union, value.discriminant, &value.value);
            }
            (TypeKind::Typedef(to), value) => self.used(to, value),
            (TypeKind::Enum(_), value) => self.scalar(Scalar::Enum(id), value),
            other => unreachable!("{other:?}"),
        }
    }

    fn record(&mut self, fields: &[Field], values: &[Value]) {
        for (field, value) in fields.iter().zip(values) {
            self.used(&field.ty, value);
        }
        if let Some(extent) = self.sizes.fixed_fields(fields) {
            self.align(extent.align);
        }
    }

    fn union(&mut self, union: &Union, discriminant: i32, value: &Value) {
        let scalar = Scalar::of(self.schema, &union.discriminant_type);
        let bytes = self.representation().bytes(scalar.expect("a scalar"));
        self.aligned(discriminant.into(), bytes);
        let selects = |arm: &&tenon_schema::Arm| {
            let mut cases = arm.cases.iter();
            cases.any(|case| case.value == discriminant)
        };
        let field = match union.arms.iter().find(selects) {
            Some(arm) => arm.field.as_ref(),
            None => union.default.as_ref().and_then(Option::as_ref),
        };
        if let Some(field) = field {
            self.used(&field.ty, value);
        }
    }

    fn list(&mut self, element: TypeId, first_bare: bool, items: &[Value]) {
        let is_flagged = self.representation().lists == Lists::Flagged;
        if !is_flagged {
            self.aligned(items.len() as i128, 4);
        }
        for (index, item) in items.iter().enumerate() {
            if is_flagged && (index > 0 || !first_bare) {
                self.flag(true);
            }
            self.named(element, item);
        }
        if is_flagged {
            self.flag(false);
        }
    }

    /// A whole message.
    fn message(mut self, id: TypeId, value: &Value) -> Vec<u8> {
        self.used(&Type::Named(id), value);
        self.bytes
    }
}

fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => unreachable!("{other:?}"),
    }
}

fn specialised(schema: Schema, representation: Representation) -> Option<Interface> {
    let mut plans = lower(&schema, representation).ok()?;
    specialize(&schema, &mut plans, Pass::ALL).expect("good passes");
    Some(Interface::with_plans(schema, plans).expect("plans that fit"))
}

fn encoded(message: Message<'_>, value: &Value) -> Vec<u8> {
    let frame = message.frame(value).expect("a value of the type");
    let mut buffer = Buffer::default();
    // Positions count from the beginning of the message.
    buffer.extend(b"before");
    assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
    buffer.as_slice()[6..].to_vec()
}

/// The value that is read, and the number of bytes that it takes.
fn decoded(message: Message<'_>, bytes: &[u8], mode: DecodeMode) -> Option<(Value, usize)> {
    // The plan knows what the items are; only the order of a sender it does not know.
    let mut input = Decoder::<Lean<Native>>::over(bytes, mode, Limits::default());
    let frame = message.decode_by_machine(&mut input)?;
    Some((frame.value(), input.position()))
}

/// Runs `check` with values of random types, and what they are in each representation.
fn for_random_messages(seeds: u64, mut check: impl FnMut(Message<'_>, &Value, Vec<u8>)) {
    for seed in 0..seeds {
        let schema = schema(&mut Random::new(seed));
        for representation in representations() {
            let Some(interface) = specialised(schema.clone(), representation) else {
                continue;
            };
            for id in ids(&interface) {
                let message = interface.message(id).expect("a layout");
                let value = Random::new(seed + 1).value(&schema, &Type::Named(id), 30);
                let bytes = ReferenceEncoder::new(&schema, representation).message(id, &value);
                check(message, &value, bytes);
            }
        }
    }
}

#[test]
fn bytes_are_as_specified() {
    let mut messages = 0;
    for_random_messages(9, |message, value, bytes| {
        assert_eq!(encoded(message, value), bytes, "{value:?}");
        for mode in [DecodeMode::Lenient, DecodeMode::Strict] {
            let expected = (value.clone(), bytes.len());
            assert_eq!(decoded(message, &bytes, mode), Some(expected));
        }
        messages += 1;
    });
    assert!(messages > 400, "{messages}");
}

/// Lean bytes of a sender of either order.
#[test]
fn either_order_of_a_sender_is_understood() {
    let is_big = cfg!(target_endian = "big");
    for seed in 0..12 {
        let schema = schema(&mut Random::new(seed));
        let Some(interface) = specialised(schema.clone(), Representation::LEAN) else {
            continue;
        };
        for id in ids(&interface) {
            let message = interface.message(id).expect("a layout");
            let value = Random::new(seed).value(&schema, &Type::Named(id), 30);
            let bytes = |is_big| {
                let mut writer = ReferenceEncoder::new(&schema, Representation::LEAN);
                writer.is_big = is_big;
                writer.message(id, &value)
            };
            let (native, swapped) = (bytes(is_big), bytes(!is_big));
            let limits = Limits::default();
            let mut input = Decoder::<Lean<Native>>::over(&native, DecodeMode::Strict, limits);
            let frame = message.decode_by_machine(&mut input).expect("good bytes");
            assert_eq!(frame.value(), value);
            let mut input = Decoder::<Lean<Swapped>>::over(&swapped, DecodeMode::Strict, limits);
            let frame = message.decode_by_machine(&mut input).expect("good bytes");
            assert_eq!((frame.value(), input.left()), (value, 0));
            for length in 0..swapped.len().min(60) {
                let bytes = &swapped[..length];
                let mut input = Decoder::<Lean<Swapped>>::over(bytes, DecodeMode::Strict, limits);
                assert!(message.decode_by_machine(&mut input).is_none());
            }
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for_random_messages(5, |message, _, bytes| {
        for length in 0..bytes.len().min(300) {
            assert_eq!(
                decoded(message, &bytes[..length], DecodeMode::Lenient),
                None
            );
        }
    });
}

#[test]
fn what_is_accepted_strictly_is_what_would_be_sent() {
    let mut chance = Random::new(4);
    let (mut accepted, mut refused) = (0, 0);
    for_random_messages(5, |message, _, mut bytes| {
        for _ in 0..12 {
            let at = chance.below(bytes.len() as u64) as usize;
            let Some(byte) = bytes.get_mut(at) else {
                return;
            };
            *byte ^= match chance.below(3) {
                0 => 0xff,
                _ => 1 << chance.below(8),
            };
            match decoded(message, &bytes, DecodeMode::Strict) {
                Some((value, length)) => {
                    assert_eq!(encoded(message, &value), bytes[..length]);
                    accepted += 1;
                }
                None => refused += 1,
            }
            // Leniently, nothing that was accepted is refused.
            let lenient = decoded(message, &bytes, DecodeMode::Lenient);
            let strict = decoded(message, &bytes, DecodeMode::Strict);
            assert!(strict.is_none() || strict == lenient);
        }
    });
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}

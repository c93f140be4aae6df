//! Random values of any type, for tests that hold implementations against each other. The same
//! seed gives the same values everywhere.
//!
//! Strings hold no zero byte, so that C can hold them too, but often bytes that are not UTF-8.
//! Numbers are extreme more often than chance would have it.

pub mod schemas;
mod text;

use std::cell::OnceCell;

use bstr::BString;
use tenon_plan::links::{linked_list, memory_fields};
use tenon_plan::{Representation, Sizes};
use tenon_schema::{EnumMember, Field, Length, Schema, Type, TypeId, TypeKind, Union};

pub use text::text;

use crate::Value;

/// A source of random values.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// One that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits().checked_rem(bound).unwrap_or(0)
    }

    /// One out of `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Bits of which every second time all or all but a few are equal.
    fn number(&mut self) -> u64 {
        let few = self.below(4).wrapping_sub(2);
        match self.below(6) {
            0 => few,
            1 => few ^ i64::MIN as u64,
            2 => few ^ u64::from(1_u32 << 31),
            _ => self.bits(),
        }
    }

    /// A value of `ty` of about `items` parts at most, beside those that the type demands.
    ///
    /// # Panics
    /// If `ty` contains an external type, or one without a finite value.
    pub fn value(&mut self, schema: &Schema, ty: &Type, items: usize) -> Value {
        self.generator(schema, items).item(ty)
    }

    /// Arguments for `parameters`, as [`value`](Self::value).
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn arguments(&mut self, schema: &Schema, parameters: &[Field], items: usize) -> Value {
        self.generator(schema, items).fields(parameters)
    }

    fn generator<'a>(&'a mut self, schema: &'a Schema, items: usize) -> ValueGenerator<'a> {
        ValueGenerator {
            random: self,
            schema,
            sizes: OnceCell::new(),
            items_left: items,
            depth: 0,
        }
    }
}

/// Nesting depth at which random values start to take the shortest way out.
const MAX_DEPTH: u32 = 24;

struct ValueGenerator<'a> {
    random: &'a mut Random,
    schema: &'a Schema,
    /// Needed only on the way out.
    sizes: OnceCell<Sizes<'a>>,
    items_left: usize,
    depth: u32,
}

impl ValueGenerator<'_> {
    /// Returns whether the value has to end as soon as possible.
    fn is_spent(&self) -> bool {
        self.items_left == 0 || self.depth > MAX_DEPTH
    }

    /// A length up to `bound`, mostly small.
    fn length(&mut self, bound: u32) -> usize {
        if self.is_spent() {
            return 0;
        }
        let most = match self.random.below(8) {
            0 => 0,
            7 => 60,
            _ => 5,
        };
        let most = most.min(bound as usize).min(self.items_left) as u64;
        let length = self.random.below(most + 1) as usize;
        self.items_left -= length;
        length
    }

    fn item(&mut self, ty: &Type) -> Value {
        self.items_left = self.items_left.saturating_sub(1);
        self.depth += 1;
        let value = self.item_inside(ty);
        self.depth -= 1;
        value
    }

    fn item_inside(&mut self, ty: &Type) -> Value {
        if let Some(list) = linked_list(self.schema, ty) {
            let length = self.length(u32::MAX) + usize::from(list.first_bare);
            let items = (0..length).map(|_| self.structure(list.element));
            return Value::Array(items.collect());
        }
        let bits = self.random.number();
        match self.schema.resolve(ty) {
            Type::Int => Value::Int(bits as i32),
            Type::Uint => Value::Uint(bits as u32),
            Type::Hyper => Value::Hyper(bits as i64),
            Type::Uhyper => Value::Uhyper(bits),
            Type::Short => Value::Short(bits as i16),
            Type::Ushort => Value::Ushort(bits as u16),
            Type::Char => Value::Char(bits as i8),
            Type::Uchar => Value::Uchar(bits as u8),
            Type::Float => Value::Float(f32::from_bits(bits as u32)),
            Type::Double => Value::Double(f64::from_bits(bits)),
            Type::Quadruple => Value::Quadruple((u128::from(bits) << 64 | 1).to_be_bytes()),
            Type::Bool => Value::Bool(bits & 1 == 1),
            Type::Opaque(length) => self.opaque(*length),
            Type::String(bound) => self.string(*bound),
            Type::Array(element, length) => self.array(element, *length),
            Type::Optional(_) if self.is_spent() || bits & 1 == 0 => Value::Optional(None),
            Type::Optional(to) => Value::some(self.item(to)),
            Type::Named(id) => self.named(*id),
        }
    }

    fn named(&mut self, id: TypeId) -> Value {
        let def = self.schema.type_def(id);
        match &def.kind {
            TypeKind::Enum(members) => Value::Enum(self.member(members)),
            TypeKind::Struct(_) => self.structure(id),
            TypeKind::Union(union) => self.union(union),
            TypeKind::Typedef(_) | TypeKind::External => {
                panic!("nobody knows the values of `{}`", def.name)
            }
        }
    }

    fn structure(&mut self, id: TypeId) -> Value {
        self.fields(memory_fields(self.schema, id).unwrap_or_default())
    }

    fn fields(&mut self, fields: &[Field]) -> Value {
        Value::Struct(fields.iter().map(|field| self.item(&field.ty)).collect())
    }

    fn array(&mut self, element: &Type, length: Length) -> Value {
        let length = match length {
            Length::Fixed(count) => count as usize,
            Length::Counted(bound) => self.length(bound),
        };
        Value::Array((0..length).map(|_| self.item(element)).collect())
    }

    fn opaque(&mut self, length: Length) -> Value {
        let length = match length {
            Length::Fixed(bytes) => bytes as usize,
            Length::Counted(bound) => self.length(bound),
        };
        Value::Opaque((0..length).map(|_| self.random.bits() as u8).collect())
    }

    fn string(&mut self, bound: u32) -> Value {
        let length = self.length(bound);
        let letters = if self.random.once_in(4) { 255 } else { 94 };
        let first = if letters == 255 { 1 } else { u64::from(b'!') };
        let text = (0..length).map(|_| (first + self.random.below(letters)) as u8);
        Value::String(BString::from(text.collect::<Vec<_>>()))
    }

    fn member(&mut self, members: &[EnumMember]) -> i32 {
        let position = self.random.below(members.len() as u64) as usize;
        members[position].value
    }

    fn union(&mut self, union: &Union) -> Value {
        let (discriminant, field) = self.arm(union);
        let held = field.map_or(Value::Void, |field| self.item(&field.ty));
        Value::union(discriminant, held)
    }

    /// A discriminant and what it selects; when it is time to end, the smallest arm.
    fn arm<'u>(&mut self, union: &'u Union) -> (i32, Option<&'u Field>) {
        let cases = union.arms.iter().flat_map(|arm| {
            arm.cases
                .iter()
                .map(|case| (case.value, arm.field.as_ref()))
        });
        let mut choices: Vec<_> = cases.collect();
        if let Some(field) = &union.default {
            let other = self.other_value(union);
            choices.extend(other.map(|value| (value, field.as_ref())));
        }
        let bytes = |choice: &&(i32, Option<&Field>)| {
            choice.1.map_or(0, |field| self.fewest_bytes(&field.ty))
        };
        let chosen = match self.is_spent() {
            true => choices.iter().min_by_key(bytes).copied(),
            false => choices
                .get(self.random.below(choices.len() as u64) as usize)
                .copied(),
        };
        chosen.unwrap_or_else(|| panic!("no value selects an arm of {union:?}"))
    }

    fn fewest_bytes(&self, ty: &Type) -> u64 {
        let sizes = self
            .sizes
            .get_or_init(|| Sizes::new(self.schema, Representation::XDR));
        sizes.of(ty).min
    }

    /// A value of the discriminant that has no arm of its own, if chance finds one.
    fn other_value(&mut self, union: &Union) -> Option<i32> {
        let taken = |value: &i32| {
            let mut cases = union.arms.iter().flat_map(|arm| &arm.cases);
            cases.any(|case| case.value == *value)
        };
        let mut candidates = (0..16).map(|_| self.discriminant(&union.discriminant_type));
        candidates.find(|value| !taken(value))
    }

    fn discriminant(&mut self, ty: &Type) -> i32 {
        let bits = self.random.number();
        match self.schema.resolve(ty) {
            Type::Bool => (bits & 1) as i32,
            Type::Short => (bits as i16).into(),
            Type::Ushort => (bits as u16).into(),
            Type::Char => (bits as i8).into(),
            Type::Uchar => (bits as u8).into(),
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Enum(members) => self.member(members),
                _ => bits as i32,
            },
            _ => bits as i32,
        }
    }
}

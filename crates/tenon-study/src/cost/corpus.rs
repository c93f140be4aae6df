//! What the parameters are measured by: the types of `corpus.x`, each with values of some sizes, and
//! those of `moves.x`, which every movement of the study moves.

use tenon_exec::Value;
use tenon_exec::random::Random;
use tenon_plan::links::{linked_list, memory_fields};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};

/// The interface.
pub const TEXT: &str = include_str!("corpus.x");

/// The interface that every movement moves.
pub const MOVES: &str = include_str!("moves.x");

/// A type, and how large a value of it is.
#[derive(Debug, Clone, Copy)]
pub struct ValueShape {
    /// The type.
    pub name: &'static str,
    /// Elements of arrays and lists.
    pub elements: u64,
    /// Bytes of strings and opaque data.
    pub bytes: u64,
    /// Seed of its numbers and arms.
    pub seed: u64,
}

/// Types that have one size.
const FIXED: &[&str] = &[
    "one",
    "mixed2",
    "mixed4",
    "mixed8",
    "few",
    "ints15",
    "bools1",
    "bools4",
    "bools12",
    "enums1",
    "enums4",
    "enums8",
    "codes1",
    "codes4",
    "shorts4",
    "ints20",
    "ints100",
    "ints256",
    "ints1000",
    "hypers30",
    "digest",
    "page",
    "points86",
    "marks40",
    "arrays2",
    "large",
    "attributes",
];

/// Types with values of several shapes.
const SHAPED: &[&str] = &[
    "arms1",
    "arms4",
    "arms8",
    "statuses",
    "of_larges",
    "settings",
    "wides1",
    "wides2",
    "wides4",
    "of_wides",
    "of_numbers",
    "optional1",
    "optional4",
    "both",
    "replied",
];

/// Types with bytes, and how many.
const BYTES: &[(&str, &[u64])] = &[
    ("blob", &[0, 5, 64, 300, 1000, 4000]),
    ("text", &[1, 12, 40, 1024, 8000]),
    ("texts2", &[3, 20]),
    ("texts6", &[0, 7, 30, 200]),
    ("handle", &[32, 64]),
    ("handle2", &[8, 64]),
    ("setting", &[8, 32]),
    ("large1", &[10]),
    ("large4", &[10]),
    ("request", &[5, 30]),
    ("answer", &[4, 32, 64]),
    ("reading", &[10, 100, 4000]),
    ("arrayed", &[20]),
    ("paged", &[400]),
];

/// Types with elements, and how many.
const ELEMENTS: &[(&str, &[u64])] = &[
    ("counted", &[0, 1, 5, 20, 60, 250, 1000, 2000]),
    ("counted3", &[3, 50]),
    ("hypers", &[4, 100, 500]),
    ("flags", &[3, 50, 300]),
    ("colors", &[3, 50, 300]),
    ("points", &[1, 10, 100]),
    ("marks", &[1, 10, 100]),
    ("names", &[1, 5, 30]),
    ("strings", &[1, 5, 30]),
    ("list", &[0, 1, 5, 30]),
    ("plain_list", &[0, 1, 5, 30]),
    ("tree", &[1, 5]),
    ("directory", &[0, 1, 5, 30]),
];

/// Types of [`MOVES`], and how many elements and bytes.
const MOVED: &[(&str, u64)] = &[
    ("one", 0),
    ("few", 0),
    ("two", 0),
    ("ints20", 0),
    ("ints100", 0),
    ("ints1000", 0),
    ("counted", 5),
    ("counted", 200),
    ("triples10", 0),
    ("triples100", 0),
    ("text", 20),
    ("text", 1000),
    ("noted", 30),
    ("both", 10),
    ("both", 100),
    ("arrays", 0),
    ("arrayed", 20),
];

/// Types with large values, and the most bytes of each: a number takes eight times as much memory until it is put into
/// a frame.
const LARGE: &[(&str, u64)] = &[("blob", u64::MAX), ("counted", 4 << 20)];

/// Bytes of the strings of values that have elements.
const TEXT_BYTES: u64 = 12;

/// Returns all exercises. `caches` are the bytes of each cache beyond which another level begins.
pub fn exercises(caches: &[u64]) -> Vec<ValueShape> {
    let of = |name, elements, bytes, seed| ValueShape {
        name,
        elements,
        bytes,
        seed,
    };
    let fixed = FIXED.iter().map(|name| of(name, 0, 0, 1));
    let shaped = SHAPED
        .iter()
        .flat_map(|name| (1..=3).map(move |seed| of(name, 1, 1, seed)));
    let bytes = BYTES.iter().flat_map(|(name, sizes)| {
        let sizes = sizes.iter().zip(1..);
        sizes.map(move |(bytes, seed)| of(name, 2, *bytes, seed))
    });
    let elements = ELEMENTS.iter().flat_map(|(name, sizes)| {
        let sizes = sizes.iter().zip(1..);
        sizes.map(move |(elements, seed)| of(name, *elements, TEXT_BYTES, seed))
    });
    let large = LARGE.iter().flat_map(|(name, most)| {
        let sizes = beyond(caches).into_iter().filter(|bytes| bytes <= most);
        sizes.map(move |bytes| of(name, bytes / 4, bytes, 1))
    });
    let all = fixed.chain(shaped).chain(bytes).chain(elements);
    all.chain(large).collect()
}

/// Returns the exercises of [`MOVES`].
pub fn moves() -> Vec<ValueShape> {
    let of = |(name, elements): &(&'static str, u64)| ValueShape {
        name,
        elements: *elements,
        bytes: *elements,
        seed: 1,
    };
    MOVED.iter().map(of).collect()
}

/// Messages that lie in each cache but the nearest, and in memory. Two sizes of each.
fn beyond(caches: &[u64]) -> Vec<u64> {
    let levels = caches.windows(2).flat_map(|pair| {
        let (least, most) = (pair[0] / 2, pair[1] / 2);
        [least + (most - least) / 8, least + (most - least) / 3]
    });
    let memory = caches.last().map(|last| last.saturating_mul(2) / 3);
    levels.chain(memory).collect()
}

impl ValueShape {
    /// Returns the value.
    pub fn value(&self, schema: &Schema, id: TypeId) -> Value {
        let mut making = CorpusValueGenerator {
            schema,
            random: Random::new(self.seed),
            exercise: self,
            levels: 0,
        };
        making.named(id)
    }
}

struct CorpusValueGenerator<'a> {
    schema: &'a Schema,
    random: Random,
    exercise: &'a ValueShape,
    /// Of optional values inside of each other.
    levels: u64,
}

impl CorpusValueGenerator<'_> {
    fn item(&mut self, ty: &Type) -> Value {
        if let Some(list) = linked_list(self.schema, ty) {
            let count = self.exercise.elements;
            return self.many(count, |this| this.named(list.element));
        }
        match self.schema.resolve(ty) {
            Type::Array(element, length) => {
                let count = self.count(*length);
                self.many(count, |this| this.item(element))
            }
            Type::Opaque(length) => Value::Opaque(self.bytes(*length)),
            Type::String(bound) => {
                let text = self.bytes(Length::Counted(*bound)).into_iter();
                Value::String(text.map(|byte| b'a' + byte % 26).collect::<Vec<_>>().into())
            }
            Type::Optional(to) => self.optional(to),
            Type::Named(id) => self.named(*id),
            scalar => self.random.value(self.schema, scalar, 1),
        }
    }

    fn named(&mut self, id: TypeId) -> Value {
        match &self.schema.type_def(id).kind {
            TypeKind::Struct(_) => {
                let fields = memory_fields(self.schema, id).unwrap_or_default();
                self.fields(fields)
            }
            TypeKind::Union(union) => self.union(union),
            TypeKind::Typedef(to) => self.item(to),
            TypeKind::Enum(_) | TypeKind::External => {
                self.random.value(self.schema, &Type::Named(id), 1)
            }
        }
    }

    fn fields(&mut self, fields: &[Field]) -> Value {
        Value::Struct(fields.iter().map(|field| self.item(&field.ty)).collect())
    }

    fn many(&mut self, count: u64, mut one: impl FnMut(&mut Self) -> Value) -> Value {
        Value::Array((0..count).map(|_| one(self)).collect())
    }

    fn count(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(count) => count.into(),
            Length::Counted(bound) => self.exercise.elements.min(bound.into()),
        }
    }

    fn bytes(&mut self, length: Length) -> Vec<u8> {
        let count = match length {
            Length::Fixed(count) => count.into(),
            Length::Counted(bound) => self.exercise.bytes.min(bound.into()),
        };
        (0..count).map(|_| self.random.bits() as u8).collect()
    }

    fn optional(&mut self, to: &Type) -> Value {
        let is_there = self.levels < self.exercise.elements && self.random.below(4) > 0;
        if !is_there {
            return Value::Optional(None);
        }
        self.levels += 1;
        let held = self.item(to);
        self.levels -= 1;
        Value::some(held)
    }

    fn union(&mut self, union: &Union) -> Value {
        let cases = union.arms.iter().flat_map(|arm| {
            let cases = arm.cases.iter();
            cases.map(|case| (case.value, arm.field.as_ref()))
        });
        let cases: Vec<_> = cases.collect();
        // The other arms are those of the values that have none of their own.
        let others = union.default.iter().flat_map(|field| {
            let values = members(self.schema, union);
            let taken = |value: &i32| cases.iter().any(|(known, _)| known == value);
            let free = values.into_iter().find(|value| !taken(value));
            free.map(|value| (value, field.as_ref()))
        });
        let choices: Vec<_> = cases.iter().copied().chain(others).collect();
        let chosen = self.random.below(choices.len() as u64) as usize;
        let (discriminant, field) = choices[chosen];
        let held = field.map_or(Value::Void, |field| self.item(&field.ty));
        Value::union(discriminant, held)
    }
}

fn members(schema: &Schema, union: &Union) -> Vec<i32> {
    match schema.resolve(&union.discriminant_type) {
        Type::Named(id) => match &schema.type_def(*id).kind {
            TypeKind::Enum(members) => members.iter().map(|member| member.value).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

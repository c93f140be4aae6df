//! Encoding: the C code that writes for each operation of the plan.

use tenon_plan::{Blittable, Count, FixedItem, FixedKind, Op, ReservedBlock, Scalar};
use tenon_schema::TypeId;

use super::emit::{WORD, XdrDirection, bytes_of, no_alignment, position, refuse_if, swap};
use super::pieces::{BlockPiece, NumberLayout, numbers, pieces, size};
use super::routine::RoutineWriter;
use crate::c::names::no_quadruple;
use crate::c::spot::CLvalue;
use crate::writer::SourceWriter;

const WAY: XdrDirection = XdrDirection::Encode;

impl<'a> RoutineWriter<'a> {
    /// Writes the value at `spot`.
    pub fn encode(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, body: &'a [Op]) {
        for (index, op) in body.iter().enumerate() {
            self.encode_op(w, spot, op, body.get(index + 1));
        }
    }

    /// Items of fixed size, with one check for them and so many bytes `behind` them.
    fn encode_block(
        &self,
        w: &mut SourceWriter,
        spot: &CLvalue<'a>,
        block: &ReservedBlock,
        behind: u32,
    ) {
        let pieces = pieces(block);
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.into_iter().enumerate() {
            match piece {
                BlockPiece::Items {
                    start,
                    bytes,
                    items,
                } => {
                    let behind = if index == last { behind } else { 0 };
                    self.need(w, WAY, bytes + behind);
                    for item in items {
                        self.encode_item(w, spot, item, item.offset - start);
                    }
                    self.step(w, bytes);
                }
                BlockPiece::Large(item) => self.encode_large(w, spot, item),
            }
        }
    }

    /// An item that lies so many bytes behind the position.
    fn encode_item(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, item: &FixedItem, offset: u32) {
        let at = spot.at(self.of, &item.place);
        let to = position(offset);
        match &item.kind {
            FixedKind::Put { scalar } => encode_scalar(w, *scalar, &at.value(), &to),
            FixedKind::PutArray { scalar, count } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => {
                    let (swap, from) = (swap(unit, (*count).into()), at.address(self.of));
                    w.line(format!("{swap} ({to}, {from}, {count});"));
                }
                NumberLayout::Single => self.for_each(w, &format!("{count}u"), |w, index| {
                    let value = at.element(self.of, index).value();
                    let to = format!("{to} + 4 * (size_t) {index}");
                    encode_scalar(w, *scalar, &value, &to);
                }),
            },
            FixedKind::Copy { bytes } => {
                if bytes % WORD != 0 {
                    let last = position(offset + bytes / WORD * WORD);
                    w.line(format!("tenon_put4 ({last}, 0);"));
                }
                let from = at.address(self.of);
                w.line(format!("memcpy ({to}, {from}, {bytes});"));
            }
            FixedKind::Blit { item, count } => {
                let from = at.address(self.of);
                let total = item.bytes() * u64::from(*count);
                match item.unit() {
                    Some(unit @ (4 | 8)) => {
                        let numbers = total / u64::from(unit);
                        let swap = swap(unit, numbers);
                        w.line(format!("{swap} ({to}, {from}, {numbers});"));
                    }
                    _ => w.line(format!("memcpy ({to}, {from}, {total});")),
                }
            }
        }
    }

    /// An item that is too large for a space.
    fn encode_large(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, item: &FixedItem) {
        let at = spot.at(self.of, &item.place);
        let from = at.address(self.of);
        let total = size(item);
        let unit = match &item.kind {
            FixedKind::PutArray { scalar, count } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => Some(unit),
                NumberLayout::Single => {
                    return self.encode_singles(w, &at, *scalar, &format!("{count}u"));
                }
            },
            FixedKind::Blit { item, .. } => item.unit(),
            FixedKind::Put { .. } | FixedKind::Copy { .. } => None,
        };
        match (unit, &item.kind) {
            (Some(unit @ (4 | 8)), _) => {
                let numbers = total / unit;
                let call = format!("tenon_put_numbers (_s, _at, {from}, {numbers}, {unit})");
                self.must(w, &call);
            }
            (_, FixedKind::Copy { bytes }) => self.encode_opaque(w, &from, *bytes),
            _ => self.encode_opaque(w, &from, total),
        }
    }

    fn encode_opaque(&self, w: &mut SourceWriter, from: &str, bytes: u32) {
        let call = format!("tenon_put_opaque (_s, _at, (char *) {from}, {bytes})");
        self.must(w, &call);
    }

    fn encode_op(
        &self,
        w: &mut SourceWriter,
        spot: &CLvalue<'a>,
        op: &'a Op,
        next: Option<&'a Op>,
    ) {
        let at = |place| spot.at(self.of, place);
        match op {
            Op::Reserve(block) => {
                self.encode_block(w, spot, block, self.word_of(WAY, spot, next));
            }
            Op::Align { .. } => no_alignment(),
            Op::BlitCounted { place, item, bound } => {
                self.encode_blits(w, &at(place), item, *bound);
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => self.encode_numbers(w, &at(place), *scalar, *bound),
            Op::CopyCounted { place, bound, text } => {
                self.encode_bytes(w, &at(place), *bound, *text);
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => {
                let at = at(place);
                let length = self.encode_length(w, &at, *count);
                self.encode_each(w, &at, &length, |w, spot| {
                    self.encode_block(w, spot, element, 0);
                });
            }
            Op::Loop {
                place, count, body, ..
            } => {
                let at = at(place);
                let length = self.encode_length(w, &at, *count);
                if body.is_empty() {
                    // The count of elements that take no bytes.
                    return;
                }
                self.encode_each(w, &at, &length, |w, spot| self.encode(w, spot, body));
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let at = at(place);
                self.encode_discriminant(w, &at, *discriminant);
                self.switch(w, &at, "return NULL;", |w, selected, holds| {
                    self.forget();
                    self.encode(w, holds, selected.body(arms, default));
                });
                self.forget();
            }
            Op::Optional { place, body } => {
                let at = at(place);
                let pointer = at.value();
                self.encode_word(w, &format!("{pointer} != NULL"));
                w.braces(&format!("if ({pointer} != NULL)"), |w| {
                    self.encode(w, &at.target(self.of), body);
                });
                self.forget();
            }
            Op::List {
                place,
                element,
                first_bare,
            } => self.encode_list(w, &at(place), *element, *first_bare),
            Op::Call { place, plan } => self.call(w, WAY, &at(place), *plan),
            Op::External { place, .. } => self.external(w, &at(place)),
        }
    }

    /// A counted array of what lies in memory as on the wire, but for the order of bytes.
    fn encode_blits(&self, w: &mut SourceWriter, at: &CLvalue<'a>, item: &Blittable, bound: u32) {
        if let Some(unit @ (4 | 8)) = item.unit() {
            return self.encode_array(w, at, bound, (item.bytes(), unit));
        }
        self.encode_count(w, at, bound);
        self.encode_each(w, at, &at.length(self.of), |w, spot| {
            self.encode_opaque(w, &spot.pointer(), item.bytes() as u32);
        });
    }

    /// A counted array of numbers.
    fn encode_numbers(&self, w: &mut SourceWriter, at: &CLvalue<'a>, scalar: Scalar, bound: u32) {
        match numbers(self.of, at, scalar) {
            NumberLayout::Plain(unit) => self.encode_array(w, at, bound, (unit.into(), unit)),
            NumberLayout::Single => {
                self.encode_count(w, at, bound);
                self.encode_singles(w, at, scalar, &at.length(self.of));
            }
        }
    }

    fn encode_word(&self, w: &mut SourceWriter, word: &str) {
        self.need(w, WAY, WORD);
        w.line(format!("tenon_put4 (_at, {word});"));
        self.step(w, WORD);
    }

    /// The discriminant, which lies in no block of the plan's.
    fn encode_discriminant(&self, w: &mut SourceWriter, at: &CLvalue<'a>, scalar: Scalar) {
        let discriminant = self.discriminant(at);
        if self.is_left_to_c(at) {
            return self.external(w, &discriminant);
        }
        let value = discriminant.value();
        let word = match scalar {
            Scalar::Bool => format!("{value} != FALSE"),
            _ => format!("(uint32_t) {value}"),
        };
        self.encode_word(w, &word);
    }

    /// Holds a counted array's length against its bound.
    fn encode_bound(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32) {
        if let Some(bound) = at.bound(self.of, bound) {
            refuse_if(w, &format!("{} > {bound}", at.length(self.of)));
        }
    }

    /// Writes a count, and holds elements against their absence.
    fn encode_count(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32) {
        self.encode_bound(w, at, bound);
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        refuse_if(w, &format!("{elements} == NULL && {length} > 0"));
        self.encode_word(w, &length);
    }

    /// Writes the count of a loop, if it has one, and returns how often it runs.
    fn encode_length(&self, w: &mut SourceWriter, at: &CLvalue<'a>, count: Count) -> String {
        match count {
            Count::Fixed(count) => format!("{count}u"),
            Count::Counted(bound) => {
                self.encode_count(w, at, bound);
                at.length(self.of)
            }
        }
    }

    fn encode_array(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32, item: (u64, u32)) {
        self.encode_bound(w, at, bound);
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        let (bytes, unit) = item;
        let call = format!("tenon_put_array (_s, _at, {elements}, {length}, {bytes}, {unit})");
        self.must(w, &call);
    }

    fn encode_bytes(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32, text: bool) {
        if text {
            let (value, bound) = (at.value(), self.any_bound(at, bound));
            let put = if self.copies_strings() {
                "string"
            } else {
                "text"
            };
            self.must(w, &format!("tenon_put_{put} (_s, _at, {value}, {bound})"));
        } else {
            self.encode_bound(w, at, bound);
            let (length, bytes) = (at.length(self.of), at.elements(self.of));
            self.must(w, &format!("tenon_put_bytes (_s, _at, {bytes}, {length})"));
        }
    }

    /// Numbers that are looked at one by one.
    fn encode_singles(&self, w: &mut SourceWriter, at: &CLvalue<'a>, scalar: Scalar, length: &str) {
        self.encode_each(w, at, length, |w, spot| {
            let bytes = bytes_of(scalar);
            self.need(w, WAY, bytes);
            encode_scalar(w, scalar, &spot.value(), "_at");
            self.step(w, bytes);
        });
    }

    /// Elements one by one.
    fn encode_each(
        &self,
        w: &mut SourceWriter,
        at: &CLvalue<'a>,
        length: &str,
        element: impl Fn(&mut SourceWriter, &CLvalue<'a>),
    ) {
        self.for_each(w, length, |w, index| {
            self.forget();
            element(w, &at.element(self.of, index));
        });
        self.forget();
    }

    fn encode_list(
        &self,
        w: &mut SourceWriter,
        at: &CLvalue<'a>,
        element: TypeId,
        first_bare: bool,
    ) {
        if self.is_alone(element) {
            return self.alone(w, at);
        }
        let name = &self.of.schema.type_def(element).name;
        let call = if first_bare {
            format!("tenon_whole_encode_{name} (_s, _at, {})", at.pointer())
        } else {
            format!("tenon_list_encode_{name} (_s, _at, {}, FALSE)", at.value())
        };
        self.must(w, &call);
    }
}

fn encode_scalar(w: &mut SourceWriter, scalar: Scalar, value: &str, to: &str) {
    w.line(match scalar {
        Scalar::I64 | Scalar::U64 => format!("tenon_put8 ({to}, (uint64_t) {value});"),
        Scalar::F32 => format!("tenon_put_float ({to}, {value});"),
        Scalar::F64 => format!("tenon_put_double ({to}, {value});"),
        Scalar::Bool => format!("tenon_put4 ({to}, {value} != FALSE);"),
        Scalar::I32 | Scalar::U32 | Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => {
            format!("tenon_put4 ({to}, (uint32_t) {value});")
        }
        Scalar::Enum(_) => format!("tenon_put4 ({to}, (uint32_t) {value});"),
        Scalar::F128 => no_quadruple(),
    });
}

//! Encoding: the C code that writes for each operation of the plan.

use tenon_plan::{Count, Op, Scalar};
use tenon_schema::TypeId;

use super::emit::{WORD, XdrDirection, bytes_of, position, refuse_if, swap};
use super::pieces::{BlockPiece, BodyStep, NumberLayout, extent, numbers, pieces, steps};
use super::routine::RoutineWriter;
use crate::c::spot::CLvalue;
use crate::writer::SourceWriter;

const WAY: XdrDirection = XdrDirection::Encode;

impl<'a> RoutineWriter<'a> {
    /// Writes the value at `spot`.
    pub fn encode(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, body: &'a [Op]) {
        let steps = steps(body);
        for (index, step) in steps.iter().enumerate() {
            match step {
                BodyStep::Block(_, block) => {
                    let behind = self.word_of(WAY, spot, steps.get(index + 1));
                    self.encode_block(w, spot, block, behind);
                }
                BodyStep::Op(op) => self.encode_op(w, spot, op),
            }
        }
    }

    /// Items of fixed size, with one check for them and so many bytes `behind` them.
    fn encode_block(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, block: &'a [Op], behind: u32) {
        let pieces = pieces(block);
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.into_iter().enumerate() {
            match piece {
                BlockPiece::Items { start, bytes, ops } => {
                    let behind = if index == last { behind } else { 0 };
                    self.need(w, WAY, bytes + behind);
                    for op in ops {
                        self.encode_item(w, spot, op, extent(op).0 - start);
                    }
                    self.step(w, bytes);
                }
                BlockPiece::Large(op) => self.encode_large(w, spot, op),
            }
        }
    }

    /// An item that lies so many bytes behind the position.
    fn encode_item(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, op: &'a Op, offset: u32) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let to = position(offset);
        match op {
            Op::Put { scalar, .. } => encode_scalar(w, *scalar, &at.value(), &to),
            Op::PutArray { scalar, count, .. } => match numbers(self.of, &at, *scalar) {
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
            Op::Copy { bytes, .. } => {
                if bytes % WORD != 0 {
                    let last = position(offset + bytes / WORD * WORD);
                    w.line(format!("tenon_put4 ({last}, 0);"));
                }
                let from = at.address(self.of);
                w.line(format!("memcpy ({to}, {from}, {bytes});"));
            }
            Op::Blit { item, count, .. } => {
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
            Op::Reserve { .. }
            | Op::Align { .. }
            | Op::Zero { .. }
            | Op::BlitCounted { .. }
            | Op::PutElements { .. }
            | Op::CopyCounted { .. }
            | Op::PutCounted { .. }
            | Op::Loop { .. }
            | Op::Switch { .. }
            | Op::Optional { .. }
            | Op::List { .. }
            | Op::Call { .. }
            | Op::External { .. } => unreachable!("no item of a block of xdr"),
        }
    }

    /// An item that is too large for a space.
    fn encode_large(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, op: &'a Op) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let from = at.address(self.of);
        let total = extent(op).1;
        let unit = match op {
            Op::PutArray { scalar, count, .. } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => Some(unit),
                NumberLayout::Single => {
                    return self.encode_singles(w, &at, *scalar, &format!("{count}u"));
                }
            },
            Op::Blit { item, .. } => item.unit(),
            _ => None,
        };
        match (unit, op) {
            (Some(unit @ (4 | 8)), _) => {
                let numbers = total / unit;
                let call = format!("tenon_put_numbers (_s, _at, {from}, {numbers}, {unit})");
                self.must(w, &call);
            }
            (_, Op::Copy { bytes, .. }) => self.encode_opaque(w, &from, *bytes),
            _ => self.encode_opaque(w, &from, total),
        }
    }

    fn encode_opaque(&self, w: &mut SourceWriter, from: &str, bytes: u32) {
        let call = format!("tenon_put_opaque (_s, _at, (char *) {from}, {bytes})");
        self.must(w, &call);
    }

    fn encode_op(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, op: &'a Op) {
        let at = op.place().map(|place| spot.at(self.of, place));
        let Some(at) = at else {
            unreachable!("xdr aligns nothing")
        };
        match op {
            Op::BlitCounted { item, bound, .. } => match item.unit() {
                Some(unit @ (4 | 8)) => self.encode_array(w, &at, *bound, (item.bytes(), unit)),
                _ => {
                    self.encode_count(w, &at, *bound);
                    self.encode_each(w, &at, &at.length(self.of), |w, spot| {
                        self.encode_opaque(w, &spot.pointer(), item.bytes() as u32);
                    });
                }
            },
            Op::PutCounted { scalar, bound, .. } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => self.encode_array(w, &at, *bound, (unit.into(), unit)),
                NumberLayout::Single => {
                    self.encode_count(w, &at, *bound);
                    self.encode_singles(w, &at, *scalar, &at.length(self.of));
                }
            },
            Op::CopyCounted { bound, text, .. } => self.encode_bytes(w, &at, *bound, *text),
            Op::PutElements { count, body, .. } => {
                let length = self.encode_length(w, &at, *count);
                self.encode_each(w, &at, &length, |w, spot| {
                    self.encode_block(w, spot, body, 0);
                });
            }
            Op::Loop { count, body, .. } => {
                let length = self.encode_length(w, &at, *count);
                if body.is_empty() {
                    // The count of elements that take no bytes.
                    return;
                }
                self.encode_each(w, &at, &length, |w, spot| self.encode(w, spot, body));
            }
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                self.encode_discriminant(w, &at, *discriminant);
                self.switch(w, &at, "return NULL;", |w, selected, holds| {
                    self.forget();
                    self.encode(w, holds, selected.body(arms, default));
                });
                self.forget();
            }
            Op::Optional { body, .. } => {
                let pointer = at.value();
                self.encode_word(w, &format!("{pointer} != NULL"));
                w.braces(&format!("if ({pointer} != NULL)"), |w| {
                    self.encode(w, &at.target(self.of), body);
                });
                self.forget();
            }
            Op::List {
                element,
                first_bare,
                ..
            } => self.encode_list(w, &at, *element, *first_bare),
            Op::Call { plan, .. } => self.call(w, WAY, &at, *plan),
            Op::External { .. } => self.external(w, &at),
            Op::Reserve { .. }
            | Op::Align { .. }
            | Op::Zero { .. }
            | Op::Put { .. }
            | Op::PutArray { .. }
            | Op::Copy { .. }
            | Op::Blit { .. } => unreachable!("it lies in a block"),
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
        Scalar::F128 => unreachable!("C has no quadruple precision: refused"),
    });
}

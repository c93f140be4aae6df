//! Decoding: the C code that reads for each operation of the plan.

use tenon_plan::{Blittable, Body, Count, FixedItem, FixedKind, Op, ReservedBlock, Scalar};
use tenon_schema::TypeId;

use super::emit::{WORD, XdrDirection, bytes_of, no_alignment, position, refuse_if, swap};
use super::pieces::{BlockPiece, NumberLayout, narrow, numbers, pieces, size};
use super::routine::RoutineWriter;
use crate::c::names::no_quadruple;
use crate::c::spot::CLvalue;
use crate::writer::SourceWriter;

const WAY: XdrDirection = XdrDirection::Decode;

impl<'a> RoutineWriter<'a> {
    /// Reads the value at `spot`.
    pub fn decode(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, body: &'a [Op]) {
        for (index, op) in body.iter().enumerate() {
            self.decode_op(w, spot, op, body.get(index + 1));
        }
    }

    /// Items of fixed size, with one check for them and so many bytes `behind` them.
    fn decode_block(
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
                        self.decode_item(w, spot, item, item.offset - start);
                    }
                    self.step(w, bytes);
                }
                BlockPiece::Large(item) => self.decode_large(w, spot, item),
            }
        }
    }

    /// An item that lies so many bytes behind the position.
    fn decode_item(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, item: &FixedItem, offset: u32) {
        let at = spot.at(self.of, &item.place);
        let from = position(offset);
        match &item.kind {
            FixedKind::Put { scalar } => self.decode_scalar(w, *scalar, &at, &from),
            FixedKind::PutArray { scalar, count } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => {
                    let (swap, to) = (swap(unit, (*count).into()), at.address(self.of));
                    w.line(format!("{swap} ({to}, {from}, {count});"));
                }
                NumberLayout::Single => self.for_each(w, &format!("{count}u"), |w, index| {
                    let from = format!("{from} + 4 * (size_t) {index}");
                    self.decode_scalar(w, *scalar, &at.element(self.of, index), &from);
                }),
            },
            FixedKind::Copy { bytes } => {
                let to = at.address(self.of);
                w.line(format!("memcpy ({to}, {from}, {bytes});"));
            }
            FixedKind::Blit { item, count } => {
                let to = at.address(self.of);
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

    fn decode_scalar(&self, w: &mut SourceWriter, scalar: Scalar, to: &CLvalue<'a>, from: &str) {
        let number = format!("tenon_get4 ({from})");
        let value = match scalar {
            Scalar::I64 => format!("(int64_t) tenon_get8 ({from})"),
            Scalar::U64 => format!("tenon_get8 ({from})"),
            Scalar::F32 => format!("tenon_get_float ({from})"),
            Scalar::F64 => format!("tenon_get_double ({from})"),
            Scalar::Bool => format!("{number} != 0"),
            // As libtirpc reads a `long` that is wider than its word: without a sign.
            Scalar::I32 if to.has_long(self.of) => format!("(long) {number}"),
            Scalar::I32 => format!("(int32_t) {number}"),
            Scalar::U32 => number,
            Scalar::I16 => format!("(short) {number}"),
            Scalar::U16 => format!("(u_short) {number}"),
            Scalar::I8 => format!("(char) {number}"),
            Scalar::U8 => format!("(u_char) {number}"),
            Scalar::Enum(_) => format!("({}) {number}", to.own_type(self.of)),
            Scalar::F128 => no_quadruple(),
        };
        w.line(format!("{} = {value};", to.value()));
    }

    /// An item that is too large for a space.
    fn decode_large(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, item: &FixedItem) {
        let at = spot.at(self.of, &item.place);
        let to = at.address(self.of);
        let total = size(item);
        let unit = match &item.kind {
            FixedKind::PutArray { scalar, count } => match numbers(self.of, &at, *scalar) {
                NumberLayout::Plain(unit) => Some(unit),
                NumberLayout::Single => {
                    self.for_each(w, &format!("{count}u"), |w, index| {
                        self.decode_single(w, *scalar, &at.element(self.of, index));
                    });
                    return self.forget();
                }
            },
            FixedKind::Blit { item, .. } => item.unit(),
            FixedKind::Put { .. } | FixedKind::Copy { .. } => None,
        };
        match (unit, &item.kind) {
            (Some(unit @ (4 | 8)), _) => {
                let numbers = total / unit;
                let call = format!("tenon_get_numbers (_s, _at, {to}, {numbers}, {unit})");
                self.must(w, &call);
            }
            (_, FixedKind::Copy { bytes }) => self.decode_opaque(w, &to, *bytes),
            _ => self.decode_opaque(w, &to, total),
        }
    }

    /// A number with a check of its own.
    fn decode_single(&self, w: &mut SourceWriter, scalar: Scalar, to: &CLvalue<'a>) {
        let bytes = bytes_of(scalar);
        self.forget();
        self.need(w, WAY, bytes);
        self.decode_scalar(w, scalar, to, "_at");
        self.step(w, bytes);
    }

    fn decode_opaque(&self, w: &mut SourceWriter, to: &str, bytes: u32) {
        let call = format!("tenon_get_opaque (_s, _at, (char *) {to}, {bytes})");
        self.must(w, &call);
    }

    fn decode_op(
        &self,
        w: &mut SourceWriter,
        spot: &CLvalue<'a>,
        op: &'a Op,
        next: Option<&'a Op>,
    ) {
        let at = |place| spot.at(self.of, place);
        match op {
            Op::Reserve(block) => {
                self.decode_block(w, spot, block, self.word_of(WAY, spot, next));
            }
            Op::Align { .. } => no_alignment(),
            Op::BlitCounted { place, item, bound } => {
                self.decode_blits(w, &at(place), item, *bound);
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => self.decode_numbers(w, &at(place), *scalar, *bound),
            Op::CopyCounted { place, bound, text } => {
                self.decode_bytes(w, &at(place), *bound, *text);
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => self.decode_each(w, &at(place), (*count, element.bytes), |w, spot| {
                self.decode_block(w, spot, element, 0);
            }),
            Op::Loop {
                place,
                count: Count::Counted(bound),
                body,
                ..
            } if body.is_empty() => {
                // Elements that take no bytes, neither there nor here.
                self.need(w, WAY, WORD);
                w.braces_below(|w| self.decode_count(w, &at(place), "", *bound, 0));
            }
            Op::Loop {
                place,
                count,
                element,
                body,
            } => self.decode_each(w, &at(place), (*count, element.min), |w, spot| {
                self.decode(w, spot, body);
            }),
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let at = at(place);
                self.decode_discriminant(w, &at, *discriminant);
                self.switch(w, &at, "return NULL;", |w, selected, holds| {
                    self.forget();
                    self.decode(w, holds, selected.body(arms, default));
                });
                self.forget();
            }
            Op::Optional { place, body } => self.decode_optional(w, &at(place), body),
            Op::List {
                place,
                element,
                first_bare,
            } => self.decode_list(w, &at(place), *element, *first_bare),
            Op::Call { place, plan } => self.call(w, WAY, &at(place), *plan),
            Op::External { place, .. } => self.external(w, &at(place)),
        }
    }

    /// A counted array of what lies in memory as on the wire, but for the order of bytes.
    fn decode_blits(&self, w: &mut SourceWriter, at: &CLvalue<'a>, item: &Blittable, bound: u32) {
        if let Some(unit @ (4 | 8)) = item.unit() {
            return self.decode_array(w, at, bound, (item.bytes(), unit));
        }
        let bytes = narrow(item.bytes());
        self.decode_each(w, at, (Count::Counted(bound), bytes), |w, spot| {
            self.decode_opaque(w, &spot.pointer(), bytes);
        });
    }

    /// A counted array of numbers.
    fn decode_numbers(&self, w: &mut SourceWriter, at: &CLvalue<'a>, scalar: Scalar, bound: u32) {
        match numbers(self.of, at, scalar) {
            NumberLayout::Plain(unit) => self.decode_array(w, at, bound, (unit.into(), unit)),
            NumberLayout::Single => {
                let count = Count::Counted(bound);
                self.decode_each(w, at, (count, bytes_of(scalar)), |w, spot| {
                    self.decode_single(w, scalar, spot);
                });
            }
        }
    }

    fn decode_discriminant(&self, w: &mut SourceWriter, at: &CLvalue<'a>, scalar: Scalar) {
        let discriminant = self.discriminant(at);
        if self.is_left_to_c(at) {
            return self.external(w, &discriminant);
        }
        self.need(w, WAY, WORD);
        self.decode_scalar(w, scalar, &discriminant, "_at");
        self.step(w, WORD);
    }

    fn decode_optional(&self, w: &mut SourceWriter, at: &CLvalue<'a>, body: &'a Body) {
        let (pointer, ty) = (at.value(), at.inner_type(self.of));
        self.need(w, WAY, WORD);
        self.step(w, WORD);
        w.line("if (tenon_get4 (_at - 4) == 0) {");
        w.indented(|w| w.line(format!("{pointer} = NULL;")));
        w.line("} else {");
        w.indented(|w| {
            let new = format!("({pointer} = ({ty} *) tenon_new (sizeof ({ty}))) == NULL");
            refuse_if(w, &format!("{pointer} == NULL && {new}"));
            self.decode(w, &at.target(self.of), body);
        });
        w.line("}");
        self.forget();
    }

    fn decode_array(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32, item: (u64, u32)) {
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        let (ty, (bytes, unit)) = (at.inner_type(self.of), item);
        let bound = self.any_bound(at, bound);
        self.need(w, WAY, WORD);
        w.braces_below(|w| {
            w.line(format!("void *_to = {elements};"));
            w.line("");
            w.line(format!(
                "_at = tenon_get_array (_s, _at, &_to, &{length}, {bound}, {bytes}, {unit});"
            ));
            w.line(format!("{elements} = ({ty} *) _to;"));
            refuse_if(w, "_at == NULL");
        });
        self.forget();
    }

    fn decode_bytes(&self, w: &mut SourceWriter, at: &CLvalue<'a>, bound: u32, text: bool) {
        let bound = self.any_bound(at, bound);
        self.need(w, WAY, WORD);
        if text {
            let to = at.pointer();
            let get = if self.copies_strings() {
                "string"
            } else {
                "text"
            };
            self.must(w, &format!("tenon_get_{get} (_s, _at, {to}, {bound})"));
        } else {
            let (length, bytes) = (at.length(self.of), at.elements(self.of));
            let call = format!("tenon_get_counted (_s, _at, &{bytes}, &{length}, {bound})");
            self.must(w, &call);
        }
    }

    /// Elements one by one, each of at least so many bytes.
    fn decode_each(
        &self,
        w: &mut SourceWriter,
        at: &CLvalue<'a>,
        (count, fewest): (Count, u32),
        element: impl Fn(&mut SourceWriter, &CLvalue<'a>),
    ) {
        let bound = match count {
            Count::Fixed(count) => {
                self.for_each(w, &format!("{count}u"), |w, index| {
                    self.forget();
                    element(w, &at.element(self.of, index));
                });
                return self.forget();
            }
            Count::Counted(bound) => bound,
        };
        self.need(w, WAY, WORD);
        self.with_index(|index| {
            w.braces_below(|w| {
                self.decode_count(w, at, index, bound, fewest);
                let head = format!("for ({index} = 0; {index} < _count; {index}++)");
                w.braces(&head, |w| {
                    self.grow(w, at, index);
                    self.forget();
                    element(w, &at.element(self.of, index));
                });
            });
        });
        self.forget();
    }

    /// Reads a count, which is at hand, and gets the memory that it may take so far.
    fn decode_count(
        &self,
        w: &mut SourceWriter,
        at: &CLvalue<'a>,
        index: &str,
        bound: u32,
        fewest: u32,
    ) {
        let (length, memory) = (at.length(self.of), at.elements(self.of));
        let ty = at.inner_type(self.of);
        let index = match index {
            "" => String::new(),
            index => format!("{index}, "),
        };
        w.line(format!("u_int {index}_count = tenon_get4 (_at);"));
        w.line("");
        self.step(w, WORD);
        if let Some(bound) = at.bound(self.of, bound) {
            refuse_if(w, &format!("_count > {bound}"));
        }
        w.line("if (_count == 0)");
        w.indented(|w| w.line(format!("{length} = 0;")));
        let begin =
            format!("tenon_begin (_s, _at, {memory}, &{length}, _count, sizeof ({ty}), {fewest})");
        w.line(format!("else if (({memory} = ({ty} *) {begin}) == NULL)"));
        w.indented(|w| w.line("return NULL;"));
    }

    /// In front of an element there is memory for it.
    fn grow(&self, w: &mut SourceWriter, at: &CLvalue<'a>, index: &str) {
        let (length, memory) = (at.length(self.of), at.elements(self.of));
        let ty = at.inner_type(self.of);
        w.braces(&format!("if ({index} == {length})"), |w| {
            w.line(format!(
                "{memory} = ({ty} *) tenon_more ({memory}, &{length}, _count, sizeof ({ty}));"
            ));
            refuse_if(w, &format!("{index} == {length}"));
        });
    }

    fn decode_list(
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
            format!("tenon_whole_decode_{name} (_s, _at, {})", at.pointer())
        } else {
            format!(
                "tenon_list_decode_{name} (_s, _at, {}, FALSE)",
                at.pointer()
            )
        };
        self.must(w, &call);
    }
}

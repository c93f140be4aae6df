//! Encoding: what each operation of the plan is in C when it writes.

use tenon_plan::{Body, Count, Op, Scalar};
use tenon_schema::TypeId;

use super::pieces::{Numbers, Piece, SPACE_MAX, Step, extent, narrow, numbers, pieces, steps};
use super::routine::{Routine, refuse_if};
use crate::c::spot::Spot;
use crate::writer::Writer;

impl<'a> Routine<'a> {
    /// Writes the value at `spot`.
    pub fn encode(&self, w: &mut Writer, spot: &Spot<'a>, body: &'a Body) {
        for step in steps(body) {
            match step {
                Step::Block(_, block) => self.encode_block(w, spot, block),
                Step::Op(op) => self.encode_op(w, spot, op),
            }
        }
    }

    fn encode_block(&self, w: &mut Writer, spot: &Spot<'a>, block: &'a [Op]) {
        for piece in pieces(block) {
            match piece {
                Piece::Items { start, bytes, ops } => {
                    self.need_space(bytes);
                    w.line(format!("buf = tenon_room (xdrs, _space, {bytes});"));
                    for op in ops {
                        let word = (extent(op).0 - start) / 4;
                        self.encode_item(w, spot, op, ("buf", word));
                    }
                    let put = format!("XDR_PUTBYTES (xdrs, (char *) _space, {bytes})");
                    refuse_if(w, &format!("buf == _space && !{put}"));
                }
                Piece::Large(op) => self.encode_large(w, spot, op),
            }
        }
    }

    /// An item in a block that `base` points to.
    fn encode_item(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op, base: (&str, u32)) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let (base, word) = base;
        match op {
            Op::Put { scalar, .. } => {
                self.encode_scalar(w, *scalar, &at.value(), (base, &word.to_string()));
            }
            Op::PutArray { scalar, count, .. } => match numbers(self.of, &at, *scalar) {
                Numbers::Plain(unit) => {
                    let from = at.address(self.of);
                    w.line(format!(
                        "tenon_swap{unit} ({base} + {word}, {from}, {count});"
                    ));
                }
                Numbers::Single => self.with_index(w, |w, index| {
                    w.braces_below(|w| {
                        w.line(format!("u_int {index};"));
                        w.line("");
                        let head = format!("for ({index} = 0; {index} < {count}; {index}++)");
                        w.braces(&head, |w| {
                            let value = at.element(self.of, index).value();
                            let word = format!("{word} + {index}");
                            self.encode_scalar(w, *scalar, &value, (base, &word));
                        });
                    });
                }),
            },
            Op::Copy { bytes, .. } => {
                if bytes % 4 != 0 {
                    w.line(format!("{base}[{}] = 0;", word + bytes / 4));
                }
                let from = at.address(self.of);
                w.line(format!("memcpy ({base} + {word}, {from}, {bytes});"));
            }
            Op::Blit { item, count, .. } => {
                let from = at.address(self.of);
                let total = item.bytes() * u64::from(*count);
                match item.unit() {
                    Some(unit @ (4 | 8)) => {
                        let numbers = total / u64::from(unit);
                        w.line(format!(
                            "tenon_swap{unit} ({base} + {word}, {from}, {numbers});"
                        ));
                    }
                    _ => w.line(format!("memcpy ({base} + {word}, {from}, {total});")),
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

    fn encode_scalar(&self, w: &mut Writer, scalar: Scalar, value: &str, at: (&str, &str)) {
        let (base, word) = at;
        let wide = |w: &mut Writer, what: &str, cast: &str| {
            w.line(format!(
                "tenon_put_{what} ({base} + {word}, {cast}{value});"
            ));
        };
        match scalar {
            Scalar::I64 | Scalar::U64 => wide(w, "hyper", "(uint64_t) "),
            Scalar::F32 => wide(w, "float", ""),
            Scalar::F64 => wide(w, "double", ""),
            Scalar::Bool => {
                w.line(format!(
                    "{base}[{word}] = (int32_t) htonl ({value} != FALSE);"
                ));
            }
            Scalar::I32 | Scalar::U32 | Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => {
                w.line(format!(
                    "{base}[{word}] = (int32_t) htonl ((uint32_t) {value});"
                ));
            }
            Scalar::Enum(_) => {
                w.line(format!(
                    "{base}[{word}] = (int32_t) htonl ((uint32_t) {value});"
                ));
            }
            Scalar::F128 => unreachable!("C has no quadruple precision: refused"),
        }
    }

    /// An item that is too large for a space.
    fn encode_large(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let from = at.address(self.of);
        let total = extent(op).1;
        let plain = match op {
            Op::PutArray { scalar, .. } => match numbers(self.of, &at, *scalar) {
                Numbers::Plain(unit) => Some(unit),
                Numbers::Single => None,
            },
            Op::Blit { item, .. } => item.unit(),
            _ => Some(1),
        };
        match (plain, op) {
            (Some(unit @ (4 | 8)), _) => {
                let numbers = total / unit;
                self.must(
                    w,
                    &format!("tenon_put_numbers (xdrs, {from}, {numbers}, {unit})"),
                );
            }
            (None, Op::PutArray { scalar, count, .. }) => {
                self.encode_singles(w, &at, *scalar, &format!("{count}u"));
            }
            (_, Op::Copy { bytes, .. }) => {
                self.must(w, &format!("xdr_opaque (xdrs, (char *) {from}, {bytes})"));
            }
            _ => self.must(w, &format!("xdr_opaque (xdrs, (char *) {from}, {total})")),
        }
    }

    fn encode_op(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op) {
        let at = op.place().map(|place| spot.at(self.of, place));
        let Some(at) = at else {
            unreachable!("xdr aligns nothing")
        };
        match op {
            Op::BlitCounted { item, bound, .. } => {
                let unit = item.unit().unwrap_or(1);
                self.encode_array(w, &at, *bound, (item.bytes(), unit));
            }
            Op::PutCounted { scalar, bound, .. } => match numbers(self.of, &at, *scalar) {
                Numbers::Plain(unit) => self.encode_array(w, &at, *bound, (unit.into(), unit)),
                Numbers::Single => {
                    self.encode_count(w, &at, *bound);
                    self.encode_singles(w, &at, *scalar, &at.length(self.of));
                }
            },
            Op::CopyCounted { bound, text, .. } => self.encode_bytes(w, &at, *bound, *text),
            Op::PutElements {
                count,
                element,
                body,
                ..
            } => {
                let length = self.encode_length(w, &at, *count);
                match narrow(element.bytes) {
                    bytes if bytes > SPACE_MAX => self.encode_each(w, &at, &length, |w, spot| {
                        self.encode_block(w, spot, body);
                    }),
                    bytes => self.encode_elements(w, &length, bytes, |w, index| {
                        let spot = at.element(self.of, index);
                        for op in body {
                            self.encode_item(w, &spot, op, ("_at", extent(op).0 / 4));
                        }
                    }),
                }
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
                self.switch(
                    w,
                    &at,
                    (arms, default),
                    "return FALSE;",
                    |w, holds, body| {
                        self.encode(w, holds, body);
                    },
                );
            }
            Op::Optional { body, .. } => {
                let pointer = at.value();
                self.must(w, &format!("tenon_put_word (xdrs, {pointer} != NULL)"));
                w.braces(&format!("if ({pointer} != NULL)"), |w| {
                    self.encode(w, &at.target(self.of), body);
                });
            }
            Op::List {
                element,
                first_bare,
                ..
            } => self.encode_list(w, &at, *element, *first_bare),
            Op::Call { plan, .. } => self.call(w, "encode", &at, *plan),
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

    /// The discriminant, which lies in no block of the plan's.
    fn encode_discriminant(&self, w: &mut Writer, at: &Spot<'a>, scalar: Scalar) {
        let discriminant = self.discriminant(at);
        if self.is_left_to_c(at) {
            return self.external(w, &discriminant);
        }
        let value = discriminant.value();
        let word = match scalar {
            Scalar::Bool => format!("{value} != FALSE"),
            _ => format!("(uint32_t) {value}"),
        };
        self.must(w, &format!("tenon_put_word (xdrs, {word})"));
    }

    /// Holds a counted array's length against its bound, and its elements against their absence.
    fn encode_bound(&self, w: &mut Writer, at: &Spot<'a>, bound: u32) {
        if let Some(bound) = at.bound(self.of, bound) {
            refuse_if(w, &format!("{} > {bound}", at.length(self.of)));
        }
    }

    fn encode_count(&self, w: &mut Writer, at: &Spot<'a>, bound: u32) {
        self.encode_bound(w, at, bound);
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        refuse_if(w, &format!("{elements} == NULL && {length} > 0"));
        self.must(w, &format!("tenon_put_word (xdrs, {length})"));
    }

    /// Writes the count of a loop, if it has one, and returns how often it runs.
    fn encode_length(&self, w: &mut Writer, at: &Spot<'a>, count: Count) -> String {
        match count {
            Count::Fixed(count) => format!("{count}u"),
            Count::Counted(bound) => {
                self.encode_count(w, at, bound);
                at.length(self.of)
            }
        }
    }

    fn encode_array(&self, w: &mut Writer, at: &Spot<'a>, bound: u32, item: (u64, u32)) {
        self.encode_bound(w, at, bound);
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        let (bytes, unit) = item;
        match unit {
            4 | 8 => {
                let call = format!("tenon_put_array (xdrs, {elements}, {length}, {bytes}, {unit})");
                self.must(w, &call);
            }
            _ => {
                self.encode_count(w, at, u32::MAX);
                self.encode_each(w, at, &length, |w, spot| {
                    let from = spot.pointer();
                    self.must(w, &format!("xdr_opaque (xdrs, (char *) {from}, {bytes})"));
                });
            }
        }
    }

    fn encode_bytes(&self, w: &mut Writer, at: &Spot<'a>, bound: u32, text: bool) {
        match text {
            true => {
                let value = at.value();
                let bound = self.any_bound(at, bound);
                self.must(w, &format!("tenon_put_string (xdrs, {value}, {bound})"));
            }
            false => {
                self.encode_bound(w, at, bound);
                let (length, bytes) = (at.length(self.of), at.elements(self.of));
                self.must(w, &format!("tenon_put_bytes (xdrs, {bytes}, {length})"));
            }
        }
    }

    /// Numbers that are looked at one by one, each in a word.
    fn encode_singles(&self, w: &mut Writer, at: &Spot<'a>, scalar: Scalar, length: &str) {
        self.encode_elements(w, length, 4, |w, index| {
            let value = at.element(self.of, index).value();
            self.encode_scalar(w, scalar, &value, ("_at", "0"));
        });
    }

    /// Elements of one size, with one check for all of them.
    fn encode_elements(
        &self,
        w: &mut Writer,
        length: &str,
        bytes: u32,
        element: impl Fn(&mut Writer, &str),
    ) {
        self.need_space(bytes);
        self.with_index(w, |w, index| {
            w.braces_below(|w| {
                w.line(format!("u_int {index};"));
                w.line("");
                w.line(format!("buf = tenon_run (xdrs, {length}, {bytes});"));
                let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
                w.braces(&head, |w| {
                    let words = bytes / 4;
                    w.line(format!(
                        "int32_t *_at = buf != NULL ? buf + (size_t) {index} * {words} : _space;"
                    ));
                    w.line("");
                    element(w, index);
                    let put = format!("XDR_PUTBYTES (xdrs, (char *) _space, {bytes})");
                    refuse_if(w, &format!("buf == NULL && !{put}"));
                });
            });
        });
    }

    /// Elements one by one.
    fn encode_each(
        &self,
        w: &mut Writer,
        at: &Spot<'a>,
        length: &str,
        element: impl Fn(&mut Writer, &Spot<'a>),
    ) {
        self.with_index(w, |w, index| {
            w.braces_below(|w| {
                w.line(format!("u_int {index};"));
                w.line("");
                let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
                w.braces(&head, |w| element(w, &at.element(self.of, index)));
            });
        });
    }

    fn encode_list(&self, w: &mut Writer, at: &Spot<'a>, element: TypeId, first_bare: bool) {
        let name = &self.of.schema.type_def(element).name;
        match first_bare {
            true => self.must(w, &format!("xdr_{name} (xdrs, {})", at.pointer())),
            false => {
                self.must(
                    w,
                    &format!("tenon_list_encode_{name} (xdrs, {})", at.value()),
                );
            }
        }
    }
}

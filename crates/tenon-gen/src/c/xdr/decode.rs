//! Decoding: what each operation of the plan is in C when it reads.

use tenon_plan::{Body, Count, Op, Scalar};
use tenon_schema::TypeId;

use super::pieces::{Numbers, Piece, SPACE_MAX, Step, extent, narrow, numbers, pieces, steps};
use super::routine::{Routine, refuse_if};
use crate::c::spot::Spot;
use crate::writer::Writer;

impl<'a> Routine<'a> {
    /// Reads the value at `spot`.
    pub fn decode(&self, w: &mut Writer, spot: &Spot<'a>, body: &'a Body) {
        for step in steps(body) {
            match step {
                Step::Block(_, block) => self.decode_block(w, spot, block),
                Step::Op(op) => self.decode_op(w, spot, op),
            }
        }
    }

    fn decode_block(&self, w: &mut Writer, spot: &Spot<'a>, block: &'a [Op]) {
        for piece in pieces(block) {
            match piece {
                Piece::Items { start, bytes, ops } => {
                    self.need_space(bytes);
                    w.line(format!("buf = tenon_received (xdrs, _space, {bytes});"));
                    refuse_if(w, "buf == NULL");
                    for op in ops {
                        let word = (extent(op).0 - start) / 4;
                        self.decode_item(w, spot, op, ("buf", word));
                    }
                }
                Piece::Large(op) => self.decode_large(w, spot, op),
            }
        }
    }

    /// An item in a block that `base` points to.
    fn decode_item(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op, base: (&str, u32)) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let (base, word) = base;
        match op {
            Op::Put { scalar, .. } => {
                self.decode_scalar(w, *scalar, &at, (base, &word.to_string()));
            }
            Op::PutArray { scalar, count, .. } => match numbers(self.of, &at, *scalar) {
                Numbers::Plain(unit) => {
                    let to = at.address(self.of);
                    w.line(format!(
                        "tenon_swap{unit} ({to}, {base} + {word}, {count});"
                    ));
                }
                Numbers::Single => self.with_index(w, |w, index| {
                    w.braces_below(|w| {
                        w.line(format!("u_int {index};"));
                        w.line("");
                        let head = format!("for ({index} = 0; {index} < {count}; {index}++)");
                        w.braces(&head, |w| {
                            let element = at.element(self.of, index);
                            let word = format!("{word} + {index}");
                            self.decode_scalar(w, *scalar, &element, (base, &word));
                        });
                    });
                }),
            },
            Op::Copy { bytes, .. } => {
                let to = at.address(self.of);
                w.line(format!("memcpy ({to}, {base} + {word}, {bytes});"));
            }
            Op::Blit { item, count, .. } => {
                let to = at.address(self.of);
                let total = item.bytes() * u64::from(*count);
                match item.unit() {
                    Some(unit @ (4 | 8)) => {
                        let numbers = total / u64::from(unit);
                        w.line(format!(
                            "tenon_swap{unit} ({to}, {base} + {word}, {numbers});"
                        ));
                    }
                    _ => w.line(format!("memcpy ({to}, {base} + {word}, {total});")),
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

    fn decode_scalar(&self, w: &mut Writer, scalar: Scalar, to: &Spot<'a>, from: (&str, &str)) {
        let (base, word) = from;
        let number = format!("ntohl ((uint32_t) {base}[{word}])");
        let value = match scalar {
            Scalar::I64 => format!("(int64_t) tenon_get_hyper ({base} + {word})"),
            Scalar::U64 => format!("tenon_get_hyper ({base} + {word})"),
            Scalar::F32 => format!("tenon_get_float ({base} + {word})"),
            Scalar::F64 => format!("tenon_get_double ({base} + {word})"),
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
            Scalar::F128 => unreachable!("C has no quadruple precision: refused"),
        };
        w.line(format!("{} = {value};", to.value()));
    }

    /// An item that is too large for a space.
    fn decode_large(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op) {
        let Some(place) = op.place() else {
            unreachable!("xdr has no holes")
        };
        let at = spot.at(self.of, place);
        let to = at.address(self.of);
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
                    &format!("tenon_get_numbers (xdrs, {to}, {numbers}, {unit})"),
                );
            }
            (None, Op::PutArray { scalar, count, .. }) => {
                self.with_index(w, |w, index| {
                    w.braces_below(|w| {
                        w.line(format!("u_int {index};"));
                        w.line("");
                        w.line(format!("buf = tenon_run (xdrs, {count}, 4);"));
                        let length = format!("{count}u");
                        self.decode_elements(w, index, (&length, 4), &|_| {}, |w| {
                            let element = at.element(self.of, index);
                            self.decode_scalar(w, *scalar, &element, ("_at", "0"));
                        });
                    });
                });
            }
            (_, Op::Copy { bytes, .. }) => {
                self.must(w, &format!("xdr_opaque (xdrs, (char *) {to}, {bytes})"));
            }
            _ => self.must(w, &format!("xdr_opaque (xdrs, (char *) {to}, {total})")),
        }
    }

    fn decode_op(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op) {
        let at = op.place().map(|place| spot.at(self.of, place));
        let Some(at) = at else {
            unreachable!("xdr aligns nothing")
        };
        match op {
            Op::BlitCounted { item, bound, .. } => match item.unit() {
                Some(unit @ (4 | 8)) => self.decode_array(w, &at, *bound, (item.bytes(), unit)),
                _ => self.decode_each(w, &at, Count::Counted(*bound), |w, spot| {
                    let (to, bytes) = (spot.pointer(), item.bytes());
                    self.must(w, &format!("xdr_opaque (xdrs, (char *) {to}, {bytes})"));
                }),
            },
            Op::PutCounted { scalar, bound, .. } => match numbers(self.of, &at, *scalar) {
                Numbers::Plain(unit) => self.decode_array(w, &at, *bound, (unit.into(), unit)),
                Numbers::Single => {
                    self.decode_run(w, &at, Count::Counted(*bound), 4, |w, index| {
                        let element = at.element(self.of, index);
                        self.decode_scalar(w, *scalar, &element, ("_at", "0"));
                    });
                }
            },
            Op::CopyCounted { bound, text, .. } => self.decode_bytes(w, &at, *bound, *text),
            Op::PutElements {
                count,
                element,
                body,
                ..
            } => match narrow(element.bytes) {
                bytes if bytes > SPACE_MAX => self.decode_each(w, &at, *count, |w, spot| {
                    self.decode_block(w, spot, body);
                }),
                bytes => self.decode_run(w, &at, *count, bytes, |w, index| {
                    let spot = at.element(self.of, index);
                    for op in body {
                        self.decode_item(w, &spot, op, ("_at", extent(op).0 / 4));
                    }
                }),
            },
            Op::Loop {
                count: Count::Counted(bound),
                body,
                ..
            } if body.is_empty() => w.braces_below(|w| {
                // Elements that take no bytes, neither there nor here.
                self.decode_count(w, &at, *bound, "TRUE", |_| {});
            }),
            Op::Loop { count, body, .. } => {
                self.decode_each(w, &at, *count, |w, spot| self.decode(w, spot, body));
            }
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                self.decode_discriminant(w, &at, *discriminant);
                self.switch(
                    w,
                    &at,
                    (arms, default),
                    "return FALSE;",
                    |w, holds, body| {
                        self.decode(w, holds, body);
                    },
                );
            }
            Op::Optional { body, .. } => self.decode_optional(w, &at, body),
            Op::List {
                element,
                first_bare,
                ..
            } => self.decode_list(w, &at, *element, *first_bare),
            Op::Call { plan, .. } => self.call(w, "decode", &at, *plan),
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

    fn decode_discriminant(&self, w: &mut Writer, at: &Spot<'a>, scalar: Scalar) {
        let discriminant = self.discriminant(at);
        if self.is_left_to_c(at) {
            return self.external(w, &discriminant);
        }
        self.need_space(4);
        w.line("buf = tenon_received (xdrs, _space, 4);");
        refuse_if(w, "buf == NULL");
        self.decode_scalar(w, scalar, &discriminant, ("buf", "0"));
    }

    fn decode_optional(&self, w: &mut Writer, at: &Spot<'a>, body: &'a Body) {
        let (pointer, ty) = (at.value(), at.inner_type(self.of));
        w.braces_below(|w| {
            w.line("uint32_t _more;");
            w.line("");
            self.must(w, "tenon_get_word (xdrs, &_more)");
            w.line("if (!_more) {");
            w.indented(|w| w.line(format!("{pointer} = NULL;")));
            w.line("} else {");
            w.indented(|w| {
                w.line(format!("if ({pointer} == NULL)"));
                w.indented(|w| {
                    w.line(format!("{pointer} = ({ty} *) calloc (1, sizeof ({ty}));"));
                });
                refuse_if(w, &format!("{pointer} == NULL"));
                self.decode(w, &at.target(self.of), body);
            });
            w.line("}");
        });
    }

    fn decode_array(&self, w: &mut Writer, at: &Spot<'a>, bound: u32, item: (u64, u32)) {
        let (length, elements) = (at.length(self.of), at.elements(self.of));
        let (ty, (bytes, unit)) = (at.inner_type(self.of), item);
        let bound = self.any_bound(at, bound);
        w.braces_below(|w| {
            w.line("void *_to;");
            w.line(format!(
                "bool_t _all = tenon_get_array (xdrs, {elements}, &_to, &{length}, {bound}, {bytes}, {unit});"
            ));
            w.line("");
            w.line(format!("{elements} = ({ty} *) _to;"));
            refuse_if(w, "!_all");
        });
    }

    fn decode_bytes(&self, w: &mut Writer, at: &Spot<'a>, bound: u32, text: bool) {
        let bound = self.any_bound(at, bound);
        match text {
            true => {
                let to = at.pointer();
                self.must(w, &format!("tenon_get_string (xdrs, {to}, {bound})"));
            }
            false => {
                let (length, bytes) = (at.length(self.of), at.elements(self.of));
                let call = format!("tenon_get_counted (xdrs, &{bytes}, &{length}, {bound})");
                self.must(w, &call);
            }
        }
    }

    /// Elements of one size, all of which may be there at once.
    fn decode_run(
        &self,
        w: &mut Writer,
        at: &Spot<'a>,
        count: Count,
        bytes: u32,
        element: impl Fn(&mut Writer, &str),
    ) {
        self.with_index(w, |w, index| {
            w.braces_below(|w| {
                let (run, paid) = (
                    |length: &str| format!("buf = tenon_run (xdrs, {length}, {bytes});"),
                    "buf != NULL",
                );
                self.decode_counted(w, at, index, count, (run, paid), |w, length, grow| {
                    self.decode_elements(w, index, (length, bytes), grow, |w| element(w, index));
                });
            });
        });
    }

    /// The loop over elements of one size; in front of an element there is memory for it.
    fn decode_elements(
        &self,
        w: &mut Writer,
        index: &str,
        (length, bytes): (&str, u32),
        grow: &dyn Fn(&mut Writer),
        element: impl FnOnce(&mut Writer),
    ) {
        self.need_space(bytes);
        let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
        w.braces(&head, |w| {
            let words = bytes / 4;
            w.line(format!(
                "int32_t *_at = buf != NULL ? buf + (size_t) {index} * {words} : _space;"
            ));
            w.line("");
            grow(w);
            let get = format!("XDR_GETBYTES (xdrs, (char *) _space, {bytes})");
            refuse_if(w, &format!("buf == NULL && !{get}"));
            element(w);
        });
    }

    /// Elements one by one.
    fn decode_each(
        &self,
        w: &mut Writer,
        at: &Spot<'a>,
        count: Count,
        element: impl Fn(&mut Writer, &Spot<'a>),
    ) {
        self.with_index(w, |w, index| {
            w.braces_below(|w| {
                let unpaid = (|_: &str| String::new(), "FALSE");
                self.decode_counted(w, at, index, count, unpaid, |w, length, grow| {
                    let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
                    w.braces(&head, |w| {
                        grow(w);
                        element(w, &at.element(self.of, index));
                    });
                });
            });
        });
    }

    /// Reads the count of a loop, if it has one, and gets memory for its elements: for all at once if
    /// the bytes are there, and else for more and more of them as they come.
    fn decode_counted(
        &self,
        w: &mut Writer,
        at: &Spot<'a>,
        index: &str,
        count: Count,
        (run, paid): (impl Fn(&str) -> String, &str),
        elements: impl FnOnce(&mut Writer, &str, &dyn Fn(&mut Writer)),
    ) {
        let ask = |w: &mut Writer, length: &str| {
            let run = run(length);
            if !run.is_empty() {
                w.line(run);
            }
        };
        w.line(format!("u_int {index};"));
        let Count::Counted(bound) = count else {
            let Count::Fixed(count) = count else { return };
            w.line("");
            ask(w, &format!("{count}u"));
            return elements(w, &format!("{count}u"), &|_| {});
        };
        self.decode_count(w, at, bound, paid, |w| ask(w, "_count"));
        let (length, memory) = (at.length(self.of), at.elements(self.of));
        let ty = at.inner_type(self.of);
        elements(w, "_count", &|w| {
            w.braces(&format!("if ({index} == {length})"), |w| {
                w.line(format!(
                    "void *_more = tenon_more ({memory}, &{length}, _count, sizeof ({ty}));"
                ));
                w.line("");
                refuse_if(w, "_more == NULL");
                w.line(format!("{memory} = ({ty} *) _more;"));
            });
        });
    }

    /// Reads a count, and gets the memory that it may take so far.
    fn decode_count(
        &self,
        w: &mut Writer,
        at: &Spot<'a>,
        bound: u32,
        paid: &str,
        ask: impl FnOnce(&mut Writer),
    ) {
        let (length, memory) = (at.length(self.of), at.elements(self.of));
        let ty = at.inner_type(self.of);
        w.line("uint32_t _count;");
        w.line("");
        self.must(w, "tenon_get_word (xdrs, &_count)");
        if let Some(bound) = at.bound(self.of, bound) {
            refuse_if(w, &format!("_count > {bound}"));
        }
        w.line("if (_count == 0)");
        w.indented(|w| w.line(format!("{length} = 0;")));
        ask(w);
        w.braces("if (_count > 0)", |w| {
            w.line(format!(
                "{memory} = ({ty} *) tenon_begin ({memory}, &{length}, _count, sizeof ({ty}), {paid});"
            ));
            refuse_if(w, &format!("{memory} == NULL"));
        });
    }

    fn decode_list(&self, w: &mut Writer, at: &Spot<'a>, element: TypeId, first_bare: bool) {
        let name = &self.of.schema.type_def(element).name;
        match first_bare {
            true => self.must(w, &format!("xdr_{name} (xdrs, {})", at.pointer())),
            false => {
                let pointer = at.pointer();
                self.must(w, &format!("tenon_list_decode_{name} (xdrs, {pointer})"));
            }
        }
    }
}

//! Decoding: the C code that reads for each operation of the plan.

use tenon_plan::{Blittable, Body, Count, FixedKind, Op, ReservedBlock, Scalar};
use tenon_schema::TypeId;

use super::codec::{CodecDirection, CodecWriter, LabelledLvalue, get_number, plus, refuse_if};
use super::encode::{bound_text, plain, times};
use crate::c::names::no_quadruple;
use crate::writer::SourceWriter;

impl<'a> CodecWriter<'a> {
    /// Reads the value at `here`.
    pub fn decode(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, body: &'a Body) {
        body.iter().for_each(|op| self.decode_op(w, here, op));
    }

    fn decode_block(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, block: &ReservedBlock) {
        let bytes = block.bytes;
        if bytes == 0 {
            return;
        }
        let label = self.block_label(here, block);
        let take = format!("tenon_take (in, {bytes}, {label})");
        if block.items().next().is_none() {
            return refuse_if(w, &format!("{take} == NULL"));
        }
        self.take(w, &take);
        self.decode_items(w, here, block);
    }

    fn take(&self, w: &mut SourceWriter, call: &str) {
        self.uses_block();
        w.line(format!("from = {call};"));
        refuse_if(w, "from == NULL");
    }

    /// Reads the items of the block at `from`. The content of a hole does not matter.
    fn decode_items(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, block: &ReservedBlock) {
        for item in block.items() {
            let (at, from) = (
                here.at(self.of, &item.place),
                plus("from", item.offset.into()),
            );
            self.decode_item(w, &at, &item.kind, &from);
        }
    }

    fn decode_item(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        kind: &FixedKind,
        from: &str,
    ) {
        match kind {
            FixedKind::Put { scalar } => self.decode_scalar(w, *scalar, at, from),
            FixedKind::PutArray { scalar, count } => match plain(self.representation(), *scalar) {
                Some(unit) => {
                    let (item, to) = (Blittable::uniform(unit, 1), at.spot.address(self.of));
                    let swapped = self.swapped_of(&item);
                    self.move_fixed(w, (&to, from), &item, *count, swapped);
                }
                None => self.decode_each(w, at, *scalar, &count.to_string(), from),
            },
            FixedKind::Copy { bytes } => {
                let to = at.spot.address(self.of);
                if *bytes > 0 {
                    w.line(format!("memcpy ({to}, {from}, {bytes});"));
                }
            }
            FixedKind::Blit { item, count } => {
                let to = at.spot.address(self.of);
                let swapped = self.swapped_of(item);
                self.move_fixed(w, (&to, from), item, *count, swapped);
            }
        }
    }

    /// Returns the condition that numbers of a block are byte-swapped; single bytes need none.
    fn swapped_of(&self, item: &Blittable) -> &'static str {
        match item.unit() {
            Some(1) => "false",
            _ => self.swapped(CodecDirection::Decode),
        }
    }

    /// Numbers that are looked at one by one.
    fn decode_each(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        scalar: Scalar,
        count: &str,
        from: &str,
    ) {
        let bytes = self.representation().bytes(scalar);
        self.with_index(|index| {
            let head = format!("for (uint32_t {index} = 0; {index} < {count}; {index}++)");
            w.braces(&head, |w| {
                let element = at.inside(at.spot.element(self.of, index));
                let from = format!("{from} + {}", times(index, bytes));
                self.decode_scalar(w, scalar, &element, &from);
            });
        });
    }

    fn decode_scalar(
        &self,
        w: &mut SourceWriter,
        scalar: Scalar,
        at: &LabelledLvalue<'a>,
        from: &str,
    ) {
        let bytes = self.representation().bytes(scalar);
        let swapped = match bytes {
            1 => "",
            _ => self.swapped(CodecDirection::Decode),
        };
        let number = get_number(bytes, from, swapped);
        let value = match scalar {
            Scalar::I64 => format!("(int64_t) {number}"),
            Scalar::U64 | Scalar::U32 => number,
            Scalar::I32 => format!("(int32_t) {number}"),
            Scalar::I16 => format!("(int16_t) {number}"),
            Scalar::U16 => format!("(uint16_t) {number}"),
            Scalar::I8 => format!("(int8_t) {number}"),
            Scalar::U8 => format!("(uint8_t) {number}"),
            Scalar::F32 => format!("tenon_float_of ({number})"),
            Scalar::F64 => format!("tenon_double_of ({number})"),
            Scalar::Bool => format!("{number} != 0"),
            Scalar::Enum(id) => {
                let (test, name) = (self.is_member(id), at.name());
                let (to, ty) = (at.spot.value(), at.spot.own_type(self.of));
                return w.braces_below(|w| {
                    w.line(format!("int32_t number = (int32_t) {number};"));
                    w.line("");
                    w.line(format!("if (!{test} (number))"));
                    w.indented(|w| {
                        w.line(format!(
                            "return tenon_unknown (in, {from}, number, {name});"
                        ));
                    });
                    w.line(format!("{to} = ({ty}) number;"));
                });
            }
            Scalar::F128 => no_quadruple(),
        };
        w.line(format!("{} = {value};", at.spot.value()));
    }

    fn decode_op(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, op: &'a Op) {
        let at = |place| here.at(self.of, place);
        match op {
            Op::Reserve(block) => self.decode_block(w, here, block),
            Op::Align { to, before } => {
                let label = here.name();
                refuse_if(w, &format!("!tenon_skip (in, {to}, {before}, {label})"));
            }
            Op::BlitCounted { place, item, bound } => {
                let at = at(place);
                self.count(w, &at, *bound, item.bytes());
                self.when_there(w, &at, "tenon_unset", |w| {
                    self.counted(w, &at, item.bytes());
                    let (length, to) = (at.spot.length(self.of), at.spot.elements(self.of));
                    let swapped = self.swapped_of(item);
                    self.move_counted(w, (&to, "from"), item, &length, swapped);
                });
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => {
                let at = at(place);
                let bytes = self.representation().bytes(*scalar);
                self.count(w, &at, *bound, bytes.into());
                self.when_there(w, &at, "tenon_unset", |w| {
                    self.counted(w, &at, bytes.into());
                    let (length, to) = (at.spot.length(self.of), at.spot.elements(self.of));
                    match plain(self.representation(), *scalar) {
                        Some(unit) => {
                            let item = Blittable::uniform(unit, 1);
                            let swapped = self.swapped_of(&item);
                            self.move_counted(w, (&to, "from"), &item, &length, swapped);
                        }
                        None => self.decode_each(w, &at, *scalar, &length, "from"),
                    }
                });
            }
            Op::CopyCounted { place, bound, text } => {
                self.decode_bytes(w, &at(place), *bound, *text);
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => {
                let at = at(place);
                let stride = u64::from(element.bytes);
                let each = |w: &mut SourceWriter, length: &str| {
                    self.with_index(|index| {
                        let head = format!(
                            "for (uint32_t {index} = 0; {index} < {length}; {index}++, from += {stride})"
                        );
                        w.braces(&head, |w| {
                            let item = at.inside(at.spot.element(self.of, index));
                            self.decode_items(w, &item, element);
                        });
                    });
                };
                match count {
                    Count::Fixed(count) => {
                        let bytes = stride * u64::from(*count);
                        self.take(w, &format!("tenon_take (in, {bytes}, {})", at.name()));
                        each(w, &count.to_string());
                    }
                    Count::Counted(bound) => {
                        self.count(w, &at, *bound, stride);
                        self.when_there(w, &at, "tenon_unset", |w| {
                            self.counted(w, &at, stride);
                            each(w, &at.spot.length(self.of));
                        });
                    }
                }
            }
            Op::Loop {
                place,
                count,
                element,
                body,
            } => {
                let at = at(place);
                let each = |w: &mut SourceWriter, length: &str| {
                    if body.is_empty() {
                        return;
                    }
                    self.with_index(|index| {
                        let head =
                            format!("for (uint32_t {index} = 0; {index} < {length}; {index}++)");
                        w.braces(&head, |w| {
                            let item = at.inside(at.spot.element(self.of, index));
                            self.decode(w, &item, body);
                        });
                    });
                };
                match count {
                    Count::Fixed(count) => each(w, &count.to_string()),
                    Count::Counted(bound) => {
                        self.count(w, &at, *bound, element.min.into());
                        self.when_there(w, &at, "tenon_zeroed", |w| {
                            each(w, &at.spot.length(self.of));
                        });
                    }
                }
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let at = at(place);
                let on = self.discriminant(&at);
                let bytes = self.representation().bytes(*discriminant);
                self.take(w, &format!("tenon_take (in, {bytes}, {})", on.name()));
                self.decode_scalar(w, *discriminant, &on, "from");
                let refuse = format!(
                    "return tenon_unknown (in, from, {}, {});",
                    on.spot.value(),
                    on.name()
                );
                self.switch(w, &at, (arms, default), &refuse, |w, holds, body| {
                    if let Some(pointer) = &holds.pointer {
                        self.get_memory(w, pointer);
                    }
                    self.decode(w, &holds.here, body);
                });
            }
            Op::Optional { place, body } => {
                let at = at(place);
                let bytes = self.representation().bytes(Scalar::Bool);
                self.take(w, &format!("tenon_take (in, {bytes}, {})", at.name()));
                let swapped = match bytes {
                    1 => "",
                    _ => self.swapped(CodecDirection::Decode),
                };
                let flag = get_number(bytes, "from", swapped);
                w.braces(&format!("if ({flag} != 0)"), |w| {
                    self.get_memory(w, &at);
                    self.decode(w, &at.inside(at.spot.target(self.of)), body);
                });
            }
            Op::List {
                place,
                element,
                first_bare,
            } => self.decode_list(w, &at(place), *element, *first_bare),
            Op::Call { place, plan } | Op::External { place, ty: plan } => {
                let call = self.call(CodecDirection::Decode, *plan);
                let pointer = at(place).spot.pointer();
                refuse_if(w, &format!("!{call} (in, {pointer})"));
            }
        }
    }

    /// Gets memory for what the pointer at `at` leads to.
    fn get_memory(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>) {
        let (pointer, ty) = (at.spot.value(), at.spot.inner_type(self.of));
        w.line(format!(
            "{pointer} = ({ty} *) tenon_zeroed (in, 1, sizeof ({ty}), {});",
            at.name()
        ));
        refuse_if(w, &format!("{pointer} == NULL"));
    }

    /// Reads the count of elements that take at least so many bytes each.
    fn count(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, bound: u32, fewest: u64) {
        let length = at.spot.length(self.of);
        let bound = bound_text(bound);
        let swapped = self.swapped(CodecDirection::Decode);
        // No message holds elements of so many bytes: no count passes.
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
        refuse_if(
            w,
            &format!(
                "!tenon_count (in, &{length}, {bound}, {fewest}, {swapped}, {})",
                at.name()
            ),
        );
    }

    /// Gets memory for elements, if there are any, and reads them.
    fn when_there(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        memory: &str,
        read: impl FnOnce(&mut SourceWriter),
    ) {
        let (length, to) = (at.spot.length(self.of), at.spot.elements(self.of));
        let ty = at.spot.inner_type(self.of);
        w.braces(&format!("if ({length} > 0)"), |w| {
            w.line(format!(
                "{to} = ({ty} *) {memory} (in, {length}, sizeof ({ty}), {});",
                at.name()
            ));
            refuse_if(w, &format!("{to} == NULL"));
            read(w);
        });
    }

    /// The bytes of elements that were found to be there.
    fn counted(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, bytes: u64) {
        self.uses_block();
        let length = at.spot.length(self.of);
        w.line(format!("from = tenon_counted (in, {length}, {bytes});"));
    }

    fn decode_bytes(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, bound: u32, text: bool) {
        let what = match text {
            true => format!("tenon_get_string (in, &{}", at.spot.value()),
            false => format!(
                "tenon_get_bytes (in, &{}, &{}",
                at.spot.length(self.of),
                at.spot.elements(self.of)
            ),
        };
        let (bound, padding) = (bound_text(bound), self.representation().padding);
        let swapped = self.swapped(CodecDirection::Decode);
        refuse_if(
            w,
            &format!("!{what}, {bound}, {padding}, {swapped}, {})", at.name()),
        );
    }

    fn decode_list(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        element: TypeId,
        first_bare: bool,
    ) {
        let name = &self.of.schema.type_def(element).name;
        let function = match first_bare {
            true => self.function_name(CodecDirection::Decode, name),
            false => self.list_name(CodecDirection::Decode, name),
        };
        refuse_if(w, &format!("!{function} (in, {})", at.spot.pointer()));
    }
}

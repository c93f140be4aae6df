//! Encoding: the C code that writes for each operation of the plan.

use tenon_plan::{
    Blittable, BlockPart, Body, Count, FixedItem, FixedKind, Op, ReservedBlock, Scalar,
};
use tenon_schema::{TypeId, TypeKind};

use super::codec::{CodecDirection, CodecWriter, LabelledLvalue, plus, put_number, refuse_if};
use super::messages::message_name;
use crate::c::names::no_quadruple;
use crate::writer::SourceWriter;

/// Bytes of a block up to which its numbers are written out.
pub const FEW_BYTES: u64 = 64;

impl<'a> CodecWriter<'a> {
    /// Writes the value at `here`.
    pub fn encode(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, body: &'a Body) {
        body.iter().for_each(|op| self.encode_op(w, here, op));
    }

    fn encode_block(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, block: &ReservedBlock) {
        let bytes = block.bytes;
        if bytes == 0 {
            return;
        }
        let label = self.block_label(here, block);
        self.room(w, &format!("tenon_room (out, {bytes}, {label})"));
        self.encode_parts(w, here, block);
    }

    /// Returns the label of a block in errors: that of its only item, or of the value that it is part of.
    pub fn block_label(&self, here: &LabelledLvalue<'a>, block: &ReservedBlock) -> String {
        let mut items = block.items();
        match (items.next(), items.next()) {
            (Some(only), None) => here.at(self.of, &only.place).name(),
            _ => here.name(),
        }
    }

    fn room(&self, w: &mut SourceWriter, call: &str) {
        self.uses_block();
        w.line(format!("to = {call};"));
        refuse_if(w, "to == NULL");
    }

    /// The parts of the block at `to`.
    fn encode_parts(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, block: &ReservedBlock) {
        for part in &block.parts {
            let to = plus("to", part.offset().into());
            match part {
                BlockPart::Hole(hole) => w.line(format!("memset ({to}, 0, {});", hole.bytes)),
                BlockPart::Item(item) => {
                    let at = here.at(self.of, &item.place);
                    self.encode_item(w, &at, item, &to);
                }
            }
        }
    }

    /// An item of a block.
    fn encode_item(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        item: &FixedItem,
        to: &str,
    ) {
        match &item.kind {
            FixedKind::Put { scalar } => self.encode_scalar(w, *scalar, at, to),
            FixedKind::PutArray { scalar, count } => match plain(self.representation(), *scalar) {
                Some(unit) => {
                    let (item, from) = (Blittable::uniform(unit, 1), at.spot.address(self.of));
                    let swapped = self.swapped(CodecDirection::Encode);
                    self.move_fixed(w, (to, &from), &item, *count, swapped);
                }
                None => self.encode_each(w, at, *scalar, &count.to_string(), to),
            },
            FixedKind::Copy { bytes } => {
                let from = at.spot.address(self.of);
                if *bytes > 0 {
                    w.line(format!("memcpy ({to}, {from}, {bytes});"));
                }
                let padded = self.representation().padded(u64::from(*bytes));
                let zeros = padded - u64::from(*bytes);
                if zeros > 0 {
                    let behind = plus("to", u64::from(item.offset) + u64::from(*bytes));
                    w.line(format!("memset ({behind}, 0, {zeros});"));
                }
            }
            FixedKind::Blit { item, count } => {
                let from = at.spot.address(self.of);
                let swapped = self.swapped(CodecDirection::Encode);
                self.move_fixed(w, (to, &from), item, *count, swapped);
            }
        }
    }

    /// Moves a fixed number of items that lie in memory as on the wire.
    pub fn move_fixed(
        &self,
        w: &mut SourceWriter,
        (to, from): (&str, &str),
        item: &Blittable,
        count: u32,
        swapped: &str,
    ) {
        let bytes = item.bytes() * u64::from(count);
        match item.unit() {
            _ if bytes == 0 => {}
            _ if swapped == "false" => w.line(format!("memcpy ({to}, {from}, {bytes});")),
            Some(1) => w.line(format!("memcpy ({to}, {from}, {bytes});")),
            Some(unit) => {
                let what = few_or_many(bytes);
                let numbers = bytes / u64::from(unit);
                w.line(format!(
                    "tenon_{what}{unit} ({to}, {from}, {numbers}, {swapped});"
                ));
            }
            None => self.move_runs(w, (to, from), item, &count.to_string(), swapped),
        }
    }

    /// Moves items of several sizes of numbers, one by one.
    pub fn move_runs(
        &self,
        w: &mut SourceWriter,
        (to, from): (&str, &str),
        item: &Blittable,
        count: &str,
        swapped: &str,
    ) {
        let size = item.bytes();
        let runs = |w: &mut SourceWriter, to: &str, from: &str| {
            let mut at = 0;
            for run in &item.runs {
                let (to, from) = (plus(to, at), plus(from, at));
                write_run(w, (&to, &from), run.unit, run.units, swapped);
                at += u64::from(run.unit) * u64::from(run.units);
            }
        };
        self.with_index(|index| {
            let head = format!("for (size_t {index} = 0; {index} < {count}; {index}++)");
            let each = |w: &mut SourceWriter| {
                w.line(format!(
                    "unsigned char *item_to = (unsigned char *) {to} + {index} * {size};"
                ));
                w.line(format!(
                    "const unsigned char *item_from = (const unsigned char *) {from} + {index} * {size};"
                ));
                w.line("");
                runs(w, "item_to", "item_from");
            };
            match count {
                "1" => w.braces_below(|w| {
                    w.line(format!("unsigned char *item_to = (unsigned char *) {to};"));
                    w.line(format!(
                        "const unsigned char *item_from = (const unsigned char *) {from};"
                    ));
                    w.line("");
                    runs(w, "item_to", "item_from");
                }),
                _ => w.braces(&head, each),
            }
        });
    }

    /// Moves items to where there is room for them; how many is an expression.
    pub fn move_counted(
        &self,
        w: &mut SourceWriter,
        (to, from): (&str, &str),
        item: &Blittable,
        count: &str,
        swapped: &str,
    ) {
        let size = item.bytes();
        let times = |factor: u64| match factor {
            1 => count.to_owned(),
            factor => format!("(size_t) {count} * {factor}"),
        };
        match item.unit() {
            _ if swapped == "false" => {
                w.line(format!("tenon_copy ({to}, {from}, {});", times(size)));
            }
            Some(1) => w.line(format!("tenon_copy ({to}, {from}, {});", times(size))),
            Some(unit) => {
                let numbers = times(size / u64::from(unit));
                w.line(format!(
                    "tenon_move{unit} ({to}, {from}, {numbers}, {swapped});"
                ));
            }
            None => self.move_runs(w, (to, from), item, count, swapped),
        }
    }

    /// Numbers that are looked at one by one.
    fn encode_each(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        scalar: Scalar,
        count: &str,
        to: &str,
    ) {
        let bytes = self.representation().bytes(scalar);
        self.with_index(|index| {
            let head = format!("for (uint32_t {index} = 0; {index} < {count}; {index}++)");
            w.braces(&head, |w| {
                let element = at.inside(at.spot.element(self.of, index));
                let to = format!("{to} + {}", times(index, bytes));
                self.encode_scalar(w, scalar, &element, &to);
            });
        });
    }

    fn encode_scalar(
        &self,
        w: &mut SourceWriter,
        scalar: Scalar,
        at: &LabelledLvalue<'a>,
        to: &str,
    ) {
        let value = at.spot.value();
        let bytes = self.representation().bytes(scalar);
        let value = match scalar {
            Scalar::I64 | Scalar::U64 => format!("(uint64_t) {value}"),
            Scalar::F32 => format!("tenon_float_bits ({value})"),
            Scalar::F64 => format!("tenon_double_bits ({value})"),
            Scalar::I32 | Scalar::U32 => format!("(uint32_t) {value}"),
            Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => format!("(uint32_t) {value}"),
            Scalar::Bool => value,
            Scalar::Enum(id) => {
                w.line(format!("if (!{} ((int32_t) {value}))", self.is_member(id)));
                let name = at.name();
                w.indented(|w| {
                    w.line(format!(
                        "return tenon_fail (out, TENON_UNKNOWN_VALUE, (uint64_t) {value}, 0, {name});"
                    ));
                });
                format!("(uint32_t) {value}")
            }
            Scalar::F128 => no_quadruple(),
        };
        let swapped = self.swapped(CodecDirection::Encode);
        w.line(format!("{};", put_number(bytes, to, &value, swapped)));
    }

    fn encode_op(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, op: &'a Op) {
        let at = |place| here.at(self.of, place);
        match op {
            Op::Reserve(block) => self.encode_block(w, here, block),
            Op::Align { to, before } => {
                let label = here.name();
                refuse_if(w, &format!("!tenon_align (out, {to}, {before}, {label})"));
            }
            Op::BlitCounted { place, item, bound } => {
                let at = at(place);
                self.begin(w, &at, *bound, item.bytes());
                let (length, from) = (at.spot.length(self.of), at.spot.elements(self.of));
                let swapped = self.swapped(CodecDirection::Encode);
                self.move_counted(w, ("to", &from), item, &length, swapped);
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => {
                let at = at(place);
                let bytes = self.representation().bytes(*scalar);
                self.begin(w, &at, *bound, bytes.into());
                let (length, from) = (at.spot.length(self.of), at.spot.elements(self.of));
                match plain(self.representation(), *scalar) {
                    Some(unit) => {
                        let item = Blittable::uniform(unit, 1);
                        let swapped = self.swapped(CodecDirection::Encode);
                        self.move_counted(w, ("to", &from), &item, &length, swapped);
                    }
                    None => self.encode_each(w, &at, *scalar, &length, "to"),
                }
            }
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
                let stride = u64::from(element.bytes);
                let length = match count {
                    Count::Fixed(count) => {
                        let bytes = stride * u64::from(*count);
                        self.room(w, &format!("tenon_room (out, {bytes}, {})", at.name()));
                        count.to_string()
                    }
                    Count::Counted(bound) => {
                        self.begin(w, &at, *bound, stride);
                        at.spot.length(self.of)
                    }
                };
                self.with_index(|index| {
                    let head = format!(
                        "for (uint32_t {index} = 0; {index} < {length}; {index}++, to += {stride})"
                    );
                    w.braces(&head, |w| {
                        let item = at.inside(at.spot.element(self.of, index));
                        self.encode_parts(w, &item, element);
                    });
                });
            }
            Op::Loop {
                place, count, body, ..
            } => {
                let at = at(place);
                let length = match count {
                    Count::Fixed(count) => count.to_string(),
                    Count::Counted(bound) => {
                        let begin = self.begin_call(&at, *bound, 0);
                        refuse_if(w, &format!("{begin} == NULL"));
                        at.spot.length(self.of)
                    }
                };
                if body.is_empty() {
                    return;
                }
                self.with_index(|index| {
                    let head = format!("for (uint32_t {index} = 0; {index} < {length}; {index}++)");
                    w.braces(&head, |w| {
                        let item = at.inside(at.spot.element(self.of, index));
                        self.encode(w, &item, body);
                    });
                });
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
                self.room(w, &format!("tenon_room (out, {bytes}, {})", on.name()));
                self.encode_scalar(w, *discriminant, &on, "to");
                let refuse = format!(
                    "return tenon_fail (out, TENON_UNKNOWN_VALUE, (uint64_t) {}, 0, {});",
                    on.spot.value(),
                    on.name()
                );
                self.switch(w, &at, (arms, default), &refuse, |w, holds, body| {
                    if let Some(pointer) = &holds.pointer {
                        refuse_null(w, pointer);
                    }
                    self.encode(w, &holds.here, body);
                });
            }
            Op::Optional { place, body } => {
                let at = at(place);
                let pointer = at.spot.value();
                let bytes = self.representation().bytes(Scalar::Bool);
                self.room(w, &format!("tenon_room (out, {bytes}, {})", at.name()));
                let flag = format!("{pointer} != NULL");
                let put = put_number(bytes, "to", &flag, self.swapped(CodecDirection::Encode));
                w.line(format!("{put};"));
                if !body.is_empty() {
                    w.braces(&format!("if ({pointer} != NULL)"), |w| {
                        self.encode(w, &at.inside(at.spot.target(self.of)), body);
                    });
                }
            }
            Op::List {
                place,
                element,
                first_bare,
            } => self.encode_list(w, &at(place), *element, *first_bare),
            Op::Call { place, plan } | Op::External { place, ty: plan } => {
                let call = self.call(CodecDirection::Encode, *plan);
                let pointer = at(place).spot.pointer();
                refuse_if(w, &format!("!{call} (out, {pointer})"));
            }
        }
    }

    /// Returns the function that moves values of a type: a generated one, or that of the program.
    pub fn call(&self, way: CodecDirection, id: TypeId) -> String {
        let def = self.of.schema.type_def(id);
        let way_name = match way {
            CodecDirection::Encode => "encode",
            CodecDirection::Decode => "decode",
        };
        match def.kind {
            TypeKind::External => {
                let form = self.representation().name;
                format!("{}.{way_name}_{form}", message_name(&def.name))
            }
            _ => self.function_name(way, &def.name),
        }
    }

    /// Writes a count, and makes room for elements of so many bytes behind it.
    fn begin(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, bound: u32, bytes: u64) {
        self.room(w, &self.begin_call(at, bound, bytes));
    }

    fn begin_call(&self, at: &LabelledLvalue<'a>, bound: u32, bytes: u64) -> String {
        format!(
            "tenon_begin (out, {}, {}, {}, {bytes}, {}, {})",
            at.spot.length(self.of),
            at.spot.elements(self.of),
            bound_text(bound),
            self.swapped(CodecDirection::Encode),
            at.name()
        )
    }

    fn encode_bytes(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, bound: u32, text: bool) {
        let what = match text {
            true => format!("tenon_put_string (out, {}", at.spot.value()),
            false => format!(
                "tenon_put_bytes (out, {}, {}",
                at.spot.length(self.of),
                at.spot.elements(self.of)
            ),
        };
        let (bound, padding) = (bound_text(bound), self.representation().padding);
        let swapped = self.swapped(CodecDirection::Encode);
        refuse_if(
            w,
            &format!("!{what}, {bound}, {padding}, {swapped}, {})", at.name()),
        );
    }

    fn encode_list(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        element: TypeId,
        first_bare: bool,
    ) {
        let name = &self.of.schema.type_def(element).name;
        let call = match first_bare {
            true => {
                let whole = self.function_name(CodecDirection::Encode, name);
                format!("{whole} (out, {})", at.spot.pointer())
            }
            false => {
                let list = self.list_name(CodecDirection::Encode, name);
                format!("{list} (out, {})", at.spot.value())
            }
        };
        refuse_if(w, &format!("!{call}"));
    }
}

/// The bytes of a number that lies in memory as on the wire, but for its order.
pub fn plain(representation: tenon_plan::Representation, scalar: Scalar) -> Option<u32> {
    let bytes = representation.bytes(scalar);
    match scalar {
        Scalar::I32 | Scalar::U32 | Scalar::F32 => Some(bytes),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => Some(bytes),
        Scalar::I16 | Scalar::U16 => (bytes == 2).then_some(bytes),
        Scalar::I8 | Scalar::U8 => (bytes == 1).then_some(bytes),
        Scalar::Bool | Scalar::Enum(_) | Scalar::F128 => None,
    }
}

/// So many items of so many bytes.
pub fn times(count: &str, bytes: u32) -> String {
    match bytes {
        1 => count.to_owned(),
        bytes => format!("(size_t) {count} * {bytes}"),
    }
}

/// A bound, as C has it.
pub fn bound_text(bound: u32) -> String {
    match bound {
        u32::MAX => "UINT32_MAX".to_owned(),
        bound => format!("{bound}u"),
    }
}

fn few_or_many(bytes: u64) -> &'static str {
    match bytes <= FEW_BYTES {
        true => "few",
        false => "move",
    }
}

fn write_run(w: &mut SourceWriter, (to, from): (&str, &str), unit: u32, units: u32, swapped: &str) {
    let bytes = u64::from(unit) * u64::from(units);
    match unit {
        1 => w.line(format!("memcpy ({to}, {from}, {bytes});")),
        unit => {
            let what = few_or_many(bytes);
            w.line(format!(
                "tenon_{what}{unit} ({to}, {from}, {units}, {swapped});"
            ));
        }
    }
}

/// Refuses a pointer that must lead to something and does not.
fn refuse_null(w: &mut SourceWriter, pointer: &LabelledLvalue<'_>) {
    w.line(format!("if ({} == NULL)", pointer.spot.value()));
    let name = pointer.name();
    w.indented(|w| {
        w.line(format!(
            "return tenon_fail (out, TENON_NULL, 0, 0, {name});"
        ))
    });
}

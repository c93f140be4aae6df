//! The functions that move values: the part common to encoding and decoding, in every representation.

use std::cell::Cell;

use tenon_plan::links::is_link;
use tenon_plan::{Body, BoxedArms, Order, Place, Plan, Plans, Representation, Scalar};
use tenon_schema::{Field, TypeId};

use super::chunks::CFunction;
use crate::c::Interface;
use crate::c::spot::{CLvalue, UnionDefinition};
use crate::writer::{SourceWriter, literal};

/// The direction in which values are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecDirection {
    /// Memory to bytes.
    Encode,
    /// Bytes to memory.
    Decode,
}

/// A value, and its label in errors.
#[derive(Debug, Clone)]
pub struct LabelledLvalue<'a> {
    /// The value in memory.
    pub spot: CLvalue<'a>,
    /// `type.field`.
    pub label: String,
}

impl<'a> LabelledLvalue<'a> {
    /// Returns the value at `place`.
    pub fn at(&self, of: Interface<'a>, place: &Place) -> Self {
        let path = self.spot.path(of, place);
        let label = match path.is_empty() {
            true => self.label.clone(),
            false => format!("{}.{path}", self.label),
        };
        let spot = self.spot.at(of, place);
        Self { spot, label }
    }

    /// Another value inside of it, with the same label in errors.
    pub fn inside(&self, spot: CLvalue<'a>) -> Self {
        let label = self.label.clone();
        Self { spot, label }
    }

    /// Returns its label in errors, as a literal of C.
    pub fn name(&self) -> String {
        literal(&self.label)
    }
}

/// Writes the functions of values in one representation.
pub struct CodecWriter<'a> {
    pub of: Interface<'a>,
    pub plans: &'a Plans,
    boxed: &'a BoxedArms,
    /// Set if the function at hand has a block.
    has_block: Cell<bool>,
    /// Set if it asks for the sender's byte order.
    asks_order: Cell<bool>,
    /// The number of open loops.
    loops: Cell<usize>,
}

impl<'a> CodecWriter<'a> {
    pub fn new(of: Interface<'a>, plans: &'a Plans, boxed: &'a BoxedArms) -> Self {
        Self {
            of,
            plans,
            boxed,
            has_block: Cell::new(false),
            asks_order: Cell::new(false),
            loops: Cell::new(0),
        }
    }

    pub fn representation(&self) -> Representation {
        self.plans.representation
    }

    /// Returns the condition in C that numbers have another byte order on the wire than in memory.
    pub fn swapped(&self, way: CodecDirection) -> &'static str {
        match (self.representation().order, way) {
            (Order::Big, _) => "TENON_BIG_SWAPS",
            (Order::Little, _) => "TENON_LITTLE_SWAPS",
            (Order::Sender, CodecDirection::Encode) => "false",
            (Order::Sender, CodecDirection::Decode) => {
                self.asks_order.set(true);
                "swapped"
            }
        }
    }

    /// The name of the function that moves values of the type `name`.
    pub fn function_name(&self, way: CodecDirection, name: &str) -> String {
        self.function_of("", way, name)
    }

    /// The name of the function that moves an element of a list without the rest of it.
    pub fn one_name(&self, way: CodecDirection, name: &str) -> String {
        self.function_of("one_", way, name)
    }

    /// The name of the function that moves a list that may be empty.
    pub fn list_name(&self, way: CodecDirection, name: &str) -> String {
        self.function_of("list_", way, name)
    }

    /// The kind of function stands in front, so that no name of a type makes one of another.
    fn function_of(&self, kind: &str, way: CodecDirection, name: &str) -> String {
        let (form, verb) = (self.representation().name, verb(way));
        format!("tenon_{kind}{form}_{verb}_{name}")
    }

    /// The functions of a type.
    pub fn of_type(&self, id: TypeId) -> Vec<CFunction> {
        let def = self.of.schema.type_def(id);
        let plan = self.plans.of_type(id);
        let here = LabelledLvalue {
            spot: CLvalue::type_behind(self.of, "it", id),
            label: def.name.clone(),
        };
        match is_link(self.of.schema, id) {
            true => self.of_link(id, &here, plan),
            false => self.both("", &def.name, &def.name, &here, plan).into(),
        }
    }

    /// The functions of a value of the C type `ty`, which are called after `name` and what `kind` of value
    /// it is.
    pub fn both(
        &self,
        kind: &str,
        name: &str,
        ty: &str,
        here: &LabelledLvalue<'a>,
        plan: &'a Plan,
    ) -> [CFunction; 2] {
        [CodecDirection::Encode, CodecDirection::Decode].map(|way| {
            let name = self.function_of(kind, way, name);
            self.function(way, name, ty, here, plan)
        })
    }

    /// A function that moves a value of the C type `ty`.
    pub fn function(
        &self,
        way: CodecDirection,
        name: String,
        ty: &str,
        here: &LabelledLvalue<'a>,
        plan: &'a Plan,
    ) -> CFunction {
        self.has_block.set(false);
        self.asks_order.set(false);
        let mut inside = SourceWriter::with_tabs();
        inside.indented(|w| match way {
            CodecDirection::Encode => self.encode(w, here, &plan.body),
            CodecDirection::Decode => self.decode(w, here, &plan.body),
        });
        let inside = inside.finish();
        let (stream, value, pointer) = match way {
            CodecDirection::Encode => ("tenon_encoder *out", "const void *value", "const "),
            CodecDirection::Decode => ("tenon_decoder *in", "void *value", ""),
        };
        let cursor = stream_name(way);
        let prototype = format!("static bool {name} ({stream}, {value});");
        let mut w = SourceWriter::with_tabs();
        w.line("static bool");
        w.line(format!("{name} ({stream}, {value})"));
        w.braces_below(|w| {
            if inside.is_empty() {
                w.line(format!("(void) {cursor};"));
                w.line("(void) value;");
                w.line("return true;");
                return;
            }
            let is_used = inside.contains("it->") || inside.contains("(*it)");
            let is_used = is_used || inside.contains("(it") || inside.contains(" it,");
            let is_used = is_used || inside.contains(" it)");
            match is_used {
                true => w.line(format!("{pointer}{ty} *it = ({pointer}{ty} *) value;")),
                false => w.line("(void) value;"),
            }
            if self.asks_order.get() {
                w.line("const bool swapped = in->swapped;");
            }
            if self.has_block.get() {
                w.line(match way {
                    CodecDirection::Encode => "unsigned char *to;",
                    CodecDirection::Decode => "const unsigned char *from;",
                });
            }
            w.line("");
            if plan.recursive {
                w.line(format!("if ({cursor}->depth_left == 0)"));
                let too_deep = match way {
                    CodecDirection::Encode => {
                        format!("tenon_fail (out, TENON_TOO_DEEP, 0, 0, {})", here.name())
                    }
                    CodecDirection::Decode => format!(
                        "tenon_fail_at (in, in->at, TENON_TOO_DEEP, 0, 0, {})",
                        here.name()
                    ),
                };
                w.indented(|w| w.line(format!("return {too_deep};")));
                w.line(format!("{cursor}->depth_left--;"));
            }
            w.raw_text(&inside);
            if plan.recursive {
                w.line(format!("{cursor}->depth_left++;"));
            }
            w.line("return true;");
        });
        CFunction {
            name,
            prototype,
            text: w.finish(),
        }
    }

    /// Remembers that the function at hand has a block.
    pub fn uses_block(&self) {
        self.has_block.set(true);
    }

    /// Writes the inside of a loop, which counts with a variable of its own.
    pub fn with_index(&self, inside: impl FnOnce(&str)) {
        let depth = self.loops.get();
        let index = match ["i", "j", "k"].get(depth) {
            Some(index) => (*index).to_owned(),
            None => format!("i{depth}"),
        };
        self.loops.set(depth + 1);
        inside(&index);
        self.loops.set(depth);
    }

    /// The discriminant of the union at `here`.
    pub fn discriminant(&self, here: &LabelledLvalue<'a>) -> LabelledLvalue<'a> {
        let UnionDefinition { union, written, .. } = here.spot.union(self.of);
        let ty = &union.discriminant_type;
        let spot = here
            .spot
            .discriminant(&union.discriminant, ty, &written.discriminant);
        let label = format!("{}.{}", here.label, union.discriminant);
        LabelledLvalue { spot, label }
    }

    /// Writes a switch over the union at `here`; `arm` writes what is to be done with what an arm holds, behind the
    /// pointer that it is if it is one, and `otherwise` is what is done where no arm is selected.
    pub fn switch(
        &self,
        w: &mut SourceWriter,
        here: &LabelledLvalue<'a>,
        bodies: (&'a [tenon_plan::Arm], &'a Option<Body>),
        otherwise: &str,
        arm: impl Fn(&mut SourceWriter, &ArmValue<'a>, &'a Body),
    ) {
        write_switch(w, (self.of, self.boxed), here, bodies, otherwise, arm);
    }

    /// The number of an enum that has an item, if it is one.
    pub fn is_member(&self, id: TypeId) -> String {
        member_test(&self.of.schema.type_def(id).name)
    }
}

/// The name of the function that says whether a number belongs to an enum.
pub fn member_test(name: &str) -> String {
    format!("tenon_is_{name}")
}

/// The value that an arm holds.
pub struct ArmValue<'a> {
    /// The value in memory.
    pub here: LabelledLvalue<'a>,
    /// The pointer to it, if it lies behind one of which there is nothing on the wire.
    pub pointer: Option<LabelledLvalue<'a>>,
}

/// Writes a switch over the union at `here`.
pub fn write_switch<'a>(
    w: &mut SourceWriter,
    (of, boxed): (Interface<'a>, &BoxedArms),
    here: &LabelledLvalue<'a>,
    bodies: (&'a [tenon_plan::Arm], &'a Option<Body>),
    otherwise: &str,
    arm: impl Fn(&mut SourceWriter, &ArmValue<'a>, &'a Body),
) {
    let UnionDefinition { id, union, written } = here.spot.union(of);
    let ty = &union.discriminant_type;
    let discriminant = here
        .spot
        .discriminant(&union.discriminant, ty, &written.discriminant);
    let is_boolean = Scalar::of(of.schema, ty) == Some(Scalar::Bool);
    let held = |position, field: &'a Option<Field>, spelling| {
        let parts = field.as_ref().zip(spelling);
        parts.map(|(field, spelling)| {
            let arm = LabelledLvalue {
                spot: here.spot.arm(of, field, spelling),
                label: format!("{}.{}", here.label, field.name),
            };
            match boxed.contains(id, position) {
                true => ArmValue {
                    here: arm.inside(arm.spot.target(of)),
                    pointer: Some(arm),
                },
                false => ArmValue {
                    here: arm,
                    pointer: None,
                },
            }
        })
    };
    match is_boolean {
        true => w.line(format!("switch ({} ? 1 : 0) {{", discriminant.value())),
        false => w.line(format!("switch ({}) {{", discriminant.value())),
    }
    for (index, definition) in union.arms.iter().enumerate() {
        for (label, case) in written.labels[index].iter().zip(&definition.cases) {
            match is_boolean {
                true => w.line(format!("case {}:", case.value)),
                false => w.line(format!("case {label}:")),
            }
        }
        w.indented(|w| {
            if let Some(holds) = held(index, &definition.field, written.arms[index].as_ref()) {
                arm(w, &holds, &bodies.0[index].body);
            }
            w.line("break;");
        });
    }
    w.line("default:");
    w.indented(|w| match (bodies.1, &union.default, &written.default) {
        (Some(body), Some(field), Some(spelling)) => {
            if let Some(holds) = held(union.arms.len(), field, spelling.as_ref()) {
                arm(w, &holds, body);
            }
            w.line("break;");
        }
        _ => w.line(otherwise),
    });
    w.line("}");
}

/// Writes a number of so many bytes.
pub fn put_number(bytes: u32, to: &str, value: &str, swapped: &str) -> String {
    match bytes {
        1 => format!("tenon_put1 ({to}, {value})"),
        bytes => format!("tenon_put{bytes} ({to}, {value}, {swapped})"),
    }
}

/// Reads a number of so many bytes.
pub fn get_number(bytes: u32, from: &str, swapped: &str) -> String {
    match bytes {
        1 => format!("tenon_get1 ({from})"),
        bytes => format!("tenon_get{bytes} ({from}, {swapped})"),
    }
}

/// `base + offset`.
pub fn plus(base: &str, offset: u64) -> String {
    match offset {
        0 => base.to_owned(),
        offset => format!("{base} + {offset}"),
    }
}

/// `if (condition) return false;`
pub fn refuse_if(w: &mut SourceWriter, condition: &str) {
    w.line(format!("if ({condition})"));
    w.indented(|w| w.line("return false;"));
}

fn verb(way: CodecDirection) -> &'static str {
    match way {
        CodecDirection::Encode => "encode",
        CodecDirection::Decode => "decode",
    }
}

fn stream_name(way: CodecDirection) -> &'static str {
    match way {
        CodecDirection::Encode => "out",
        CodecDirection::Decode => "in",
    }
}

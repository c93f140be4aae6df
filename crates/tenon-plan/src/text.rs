//! The text form of a body: one operation a line, what is inside an operation indented below
//! it, and places by the names of their fields. `it` is the value that a body is about.

use std::fmt::{self, Write};

use tenon_schema::{Case, Field, Schema};

use crate::item::{Blittable, Place, Scalar};
use crate::layout::Layout;
use crate::op::{Arm, Count, ElementSize, Op, WireSize};
use crate::reserved::{BlockHole, BlockPart, FixedItem, FixedKind, ReservedBlock};

/// Returns the text form of `body`, with `layout` as its `it`. Lines start with `indent` times four
/// spaces and end with a line feed.
pub fn text(schema: &Schema, layout: Layout<'_>, body: &[Op], indent: usize) -> String {
    let mut printer = BodyPrinter {
        schema,
        out: String::new(),
        indent,
    };
    printer.body(layout, body);
    printer.out
}

struct BodyPrinter<'a> {
    schema: &'a Schema,
    out: String,
    indent: usize,
}

impl<'a> BodyPrinter<'a> {
    fn body(&mut self, layout: Layout<'_>, body: &[Op]) {
        for op in body {
            self.op(layout, op);
        }
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        let indent = self.indent * 4;
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn inside(&mut self, layout: Layout<'_>, body: &[Op]) {
        self.indent += 1;
        self.body(layout, body);
        self.indent -= 1;
    }

    fn op(&mut self, layout: Layout<'_>, op: &Op) {
        let at = op.place().map(|place| self.place(layout, place));
        let at = at.unwrap_or_default();
        match op {
            Op::Reserve(block) => {
                self.line(format_args!("reserve {}", block.bytes));
                self.indent += 1;
                self.parts(layout, block);
                self.indent -= 1;
            }
            Op::Align { to, before: 0 } => self.line(format_args!("align {to}")),
            Op::Align { to, before } => self.line(format_args!("align {to} before {before}")),
            Op::BlitCounted { item, bound, .. } => {
                self.line(format_args!("blit {at}: {} {item}", DisplayBound(*bound)));
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => {
                let bytes = element.bytes;
                self.line(format_args!("elements {at}: {count} of {bytes} bytes"));
                let of = layout.at(self.schema, place);
                let of = of.and_then(|of| of.element(self.schema));
                self.indent += 1;
                self.parts(of.unwrap_or(Layout::Nothing), element);
                self.indent -= 1;
            }
            Op::CopyCounted { bound, text, .. } => {
                let kind = if *text { "string" } else { "opaque" };
                self.line(format_args!("copy {at}: {kind}{}", DisplayBound(*bound)));
            }
            Op::PutCounted { scalar, bound, .. } => {
                let scalar = self.scalar(*scalar);
                self.line(format_args!("put {at}: {scalar}{}", DisplayBound(*bound)));
            }
            Op::Loop {
                place,
                count,
                element,
                body,
            } => {
                self.line(format_args!("loop {at}: {count} of {element}"));
                self.element(layout.at(self.schema, place), body);
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let discriminant = self.scalar(*discriminant);
                self.line(format_args!("switch {at}: {discriminant}"));
                self.indent += 1;
                self.arms(layout.at(self.schema, place), arms, default.as_deref());
                self.indent -= 1;
            }
            Op::Optional { place, body } => {
                self.line(format_args!("optional {at}"));
                self.element(layout.at(self.schema, place), body);
            }
            Op::List {
                first_bare,
                element,
                ..
            } => {
                let element = &self.schema.type_def(*element).name;
                let bare = if *first_bare { ", first bare" } else { "" };
                self.line(format_args!("list {at}: {element}{bare}"));
            }
            Op::Call { plan: ty, .. } => {
                let name = &self.schema.type_def(*ty).name;
                self.line(format_args!("call {at}: {name}"));
            }
            Op::External { ty, .. } => {
                let name = &self.schema.type_def(*ty).name;
                self.line(format_args!("external {at}: {name}"));
            }
        }
    }

    /// The parts of a block.
    fn parts(&mut self, layout: Layout<'_>, block: &ReservedBlock) {
        for part in &block.parts {
            match part {
                BlockPart::Hole(BlockHole { offset, bytes }) => {
                    self.line(format_args!("zero {bytes} @{offset}"));
                }
                BlockPart::Item(item) => self.fixed(layout, item),
            }
        }
    }

    fn fixed(&mut self, layout: Layout<'_>, item: &FixedItem) {
        let (at, offset) = (self.place(layout, &item.place), item.offset);
        match &item.kind {
            FixedKind::Put { scalar } => {
                let scalar = self.scalar(*scalar);
                self.line(format_args!("put {at}: {scalar} @{offset}"));
            }
            FixedKind::PutArray { scalar, count } => {
                let scalar = self.scalar(*scalar);
                self.line(format_args!("put {at}: {scalar}[{count}] @{offset}"));
            }
            FixedKind::Copy { bytes } => {
                self.line(format_args!("copy {at}: opaque[{bytes}] @{offset}"));
            }
            FixedKind::Blit { item, count: 1 } => {
                self.line(format_args!("blit {at}: {item} @{offset}"));
            }
            FixedKind::Blit { item, count } => {
                self.line(format_args!("blit {at}: [{count}] {item} @{offset}"));
            }
        }
    }

    fn element(&mut self, of: Option<Layout<'_>>, body: &[Op]) {
        let element = of.and_then(|of| of.element(self.schema));
        self.inside(element.unwrap_or(Layout::Nothing), body);
    }

    fn arms(&mut self, of: Option<Layout<'_>>, arms: &[Arm], default: Option<&[Op]>) {
        let union = of.and_then(|of| of.union(self.schema));
        for (position, arm) in arms.iter().enumerate() {
            let declared = union.and_then(|union| union.arms.get(position));
            let cases = declared.map(|arm| arm.cases.as_slice()).unwrap_or_default();
            let head = format!("case {}", labels(&arm.values, cases));
            self.arm(
                &head,
                declared.and_then(|arm| arm.field.as_ref()),
                &arm.body,
            );
        }
        if let Some(body) = default {
            let field = union.and_then(|union| union.default.as_ref()?.as_ref());
            self.arm("default", field, body);
        }
    }

    fn arm(&mut self, head: &str, field: Option<&Field>, body: &[Op]) {
        let name = field.map_or("void", |field| &field.name);
        self.line(format_args!("{head}: {name}"));
        self.inside(Layout::of_arm(field), body);
    }

    fn place(&self, layout: Layout<'_>, place: &Place) -> String {
        match place.0.is_empty() {
            true => "it".to_owned(),
            false => layout.path(self.schema, place),
        }
    }

    fn scalar(&self, scalar: Scalar) -> &'a str {
        match scalar {
            Scalar::I32 => "i32",
            Scalar::U32 => "u32",
            Scalar::I64 => "i64",
            Scalar::U64 => "u64",
            Scalar::I16 => "i16",
            Scalar::U16 => "u16",
            Scalar::I8 => "i8",
            Scalar::U8 => "u8",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::F128 => "f128",
            Scalar::Bool => "bool",
            Scalar::Enum(id) => &self.schema.type_def(id).name,
        }
    }
}

fn labels(values: &[i32], cases: &[Case]) -> String {
    let labels = values.iter().enumerate().map(|(position, value)| {
        let number = value.to_string();
        match cases.get(position) {
            Some(case) if case.label != number => format!("{} ({number})", case.label),
            _ => number,
        }
    });
    labels.collect::<Vec<_>>().join(", ")
}

/// `<n>`, or `<>` for no bound.
struct DisplayBound(u32);

impl fmt::Display for DisplayBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u32::MAX => f.write_str("<>"),
            bound => write!(f, "<{bound}>"),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(count) => write!(f, "[{count}]"),
            Self::Counted(bound) => write!(f, "{}", DisplayBound(bound)),
        }
    }
}

impl fmt::Display for ElementSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.extent {
            Some(extent) => write!(f, "{} bytes", extent.bytes),
            None => write!(f, "at least {} bytes", self.min),
        }
    }
}

/// Writes how many numbers of how many bytes it consists of.
impl fmt::Display for Blittable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.runs.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} of {}", run.units, run.unit)?;
        }
        Ok(())
    }
}

impl fmt::Display for WireSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{max} bytes"),
            Some(max) => write!(f, "{} to {max} bytes", self.min),
            None => write!(f, "{} bytes or more", self.min),
        }
    }
}

//! Marshalling code. What is moved, in which order and with which checks comes from the plan
//! alone; here each operation becomes a call of `xdr`, for encoding in [`encode`] and for
//! decoding in [`decode`].

mod decode;
mod encode;
mod parts;

use tenon_plan::{Place, Plan};
use tenon_schema::{TypeId, TypeKind};

use super::code::{Block, Expr, Head, Statement};
use super::names::TypeNames;
use super::shape::Shape;
use super::{Rust, variants};
use crate::writer::{Hole, Writer};

pub use decode::{element_function as element_decoder, parameters as decode_parameters};
pub use encode::{parameters as encode_parameters, result as encode_result};
pub use parts::{PART, is_wide};

/// What a body is about, and how the code around it calls that.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The items that places lead to: `None` if the body is about one item as a whole.
    fields: Option<Vec<Item>>,
    /// The item as a whole.
    whole: Item,
    /// The name of a record for errors that none of its fields is to blame for alone.
    label: Option<String>,
}

/// An item that an operation moves.
#[derive(Debug, Clone)]
pub struct Item {
    /// The expression for the value.
    pub value: String,
    /// The expression for a reference to it.
    pub reference: String,
    /// Where methods are called on it.
    pub receiver: String,
    /// The name of the local variable or the field that it is decoded into.
    pub name: String,
    /// How it lives in memory.
    pub shape: Shape,
    /// The name for errors; none inside of an item that has one.
    pub label: Option<String>,
}

impl Item {
    /// What `name`, a reference, refers to.
    pub fn behind(name: &str, shape: Shape, label: Option<String>) -> Self {
        Self {
            value: format!("*{name}"),
            reference: name.to_owned(),
            receiver: name.to_owned(),
            name: name.to_owned(),
            shape,
            label,
        }
    }

    /// A value, an owned variable or a field.
    pub fn owned(value: String, name: &str, shape: Shape, label: Option<String>) -> Self {
        Self {
            reference: format!("&{value}"),
            receiver: value.clone(),
            value,
            name: name.to_owned(),
            shape,
            label,
        }
    }

    /// A field of the item, which is a struct.
    fn part(&self, rust: &Rust<'_>, position: u32) -> Self {
        let Shape::Named(id) = self.shape.real() else {
            unreachable!("{:?} has no fields", self.shape)
        };
        let name = &rust.names.of_type(*id).parts[position as usize];
        let (field, shape) = rust.shapes.fields(*id).swap_remove(position as usize);
        let label = self.label.as_ref();
        let label = label.map(|label| format!("{label}.{}", field.name));
        Self::owned(format!("{}.{name}", self.receiver), name, shape, label)
    }
}

impl Subject {
    /// One item.
    pub fn whole(item: Item) -> Self {
        Self {
            fields: None,
            label: item.label.clone(),
            whole: item,
        }
    }

    /// A record.
    pub fn record(name: &str, fields: Vec<Item>) -> Self {
        Self {
            label: Some(name.to_owned()),
            whole: Item::behind("self", Shape::Opaque, None),
            fields: Some(fields),
        }
    }

    /// The item at `place`.
    fn item(&self, rust: &Rust<'_>, place: &Place) -> Item {
        let (item, inside) = self.outer(place);
        let part = |item: Item, position: &u32| item.part(rust, *position);
        inside.iter().fold(item.clone(), part)
    }

    /// The item that `place` is in, and the way from there.
    fn outer<'p>(&self, place: &'p Place) -> (&Item, &'p [u32]) {
        match (place.0.as_slice(), &self.fields) {
            ([field, inside @ ..], Some(fields)) => (&fields[*field as usize], inside),
            (inside, _) => (&self.whole, inside),
        }
    }
}

/// Writes what makes the type `id` something that can be sent: `impl Xdr`, or functions for a
/// typedef.
pub fn write(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    let plan = rust.plans.of_type(id);
    match &rust.schema.type_def(id).kind {
        TypeKind::Enum(_) => write_enum(w, rust, id),
        TypeKind::Struct(fields) if parts::is_wide(fields.len()) => {
            parts::write_wide(w, rust, id, plan);
        }
        TypeKind::Struct(_) => {
            let subject = record_of(rust, id);
            let bodies = (
                encode::record(rust, plan, &subject),
                decode::record(rust, plan, &subject),
            );
            write_impl(w, rust, id, plan, bodies);
        }
        TypeKind::Union(union) => {
            let variants = variants::of(rust, id, union);
            let bodies = (
                encode::union(rust, plan, &variants),
                decode::union(rust, plan, &variants),
            );
            write_impl(w, rust, id, plan, bodies);
        }
        TypeKind::Typedef(to) => write_functions(w, rust, id, rust.shapes.target(id, to)),
        TypeKind::External => {}
    }
}

/// The fields of the struct `id`.
fn record_of(rust: &Rust<'_>, id: TypeId) -> Subject {
    let def = rust.schema.type_def(id);
    let names = &rust.names.of_type(id).parts;
    let fields = rust.shapes.fields(id).into_iter().zip(names);
    let items = fields.map(|((field, shape), name)| {
        let label = format!("{}.{}", def.name, field.name);
        Item::owned(format!("self.{name}"), name, shape, Some(label))
    });
    Subject::record(&def.name, items.collect())
}

fn write_impl(w: &mut Writer, rust: &Rust<'_>, id: TypeId, plan: &Plan, bodies: (Block, Block)) {
    rust.uses(&[
        "wire::Xdr",
        "wire::Encoder",
        "wire::EncodeError",
        "wire::Decoder",
        "wire::DecodeError",
    ]);
    let (encode, decode) = bodies;
    let out = parameter("out", uses_cursor(&encode));
    let input = parameter("input", uses_cursor(&decode));
    w.skeleton(
        "
impl Xdr for $name$ {
    const WIRE_MIN: usize = $wire_min$;

    fn encode(&self, $out$: &mut Encoder<'_>) -> Result<(), EncodeError> {
        $encode$
    }

    fn decode($input$: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        $decode$
    }
}
",
        &[
            ("name", Hole::Text(&rust.names.of_type(id).name)),
            ("wire_min", Hole::Text(&plan.size.min.to_string())),
            ("out", Hole::Text(out)),
            ("input", Hole::Text(input)),
            ("encode", Hole::Lines(&|w| encode.write(w))),
            ("decode", Hole::Lines(&|w| decode.write(w))),
        ],
    );
}

/// Whether a body moves anything.
fn uses_cursor(body: &Block) -> bool {
    let nothing =
        matches!(&body.value, Some(Expr::Text(text)) if text == "Ok(())" || text == "Ok(Self {})");
    !(nothing && body.statements.is_empty())
}

fn parameter(name: &'static str, is_used: bool) -> &'static str {
    match (is_used, name) {
        (true, name) => name,
        (false, "out") => "_out",
        (false, _) => "_input",
    }
}

fn write_enum(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    rust.uses(&["wire::Word", "wire::DecodeErrorKind"]);
    rust.uses(&[
        "wire::Xdr",
        "wire::Encoder",
        "wire::EncodeError",
        "wire::Decoder",
        "wire::DecodeError",
        "wire::xdr",
    ]);
    w.skeleton(
        "
impl Word for $name$ {
    fn to_word(self) -> u32 {
        self as u32
    }

    fn from_word(word: u32, _strict: bool) -> Result<Self, DecodeErrorKind> {
        Self::try_from(word as i32)
    }
}

impl Xdr for $name$ {
    const WIRE_MIN: usize = 4;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        xdr::put_word(out.block::<4>(), 0, *self);
        Ok(())
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        xdr::next_word(input)
    }
}
",
        &[("name", Hole::Text(&rust.names.of_type(id).name))],
    );
}

fn write_functions(w: &mut Writer, rust: &Rust<'_>, id: TypeId, shape: Shape) {
    rust.uses(&[
        "wire::Encoder",
        "wire::EncodeError",
        "wire::Decoder",
        "wire::DecodeError",
    ]);
    let (plan, names) = (rust.plans.of_type(id), rust.names.of_type(id));
    let label = rust.schema.type_def(id).name.clone();
    let subject = Subject::whole(Item::behind("value", shape, Some(label)));
    write_function_doc(
        w,
        "Appends",
        names,
        "The value breaks a bound of the interface.",
    );
    let head = Head {
        name: format!("pub fn {}", names.encode),
        parameters: vec![
            format!("value: &{}", names.name),
            "out: &mut Encoder<'_>".to_owned(),
        ],
        result: "Result<(), EncodeError>".to_owned(),
    };
    head.write_function(w, &encode::item(rust, &plan.body, &subject));
    w.gap();
    write_function_doc(w, "Reads", names, "The bytes are not a value of this type.");
    let head = Head {
        name: format!("pub fn {}", names.decode),
        parameters: vec!["input: &mut Decoder<'_>".to_owned()],
        result: format!("Result<{}, DecodeError>", names.name),
    };
    head.write_function(w, &decode::item(rust, &plan.body, &subject));
}

fn write_function_doc(w: &mut Writer, does: &str, names: &TypeNames, errors: &str) {
    w.line(format!("/// {does} a [`{}`].", names.name));
    w.line("///");
    w.line("/// # Errors");
    w.line(format!("/// {errors}"));
}

fn bound_text(bound: u32) -> Expr {
    Expr::text(match bound {
        u32::MAX => "u32::MAX".to_owned(),
        bound => bound.to_string(),
    })
}

/// Names the item in the errors of `expr`.
fn labelled(rust: &Rust<'_>, expr: Expr, label: Option<&String>) -> Expr {
    match label {
        Some(label) => {
            rust.uses(&["wire::Field"]);
            Expr::InField(Box::new(expr), label.clone())
        }
        None => expr,
    }
}

/// `enter` before the statements of a recursive type and `leave` behind them, `value` last.
fn nested(cursor: &str, mut body: Block, value: Expr) -> Block {
    let enter = Expr::Try(Box::new(Expr::text(format!("{cursor}.enter()"))));
    body.statements.insert(0, Statement::Do(enter));
    let leave = Statement::Do(Expr::text(format!("{cursor}.leave()")));
    body.statements.push(leave);
    body.value = Some(value);
    body
}

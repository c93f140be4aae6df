//! Marshalling code. What is moved, in which order and with which checks comes from the plan
//! alone; here each operation becomes a method of a cursor, for encoding in [`encode`] and for
//! decoding in [`decode`].

mod decode;
mod encode;
mod parts;
mod read;
mod steps;

use tenon_plan::links::is_link;
use tenon_plan::{Body, Op, Place, Plan, Scalar};
use tenon_schema::{TypeId, TypeKind};

use super::code::{Block, Expr, Head, Statement};
use super::names::{Functions, TypeNames};
use super::shape::Shape;
use super::{Form, Rust, variants};
use crate::writer::{Hole, Writer};

pub use parts::{PART, is_wide};

/// Most operations of a type whose functions are worth to become part of their callers.
const SMALL: usize = 8;

/// The file in the making, and the representation that code is being written for.
#[derive(Clone, Copy)]
pub struct Marshalling<'a> {
    /// The file.
    pub rust: &'a Rust<'a>,
    /// The representation.
    pub form: &'a Form<'a>,
    /// Whether what is read borrows what it can.
    pub view: bool,
}

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
    /// Whether it is an `Option` of a reference to what its shape says it holds.
    pub is_lent: bool,
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
            is_lent: false,
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
            is_lent: false,
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

    /// Whether two operations move parts of one item.
    fn is_one(&self, one: &Op, next: &Op) -> bool {
        let is_part = |op: &Op| op.place().is_some_and(|place| !place.0.is_empty());
        match self.fields {
            Some(_) => decode::is_together(one, next, 0),
            None => is_part(one) && is_part(next),
        }
    }

    /// The item that `place` is in, and the way from there.
    fn outer<'p>(&self, place: &'p Place) -> (&Item, &'p [u32]) {
        match (place.0.as_slice(), &self.fields) {
            ([field, inside @ ..], Some(fields)) => (&fields[*field as usize], inside),
            (inside, _) => (&self.whole, inside),
        }
    }
}

impl<'a> Marshalling<'a> {
    /// Of values that own what they hold.
    pub fn of(rust: &'a Rust<'a>, form: &'a Form<'a>) -> Self {
        let view = false;
        Self { rust, form, view }
    }

    /// Of values that borrow what they can.
    pub fn view(self) -> Self {
        let view = true;
        Self { view, ..self }
    }
}

impl Marshalling<'_> {
    /// Writes what makes the type `id` something that can be sent: `impl Marshal`, or functions
    /// for a typedef.
    pub fn write(self, w: &mut Writer, id: TypeId) {
        let plan = self.form.plans.of_type(id);
        match &self.rust.schema.type_def(id).kind {
            TypeKind::Struct(_) if !is_block(plan) && parts::is_wide(self.count(id)) => {
                self.write_wide(w, id, plan);
            }
            TypeKind::Struct(_) => {
                let subject = self.record_of(id);
                let bodies = (
                    self.encode_record(plan, &subject),
                    self.decode_record(plan, &subject),
                );
                self.write_impl(w, id, plan, bodies);
            }
            TypeKind::Union(union) => {
                let variants = variants::of(self.rust, id, union);
                let bodies = (
                    self.encode_union(plan, &variants),
                    self.decode_union(plan, &variants),
                );
                self.write_impl(w, id, plan, bodies);
            }
            TypeKind::Enum(_) => {
                let put = Statement::Do(Expr::text("out.put_word(*self)"));
                let encode = Block {
                    statements: vec![put],
                    value: Some(Expr::text("Ok(())")),
                };
                let decode = Block::value(Expr::text("input.get_word()"));
                self.write_impl(w, id, plan, (encode, decode));
            }
            TypeKind::Typedef(to) => {
                self.write_functions(w, id, self.rust.shapes.target(id, to));
            }
            TypeKind::External => {}
        }
    }

    /// How many fields the struct `id` has.
    fn count(self, id: TypeId) -> usize {
        self.rust.names.of_type(id).parts.len()
    }

    /// The fields of the struct `id`.
    pub fn record_of(self, id: TypeId) -> Subject {
        let def = self.rust.schema.type_def(id);
        let names = &self.rust.names.of_type(id).parts;
        let fields = self.rust.shapes.fields(id).into_iter().zip(names);
        let items = fields.map(|((field, shape), name)| {
            let label = format!("{}.{}", def.name, field.name);
            Item::owned(format!("self.{name}"), name, shape, Some(label))
        });
        Subject::record(&def.name, items.collect())
    }

    fn write_impl(self, w: &mut Writer, id: TypeId, plan: &Plan, bodies: (Block, Block)) {
        self.rust.uses(&[
            "wire::Marshal",
            "wire::Encoder",
            "wire::EncodeError",
            "wire::Decoder",
            "wire::DecodeError",
        ]);
        self.rust.uses(&self.form.marker.imports);
        let (encode, decode) = bodies;
        let out = parameter("out", uses_cursor(&encode));
        let input = parameter("input", uses_cursor(&decode));
        let marker = &self.form.marker;
        let inline = |w: &mut Writer| write_inline(w, plan);
        let is_element = is_link(self.rust.schema, id);
        let document = |w: &mut Writer, text: &str| {
            if is_element {
                w.line(text);
            }
        };
        w.skeleton(
            "
impl$generics$ Marshal<$marker$> for $name$ {
    const WIRE_MIN: usize = $wire_min$;
    $align$

    $encode_doc$
    $inline$
    fn encode(&self, $out$: &mut $encoder$) -> Result<(), EncodeError> {
        $encode$
    }

    $decode_doc$
    $inline$
    fn decode($input$: &mut $decoder$) -> Result<Self, DecodeError> {
        $decode$
    }
}
",
            &[
                ("generics", Hole::Text(&marker.generics())),
                ("marker", Hole::Text(&marker.path)),
                ("name", Hole::Text(&self.rust.names.of_type(id).name)),
                ("wire_min", Hole::Text(&plan.size.min.to_string())),
                (
                    "align",
                    Hole::Lines(&|w| {
                        if plan.align > 1 {
                            w.line(format!("const ALIGN: usize = {};", plan.align));
                        }
                    }),
                ),
                (
                    "encode_doc",
                    Hole::Lines(&|w| document(w, "/// Appends this element alone, not a list.")),
                ),
                (
                    "decode_doc",
                    Hole::Lines(&|w| document(w, "/// Reads one element alone, not a list.")),
                ),
                ("inline", Hole::Lines(&inline)),
                ("out", Hole::Text(out)),
                ("input", Hole::Text(input)),
                ("encoder", Hole::Text(&marker.cursor("Encoder"))),
                ("decoder", Hole::Text(&marker.cursor("Decoder"))),
                ("encode", Hole::Lines(&|w| encode.write(w))),
                ("decode", Hole::Lines(&|w| decode.write(w))),
            ],
        );
    }

    fn write_functions(self, w: &mut Writer, id: TypeId, shape: Shape) {
        self.rust.uses(&[
            "wire::Encoder",
            "wire::EncodeError",
            "wire::Decoder",
            "wire::DecodeError",
        ]);
        let (plan, names) = (self.form.plans.of_type(id), self.rust.names.of_type(id));
        let Functions { encode, decode, .. } = self.functions(names);
        let marker = &self.form.marker;
        if !marker.is_default() {
            self.rust.uses(&marker.imports);
        }
        let label = self.rust.schema.type_def(id).name.clone();
        let subject = Subject::whole(Item::behind("value", shape, Some(label)));
        write_function_doc(
            w,
            "Appends",
            names,
            "The value breaks a bound of the interface.",
        );
        let head = Head {
            name: format!("pub fn {encode}{}", marker.generics()),
            parameters: vec![
                format!("value: &{}", names.name),
                format!("out: &mut {}", marker.cursor("Encoder")),
            ],
            result: "Result<(), EncodeError>".to_owned(),
        };
        head.write_function(w, &self.encode_item(&plan.body, &subject));
        w.gap();
        write_function_doc(w, "Reads", names, "The bytes are not a value of this type.");
        let head = Head {
            name: format!("pub fn {decode}{}", marker.generics()),
            parameters: vec![format!("input: &mut {}", marker.cursor("Decoder"))],
            result: format!("Result<{}, DecodeError>", names.name),
        };
        head.write_function(w, &self.decode_item(&plan.body, &subject));
    }

    /// The functions of a typedef in this representation.
    pub fn functions(self, names: &TypeNames) -> &Functions {
        let mut forms = self.rust.forms.iter().zip(&names.functions);
        match forms.find(|(form, _)| std::ptr::eq(*form, self.form)) {
            Some((_, functions)) => functions,
            // Those that serve all representations.
            None => &names.functions[0],
        }
    }

    /// Whether not every pattern of bytes is a value.
    fn is_checked(self, scalar: Scalar) -> bool {
        self.form.plans.representation.is_checked(scalar)
    }

    /// Whether so many opaque bytes are followed by padding.
    fn is_padded(self, bytes: u32) -> bool {
        self.form.plans.representation.padded(bytes.into()) != u64::from(bytes)
    }

    /// Names the item in the errors of `expr`.
    fn labelled(self, expr: Expr, label: Option<&String>) -> Expr {
        match label {
            Some(label) => {
                self.rust.uses(&["wire::Field"]);
                Expr::InField(Box::new(expr), label.clone())
            }
            None => expr,
        }
    }
}

/// Whether a plan moves its value as one block of memory.
pub fn is_block(plan: &Plan) -> bool {
    match plan.body.as_slice() {
        [Op::Reserve { .. }, Op::Blit { place, .. }] => place.0.is_empty(),
        _ => false,
    }
}

/// How many operations a body has, those inside counted.
fn operations(body: &Body) -> usize {
    let inside = body.iter().map(|op| match op {
        Op::Loop { body, .. } | Op::PutElements { body, .. } | Op::Optional { body, .. } => {
            1 + operations(body)
        }
        Op::Switch { arms, default, .. } => {
            let arms = arms.iter().map(|arm| &arm.body).chain(default);
            1 + arms.map(operations).sum::<usize>()
        }
        Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => 1,
        Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } | Op::BlitCounted { .. } => 1,
        Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::List { .. } => 1,
        Op::Call { .. } | Op::External { .. } => 1,
    });
    inside.sum()
}

/// Offers what moves a small type to whoever calls it.
pub fn write_inline(w: &mut Writer, plan: &Plan) {
    if !plan.recursive && operations(&plan.body) <= SMALL {
        w.line("#[inline]");
    }
}

/// Writes what makes the enum `id` a word.
pub fn write_word(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    rust.uses(&["wire::Word", "wire::DecodeErrorKind"]);
    w.skeleton(
        "
impl Word for $name$ {
    #[inline]
    fn to_word(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn from_word(word: u32, _strict: bool) -> Result<Self, DecodeErrorKind> {
        Self::try_from(word as i32)
    }
}
",
        &[("name", Hole::Text(&rust.names.of_type(id).name))],
    );
}

/// Whether a body moves anything.
pub fn uses_cursor(body: &Block) -> bool {
    let nothing =
        matches!(&body.value, Some(Expr::Text(text)) if text == "Ok(())" || text == "Ok(Self {})");
    !(nothing && body.statements.is_empty())
}

/// The name of a parameter, as one that is not used begins with `_`.
pub fn parameter(name: &'static str, is_used: bool) -> &'static str {
    match (is_used, name) {
        (true, name) => name,
        (false, "out") => "_out",
        (false, _) => "_input",
    }
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

/// `enter` before the statements of a recursive type and `leave` behind them, `value` last.
fn nested(cursor: &str, mut body: Block, value: Expr) -> Block {
    let enter = Expr::Try(Box::new(Expr::text(format!("{cursor}.enter()"))));
    body.statements.insert(0, Statement::Do(enter));
    let leave = Statement::Do(Expr::text(format!("{cursor}.leave()")));
    body.statements.push(leave);
    body.value = Some(value);
    body
}

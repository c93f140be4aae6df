//! Marshalling code. The items that are moved, their order and their checks come from the plan
//! alone; here each operation becomes a method of a cursor, for encoding in [`encode`] and for
//! decoding in [`decode`].

mod decode;
mod encode;
mod parts;
mod read;

use tenon_plan::links::is_link;
use tenon_plan::{Body, FixedItem, FixedKind, Op, Place, Plan, Scalar};
use tenon_schema::{TypeId, TypeKind};

use super::code::{BlockExpr, Expr, FunctionSignature, Statement};
use super::names::{TypeNames, TypedefFunctions};
use super::shape::TypeShape;
use super::{Form, RustFile, variants};
use crate::writer::{HoleContent, SourceWriter};

pub use parts::{PART, is_wide};

/// Most operations of a type with functions that are worth inlining into their callers.
const SMALL: usize = 8;

/// Generates the marshalling code of a file in one representation.
#[derive(Clone, Copy)]
pub struct MarshalGenerator<'a> {
    /// The file.
    pub rust: &'a RustFile<'a>,
    /// The representation.
    pub form: &'a Form<'a>,
    /// Set if decoded values borrow what they can.
    pub view: bool,
}

/// The items that places of a body lead to, with the expressions for them in the code around it.
#[derive(Debug, Clone)]
pub struct PlaceBindings {
    /// The items that places lead to: `None` if the body is about one item as a whole.
    fields: Option<Vec<ItemOperand>>,
    /// The item as a whole.
    whole: ItemOperand,
    /// The name of a record for errors that none of its fields is to blame for alone.
    label: Option<String>,
}

/// An item that an operation moves.
#[derive(Debug, Clone)]
pub struct ItemOperand {
    /// The expression for the value.
    pub value: String,
    /// The expression for a reference to it.
    pub reference: String,
    /// The expression that methods are called on.
    pub receiver: String,
    /// The name of the local variable or the field that it is decoded into.
    pub name: String,
    /// Its shape in memory.
    pub shape: TypeShape,
    /// The name for errors; none inside of an item that has one.
    pub label: Option<String>,
    /// Set if it is an `Option` of a reference to the value that its shape holds.
    pub is_lent: bool,
}

impl ItemOperand {
    /// The item that `name`, a reference, refers to.
    pub fn behind(name: &str, shape: TypeShape, label: Option<String>) -> Self {
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
    pub fn owned(value: String, name: &str, shape: TypeShape, label: Option<String>) -> Self {
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
    fn part(&self, rust: &RustFile<'_>, position: u32) -> Self {
        let id = self.shape.definition();
        let name = &rust.names.of_type(id).parts[position as usize];
        let (field, shape) = rust.shapes.fields(id).swap_remove(position as usize);
        let label = self.label.as_ref();
        let label = label.map(|label| format!("{label}.{}", field.name));
        Self::owned(format!("{}.{name}", self.receiver), name, shape, label)
    }
}

impl PlaceBindings {
    /// One item.
    pub fn whole(item: ItemOperand) -> Self {
        Self {
            fields: None,
            label: item.label.clone(),
            whole: item,
        }
    }

    /// A record.
    pub fn record(name: &str, fields: Vec<ItemOperand>) -> Self {
        Self {
            label: Some(name.to_owned()),
            whole: ItemOperand::behind("self", TypeShape::Opaque, None),
            fields: Some(fields),
        }
    }

    /// The item at `place`.
    fn item(&self, rust: &RustFile<'_>, place: &Place) -> ItemOperand {
        let (item, inside) = self.outer(place);
        let part = |item: ItemOperand, position: &u32| item.part(rust, *position);
        inside.iter().fold(item.clone(), part)
    }

    /// Returns whether two items are parts of one.
    fn is_one(&self, one: &FixedItem, next: &FixedItem) -> bool {
        let is_part = |item: &FixedItem| !item.place.0.is_empty();
        match self.fields {
            Some(_) => decode::is_together(one, next, 0),
            None => is_part(one) && is_part(next),
        }
    }

    /// The item that `place` is in, and the path from there.
    fn outer<'p>(&self, place: &'p Place) -> (&ItemOperand, &'p [u32]) {
        match (place.0.as_slice(), &self.fields) {
            ([field, inside @ ..], Some(fields)) => (&fields[*field as usize], inside),
            (inside, _) => (&self.whole, inside),
        }
    }
}

impl<'a> MarshalGenerator<'a> {
    /// Of values that own what they hold.
    pub fn of(rust: &'a RustFile<'a>, form: &'a Form<'a>) -> Self {
        let view = false;
        Self { rust, form, view }
    }

    /// Of values that borrow what they can.
    pub fn view(self) -> Self {
        let view = true;
        Self { view, ..self }
    }
}

impl MarshalGenerator<'_> {
    /// Writes the marshalling code of the type `id`: `impl Marshal`, or functions for a typedef.
    pub fn write(self, w: &mut SourceWriter, id: TypeId) {
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
                let encode = BlockExpr {
                    statements: vec![put],
                    value: Some(Expr::text("Ok(())")),
                };
                let decode = BlockExpr::value(Expr::text("input.get_word()"));
                self.write_impl(w, id, plan, (encode, decode));
            }
            TypeKind::Typedef(to) => {
                self.write_functions(w, id, self.rust.shapes.target(id, to));
            }
            TypeKind::External => {}
        }
    }

    /// Returns the number of fields of the struct `id`.
    fn count(self, id: TypeId) -> usize {
        self.rust.names.of_type(id).parts.len()
    }

    /// The fields of the struct `id`.
    pub fn record_of(self, id: TypeId) -> PlaceBindings {
        let def = self.rust.schema.type_def(id);
        let names = &self.rust.names.of_type(id).parts;
        let fields = self.rust.shapes.fields(id).into_iter().zip(names);
        let items = fields.map(|((field, shape), name)| {
            let label = format!("{}.{}", def.name, field.name);
            ItemOperand::owned(format!("self.{name}"), name, shape, Some(label))
        });
        PlaceBindings::record(&def.name, items.collect())
    }

    fn write_impl(
        self,
        w: &mut SourceWriter,
        id: TypeId,
        plan: &Plan,
        bodies: (BlockExpr, BlockExpr),
    ) {
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
        let inline = |w: &mut SourceWriter| write_inline(w, plan);
        let is_element = is_link(self.rust.schema, id);
        let document = |w: &mut SourceWriter, text: &str| {
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
                ("generics", HoleContent::Text(&marker.generics())),
                ("marker", HoleContent::Text(&marker.path)),
                ("name", HoleContent::Text(&self.rust.names.of_type(id).name)),
                ("wire_min", HoleContent::Text(&plan.size.min.to_string())),
                (
                    "align",
                    HoleContent::Lines(&|w| {
                        if plan.align > 1 {
                            w.line(format!("const ALIGN: usize = {};", plan.align));
                        }
                    }),
                ),
                (
                    "encode_doc",
                    HoleContent::Lines(&|w| {
                        document(w, "/// Appends this element alone, not a list.")
                    }),
                ),
                (
                    "decode_doc",
                    HoleContent::Lines(&|w| {
                        document(w, "/// Reads one element alone, not a list.")
                    }),
                ),
                ("inline", HoleContent::Lines(&inline)),
                ("out", HoleContent::Text(out)),
                ("input", HoleContent::Text(input)),
                ("encoder", HoleContent::Text(&marker.cursor("Encoder"))),
                ("decoder", HoleContent::Text(&marker.cursor("Decoder"))),
                ("encode", HoleContent::Lines(&|w| encode.write(w))),
                ("decode", HoleContent::Lines(&|w| decode.write(w))),
            ],
        );
    }

    fn write_functions(self, w: &mut SourceWriter, id: TypeId, shape: TypeShape) {
        self.rust.uses(&[
            "wire::Encoder",
            "wire::EncodeError",
            "wire::Decoder",
            "wire::DecodeError",
        ]);
        let (plan, names) = (self.form.plans.of_type(id), self.rust.names.of_type(id));
        let TypedefFunctions { encode, decode, .. } = self.functions(names);
        let marker = &self.form.marker;
        if !marker.is_default() {
            self.rust.uses(&marker.imports);
        }
        let label = self.rust.schema.type_def(id).name.clone();
        let subject = PlaceBindings::whole(ItemOperand::behind("value", shape, Some(label)));
        write_function_doc(
            w,
            "Appends",
            names,
            "The value breaks a bound of the interface.",
        );
        let head = FunctionSignature {
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
        let head = FunctionSignature {
            name: format!("pub fn {decode}{}", marker.generics()),
            parameters: vec![format!("input: &mut {}", marker.cursor("Decoder"))],
            result: format!("Result<{}, DecodeError>", names.name),
        };
        head.write_function(w, &self.decode_item(&plan.body, &subject));
    }

    /// The functions of a typedef in this representation.
    pub fn functions(self, names: &TypeNames) -> &TypedefFunctions {
        let mut forms = self.rust.forms.iter().zip(&names.functions);
        match forms.find(|(form, _)| std::ptr::eq(*form, self.form)) {
            Some((_, functions)) => functions,
            // Those that serve all representations.
            None => &names.functions[0],
        }
    }

    /// Returns whether not every pattern of bytes is a value.
    fn is_checked(self, scalar: Scalar) -> bool {
        self.form.plans.representation.is_checked(scalar)
    }

    /// Returns whether so many opaque bytes are followed by padding.
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

/// Returns the discriminant of a union that has this plan, and the bodies of its arms, that of the default one last.
fn switch_of(plan: &Plan) -> (Scalar, Vec<&Body>) {
    let [
        Op::Switch {
            discriminant,
            arms,
            default,
            ..
        },
    ] = plan.body.as_slice()
    else {
        unreachable!("the plan of a union is a switch, or the verifier refuses it")
    };
    let bodies = arms.iter().map(|arm| &arm.body).chain(default);
    (*discriminant, bodies.collect())
}

/// Returns whether a plan moves its value as one block of memory.
pub fn is_block(plan: &Plan) -> bool {
    match plan.body.as_slice() {
        [Op::Reserve(block)] => block.only().is_some_and(|only| {
            only.place.0.is_empty() && matches!(only.kind, FixedKind::Blit { .. })
        }),
        _ => false,
    }
}

/// Returns the number of operations of a body, nested ones included.
fn operations(body: &Body) -> usize {
    let inside = body.iter().map(|op| match op {
        Op::Loop { body, .. } | Op::Optional { body, .. } => 1 + operations(body),
        Op::PutElements { element, .. } => 1 + element.parts.len(),
        Op::Switch { arms, default, .. } => {
            let arms = arms.iter().map(|arm| &arm.body).chain(default);
            1 + arms.map(operations).sum::<usize>()
        }
        Op::Reserve(_) | Op::Align { .. } | Op::BlitCounted { .. } => op.steps(),
        Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::List { .. } => 1,
        Op::Call { .. } | Op::External { .. } => 1,
    });
    inside.sum()
}

/// Marks the functions of a small type `#[inline]`.
pub fn write_inline(w: &mut SourceWriter, plan: &Plan) {
    if !plan.recursive && operations(&plan.body) <= SMALL {
        w.line("#[inline]");
    }
}

/// Writes the implementation of `Word` for the enum `id`.
pub fn write_word(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
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
        &[("name", HoleContent::Text(&rust.names.of_type(id).name))],
    );
}

/// Returns whether a body moves anything.
pub fn uses_cursor(body: &BlockExpr) -> bool {
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

fn write_function_doc(w: &mut SourceWriter, does: &str, names: &TypeNames, errors: &str) {
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
fn nested(cursor: &str, mut body: BlockExpr, value: Expr) -> BlockExpr {
    let enter = Expr::Try(Box::new(Expr::text(format!("{cursor}.enter()"))));
    body.statements.insert(0, Statement::Do(enter));
    let leave = Statement::Do(Expr::text(format!("{cursor}.leave()")));
    body.statements.push(leave);
    body.value = Some(value);
    body
}

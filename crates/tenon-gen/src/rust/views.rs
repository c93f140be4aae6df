//! Views: for each type that holds something worth borrowing another one beside it, whose values
//! borrow strings, opaque data and arrays of numbers from the message that they are read from.

use std::collections::HashSet;

use tenon_schema::{TypeId, TypeKind};

use super::Rust;
use super::code::{Block, Expr, Head};
use super::marshal::{self, Item, Marshalling, Subject};
use super::shape::Shape;
use super::variants::{self, Variants};
use crate::writer::{Hole, Writer};

/// Writes the view of the type `id`, if it has one: its declaration, how it becomes a value that
/// owns what it holds, and how it is read in each representation.
pub fn write(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    if !rust.borrows_inside(id) {
        return;
    }
    match &rust.schema.type_def(id).kind {
        TypeKind::Struct(_) => write_struct(w, rust, id),
        TypeKind::Union(union) => write_union(w, rust, id, &variants::of(rust, id, union)),
        TypeKind::Typedef(to) => {
            let shape = rust.shapes.target(id, to);
            for form in rust.forms_of(id) {
                write_function(w, Marshalling::of(rust, form).view(), id, &shape);
            }
        }
        TypeKind::Enum(_) | TypeKind::External => {}
    }
}

impl Rust<'_> {
    /// Whether values of a type hold something that a view borrows.
    pub(super) fn borrows_inside(&self, id: TypeId) -> bool {
        let mut known = self.borrowing.borrow_mut();
        known.get_or_insert_with(|| borrowing(self)).contains(&id)
    }

    /// Whether a shape is an array whose elements lie on the wire as in memory, in some
    /// representation.
    pub(super) fn is_cow(&self, shape: &Shape) -> bool {
        match shape.real() {
            Shape::Vec(element) => self.is_blittable(element),
            _ => false,
        }
    }

    fn is_blittable(&self, shape: &Shape) -> bool {
        match shape.real() {
            Shape::Scalar(scalar) => {
                let mut forms = self.forms.iter();
                forms.any(|form| !form.plans.representation.is_checked(*scalar))
            }
            Shape::Bytes(_) => true,
            Shape::Array(element, _) => self.is_blittable(element),
            Shape::Named(id) => self.is_block(*id),
            _ => false,
        }
    }

    /// The type of a view of a shape, for as long as whoever it is lent to runs.
    pub(super) fn lent_text(&self, shape: &Shape) -> String {
        let text = self.view_text(shape);
        text.replace("&'a ", "&").replace("<'a", "<'_")
    }

    /// The type of a view of a shape.
    fn view_text(&self, shape: &Shape) -> String {
        let inner = |shape: &Shape| self.view_text(shape);
        match shape.real() {
            shape if !self.borrows(shape, &|id| self.borrows_inside(id)) => self.type_text(shape),
            Shape::Opaque => "&'a [u8]".to_owned(),
            Shape::Text if self.options.utf8_strings => "&'a str".to_owned(),
            Shape::Text => {
                self.uses(&["wire::BStr"]);
                "&'a BStr".to_owned()
            }
            Shape::Vec(element) if self.is_blittable(element) => {
                self.uses(&["wire::Cow"]);
                format!("Cow<'a, [{}]>", self.type_text(element))
            }
            Shape::Vec(element) => format!("Vec<{}>", inner(element)),
            Shape::Array(element, count) => format!("[{}; {count}]", inner(element)),
            Shape::Option(to) => format!("Option<{}>", inner(to)),
            Shape::Boxed(to) => format!("Box<{}>", inner(to)),
            Shape::Named(id) => {
                let path = self.path_to(*id);
                format!("{path}{}<'a>", self.names.of_type(*id).view)
            }
            other => unreachable!("{other:?} borrows nothing"),
        }
    }

    /// Whether a shape holds something that a view borrows, as types do that `known` says.
    fn borrows(&self, shape: &Shape, known: &dyn Fn(TypeId) -> bool) -> bool {
        match shape {
            Shape::Scalar(_) | Shape::Bytes(_) => false,
            Shape::Opaque | Shape::Text => true,
            Shape::Vec(element) => self.is_blittable(element) || self.borrows(element, known),
            Shape::Array(to, _) | Shape::Option(to) => self.borrows(to, known),
            Shape::Boxed(to) | Shape::Alias(_, to) => self.borrows(to, known),
            Shape::Named(id) => known(*id),
        }
    }

    /// What makes a value that owns what it holds of the view `value` of a shape.
    fn owned(&self, shape: &Shape, value: &str) -> Expr {
        let element = |to: &Shape| match to.real() {
            Shape::Named(_) => Expr::text("Into::into"),
            to => Expr::closure("|item|", Block::value(self.owned(to, "item"))),
        };
        match shape.real() {
            shape if !self.borrows(shape, &|id| self.borrows_inside(id)) => Expr::text(value),
            Shape::Opaque => Expr::text(format!("{value}.to_vec()")),
            Shape::Text => Expr::text(format!("{value}.to_owned()")),
            Shape::Vec(to) if self.is_blittable(to) => Expr::text(format!("{value}.into_owned()")),
            Shape::Vec(to) => {
                let items = Expr::call(format!("{value}.into_iter().map"), [element(to)]);
                Expr::Then(Box::new(items), "collect()")
            }
            Shape::Array(to, _) | Shape::Option(to) => {
                Expr::call(format!("{value}.map"), [element(to)])
            }
            Shape::Boxed(to) => match to.real() {
                Shape::Array(to, _) => {
                    self.uses(&["wire::map_boxed"]);
                    Expr::call("map_boxed", [Expr::text(value), element(to)])
                }
                to => Expr::call("Box::new", [self.owned(to, &format!("(*{value})"))]),
            },
            Shape::Named(_) => Expr::text(format!("{value}.into()")),
            other => unreachable!("{other:?} borrows nothing"),
        }
    }
}

/// All types whose values hold something that a view borrows: first those that do so by themselves,
/// then those that hold such.
fn borrowing(rust: &Rust<'_>) -> HashSet<TypeId> {
    let mut found = HashSet::new();
    let ids: Vec<_> = (0..rust.schema.types.len() as u32).map(TypeId).collect();
    loop {
        let before = found.len();
        for id in &ids {
            let parts = rust.shapes.parts(*id);
            let mut parts = parts.iter().flatten();
            if parts.any(|part| rust.borrows(part, &|id| found.contains(&id))) {
                found.insert(*id);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn write_head(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    let names = rust.names.of_type(id);
    w.gap();
    w.line(format!(
        "/// A [`{}`] that borrows what it can from the message that it is read from.",
        names.name
    ));
    w.line("#[derive(Debug, Clone, PartialEq)]");
}

fn write_struct(w: &mut Writer, rust: &Rust<'_>, id: TypeId) {
    let names = rust.names.of_type(id);
    let fields = rust.shapes.fields(id).into_iter().zip(&names.parts);
    let fields: Vec<_> = fields.map(|((_, shape), name)| (name, shape)).collect();
    write_head(w, rust, id);
    w.braces(&format!("pub struct {}<'a>", names.view), |w| {
        for (name, shape) in &fields {
            w.line(format!("pub {name}: {},", rust.view_text(shape)));
        }
    });
    let fields = fields.iter().map(|(name, shape)| {
        let value = format!("view.{name}");
        ((*name).clone(), rust.owned(shape, &value))
    });
    let owned = Expr::Struct("Self".to_owned(), fields.collect());
    write_from(w, rust, id, owned);
    write_impls(w, rust, id, |with| {
        let subject = with.record_of(id);
        with.decode_record(with.form.plans.of_type(id), &subject)
    });
}

fn write_union(w: &mut Writer, rust: &Rust<'_>, id: TypeId, all: &Variants) {
    let names = rust.names.of_type(id);
    write_head(w, rust, id);
    w.braces(&format!("pub enum {}<'a>", names.view), |w| {
        for variant in &all.variants {
            let held = variant.held.as_ref().map(|shape| rust.view_text(shape));
            let discriminant = variant.value.is_none().then(|| all.discriminant.clone());
            let holds: Vec<_> = discriminant.into_iter().chain(held).collect();
            match holds.is_empty() {
                true => w.line(format!("{},", variant.name)),
                false => w.line(format!("{}({}),", variant.name, holds.join(", "))),
            }
        }
    });
    let arms = all.variants.iter().map(|variant| {
        let pattern = variant.pattern("discriminant", "value");
        let pattern = pattern.replacen("Self", &names.view, 1);
        let discriminant = variant.value.is_none().then(|| Expr::text("discriminant"));
        let held = variant.held.as_ref().map(|held| rust.owned(held, "value"));
        let holds: Vec<_> = discriminant.into_iter().chain(held).collect();
        let path = format!("Self::{}", variant.name);
        let value = match holds.is_empty() {
            true => Expr::text(path),
            false => Expr::call(path, holds),
        };
        (pattern, Block::value(value))
    });
    let owned = Expr::Match(Box::new(Expr::text("view")), arms.collect());
    write_from(w, rust, id, owned);
    write_impls(w, rust, id, |with| {
        with.decode_union(with.form.plans.of_type(id), all)
    });
}

fn write_from(w: &mut Writer, rust: &Rust<'_>, id: TypeId, owned: Expr) {
    let names = rust.names.of_type(id);
    w.gap();
    w.skeleton(
        "
impl From<$view$<'_>> for $name$ {
    fn from(view: $view$<'_>) -> Self {
        $owned$
    }
}
",
        &[
            ("view", Hole::Text(&names.view)),
            ("name", Hole::Text(&names.name)),
            (
                "owned",
                Hole::Lines(&|w| Block::value(owned.clone()).write(w)),
            ),
        ],
    );
}

fn write_impls(
    w: &mut Writer,
    rust: &Rust<'_>,
    id: TypeId,
    body: impl Fn(Marshalling<'_>) -> Block,
) {
    rust.uses(&["wire::View", "wire::Decoder", "wire::DecodeError"]);
    for form in rust.forms_of(id) {
        let with = Marshalling::of(rust, form).view();
        let body = body(with);
        let marker = &form.marker;
        rust.uses(&marker.imports);
        w.gap();
        w.skeleton(
            "
impl$generics$ View<'a, $marker$> for $view$<'a> {
    $inline$
    fn view(input: &mut $decoder$) -> Result<Self, DecodeError> {
        $body$
    }
}
",
            &[
                ("generics", Hole::Text(&marker.generics_with("'a"))),
                ("marker", Hole::Text(&marker.path)),
                ("view", Hole::Text(&rust.names.of_type(id).view)),
                ("decoder", Hole::Text(&marker.cursor_of("Decoder", "'a"))),
                (
                    "inline",
                    Hole::Lines(&|w| marshal::write_inline(w, form.plans.of_type(id))),
                ),
                ("body", Hole::Lines(&|w| body.write(w))),
            ],
        );
    }
}

fn write_function(w: &mut Writer, with: Marshalling<'_>, id: TypeId, shape: &Shape) {
    let (rust, names) = (with.rust, with.rust.names.of_type(id));
    let marker = &with.form.marker;
    if !marker.is_default() {
        rust.uses(&marker.imports);
    }
    let label = rust.schema.type_def(id).name.clone();
    let subject = Subject::whole(Item::behind("value", shape.clone(), Some(label)));
    w.gap();
    w.line(format!(
        "/// Reads a [`{}`] that borrows what it can from the message.",
        names.name
    ));
    w.line("///");
    w.line("/// # Errors");
    w.line("/// The bytes are not a value of this type.");
    let head = Head {
        name: format!(
            "pub fn {}{}",
            with.functions(names).view,
            marker.generics_with("'a")
        ),
        parameters: vec![format!("input: &mut {}", marker.cursor_of("Decoder", "'a"))],
        result: format!("Result<{}, DecodeError>", rust.view_text(shape)),
    };
    let body = with.decode_item(&with.form.plans.of_type(id).body, &subject);
    head.write_function(w, &body);
}

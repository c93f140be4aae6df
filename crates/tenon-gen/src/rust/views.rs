//! Views: for each type that holds something worth borrowing another one beside it, with values
//! that borrow strings, opaque data and arrays of numbers from the message that they are read from.

use std::collections::HashSet;

use tenon_schema::{TypeId, TypeKind};

use super::RustFile;
use super::code::{BlockExpr, Expr, FunctionSignature};
use super::marshal::{self, ItemOperand, MarshalGenerator, PlaceBindings};
use super::sensitive::{is_sensitive, write_debug};
use super::shape::TypeShape;
use super::variants::{self, UnionVariants};
use crate::writer::{HoleContent, SourceWriter};

/// Writes the view of the type `id`, if it has one: its declaration, the conversion to a value that
/// owns its contents, and the functions that read it in each representation.
pub fn write(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    if !rust.borrows_inside(id) {
        return;
    }
    match &rust.schema.type_def(id).kind {
        TypeKind::Struct(_) => write_struct(w, rust, id),
        TypeKind::Union(union) => write_union(w, rust, id, &variants::of(rust, id, union)),
        TypeKind::Typedef(to) => {
            let shape = rust.shapes.target(id, to);
            for form in rust.forms_of(id) {
                write_function(w, MarshalGenerator::of(rust, form).view(), id, &shape);
            }
        }
        TypeKind::Enum(_) | TypeKind::External => {}
    }
}

impl RustFile<'_> {
    /// Returns whether values of a type hold something that a view borrows.
    pub(super) fn borrows_inside(&self, id: TypeId) -> bool {
        let mut known = self.borrowing.borrow_mut();
        known.get_or_insert_with(|| borrowing(self)).contains(&id)
    }

    /// Returns whether a shape is an array of blittable elements, in some representation.
    pub(super) fn is_cow(&self, shape: &TypeShape) -> bool {
        match shape.real() {
            TypeShape::Vec(element) => self.is_blittable(element),
            _ => false,
        }
    }

    fn is_blittable(&self, shape: &TypeShape) -> bool {
        match shape.real() {
            TypeShape::Scalar(scalar) => {
                let mut forms = self.forms.iter();
                forms.any(|form| !form.plans.representation.is_checked(*scalar))
            }
            TypeShape::Bytes(_) => true,
            TypeShape::Array(element, _) => self.is_blittable(element),
            TypeShape::Named(id) => self.is_block(*id),
            _ => false,
        }
    }

    /// The type of a view of a shape that is lent for a call: its lifetime is elided.
    pub(super) fn lent_text(&self, shape: &TypeShape) -> String {
        let text = self.view_text(shape);
        text.replace("&'a ", "&").replace("<'a", "<'_")
    }

    /// The type of a view of a shape.
    fn view_text(&self, shape: &TypeShape) -> String {
        let inner = |shape: &TypeShape| self.view_text(shape);
        match shape.real() {
            shape if !self.borrows(shape, &|id| self.borrows_inside(id)) => self.type_text(shape),
            TypeShape::Opaque => "&'a [u8]".to_owned(),
            TypeShape::Text if self.options.utf8_strings => "&'a str".to_owned(),
            TypeShape::Text => {
                self.uses(&["wire::BStr"]);
                "&'a BStr".to_owned()
            }
            TypeShape::Vec(element) if self.is_blittable(element) => {
                self.uses(&["wire::Cow"]);
                format!("Cow<'a, [{}]>", self.type_text(element))
            }
            TypeShape::Vec(element) => format!("Vec<{}>", inner(element)),
            TypeShape::Array(element, count) => format!("[{}; {count}]", inner(element)),
            TypeShape::Option(to) => format!("Option<{}>", inner(to)),
            TypeShape::Boxed(to) => format!("Box<{}>", inner(to)),
            TypeShape::Named(id) => {
                let path = self.path_to(*id);
                format!("{path}{}<'a>", self.names.of_type(*id).view)
            }
            TypeShape::Alias(_, to) => inner(to),
            TypeShape::Scalar(_) | TypeShape::Bytes(_) => self.type_text(shape),
        }
    }

    /// Returns whether a shape holds something that a view borrows, as the types do that `known` accepts.
    fn borrows(&self, shape: &TypeShape, known: &dyn Fn(TypeId) -> bool) -> bool {
        match shape {
            TypeShape::Scalar(_) | TypeShape::Bytes(_) => false,
            TypeShape::Opaque | TypeShape::Text => true,
            TypeShape::Vec(element) => self.is_blittable(element) || self.borrows(element, known),
            TypeShape::Array(to, _) | TypeShape::Option(to) => self.borrows(to, known),
            TypeShape::Boxed(to) | TypeShape::Alias(_, to) => self.borrows(to, known),
            TypeShape::Named(id) => known(*id),
        }
    }

    /// Returns the expression that converts the view `value` of a shape to a value that owns its contents.
    fn owned(&self, shape: &TypeShape, value: &str) -> Expr {
        let element = |to: &TypeShape| match to.real() {
            TypeShape::Named(_) => Expr::text("Into::into"),
            to => Expr::closure("|item|", BlockExpr::value(self.owned(to, "item"))),
        };
        match shape.real() {
            shape if !self.borrows(shape, &|id| self.borrows_inside(id)) => Expr::text(value),
            TypeShape::Opaque => Expr::text(format!("{value}.to_vec()")),
            TypeShape::Text => Expr::text(format!("{value}.to_owned()")),
            TypeShape::Vec(to) if self.is_blittable(to) => {
                Expr::text(format!("{value}.into_owned()"))
            }
            TypeShape::Vec(to) => {
                let items = Expr::call(format!("{value}.into_iter().map"), [element(to)]);
                Expr::Then(Box::new(items), "collect()")
            }
            TypeShape::Array(to, _) | TypeShape::Option(to) => {
                Expr::call(format!("{value}.map"), [element(to)])
            }
            TypeShape::Boxed(to) => match to.real() {
                TypeShape::Array(to, _) => {
                    self.uses(&["wire::map_boxed"]);
                    Expr::call("map_boxed", [Expr::text(value), element(to)])
                }
                to => Expr::call("Box::new", [self.owned(to, &format!("(*{value})"))]),
            },
            TypeShape::Named(_) => Expr::text(format!("{value}.into()")),
            TypeShape::Alias(_, to) => self.owned(to, value),
            TypeShape::Scalar(_) | TypeShape::Bytes(_) => Expr::text(value),
        }
    }
}

/// All types with values that hold something that a view borrows: first those that do so by
/// themselves, then those that hold such.
fn borrowing(rust: &RustFile<'_>) -> HashSet<TypeId> {
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

fn write_head(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    let names = rust.names.of_type(id);
    w.gap();
    w.line(format!(
        "/// A [`{}`] that borrows what it can from the message that it is read from.",
        names.name
    ));
    w.line(match is_sensitive(rust.schema.type_def(id)) {
        true => "#[derive(Clone, PartialEq)]",
        false => "#[derive(Debug, Clone, PartialEq)]",
    });
}

fn write_struct(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId) {
    let names = rust.names.of_type(id);
    let fields = rust.shapes.fields(id).into_iter().zip(&names.parts);
    let fields: Vec<_> = fields.map(|((_, shape), name)| (name, shape)).collect();
    write_head(w, rust, id);
    w.braces(&format!("pub struct {}<'a>", names.view), |w| {
        for (name, shape) in &fields {
            w.line(format!("pub {name}: {},", rust.view_text(shape)));
        }
    });
    if is_sensitive(rust.schema.type_def(id)) {
        let of_type = rust.shapes.fields(id).into_iter().zip(&names.parts);
        let shown = of_type.map(|((field, _), name)| (field, name));
        write_debug(w, (&names.view, "<'_>"), shown);
    }
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

fn write_union(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId, all: &UnionVariants) {
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
    if is_sensitive(rust.schema.type_def(id)) {
        write_debug(w, (&names.view, "<'_>"), std::iter::empty());
    }
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
        (pattern, BlockExpr::value(value))
    });
    let owned = Expr::Match(Box::new(Expr::text("view")), arms.collect());
    write_from(w, rust, id, owned);
    write_impls(w, rust, id, |with| {
        with.decode_union(with.form.plans.of_type(id), all)
    });
}

fn write_from(w: &mut SourceWriter, rust: &RustFile<'_>, id: TypeId, owned: Expr) {
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
            ("view", HoleContent::Text(&names.view)),
            ("name", HoleContent::Text(&names.name)),
            (
                "owned",
                HoleContent::Lines(&|w| BlockExpr::value(owned.clone()).write(w)),
            ),
        ],
    );
}

fn write_impls(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    id: TypeId,
    body: impl Fn(MarshalGenerator<'_>) -> BlockExpr,
) {
    rust.uses(&["wire::View", "wire::Decoder", "wire::DecodeError"]);
    for form in rust.forms_of(id) {
        let with = MarshalGenerator::of(rust, form).view();
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
                ("generics", HoleContent::Text(&marker.generics_with("'a"))),
                ("marker", HoleContent::Text(&marker.path)),
                ("view", HoleContent::Text(&rust.names.of_type(id).view)),
                (
                    "decoder",
                    HoleContent::Text(&marker.cursor_of("Decoder", "'a")),
                ),
                (
                    "inline",
                    HoleContent::Lines(&|w| marshal::write_inline(w, form.plans.of_type(id))),
                ),
                ("body", HoleContent::Lines(&|w| body.write(w))),
            ],
        );
    }
}

fn write_function(w: &mut SourceWriter, with: MarshalGenerator<'_>, id: TypeId, shape: &TypeShape) {
    let (rust, names) = (with.rust, with.rust.names.of_type(id));
    let marker = &with.form.marker;
    if !marker.is_default() {
        rust.uses(&marker.imports);
    }
    let label = rust.schema.type_def(id).name.clone();
    let subject = PlaceBindings::whole(ItemOperand::behind("value", shape.clone(), Some(label)));
    w.gap();
    w.line(format!(
        "/// Reads a [`{}`] that borrows what it can from the message.",
        names.name
    ));
    w.line("///");
    w.line("/// # Errors");
    w.line("/// The bytes are not a value of this type.");
    let head = FunctionSignature {
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

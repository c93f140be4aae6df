//! Operations as statements that append to `out`.

use tenon_plan::{Body, Count, Op, Plan, Representation, Scalar};

use super::{Item, Subject, bound_text, labelled, nested};
use crate::rust::Rust;
use crate::rust::code::{Block, Expr, Statement};
use crate::rust::shape::Shape;
use crate::rust::variants::{Variant, Variants};

/// The body of `encode` for a struct.
pub fn record(rust: &Rust<'_>, plan: &Plan, subject: &Subject) -> Block {
    match plan.recursive {
        true => {
            let mut body = Encoding::new(rust);
            body.operations(&plan.body, subject);
            nested("out", body.statements(), Expr::text("Ok(())"))
        }
        false => item(rust, &plan.body, subject),
    }
}

/// Statements that append one item or record and come to a `Result`.
pub fn item(rust: &Rust<'_>, body: &Body, subject: &Subject) -> Block {
    let mut encoding = Encoding::new(rust);
    encoding.operations(body, subject);
    encoding.result()
}

/// Statements that append the arguments of a procedure.
pub fn parameters(rust: &Rust<'_>, body: &Body, name: &str, parameters: Vec<Item>) -> Block {
    item(rust, body, &Subject::record(name, parameters))
}

/// Statements that append the result of a procedure, each failure handed on.
pub fn result(rust: &Rust<'_>, body: &Body, item: Item) -> Vec<Statement> {
    let mut encoding = Encoding::new(rust);
    encoding.operations(body, &Subject::whole(item));
    encoding.statements().statements
}

/// The body of `encode` for a union.
pub fn union(rust: &Rust<'_>, plan: &Plan, variants: &Variants) -> Block {
    let mut encoding = Encoding::new(rust);
    for op in &plan.body {
        match op {
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                let bodies: Vec<&Body> = bodies.collect();
                encoding.switch(*discriminant, &bodies, variants);
            }
            other => unreachable!("{other:?} in the plan of a union"),
        }
    }
    match plan.recursive {
        true => nested("out", encoding.statements(), Expr::text("Ok(())")),
        false => encoding.result(),
    }
}

/// Statements in the making; the last one, if it can fail, may become the result.
struct Encoding<'a> {
    rust: &'a Rust<'a>,
    done: Vec<Statement>,
    last: Option<Expr>,
}

impl<'a> Encoding<'a> {
    fn new(rust: &'a Rust<'a>) -> Self {
        Self {
            rust,
            done: Vec::new(),
            last: None,
        }
    }

    fn statement(&mut self, statement: Statement) {
        if let Some(last) = self.last.take() {
            self.done.push(Statement::Do(Expr::Try(Box::new(last))));
        }
        self.done.push(statement);
    }

    /// An expression that can fail.
    fn fallible(&mut self, expr: Expr, item: &Item) {
        if let Some(last) = self
            .last
            .replace(labelled(self.rust, expr, item.label.as_ref()))
        {
            self.done.push(Statement::Do(Expr::Try(Box::new(last))));
        }
    }

    fn infallible(&mut self, expr: Expr) {
        self.statement(Statement::Do(expr));
    }

    /// All of it, failures handed on by `?`.
    fn statements(mut self) -> Block {
        if let Some(last) = self.last.take() {
            self.done.push(Statement::Do(Expr::Try(Box::new(last))));
        }
        Block {
            statements: self.done,
            value: None,
        }
    }

    /// All of it, coming to a `Result`.
    fn result(self) -> Block {
        Block {
            statements: self.done,
            value: Some(self.last.unwrap_or(Expr::text("Ok(())"))),
        }
    }

    fn operations(&mut self, body: &Body, subject: &Subject) {
        let mut block = String::new();
        for (index, op) in body.iter().enumerate() {
            if let Op::Reserve { bytes } = op {
                block = self.reserve(*bytes, &body[index + 1..]);
            } else {
                self.operation(op, subject, &block);
            }
        }
    }

    /// The expression for a reserved block: a variable, unless only one item is in it.
    fn reserve(&mut self, bytes: u32, rest: &[Op]) -> String {
        let block = format!("out.block::<{bytes}>()");
        if rest.iter().take_while(|op| op.is_fixed()).count() == 1 {
            return block;
        }
        self.statement(Statement::Let("block".to_owned(), Expr::text(block)));
        "block".to_owned()
    }

    fn operation(&mut self, op: &Op, subject: &Subject, block: &str) {
        let rust = self.rust;
        let item = |place| subject.item(rust, place);
        self.rust.uses(match op {
            Op::Reserve { .. } | Op::Call { .. } | Op::External { .. } => &[],
            _ => &["wire::xdr"],
        });
        match op {
            Op::Align { .. }
            | Op::Zero { .. }
            | Op::Blit { .. }
            | Op::BlitCounted { .. }
            | Op::PutElements { .. } => {
                unreachable!("the passes that make these are not run for this")
            }
            Op::Reserve { .. } => unreachable!("handled where the block begins"),
            Op::Put {
                place,
                scalar,
                offset,
            } => {
                let function = if Representation::XDR.is_checked(*scalar) {
                    "xdr::put_word"
                } else {
                    "xdr::put"
                };
                self.put(function, block, *offset, &item(place).value);
            }
            Op::PutArray {
                place,
                scalar,
                offset,
                ..
            } => {
                let function = if Representation::XDR.is_checked(*scalar) {
                    "xdr::put_words"
                } else {
                    "xdr::put_array"
                };
                self.put(function, block, *offset, &slice(&item(place)));
            }
            Op::Copy { place, offset, .. } => {
                self.put("xdr::put_bytes", block, *offset, &slice(&item(place)));
            }
            Op::CopyCounted {
                place,
                bound,
                text: _,
            } => {
                self.counted("xdr::put_opaque", &item(place), *bound);
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => {
                let words = Representation::XDR.is_checked(*scalar);
                let function = if words {
                    "xdr::put_counted_words"
                } else {
                    "xdr::put_counted"
                };
                self.counted(function, &item(place), *bound);
            }
            Op::Loop {
                place,
                count,
                body,
                element: _,
            } => {
                self.elements(&item(place), *count, body);
            }
            Op::Switch { .. } => unreachable!("a union is moved by its own plan"),
            Op::Optional { place, body } => self.optional(&item(place), body),
            Op::List {
                place,
                first_bare,
                element: _,
            } => {
                let function = if *first_bare {
                    "xdr::put_bare_list"
                } else {
                    "xdr::put_list"
                };
                self.rust.uses(&["wire::Xdr"]);
                let item = item(place);
                let arguments = ["out", &item.reference, "Xdr::encode"].map(Expr::text);
                self.fallible(Expr::call(function, arguments), &item);
            }
            Op::Call { place, .. } | Op::External { place, .. } => {
                self.rust.uses(&["wire::Xdr"]);
                let item = item(place);
                let arguments = [whole(&item), "out".to_owned()].map(Expr::text);
                self.fallible(Expr::call("Xdr::encode", arguments), &item);
            }
        }
    }

    fn put(&mut self, function: &str, block: &str, offset: u32, value: &str) {
        let arguments = [block, &offset.to_string(), value].map(Expr::text);
        self.infallible(Expr::call(function, arguments));
    }

    fn counted(&mut self, function: &str, item: &Item, bound: u32) {
        let arguments = [
            Expr::text("out"),
            Expr::text(&item.reference),
            bound_text(bound),
        ];
        self.fallible(Expr::call(function, arguments), item);
    }

    fn elements(&mut self, item: &Item, count: Count, body: &Body) {
        let encode = self.element_function(body, &element(&item.shape));
        let (out, items) = (Expr::text("out"), Expr::text(slice(item)));
        let call = match count {
            Count::Fixed(_) => Expr::call("xdr::put_elements", [out, items, encode]),
            Count::Counted(bound) => {
                Expr::call("xdr::put_vec", [out, items, bound_text(bound), encode])
            }
        };
        self.fallible(call, item);
    }

    fn optional(&mut self, item: &Item, body: &Body) {
        let (receiver, held) = match item.shape.real() {
            Shape::Boxed(option) => (format!("(**{})", item.receiver), element(option)),
            shape => (item.receiver.clone(), element(shape)),
        };
        let (method, held) = match held.real() {
            Shape::Boxed(inner) => ("as_deref", (**inner).clone()),
            _ => ("as_ref", held),
        };
        let value = Expr::text(format!("{receiver}.{method}()"));
        let encode = self.element_function(body, &held);
        let arguments = [Expr::text("out"), value, encode];
        self.fallible(Expr::call("xdr::put_optional", arguments), item);
    }

    /// The function that encodes an element.
    fn element_function(&self, body: &Body, shape: &Shape) -> Expr {
        if let ([Op::Call { .. }], Shape::Named(_)) = (body.as_slice(), shape.real()) {
            self.rust.uses(&["wire::Xdr"]);
            return Expr::text("Xdr::encode");
        }
        let subject = Subject::whole(Item::behind("item", shape.clone(), None));
        Expr::closure("|item, out|", item(self.rust, body, &subject))
    }

    fn switch(&mut self, discriminant: Scalar, bodies: &[&Body], all: &Variants) {
        self.rust.uses(&["wire::xdr"]);
        let function = if Representation::XDR.is_checked(discriminant) {
            "xdr::put_word"
        } else {
            "xdr::put"
        };
        self.put(function, "out.block::<4>()", 0, "self.discriminant()");
        let mut arms = Vec::new();
        for variant in &all.variants {
            if variant.value.is_none() {
                arms.extend(refused(all, variant));
            }
            arms.push((variant.pattern("_", "value"), self.arm(variant, bodies)));
        }
        let is_empty = |body: &Block| body.statements.is_empty() && body.value.is_none();
        if arms.iter().all(|(_, body)| is_empty(body)) {
            return;
        }
        let on = Box::new(Expr::text("self"));
        self.statement(Statement::Do(Expr::Match(on, arms)));
    }

    fn arm(&self, variant: &Variant, bodies: &[&Body]) -> Block {
        let Some(shape) = &variant.held else {
            return Block::default();
        };
        let label = Some(variant.label.clone());
        let subject = Subject::whole(Item::behind("value", shape.clone(), label));
        let mut encoding = Encoding::new(self.rust);
        encoding.operations(bodies[variant.arm], &subject);
        let mut body = encoding.statements();
        match body.statements.pop() {
            Some(Statement::Do(only)) if body.statements.is_empty() => Block::value(only),
            last => {
                body.statements.extend(last);
                body
            }
        }
    }
}

/// The arms of a `match` that keep the default variant from standing for another one.
fn refused<'a>(
    all: &'a Variants,
    default: &'a Variant,
) -> impl Iterator<Item = (String, Block)> + 'a {
    all.variants.iter().filter_map(|variant| {
        let (value, pattern) = variant.value.as_ref()?;
        let refuse = Expr::text(format!("Err(xdr::bad_discriminant({value}))"));
        Some((
            default.pattern(pattern, "_"),
            Block::value(Expr::Return(Box::new(refuse))),
        ))
    })
}

/// A reference to an item without its box.
fn whole(item: &Item) -> String {
    match item.shape.real() {
        Shape::Boxed(_) => format!("&*{}", item.value),
        _ => item.reference.clone(),
    }
}

/// A reference to an array that coerces to a slice.
fn slice(item: &Item) -> String {
    match item.shape.real() {
        Shape::Boxed(_) => format!("&{}[..]", item.receiver),
        _ => item.reference.clone(),
    }
}

/// The shape of the elements of an array, or of what an option holds.
pub(super) fn element(shape: &Shape) -> Shape {
    match shape.real() {
        Shape::Array(element, _) | Shape::Vec(element) | Shape::Option(element) => {
            (**element).clone()
        }
        Shape::Boxed(inner) => element(inner),
        other => unreachable!("{other:?} has no elements"),
    }
}

//! Operations as expressions that read from `input`.

use tenon_plan::{Body, Count, Op, Plan, Representation, Scalar};

use super::encode::element;
use super::{Item, Subject, bound_text, labelled, nested};
use crate::rust::Rust;
use crate::rust::code::{Block, Expr, Statement};
use crate::rust::shape::Shape;
use crate::rust::variants::{Variant, Variants};

/// An expression and whether it can fail.
struct Read {
    expr: Expr,
    fallible: bool,
}

impl Read {
    fn sure(expr: Expr) -> Self {
        let fallible = false;
        Self { expr, fallible }
    }

    fn fallible(expr: Expr) -> Self {
        let fallible = true;
        Self { expr, fallible }
    }

    /// The value itself, a failure handed on.
    fn value(self) -> Expr {
        match self.fallible {
            true => Expr::Try(Box::new(self.expr)),
            false => self.expr,
        }
    }

    fn result(self) -> Expr {
        match self.fallible {
            true => self.expr,
            false => Expr::ok(self.expr),
        }
    }

    fn labelled(self, rust: &Rust<'_>, item: &Item) -> Self {
        match self.fallible {
            true => Self::fallible(labelled(rust, self.expr, item.label.as_ref())),
            false => self,
        }
    }
}

/// The body of `decode` for a struct.
pub fn record(rust: &Rust<'_>, plan: &Plan, subject: &Subject) -> Block {
    let (mut statements, fields) = match is_literal(&plan.body) {
        true => inline_fields(rust, &plan.body, subject),
        false => bound_fields(rust, &plan.body, subject),
    };
    if fields.is_empty() {
        return Block::value(Expr::text("Ok(Self {})"));
    }
    let value = Expr::Struct("Self".to_owned(), fields);
    if !plan.recursive {
        let value = Some(Expr::ok(value));
        return Block { statements, value };
    }
    statements.push(Statement::Let("value".to_owned(), value));
    let body = Block {
        statements,
        value: None,
    };
    nested("input", body, Expr::text("Ok(value)"))
}

/// Statements that read one item and come to a `Result`.
pub fn item(rust: &Rust<'_>, body: &Body, subject: &Subject) -> Block {
    let mut result = Block::default();
    each(rust, body, subject, &mut result.statements, |_, _, read| {
        result.value = Some(read.result());
    });
    result
}

/// Statements that read the arguments of a procedure into variables.
pub fn parameters(
    rust: &Rust<'_>,
    body: &Body,
    name: &str,
    parameters: Vec<Item>,
) -> Vec<Statement> {
    bound_fields(rust, body, &Subject::record(name, parameters)).0
}

/// Statements that read some fields of `self`, which exists already.
pub fn assignments(rust: &Rust<'_>, body: &Body, subject: &Subject) -> Block {
    let mut statements = Vec::new();
    each(
        rust,
        body,
        subject,
        &mut statements,
        |statements, item, read| {
            statements.push(Statement::Assign(item.value.clone(), read.value()));
        },
    );
    let value = Some(Expr::text("Ok(())"));
    Block { statements, value }
}

/// The body of `decode` for a union.
pub fn union(rust: &Rust<'_>, plan: &Plan, variants: &Variants) -> Block {
    let Some(Op::Switch {
        discriminant,
        arms,
        default,
        ..
    }) = plan.body.first()
    else {
        unreachable!("the plan of a union begins with a switch")
    };
    let bodies: Vec<&Body> = arms.iter().map(|arm| &arm.body).chain(default).collect();
    let on = labelled_discriminant(rust, *discriminant, variants);
    let mut cases: Vec<_> = variants
        .variants
        .iter()
        .map(|variant| case(rust, variant, &bodies))
        .collect();
    if !variants.is_total {
        rust.uses(&["wire::xdr"]);
        let number = Variants::number(*discriminant, "other");
        let refuse = Expr::text(format!("Err(xdr::unknown_value(input, {number}))"));
        cases.push((
            "other".to_owned(),
            Block::value(Expr::Return(Box::new(refuse))),
        ));
    }
    let statements = match (on, cases.as_mut_slice()) {
        (on, [(pattern, only)]) => {
            only.statements
                .insert(0, Statement::Let(pattern.clone(), on));
            let value = only.value.take();
            let value = value.map(|value| Statement::Let("value".to_owned(), value));
            only.statements.drain(..).chain(value).collect()
        }
        (on, _) => vec![Statement::Let(
            "value".to_owned(),
            Expr::Match(Box::new(on), cases),
        )],
    };
    let mut body = Block {
        statements,
        value: None,
    };
    match plan.recursive {
        true => nested("input", body, Expr::text("Ok(value)")),
        false => {
            body.value = Some(Expr::text("Ok(value)"));
            body
        }
    }
}

fn labelled_discriminant(rust: &Rust<'_>, scalar: Scalar, variants: &Variants) -> Expr {
    rust.uses(&["wire::xdr", "wire::Field"]);
    let ty = &variants.discriminant;
    let function = if Representation::XDR.is_checked(scalar) {
        "xdr::next_word"
    } else {
        "xdr::next"
    };
    let read = Expr::text(format!("{function}::<{ty}>(input)"));
    let labelled = Expr::InField(Box::new(read), variants.label.clone());
    Expr::Try(Box::new(labelled))
}

fn case(rust: &Rust<'_>, variant: &Variant, bodies: &[&Body]) -> (String, Block) {
    let (pattern, discriminant) = match &variant.value {
        Some((_, pattern)) => (pattern.as_str(), None),
        None => ("discriminant", Some(Expr::text("discriminant"))),
    };
    let path = format!("Self::{}", variant.name);
    let Some(shape) = &variant.held else {
        let value = match discriminant {
            Some(discriminant) => Expr::call(path, [discriminant]),
            None => Expr::text(path),
        };
        return (pattern.to_owned(), Block::value(value));
    };
    let label = Some(variant.label.clone());
    let subject = Subject::whole(Item::behind("value", shape.clone(), label));
    let mut block = Block::default();
    each(
        rust,
        bodies[variant.arm],
        &subject,
        &mut block.statements,
        |_, _, read| {
            let arguments = discriminant.clone().into_iter().chain([read.value()]);
            block.value = Some(Expr::call(path.clone(), arguments));
        },
    );
    (pattern.to_owned(), block)
}

/// Whether the fields can be read inside of the struct's literal: no block begins in its midst.
fn is_literal(body: &Body) -> bool {
    let blocks = body.iter().enumerate().skip(1);
    blocks
        .filter(|(_, op)| matches!(op, Op::Reserve { .. }))
        .all(|(index, _)| is_single_scalar(&body[index + 1..]))
}

/// Whether the block whose operations begin `rest` holds one scalar.
fn is_single_scalar(rest: &[Op]) -> bool {
    let items = rest.iter().take_while(|op| op.is_fixed()).count();
    items == 1 && matches!(rest[0], Op::Put { .. })
}

fn inline_fields(
    rust: &Rust<'_>,
    body: &Body,
    subject: &Subject,
) -> (Vec<Statement>, Vec<(String, Expr)>) {
    let (mut statements, mut fields) = (Vec::new(), Vec::new());
    each(rust, body, subject, &mut statements, |_, item, read| {
        fields.push((item.name.clone(), read.value()));
    });
    (statements, fields)
}

fn bound_fields(
    rust: &Rust<'_>,
    body: &Body,
    subject: &Subject,
) -> (Vec<Statement>, Vec<(String, Expr)>) {
    let (mut statements, mut fields) = (Vec::new(), Vec::new());
    each(
        rust,
        body,
        subject,
        &mut statements,
        |statements, item, read| {
            let local = local_name(&item.name);
            statements.push(Statement::Let(local.clone(), read.value()));
            fields.push((item.name.clone(), Expr::text(local)));
        },
    );
    (statements, fields)
}

/// A field's name as that of a variable, out of the way of those that the code itself has.
fn local_name(field: &str) -> String {
    match field {
        "block" | "input" | "value" => format!("{field}_"),
        field => field.to_owned(),
    }
}

/// Hands each item of `body` to `with`, and what reads it. Of a struct that is moved field by
/// field that is a literal.
fn each(
    rust: &Rust<'_>,
    body: &Body,
    subject: &Subject,
    statements: &mut Vec<Statement>,
    mut with: impl FnMut(&mut Vec<Statement>, &Item, Read),
) {
    let mut in_block = false;
    let mut rest = body.as_slice();
    for ops in body.chunk_by(|one, next| is_together(one, next, 0)) {
        rest = &rest[ops.len()..];
        if let [Op::Reserve { bytes }] = ops {
            in_block = !is_single_scalar(rest);
            if in_block {
                let block = Expr::text(format!("input.block::<{bytes}>()"));
                let label = block_label(rust, subject, rest);
                let block = labelled(rust, block, label.as_ref());
                statements.push(Statement::Let(
                    "block".to_owned(),
                    Expr::Try(Box::new(block)),
                ));
            }
        } else if let Some(place) = ops[0].place() {
            let (item, inside) = subject.outer(place);
            let depth = place.0.len() - inside.len();
            with(statements, item, read(rust, ops, depth, item, in_block));
        }
    }
}

/// Whether two operations move parts of one item that is `depth` fields deep inside another.
fn is_together(one: &Op, next: &Op, depth: usize) -> bool {
    let item = |op: &Op| {
        let path = &op.place()?.0;
        (path.len() > depth + 1).then(|| path[..=depth].to_vec())
    };
    item(one).is_some_and(|item_of_one| item(next) == Some(item_of_one))
}

/// What reads the item that `depth` fields lead to: an operation, or those of its fields.
fn read(rust: &Rust<'_>, ops: &[Op], depth: usize, item: &Item, in_block: bool) -> Read {
    let is_inside = |op: &Op| op.place().is_some_and(|place| place.0.len() > depth);
    match ops {
        [op] if !is_inside(op) => operation(rust, op, &item.shape, in_block).labelled(rust, item),
        _ => Read::sure(structure(rust, ops, depth, item, in_block)),
    }
}

/// A literal of a struct that is moved field by field.
fn structure(rust: &Rust<'_>, ops: &[Op], depth: usize, item: &Item, in_block: bool) -> Expr {
    let Shape::Named(id) = item.shape.real() else {
        unreachable!("{:?} has no fields", item.shape)
    };
    let fields = ops.chunk_by(|one, next| is_together(one, next, depth));
    let fields = fields.filter_map(|ops| {
        let part = item.part(rust, ops[0].place()?.0[depth]);
        let read = read(rust, ops, depth + 1, &part, in_block);
        Some((part.name, read.value()))
    });
    Expr::Struct(rust.names.of_type(*id).name.clone(), fields.collect())
}

/// Whom to name when a block is not all there: the item, if it is the only one.
fn block_label(rust: &Rust<'_>, subject: &Subject, rest: &[Op]) -> Option<String> {
    let mut items = rest.iter().take_while(|op| op.is_fixed());
    match (items.next().and_then(Op::place), items.next()) {
        (Some(place), None) => subject.item(rust, place).label,
        _ => subject.label.clone(),
    }
}

fn operation(rust: &Rust<'_>, op: &Op, shape: &Shape, in_block: bool) -> Read {
    let shape = shape.real();
    let input = || Expr::text("input");
    rust.uses(&["wire::xdr"]);
    match op {
        Op::Reserve { .. } => unreachable!("handled where the block begins"),
        Op::Align { .. }
        | Op::Zero { .. }
        | Op::Blit { .. }
        | Op::BlitCounted { .. }
        | Op::PutElements { .. } => {
            unreachable!("the passes that make these are not run for this")
        }
        Op::Put { scalar, offset, .. } => put(*scalar, *offset, in_block),
        Op::PutArray { scalar, offset, .. } => array(*scalar, *offset, shape),
        Op::Copy { offset, .. } => {
            let function = match shape {
                Shape::Boxed(_) => "xdr::get_boxed_bytes",
                _ => "xdr::get_bytes_array",
            };
            Read::fallible(at(function, Some("input"), *offset))
        }
        Op::CopyCounted { bound, text, .. } => {
            let function = if *text {
                "xdr::get_string"
            } else {
                "xdr::get_opaque"
            };
            Read::fallible(Expr::call(function, [input(), bound_text(*bound)]))
        }
        Op::PutCounted { scalar, bound, .. } => {
            let words = Representation::XDR.is_checked(*scalar);
            let function = if words {
                "xdr::get_counted_words"
            } else {
                "xdr::get_counted"
            };
            Read::fallible(Expr::call(function, [input(), bound_text(*bound)]))
        }
        Op::Loop {
            count,
            element: bytes,
            body,
            ..
        } => {
            let decode = element_function(rust, body, &element(shape));
            Read::fallible(match (count, shape) {
                (Count::Counted(bound), _) => {
                    let min = Expr::text(bytes.min.to_string());
                    Expr::call("xdr::get_vec", [input(), bound_text(*bound), min, decode])
                }
                (Count::Fixed(_), Shape::Boxed(_)) => {
                    Expr::call("xdr::get_boxed_elements", [input(), decode])
                }
                (Count::Fixed(_), _) => Expr::call("xdr::get_elements", [input(), decode]),
            })
        }
        Op::Switch { .. } => unreachable!("a union is moved by its own plan"),
        Op::Optional { body, .. } => match shape {
            Shape::Boxed(inner) => boxed(rust, op, inner),
            _ => {
                let decode = element_function(rust, body, &element(shape));
                Read::fallible(Expr::call("xdr::get_optional", [input(), decode]))
            }
        },
        Op::List { first_bare, .. } => {
            rust.uses(&["wire::Xdr"]);
            let function = if *first_bare {
                "xdr::get_bare_list"
            } else {
                "xdr::get_list"
            };
            Read::fallible(Expr::call(function, [input(), Expr::text("Xdr::decode")]))
        }
        Op::Call { .. } | Op::External { .. } => {
            rust.uses(&["wire::Xdr"]);
            Read::fallible(match shape {
                Shape::Boxed(_) => {
                    Expr::call("xdr::get_boxed", [input(), Expr::text("Xdr::decode")])
                }
                _ => Expr::call("Xdr::decode", [input()]),
            })
        }
    }
}

fn put(scalar: Scalar, offset: u32, in_block: bool) -> Read {
    match (in_block, Representation::XDR.is_checked(scalar)) {
        (true, true) => Read::fallible(at("xdr::get_word", Some("input"), offset)),
        (true, false) => Read::sure(at("xdr::get", None, offset)),
        (false, true) => Read::fallible(Expr::text("xdr::next_word(input)")),
        (false, false) => Read::fallible(Expr::text("xdr::next(input)")),
    }
}

fn array(scalar: Scalar, offset: u32, shape: &Shape) -> Read {
    match (shape, Representation::XDR.is_checked(scalar)) {
        (Shape::Boxed(_), true) => {
            Read::fallible(at("xdr::get_boxed_word_array", Some("input"), offset))
        }
        (Shape::Boxed(_), false) => {
            Read::fallible(at("xdr::get_boxed_array", Some("input"), offset))
        }
        (_, true) => Read::fallible(at("xdr::get_word_array", Some("input"), offset)),
        (_, false) => Read::sure(at("xdr::get_array", None, offset)),
    }
}

/// A call of a function that reads from the block.
fn at(function: &str, input: Option<&str>, offset: u32) -> Expr {
    let arguments = input.into_iter().map(Expr::text);
    Expr::call(
        function,
        arguments.chain([Expr::text("block"), Expr::text(offset.to_string())]),
    )
}

fn boxed(rust: &Rust<'_>, op: &Op, inner: &Shape) -> Read {
    let body = Block::value(operation(rust, op, inner, false).result());
    let decode = Expr::closure("|input|", body);
    Read::fallible(Expr::call("xdr::get_boxed", [Expr::text("input"), decode]))
}

/// The function that decodes an element.
pub fn element_function(rust: &Rust<'_>, body: &Body, shape: &Shape) -> Expr {
    if let ([Op::Call { .. }], Shape::Named(_)) = (body.as_slice(), shape.real()) {
        rust.uses(&["wire::Xdr"]);
        return Expr::text("Xdr::decode");
    }
    if let [Op::Reserve { .. }, Op::Put { scalar, .. }] = body.as_slice() {
        let function = if Representation::XDR.is_checked(*scalar) {
            "xdr::next_word"
        } else {
            "xdr::next"
        };
        return Expr::text(function);
    }
    let subject = Subject::whole(Item::behind("item", shape.clone(), None));
    Expr::closure("|input|", item(rust, body, &subject))
}

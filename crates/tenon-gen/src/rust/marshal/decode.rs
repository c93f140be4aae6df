//! Operations as expressions that read from `input`.

use std::iter;

use tenon_plan::{Body, Count, Op, Plan, Scalar};
use tenon_schema::TypeId;

use super::encode::element;
use super::read::{BLOCK, ReadExpr, block_names, local_name};
use super::steps::{self, BlockContents, MarshalStep};
use super::{ItemOperand, MarshalGenerator, PlaceBindings, bound_text, nested};
use crate::rust::code::{BlockExpr, Expr, Statement};
use crate::rust::shape::TypeShape;
use crate::rust::variants::{UnionVariant, UnionVariants};

/// Takes the expression that reads an item; statements before it may be appended.
type With<'w> = &'w mut dyn FnMut(&mut Vec<Statement>, &ItemOperand, ReadExpr);

impl MarshalGenerator<'_> {
    /// The body of `decode` for a struct.
    pub fn decode_record(self, plan: &Plan, subject: &PlaceBindings) -> BlockExpr {
        if super::is_block(plan) {
            let get = self.labelled(Expr::text("input.get()"), subject.label.as_ref());
            return BlockExpr::value(get);
        }
        let (mut statements, fields) = match self.is_literal(&plan.body, subject) {
            true => self.inline_fields(&plan.body, subject),
            false => self.late_fields(&plan.body, subject),
        };
        if fields.is_empty() {
            let value = Some(Expr::text("Ok(Self {})"));
            return BlockExpr { statements, value };
        }
        let value = Expr::Struct("Self".to_owned(), fields);
        if !plan.recursive {
            let value = Some(Expr::ok(value));
            return BlockExpr { statements, value };
        }
        statements.push(Statement::Let("value".to_owned(), value));
        let body = BlockExpr {
            statements,
            value: None,
        };
        nested("input", body, Expr::text("Ok(value)"))
    }

    /// Statements that read one item and come to a `Result`.
    pub fn decode_item(self, body: &Body, subject: &PlaceBindings) -> BlockExpr {
        let mut result = BlockExpr::default();
        let mut last = None;
        self.each(
            body,
            subject,
            &mut result.statements,
            &mut |_, item, read| {
                last = Some((item.name.clone(), read));
            },
        );
        let Some((_, read)) = last else {
            return result;
        };
        result.value = Some(read.result());
        result
    }

    /// Statements that read the arguments of a procedure into variables.
    pub fn decode_parameters(
        self,
        body: &Body,
        name: &str,
        parameters: Vec<ItemOperand>,
    ) -> Vec<Statement> {
        let mut statements = Vec::new();
        let subject = PlaceBindings::record(name, parameters);
        self.each(
            body,
            &subject,
            &mut statements,
            &mut |statements, item, read| {
                statements.push(Statement::Let(item.name.clone(), read.value()));
            },
        );
        statements
    }

    /// Statements that read some fields of `self`, which exists already.
    pub fn decode_assignments(self, body: &Body, subject: &PlaceBindings) -> BlockExpr {
        let mut statements = Vec::new();
        self.each(
            body,
            subject,
            &mut statements,
            &mut |statements, item, read| {
                statements.push(Statement::Assign(item.value.clone(), read.value()));
            },
        );
        let value = Some(Expr::text("Ok(())"));
        BlockExpr { statements, value }
    }

    /// The body of `decode` for a union.
    pub fn decode_union(self, plan: &Plan, variants: &UnionVariants) -> BlockExpr {
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
        let on = self.discriminant(*discriminant, variants);
        let mut cases: Vec<_> = variants
            .variants
            .iter()
            .map(|variant| self.case(variant, &bodies))
            .collect();
        if !variants.is_total {
            cases.push(("other".to_owned(), self.refused(*discriminant)));
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
        let mut body = BlockExpr {
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

    fn discriminant(self, scalar: Scalar, variants: &UnionVariants) -> Expr {
        let ty = &variants.discriminant;
        let method = match self.is_checked(scalar) {
            true => "input.get_word",
            false => "input.get",
        };
        let read = Expr::text(format!("{method}::<{ty}>()"));
        Expr::Try(Box::new(self.labelled(read, Some(&variants.label))))
    }

    /// Returns the code for a discriminant that selects no arm.
    fn refused(self, discriminant: Scalar) -> BlockExpr {
        let number = UnionVariants::number(discriminant, "other");
        let bytes = self.form.plans.representation.bytes(discriminant);
        let refuse = format!("Err(input.unknown_value({number}, {bytes}))");
        BlockExpr::value(Expr::Return(Box::new(Expr::text(refuse))))
    }

    fn case(self, variant: &UnionVariant, bodies: &[&Body]) -> (String, BlockExpr) {
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
            return (pattern.to_owned(), BlockExpr::value(value));
        };
        let label = Some(variant.label.clone());
        let subject = PlaceBindings::whole(ItemOperand::behind("value", shape.clone(), label));
        let mut block = BlockExpr::default();
        self.each(
            bodies[variant.arm],
            &subject,
            &mut block.statements,
            &mut |_, _, read| {
                let arguments = discriminant.clone().into_iter().chain([read.value()]);
                block.value = Some(Expr::call(path.clone(), arguments));
            },
        );
        (pattern.to_owned(), block)
    }

    fn inline_fields(
        self,
        body: &Body,
        subject: &PlaceBindings,
    ) -> (Vec<Statement>, Vec<(String, Expr)>) {
        let (mut statements, mut fields) = (Vec::new(), Vec::new());
        self.each(body, subject, &mut statements, &mut |_, item, read| {
            fields.push((item.name.clone(), read.value()));
        });
        (statements, fields)
    }

    /// Reads fields that can fail into variables, and the others in the literal: that is written once, to where
    /// the value is returned, however large it is.
    fn late_fields(
        self,
        body: &Body,
        subject: &PlaceBindings,
    ) -> (Vec<Statement>, Vec<(String, Expr)>) {
        let (mut statements, mut fields) = (Vec::new(), Vec::new());
        self.each_in(
            body,
            subject,
            &mut block_names(),
            &mut statements,
            &mut |statements, item, read| {
                let value = match read.leaves {
                    true => {
                        let local = local_name(&item.name);
                        statements.push(Statement::Let(local.clone(), read.value()));
                        Expr::text(local)
                    }
                    false => read.value(),
                };
                fields.push((item.name.clone(), value));
            },
        );
        (statements, fields)
    }

    /// Returns whether the fields can be read inside of the struct's literal, one after the other: nothing but them
    /// is in the midst of it, and those that can fail come first.
    fn is_literal(self, body: &Body, subject: &PlaceBindings) -> bool {
        let mut leaves = Vec::new();
        self.each(body, subject, &mut Vec::new(), &mut |_, _, read| {
            leaves.push(read.leaves);
        });
        is_together_alone(body) && leaves.is_sorted_by(|one, next| one >= next)
    }

    /// Hands each item of `body` to `with`, and the expression that reads it. Of a struct that is moved
    /// field by field that is a literal.
    fn each(
        self,
        body: &Body,
        subject: &PlaceBindings,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        let mut names = iter::repeat(BLOCK.to_owned());
        self.each_in(body, subject, &mut names, statements, with);
    }

    /// The same with blocks of these names.
    fn each_in(
        self,
        body: &Body,
        subject: &PlaceBindings,
        names: &mut dyn Iterator<Item = String>,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        for step in steps::of(body) {
            match step {
                MarshalStep::Block(bytes, inside) => {
                    self.block((bytes, &inside), subject, names, statements, with);
                }
                MarshalStep::Op(Op::Align { to, before }) => {
                    let skip = Expr::text(format!("input.align({to}, {before})"));
                    statements.push(self.attempt(skip, subject.label.as_ref()));
                }
                MarshalStep::Op(op) => {
                    let item = match op.place() {
                        Some(place) => subject.item(self.rust, place),
                        None => unreachable!("{op:?} moves nothing"),
                    };
                    let read = self.operation(op, &item.shape).labelled(self, &item);
                    with(statements, &item, read);
                }
            }
        }
    }

    fn attempt(self, expr: Expr, label: Option<&String>) -> Statement {
        Statement::Do(Expr::Try(Box::new(self.labelled(expr, label))))
    }

    fn block(
        self,
        (bytes, inside): (u32, &BlockContents<'_>),
        subject: &PlaceBindings,
        names: &mut dyn Iterator<Item = String>,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        if let Some(read) = inside.only().and_then(|op| self.only(op, subject)) {
            let (item, read) = read;
            let read = read.labelled(self, &item);
            return with(statements, &item, read);
        }
        let label = match inside.only().and_then(Op::place) {
            Some(place) => subject.item(self.rust, place).label,
            None => subject.label.clone(),
        };
        let block = Expr::text(format!("input.block::<{bytes}>()"));
        let block = Expr::Try(Box::new(self.labelled(block, label.as_ref())));
        let Some(name) = names.next() else {
            unreachable!("names have no end")
        };
        statements.push(Statement::Let(name.clone(), block));
        self.inside((&name, inside), subject, statements, with);
    }

    /// The items of a block that is there.
    fn inside(
        self,
        (block, inside): (&str, &BlockContents<'_>),
        subject: &PlaceBindings,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        for (offset, bytes) in &inside.holes {
            let skip = Expr::text(format!("{block}.zero({offset}, {bytes})"));
            statements.push(self.attempt(skip, subject.label.as_ref()));
        }
        for ops in inside.items.chunk_by(|one, next| subject.is_one(one, next)) {
            let Some(place) = ops[0].place() else {
                unreachable!("holes stand apart")
            };
            let (item, inside) = subject.outer(place);
            let depth = place.0.len() - inside.len();
            with(statements, item, self.fields(block, ops, depth, item));
        }
    }

    /// The item that a block consists of, if it can be read without a block.
    fn only(self, op: &Op, subject: &PlaceBindings) -> Option<(ItemOperand, ReadExpr)> {
        let place = op.place()?;
        let (outer, inside) = subject.outer(place);
        if !inside.is_empty() {
            return None;
        }
        let method = match (op, outer.shape.real()) {
            (_, TypeShape::Boxed(_)) => return None,
            (Op::Put { scalar, .. }, _) if self.is_checked(*scalar) => "input.get_word()",
            (Op::PutArray { scalar, .. }, _) if self.is_checked(*scalar) => return None,
            (Op::Copy { bytes, .. }, _) if self.is_padded(*bytes) => return None,
            _ => "input.get()",
        };
        Some((outer.clone(), ReadExpr::fallible(Expr::text(method))))
    }

    /// Returns the expression for the item in `block` that `depth` fields lead to: of its operation, or of its fields.
    fn fields(self, block: &str, ops: &[&Op], depth: usize, item: &ItemOperand) -> ReadExpr {
        let is_inside = |op: &Op| op.place().is_some_and(|place| place.0.len() > depth);
        match ops {
            [op] if !is_inside(op) => self.fixed(block, op, &item.shape).labelled(self, item),
            _ => self.structure(block, ops, depth, item),
        }
    }

    /// A literal of a struct that is moved field by field.
    fn structure(self, block: &str, ops: &[&Op], depth: usize, item: &ItemOperand) -> ReadExpr {
        let TypeShape::Named(id) = item.shape.real() else {
            unreachable!("{:?} has no fields", item.shape)
        };
        let mut leaves = false;
        let fields = ops.chunk_by(|one, next| is_together(one, next, depth));
        let fields = fields.filter_map(|ops| {
            let part = item.part(self.rust, ops[0].place()?.0[depth]);
            let read = self.fields(block, ops, depth + 1, &part);
            leaves |= read.leaves;
            Some((part.name, read.value()))
        });
        let name = self.rust.type_name(*id);
        let literal = Expr::Struct(name, fields.collect());
        ReadExpr::value_of(literal, leaves)
    }

    /// An item in `block`.
    fn fixed(self, block: &str, op: &Op, shape: &TypeShape) -> ReadExpr {
        let is_boxed = matches!(shape.real(), TypeShape::Boxed(_));
        let (method, offset) = match op {
            Op::Put { scalar, offset, .. } if self.is_checked(*scalar) => ("get_word", offset),
            Op::PutArray { scalar, offset, .. } if self.is_checked(*scalar) => match is_boxed {
                true => ("get_boxed_words", offset),
                false => ("get_word_array", offset),
            },
            Op::Copy { bytes, offset, .. } if self.is_padded(*bytes) => match is_boxed {
                true => ("get_boxed_bytes", offset),
                false => ("get_byte_array", offset),
            },
            Op::Put { offset, .. }
            | Op::PutArray { offset, .. }
            | Op::Copy { offset, .. }
            | Op::Blit { offset, .. } => match is_boxed {
                true => ("get_boxed", offset),
                false => return ReadExpr::sure(Expr::text(format!("{block}.get({offset})"))),
            },
            Op::Zero { .. } => unreachable!("holes stand apart"),
            Op::Reserve { .. }
            | Op::Align { .. }
            | Op::BlitCounted { .. }
            | Op::PutElements { .. }
            | Op::CopyCounted { .. }
            | Op::PutCounted { .. }
            | Op::Loop { .. }
            | Op::Switch { .. }
            | Op::Optional { .. }
            | Op::List { .. }
            | Op::Call { .. }
            | Op::External { .. } => unreachable!("{op:?} lies in no block"),
        };
        let input = if is_boxed { ", input" } else { "" };
        ReadExpr::fallible(Expr::text(format!("{block}.{method}({offset}{input})")))
    }

    /// An operation that makes its own check.
    fn operation(self, op: &Op, shape: &TypeShape) -> ReadExpr {
        let shape = shape.real();
        let read = match op {
            Op::CopyCounted { bound, text, .. } => {
                let is_utf8 = self.rust.options.utf8_strings;
                let method = match (text, self.view) {
                    (true, false) if is_utf8 => "input.get_utf8",
                    (true, true) if is_utf8 => "input.get_utf8_ref",
                    (true, false) => "input.get_string",
                    (false, false) => "input.get_opaque",
                    (true, true) => "input.get_str_ref",
                    (false, true) => "input.get_opaque_ref",
                };
                Expr::call(method, [bound_text(*bound)])
            }
            Op::PutCounted { scalar, bound, .. } if self.is_checked(*scalar) => {
                Expr::call("input.get_counted_words", [bound_text(*bound)])
            }
            Op::PutCounted { bound, .. } | Op::BlitCounted { bound, .. } => {
                let method = match self.is_cow(shape) {
                    true => "input.view_counted",
                    false => "input.get_counted",
                };
                return ReadExpr::fallible(Expr::call(method, [bound_text(*bound)]));
            }
            Op::PutElements {
                count,
                element: of,
                body,
                ..
            } => self.blocks(*count, of.bytes, body, shape),
            Op::Loop {
                count,
                element: bytes,
                body,
                ..
            } => {
                let decode = self.element_decoder(body, &element(shape));
                match (count, shape) {
                    (Count::Counted(bound), _) => {
                        let min = Expr::text(bytes.min.to_string());
                        Expr::call("input.get_vec", [bound_text(*bound), min, decode])
                    }
                    (Count::Fixed(_), TypeShape::Boxed(_)) => {
                        Expr::call("input.get_boxed_elements", [decode])
                    }
                    (Count::Fixed(_), _) => Expr::call("input.get_elements", [decode]),
                }
            }
            Op::Optional { body, .. } => match shape {
                TypeShape::Boxed(inner) => self.boxed(op, inner),
                _ => {
                    let decode = self.element_decoder(body, &element(shape));
                    Expr::call("input.get_optional", [decode])
                }
            },
            Op::List {
                first_bare,
                element,
                ..
            } => self.list(*first_bare, *element),
            Op::Call { plan: id, .. } | Op::External { ty: id, .. } => {
                let reader = self.reader(*id);
                match shape {
                    TypeShape::Boxed(_) => Expr::call("input.get_boxed", [Expr::text(reader)]),
                    _ => Expr::text(format!("{reader}(input)")),
                }
            }
            Op::Switch { .. } => unreachable!("a union is moved by its own plan"),
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } => {
                unreachable!("handled before")
            }
            Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => {
                unreachable!("items of fixed size lie in a block")
            }
        };
        ReadExpr::fallible(match self.is_cow(shape) {
            true => {
                self.rust.uses(&["wire::Cow"]);
                Expr::Then(Box::new(read), "map(Cow::Owned)")
            }
            false => read,
        })
    }

    /// Returns whether the array is read as a `Cow`: one that may be borrowed, in a view.
    fn is_cow(self, shape: &TypeShape) -> bool {
        self.view && self.rust.is_cow(shape)
    }

    /// Returns the function that reads a named type.
    fn reader(self, id: TypeId) -> &'static str {
        let (import, path) = match self.view && self.rust.borrows_inside(id) {
            true => ("wire::View", "View::view"),
            false => ("wire::Marshal", "Marshal::decode"),
        };
        self.rust.uses(&[import]);
        path
    }

    fn boxed(self, op: &Op, inner: &TypeShape) -> Expr {
        let body = BlockExpr::value(self.operation(op, inner).result());
        Expr::call("input.get_boxed", [Expr::closure("|input|", body)])
    }

    fn list(self, first_bare: bool, element: TypeId) -> Expr {
        let method = match first_bare {
            true => "input.get_bare_list",
            false => "input.get_list",
        };
        if !(self.view && self.rust.borrows_inside(element)) {
            return Expr::text(format!("{method}()"));
        }
        let plan = self.form.plans.of_type(element);
        let reader = Expr::text(self.reader(element));
        let numbers = [plan.size.min, plan.align.into()].map(|number| number.to_string());
        let arguments = numbers.into_iter().map(Expr::text).chain([reader]);
        Expr::call(format!("{method}_with"), arguments)
    }

    /// Elements of one size.
    fn blocks(self, count: Count, stride: u64, body: &Body, shape: &TypeShape) -> Expr {
        let held = element(shape);
        let subject = PlaceBindings::whole(ItemOperand::behind("item", held.clone(), None));
        let mut read = BlockExpr::default();
        self.inside(
            ("block", &steps::element(body)),
            &subject,
            &mut read.statements,
            &mut |_, _, item| read.value = Some(item.result()),
        );
        let parameters = match held.real() {
            TypeShape::Boxed(_) => "|block, input|",
            _ => "|block, _|",
        };
        let read = Expr::closure(parameters, read);
        match (count, shape) {
            (Count::Counted(bound), _) => {
                let path = format!("input.get_vec_of_blocks::<{stride}, _>");
                Expr::call(path, [bound_text(bound), read])
            }
            (Count::Fixed(_), TypeShape::Boxed(_)) => {
                Expr::call(format!("input.get_boxed_blocks::<{stride}, _, _>"), [read])
            }
            (Count::Fixed(_), _) => {
                Expr::call(format!("input.get_blocks::<{stride}, _, _>"), [read])
            }
        }
    }

    /// The function that decodes an element.
    pub fn element_decoder(self, body: &Body, shape: &TypeShape) -> Expr {
        if let ([Op::Call { plan: id, .. }], TypeShape::Named(_)) = (body.as_slice(), shape.real())
        {
            return Expr::text(self.reader(*id));
        }
        let subject = PlaceBindings::whole(ItemOperand::behind("item", shape.clone(), None));
        Expr::closure("|input|", self.decode_item(body, &subject))
    }
}

/// Returns whether nothing but items is in the midst of a body.
fn is_together_alone(body: &Body) -> bool {
    let mut steps = steps::of(body).into_iter();
    let mut in_midst = false;
    steps.all(|step| {
        let is_item = match &step {
            MarshalStep::Block(_, inside) => {
                inside.only().is_some_and(|op| matches!(op, Op::Put { .. }))
            }
            MarshalStep::Op(Op::Align { .. }) => false,
            MarshalStep::Op(_) => true,
        };
        let fits = is_item || !in_midst;
        in_midst |= !matches!(step, MarshalStep::Op(Op::Align { .. }));
        fits
    })
}

/// Returns whether two operations move parts of one item that is `depth` fields deep inside another.
pub(super) fn is_together(one: &Op, next: &Op, depth: usize) -> bool {
    let item = |op: &Op| {
        let path = &op.place()?.0;
        (path.len() > depth + 1).then(|| path[..=depth].to_vec())
    };
    item(one).is_some_and(|item_of_one| item(next) == Some(item_of_one))
}

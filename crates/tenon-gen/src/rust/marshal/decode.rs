//! Operations as expressions that read from `input`.

use tenon_plan::{
    BlockHole, Body, Count, ElementSize, FixedItem, FixedKind, Op, Plan, ReservedBlock, Scalar,
};
use tenon_schema::TypeId;

use super::read::{BLOCK, BlockNames, ReadExpr, local_name};
use super::{ItemOperand, MarshalGenerator, PlaceBindings, bound_text, nested, switch_of};
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
        let (discriminant, bodies) = switch_of(plan);
        let on = self.discriminant(discriminant, variants);
        let mut cases: Vec<_> = variants
            .variants
            .iter()
            .map(|variant| self.case(variant, &bodies))
            .collect();
        if !variants.is_total {
            cases.push(("other".to_owned(), self.refused(discriminant)));
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
            &mut BlockNames::numbered(),
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
        let mut names = BlockNames::alike();
        self.each_in(body, subject, &mut names, statements, with);
    }

    /// The same with blocks of these names.
    fn each_in(
        self,
        body: &Body,
        subject: &PlaceBindings,
        names: &mut BlockNames,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        for op in body {
            let read = |place, read: &dyn Fn(&TypeShape) -> Expr| {
                let item = subject.item(self.rust, place);
                let read = read(item.shape.real());
                (item, read)
            };
            let (item, read) = match op {
                Op::Reserve(block) => {
                    self.block(block, subject, names, statements, with);
                    continue;
                }
                Op::Align { to, before } => {
                    let skip = Expr::text(format!("input.align({to}, {before})"));
                    statements.push(self.attempt(skip, subject.label.as_ref()));
                    continue;
                }
                Op::CopyCounted { place, bound, text } => {
                    read(place, &|_| self.bytes(*bound, *text))
                }
                Op::PutCounted {
                    place,
                    scalar,
                    bound,
                } if self.is_checked(*scalar) => read(place, &|shape| {
                    let words = Expr::call("input.get_counted_words", [bound_text(*bound)]);
                    self.in_cow(words, shape)
                }),
                Op::PutCounted { place, bound, .. } | Op::BlitCounted { place, bound, .. } => {
                    read(place, &|shape| self.counted(*bound, shape))
                }
                Op::PutElements {
                    place,
                    count,
                    element,
                    ..
                } => read(place, &|shape| {
                    self.in_cow(self.blocks(*count, element, shape), shape)
                }),
                Op::Loop {
                    place,
                    count,
                    element,
                    body,
                } => read(place, &|shape| {
                    self.in_cow(self.elements((*count, *element), body, shape), shape)
                }),
                Op::Optional { place, body } => read(place, &|shape| self.optional(body, shape)),
                Op::List {
                    place,
                    first_bare,
                    element,
                } => read(place, &|shape| {
                    self.in_cow(self.list(*first_bare, *element), shape)
                }),
                Op::Call { place, plan: id } | Op::External { place, ty: id } => {
                    read(place, &|shape| self.named(*id, shape))
                }
                // The function of a union switches.
                Op::Switch { place, .. } => {
                    read(place, &|shape| self.named(shape.definition(), shape))
                }
            };
            let read = ReadExpr::fallible(read).labelled(self, &item);
            with(statements, &item, read);
        }
    }

    fn attempt(self, expr: Expr, label: Option<&String>) -> Statement {
        Statement::Do(Expr::Try(Box::new(self.labelled(expr, label))))
    }

    fn block(
        self,
        block: &ReservedBlock,
        subject: &PlaceBindings,
        names: &mut BlockNames,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        if let Some((item, read)) = block.only().and_then(|only| self.only(only, subject)) {
            let read = read.labelled(self, &item);
            return with(statements, &item, read);
        }
        let label = match block.only() {
            Some(only) => subject.item(self.rust, &only.place).label,
            None => subject.label.clone(),
        };
        let take = Expr::text(format!("input.block::<{}>()", block.bytes));
        let take = Expr::Try(Box::new(self.labelled(take, label.as_ref())));
        let name = names.next();
        statements.push(Statement::Let(name.clone(), take));
        self.inside((&name, block), subject, statements, with);
    }

    /// The items of a block that is there. Its holes come first: one may lie within a struct that is moved field by
    /// field.
    fn inside(
        self,
        (name, block): (&str, &ReservedBlock),
        subject: &PlaceBindings,
        statements: &mut Vec<Statement>,
        with: With<'_>,
    ) {
        for BlockHole { offset, bytes } in block.holes() {
            let skip = Expr::text(format!("{name}.zero({offset}, {bytes})"));
            statements.push(self.attempt(skip, subject.label.as_ref()));
        }
        let items: Vec<&FixedItem> = block.items().collect();
        for parts in items.chunk_by(|one, next| subject.is_one(one, next)) {
            let place = &parts[0].place;
            let (item, inside) = subject.outer(place);
            let depth = place.0.len() - inside.len();
            with(statements, item, self.fields(name, parts, depth, item));
        }
    }

    /// The item that a block consists of, if it can be read without a block.
    fn only(self, only: &FixedItem, subject: &PlaceBindings) -> Option<(ItemOperand, ReadExpr)> {
        let (outer, inside) = subject.outer(&only.place);
        if !inside.is_empty() || matches!(outer.shape.real(), TypeShape::Boxed(_)) {
            return None;
        }
        let method = match &only.kind {
            FixedKind::Put { scalar } if self.is_checked(*scalar) => "input.get_word()",
            FixedKind::PutArray { scalar, .. } if self.is_checked(*scalar) => return None,
            FixedKind::Copy { bytes } if self.is_padded(*bytes) => return None,
            FixedKind::Put { .. } | FixedKind::PutArray { .. } => "input.get()",
            FixedKind::Copy { .. } | FixedKind::Blit { .. } => "input.get()",
        };
        Some((outer.clone(), ReadExpr::fallible(Expr::text(method))))
    }

    /// Returns the expression for the item in `block` that `depth` fields lead to: of its operation, or of its fields.
    fn fields(
        self,
        block: &str,
        parts: &[&FixedItem],
        depth: usize,
        item: &ItemOperand,
    ) -> ReadExpr {
        match parts {
            [only] if only.place.0.len() <= depth => {
                self.fixed(block, only, &item.shape).labelled(self, item)
            }
            _ => self.structure(block, parts, depth, item),
        }
    }

    /// A literal of a struct that is moved field by field.
    fn structure(
        self,
        block: &str,
        parts: &[&FixedItem],
        depth: usize,
        item: &ItemOperand,
    ) -> ReadExpr {
        let name = self.rust.type_name(item.shape.definition());
        let mut leaves = false;
        let fields = parts.chunk_by(|one, next| is_together(one, next, depth));
        let fields = fields.map(|parts| {
            let part = item.part(self.rust, parts[0].place.0[depth]);
            let read = self.fields(block, parts, depth + 1, &part);
            leaves |= read.leaves;
            (part.name, read.value())
        });
        let literal = Expr::Struct(name, fields.collect());
        ReadExpr::value_of(literal, leaves)
    }

    /// An item in `block`.
    fn fixed(self, block: &str, item: &FixedItem, shape: &TypeShape) -> ReadExpr {
        let offset = item.offset;
        // The method for an item in place, whether it may fail, and the one for an item in memory of its own.
        let (in_place, may_fail, boxed) = match &item.kind {
            FixedKind::Put { scalar } if self.is_checked(*scalar) => ("get_word", true, "get_word"),
            FixedKind::PutArray { scalar, .. } if self.is_checked(*scalar) => {
                ("get_word_array", true, "get_boxed_words")
            }
            FixedKind::Copy { bytes } if self.is_padded(*bytes) => {
                ("get_byte_array", true, "get_boxed_bytes")
            }
            FixedKind::Put { .. } | FixedKind::PutArray { .. } => ("get", false, "get_boxed"),
            FixedKind::Copy { .. } | FixedKind::Blit { .. } => ("get", false, "get_boxed"),
        };
        if matches!(shape.real(), TypeShape::Boxed(_)) {
            let read = format!("{block}.{boxed}({offset}, input)");
            return ReadExpr::fallible(Expr::text(read));
        }
        let read = Expr::text(format!("{block}.{in_place}({offset})"));
        if may_fail {
            ReadExpr::fallible(read)
        } else {
            ReadExpr::sure(read)
        }
    }

    fn bytes(self, bound: u32, text: bool) -> Expr {
        let is_utf8 = self.rust.options.utf8_strings;
        let method = match (text, self.view) {
            (true, false) if is_utf8 => "input.get_utf8",
            (true, true) if is_utf8 => "input.get_utf8_ref",
            (true, false) => "input.get_string",
            (false, false) => "input.get_opaque",
            (true, true) => "input.get_str_ref",
            (false, true) => "input.get_opaque_ref",
        };
        Expr::call(method, [bound_text(bound)])
    }

    /// A counted array of what is blittable.
    fn counted(self, bound: u32, shape: &TypeShape) -> Expr {
        let method = match self.is_cow(shape) {
            true => "input.view_counted",
            false => "input.get_counted",
        };
        Expr::call(method, [bound_text(bound)])
    }

    fn elements(
        self,
        (count, element): (Count, ElementSize),
        body: &Body,
        shape: &TypeShape,
    ) -> Expr {
        let decode = self.element_decoder(body, shape.element());
        match (count, shape) {
            (Count::Counted(bound), _) => {
                let min = Expr::text(element.min.to_string());
                Expr::call("input.get_vec", [bound_text(bound), min, decode])
            }
            (Count::Fixed(_), TypeShape::Boxed(_)) => {
                Expr::call("input.get_boxed_elements", [decode])
            }
            (Count::Fixed(_), _) => Expr::call("input.get_elements", [decode]),
        }
    }

    fn optional(self, body: &Body, shape: &TypeShape) -> Expr {
        match shape {
            TypeShape::Boxed(inner) => {
                let inner = BlockExpr::value(self.optional(body, inner.real()));
                Expr::call("input.get_boxed", [Expr::closure("|input|", inner)])
            }
            _ => {
                let decode = self.element_decoder(body, shape.element());
                Expr::call("input.get_optional", [decode])
            }
        }
    }

    /// A value of a named type, by the function of that.
    fn named(self, id: TypeId, shape: &TypeShape) -> Expr {
        let reader = self.reader(id);
        match shape {
            TypeShape::Boxed(_) => Expr::call("input.get_boxed", [Expr::text(reader)]),
            _ => Expr::text(format!("{reader}(input)")),
        }
    }

    /// Puts an array that is read as one of its own into a `Cow`, if it has to be one.
    fn in_cow(self, read: Expr, shape: &TypeShape) -> Expr {
        if !self.is_cow(shape) {
            return read;
        }
        self.rust.uses(&["wire::Cow"]);
        Expr::Then(Box::new(read), "map(Cow::Owned)")
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
    fn blocks(self, count: Count, element: &ReservedBlock, shape: &TypeShape) -> Expr {
        let (stride, held) = (element.bytes, shape.element());
        let subject = PlaceBindings::whole(ItemOperand::behind("item", held.clone(), None));
        let mut read = BlockExpr::default();
        self.inside(
            (BLOCK, element),
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
    let mut in_midst = false;
    body.iter().all(|op| {
        let is_item = match op {
            Op::Reserve(block) => block.only_scalar().is_some(),
            Op::Align { .. } => false,
            _ => true,
        };
        let fits = is_item || !in_midst;
        in_midst |= !matches!(op, Op::Align { .. });
        fits
    })
}

/// Returns whether two items are parts of one that is `depth` fields deep inside another.
pub(super) fn is_together(one: &FixedItem, next: &FixedItem, depth: usize) -> bool {
    let item = |part: &FixedItem| {
        let path = &part.place.0;
        (path.len() > depth + 1).then(|| path[..=depth].to_vec())
    };
    item(one).is_some_and(|item_of_one| item(next) == Some(item_of_one))
}

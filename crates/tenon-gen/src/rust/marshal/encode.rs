//! Operations as statements that append to `out`.

use tenon_plan::{
    BlockHole, BlockPart, Body, Count, FixedItem, FixedKind, Op, Place, Plan, ReservedBlock, Scalar,
};

use super::{ItemOperand, MarshalGenerator, PlaceBindings, bound_text, nested, switch_of};
use crate::rust::code::{BlockExpr, Expr, Statement};
use crate::rust::shape::TypeShape;
use crate::rust::variants::{UnionVariant, UnionVariants};

impl MarshalGenerator<'_> {
    /// The body of `encode` for a struct.
    pub fn encode_record(self, plan: &Plan, subject: &PlaceBindings) -> BlockExpr {
        match plan.recursive {
            true => {
                let mut body = EncodeBuilder::new(self);
                body.operations(&plan.body, subject);
                nested("out", body.statements(), Expr::text("Ok(())"))
            }
            false => self.encode_item(&plan.body, subject),
        }
    }

    /// Statements that append one item or record and come to a `Result`.
    pub fn encode_item(self, body: &Body, subject: &PlaceBindings) -> BlockExpr {
        let mut encoding = EncodeBuilder::new(self);
        encoding.operations(body, subject);
        encoding.result()
    }

    /// Statements that append the arguments of a procedure.
    pub fn encode_parameters(
        self,
        body: &Body,
        name: &str,
        parameters: Vec<ItemOperand>,
    ) -> BlockExpr {
        self.encode_item(body, &PlaceBindings::record(name, parameters))
    }

    /// Statements that append the result of a procedure, each failure handed on.
    pub fn encode_result(self, body: &Body, item: ItemOperand) -> Vec<Statement> {
        let mut encoding = EncodeBuilder::new(self);
        encoding.operations(body, &PlaceBindings::whole(item));
        encoding.statements().statements
    }

    /// The body of `encode` for a union.
    pub fn encode_union(self, plan: &Plan, variants: &UnionVariants) -> BlockExpr {
        let mut encoding = EncodeBuilder::new(self);
        let (discriminant, bodies) = switch_of(plan);
        encoding.switch(discriminant, &bodies, variants);
        match plan.recursive {
            true => nested("out", encoding.statements(), Expr::text("Ok(())")),
            false => encoding.result(),
        }
    }

    /// Returns whether the whole item of a body is blittable, as one value.
    pub fn is_one_blit(self, body: &Body) -> bool {
        match body.as_slice() {
            [Op::Reserve(block)] => block.only().is_some_and(|only| {
                let is_whole = only.place.0.is_empty();
                is_whole && self.is_blit(&only.kind)
            }),
            _ => false,
        }
    }

    /// Returns whether the item is blittable, as one value.
    fn is_blit(self, kind: &FixedKind) -> bool {
        match kind {
            FixedKind::Put { scalar } | FixedKind::PutArray { scalar, .. } => {
                !self.is_checked(*scalar)
            }
            FixedKind::Copy { bytes } => !self.is_padded(*bytes),
            FixedKind::Blit { .. } => true,
        }
    }
}

/// Builds statements; the last one, if it can fail, may become the result.
struct EncodeBuilder<'a> {
    with: MarshalGenerator<'a>,
    done: Vec<Statement>,
    last: Option<Expr>,
}

impl<'a> EncodeBuilder<'a> {
    fn new(with: MarshalGenerator<'a>) -> Self {
        Self {
            with,
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
    fn fallible(&mut self, expr: Expr, item: &ItemOperand) {
        let labelled = self.with.labelled(expr, item.label.as_ref());
        if let Some(last) = self.last.replace(labelled) {
            self.done.push(Statement::Do(Expr::Try(Box::new(last))));
        }
    }

    fn infallible(&mut self, expr: Expr) {
        self.statement(Statement::Do(expr));
    }

    /// All of it, failures handed on by `?`.
    fn statements(mut self) -> BlockExpr {
        if let Some(last) = self.last.take() {
            self.done.push(Statement::Do(Expr::Try(Box::new(last))));
        }
        BlockExpr {
            statements: self.done,
            value: None,
        }
    }

    /// All of it, coming to a `Result`.
    fn result(self) -> BlockExpr {
        BlockExpr {
            statements: self.done,
            value: Some(self.last.unwrap_or(Expr::text("Ok(())"))),
        }
    }

    fn item(&self, place: &Place, subject: &PlaceBindings) -> ItemOperand {
        subject.item(self.with.rust, place)
    }

    fn operations(&mut self, body: &Body, subject: &PlaceBindings) {
        body.iter().for_each(|op| self.operation(op, subject));
    }

    /// A block: a variable, unless only one item is in it.
    fn block(&mut self, block: &ReservedBlock, subject: &PlaceBindings) {
        let path = format!("out.block::<{}>()", block.bytes);
        match block.parts.as_slice() {
            [] => {}
            [BlockPart::Item(only)] => self.only(&path, only, subject),
            [BlockPart::Hole(hole)] => self.hole(&path, *hole),
            _ => {
                self.statement(Statement::Let("mut block".to_owned(), Expr::text(path)));
                self.inside("block", block, subject);
            }
        }
    }

    /// The item that a block consists of.
    fn only(&mut self, block: &str, only: &FixedItem, subject: &PlaceBindings) {
        let item = self.item(&only.place, subject);
        match &only.kind {
            FixedKind::Put { scalar } if self.with.is_checked(*scalar) => {
                self.call("out.put_word", [&item.value]);
            }
            FixedKind::Put { .. } => self.call("out.put", [&item.value]),
            kind if self.with.is_blit(kind) => self.call("out.blit", [&whole(&item)]),
            _ => self.fixed(block, only, &item),
        }
    }

    /// The items of a block, and behind them its holes: one may lie within a struct that is moved field by field.
    fn inside(&mut self, variable: &str, block: &ReservedBlock, subject: &PlaceBindings) {
        for item in block.items() {
            let operand = self.item(&item.place, subject);
            self.fixed(variable, item, &operand);
        }
        block.holes().for_each(|hole| self.hole(variable, hole));
    }

    fn hole(&mut self, block: &str, hole: BlockHole) {
        let zero = format!("{block}.zero({}, {})", hole.offset, hole.bytes);
        self.infallible(Expr::text(zero));
    }

    /// An item in a block.
    fn fixed(&mut self, block: &str, item: &FixedItem, operand: &ItemOperand) {
        let (method, value) = match &item.kind {
            FixedKind::Put { scalar } if self.with.is_checked(*scalar) => {
                ("put_word", operand.value.clone())
            }
            FixedKind::Put { .. } => ("put", operand.value.clone()),
            FixedKind::PutArray { scalar, .. } if self.with.is_checked(*scalar) => {
                ("put_words", slice(operand))
            }
            FixedKind::Copy { bytes } if self.with.is_padded(*bytes) => {
                ("put_bytes", slice(operand))
            }
            FixedKind::PutArray { .. } | FixedKind::Copy { .. } | FixedKind::Blit { .. } => {
                ("blit", whole(operand))
            }
        };
        let offset = item.offset.to_string();
        self.call(&format!("{block}.{method}"), [&offset, &value]);
    }

    /// A call that cannot fail.
    fn call<'t>(&mut self, path: &str, arguments: impl IntoIterator<Item = &'t String>) {
        self.infallible(Expr::call(path, arguments.into_iter().map(Expr::text)));
    }

    fn operation(&mut self, op: &Op, subject: &PlaceBindings) {
        let rust = self.with.rust;
        let item = |place| subject.item(rust, place);
        match op {
            Op::Reserve(block) => self.block(block, subject),
            Op::Align { to, before } => {
                self.infallible(Expr::text(format!("out.align({to}, {before})")));
            }
            Op::CopyCounted { place, bound, .. } => self.bytes(&item(place), *bound),
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => {
                let method = match self.with.is_checked(*scalar) {
                    true => "out.put_counted_words",
                    false => "out.put_counted",
                };
                self.counted(method, &item(place), *bound);
            }
            Op::BlitCounted { place, bound, .. } => {
                self.counted("out.put_counted", &item(place), *bound);
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => self.blocks(&item(place), *count, element),
            Op::Loop {
                place, count, body, ..
            } => self.elements(&item(place), *count, body),
            Op::Optional { place, body } => self.optional(&item(place), body),
            Op::List {
                place, first_bare, ..
            } => {
                let method = match first_bare {
                    true => "out.put_bare_list",
                    false => "out.put_list",
                };
                let item = item(place);
                let items = Expr::text(&item.reference);
                self.fallible(Expr::call(method, [items]), &item);
            }
            // The function of a union switches.
            Op::Call { place, .. } | Op::External { place, .. } | Op::Switch { place, .. } => {
                rust.uses(&["wire::Marshal"]);
                let item = item(place);
                let path = format!("{}.encode", item.receiver);
                self.fallible(Expr::call(path, [Expr::text("out")]), &item);
            }
        }
    }

    fn bytes(&mut self, item: &ItemOperand, bound: u32) {
        let is_utf8 = self.with.rust.options.utf8_strings && *item.shape.real() == TypeShape::Text;
        let bytes = match is_utf8 {
            true => format!("{}.as_bytes()", item.receiver),
            false => item.reference.clone(),
        };
        let arguments = [Expr::text(bytes), bound_text(bound)];
        self.fallible(Expr::call("out.put_opaque", arguments), item);
    }

    fn counted(&mut self, method: &str, item: &ItemOperand, bound: u32) {
        let arguments = [Expr::text(&item.reference), bound_text(bound)];
        self.fallible(Expr::call(method, arguments), item);
    }

    fn elements(&mut self, item: &ItemOperand, count: Count, body: &Body) {
        let encode = self.element_function(body, item.shape.element());
        let items = Expr::text(slice(item));
        let call = match count {
            Count::Fixed(_) => Expr::call("out.put_elements", [items, encode]),
            Count::Counted(bound) => Expr::call("out.put_vec", [items, bound_text(bound), encode]),
        };
        self.fallible(call, item);
    }

    /// Elements of one size.
    fn blocks(&mut self, item: &ItemOperand, count: Count, block: &ReservedBlock) {
        let (stride, shape) = (block.bytes, item.shape.element().clone());
        let subject = PlaceBindings::whole(ItemOperand::behind("item", shape, None));
        let mut encoding = EncodeBuilder::new(self.with);
        encoding.inside("block", block, &subject);
        let mut write = encoding.statements();
        if let ([Statement::Do(only)], None) = (write.statements.as_slice(), &write.value) {
            write = BlockExpr::value(only.clone());
        }
        let write = Expr::closure("|item, mut block|", write);
        let items = Expr::text(slice(item));
        match count {
            Count::Fixed(_) => {
                let path = format!("out.put_blocks::<{stride}, _>");
                self.infallible(Expr::call(path, [items, write]));
            }
            Count::Counted(bound) => {
                let path = format!("out.put_vec_of_blocks::<{stride}, _>");
                self.fallible(Expr::call(path, [items, bound_text(bound), write]), item);
            }
        }
    }

    fn optional(&mut self, item: &ItemOperand, body: &Body) {
        if item.is_lent {
            let held = match item.shape.element().real() {
                TypeShape::Boxed(inner) => inner,
                _ => item.shape.element(),
            };
            let value = Expr::text(&item.receiver);
            let encode = self.element_function(body, held);
            return self.fallible(Expr::call("out.put_optional", [value, encode]), item);
        }
        let (receiver, held) = match item.shape.real() {
            TypeShape::Boxed(option) => (format!("(**{})", item.receiver), option.element()),
            shape => (item.receiver.clone(), shape.element()),
        };
        let (method, held) = match held.real() {
            TypeShape::Boxed(inner) => ("as_deref", &**inner),
            _ => ("as_ref", held),
        };
        let value = Expr::text(format!("{receiver}.{method}()"));
        let encode = self.element_function(body, held);
        self.fallible(Expr::call("out.put_optional", [value, encode]), item);
    }

    /// The function that encodes an element.
    fn element_function(&self, body: &Body, shape: &TypeShape) -> Expr {
        if let ([Op::Call { .. }], TypeShape::Named(_)) = (body.as_slice(), shape.real()) {
            self.with.rust.uses(&["wire::Marshal"]);
            return Expr::text("Marshal::encode");
        }
        let subject = PlaceBindings::whole(ItemOperand::behind("item", shape.clone(), None));
        Expr::closure("|item, out|", self.with.encode_item(body, &subject))
    }

    fn switch(&mut self, discriminant: Scalar, bodies: &[&Body], all: &UnionVariants) {
        let method = match self.with.is_checked(discriminant) {
            true => "out.put_word",
            false => "out.put",
        };
        self.call(method, [&"self.discriminant()".to_owned()]);
        let mut arms = Vec::new();
        for variant in &all.variants {
            if variant.value.is_none() {
                arms.extend(refused(all, variant));
            }
            arms.push((variant.pattern("_", "value"), self.arm(variant, bodies)));
        }
        let is_empty = |body: &BlockExpr| body.statements.is_empty() && body.value.is_none();
        if arms.iter().all(|(_, body)| is_empty(body)) {
            return;
        }
        let on = Box::new(Expr::text("self"));
        self.statement(Statement::Do(Expr::Match(on, arms)));
    }

    fn arm(&self, variant: &UnionVariant, bodies: &[&Body]) -> BlockExpr {
        let Some(shape) = &variant.held else {
            return BlockExpr::default();
        };
        let label = Some(variant.label.clone());
        let subject = PlaceBindings::whole(ItemOperand::behind("value", shape.clone(), label));
        let mut encoding = EncodeBuilder::new(self.with);
        encoding.operations(bodies[variant.arm], &subject);
        let mut body = encoding.statements();
        match body.statements.pop() {
            Some(Statement::Do(only)) if body.statements.is_empty() => BlockExpr::value(only),
            last => {
                body.statements.extend(last);
                body
            }
        }
    }
}

/// The arms of a `match` that keep the default variant from standing for another one.
fn refused<'a>(
    all: &'a UnionVariants,
    default: &'a UnionVariant,
) -> impl Iterator<Item = (String, BlockExpr)> + 'a {
    all.variants.iter().filter_map(|variant| {
        let (value, pattern) = variant.value.as_ref()?;
        let refuse = Expr::text(format!("Err(EncodeError::bad_discriminant({value}))"));
        Some((
            default.pattern(pattern, "_"),
            BlockExpr::value(Expr::Return(Box::new(refuse))),
        ))
    })
}

/// A reference to an item without its box.
fn whole(item: &ItemOperand) -> String {
    match item.shape.real() {
        TypeShape::Boxed(_) => format!("&*{}", item.value),
        _ => item.reference.clone(),
    }
}

/// A reference to an array that coerces to a slice.
fn slice(item: &ItemOperand) -> String {
    match item.shape.real() {
        TypeShape::Boxed(_) => format!("&{}[..]", item.receiver),
        _ => item.reference.clone(),
    }
}

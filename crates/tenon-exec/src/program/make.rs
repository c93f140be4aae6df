//! Making of programs from plans and layouts.

use std::borrow::Cow;
use std::collections::HashMap;

use tenon_plan::links::is_link;
use tenon_plan::{
    Arm, Blittable, BlockPart, Body as Ops, Count, FixedItem, FixedKind, Layout, Lists, Op,
    Order as WireOrder, Place, Plan, Plans, ReservedBlock, Scalar,
};
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use super::join::{join, settle};
use super::{
    BlockItem, EnumValueSet, InterpreterProgram, ListStep, NumberFormat, ProgramEntry, ProgramStep,
    ReceivedByteOrder, StepRange, UnionSwitch,
};
use crate::frame::MessageId;
use crate::frame::array::ArrayCodec;
use crate::layout::{CountedArray, MemoryModel, TypeLayouts};

impl InterpreterProgram {
    /// Resolves all plans, which the verifier has passed and which were [stripped](Plans::stripped)
    /// then.
    ///
    /// # Panics
    /// If they are not for this schema.
    pub fn new(schema: &Schema, plans: &Plans, layouts: &TypeLayouts) -> Self {
        let mut builder = ProgramBuilder {
            schema,
            plans,
            layouts,
            program: Self::empty(plans),
            members: HashMap::new(),
        };
        for (plan, id) in plans.types.iter().zip((0..).map(TypeId)) {
            builder.named(plan, id);
        }
        for (position, plan) in plans.procedures.iter().enumerate() {
            let version = &schema.programs[plan.program].versions[plan.version];
            let procedure = &version.procedures[plan.procedure];
            let arguments = Layout::Record(&procedure.arguments);
            let result = procedure.result.as_ref();
            let result = result.map_or(Layout::Nothing, Layout::Use);
            let entries = [
                (MessageId::Arguments(position), &plan.arguments, arguments),
                (MessageId::Result(position), &plan.result, result),
            ]
            .map(|(key, plan, layout)| {
                let value = (layout, builder.bytes_of(layout));
                builder.entry(key, plan, value, &procedure.name).into()
            });
            builder.program.procedures.push(entries);
        }
        builder.program.steps.iter_mut().for_each(settle);
        if !layouts.model().is_c() {
            builder.program.find_arrays();
        }
        builder.program
    }

    /// Finds the messages that are an array and no more.
    fn find_arrays(&mut self) {
        let received = match self.swaps_received {
            ReceivedByteOrder::Swapped(swapped) => [swapped; 2],
            ReceivedByteOrder::Senders => [false, true],
        };
        let roots = self.roots.iter_mut();
        for codec in roots.chain(self.procedures.iter_mut().flatten()) {
            let ProgramEntry { body, bytes, .. } = codec.entry;
            let steps = &self.steps[body.start as usize..][..body.length as usize];
            if bytes as usize == size_of::<CountedArray>() {
                codec.entry.array = array(steps, self.swaps_sent, received).unwrap_or_default();
            }
        }
    }

    fn empty(plans: &Plans) -> Self {
        let representation = &plans.representation;
        let little = cfg!(target_endian = "little");
        let (swaps_sent, swaps_received) = match representation.order {
            WireOrder::Big => (little, ReceivedByteOrder::Swapped(little)),
            WireOrder::Little => (!little, ReceivedByteOrder::Swapped(!little)),
            WireOrder::Sender => (false, ReceivedByteOrder::Senders),
        };
        Self {
            steps: Vec::new(),
            names: Vec::new(),
            texts: Vec::new(),
            types: Vec::new(),
            roots: Vec::new(),
            procedures: Vec::new(),
            switches: Vec::new(),
            lists: Vec::new(),
            runs: Vec::new(),
            members: Vec::new(),
            flag: NumberFormat::of(Scalar::Bool, representation, MemoryModel::Frame, |_| 0),
            padding: representation.padding,
            swaps_sent,
            swaps_received,
        }
    }
}

struct ProgramBuilder<'a> {
    schema: &'a Schema,
    plans: &'a Plans,
    layouts: &'a TypeLayouts,
    program: InterpreterProgram,
    /// The position of each enum's members.
    members: HashMap<TypeId, u32>,
}

/// A body in the making.
#[derive(Clone)]
struct BodyContext<'a> {
    /// Layout of `it`, the value that the body moves.
    layout: Layout<'a>,
    /// Offsets of its fields, if it is a record.
    starts: Cow<'a, [u64]>,
    /// The type or procedure of the plan that it belongs to.
    owner: &'a str,
    /// Name that an error has if no place gives a more precise one, as a position in `texts`.
    name: u32,
}

impl<'a> ProgramBuilder<'a> {
    fn named(&mut self, plan: &'a Plan, id: TypeId) {
        let name = &self.schema.type_def(id).name;
        let layout = Layout::of_type(self.schema, id);
        let bytes = narrow(self.layouts.named(id).size);
        let entry = self.entry(MessageId::Type(id), plan, (layout, bytes), name);
        self.program.types.push(entry);
        let root = match is_link(self.schema, id) {
            true => self.whole_list(id, entry),
            false => entry,
        };
        self.program.roots.push(root.into());
    }

    /// Makes the entry for a whole list of such elements, of which the first is not optional.
    fn whole_list(&mut self, element: TypeId, entry: ProgramEntry) -> ProgramEntry {
        let list = self.list(element, true, 0);
        let body = StepRange {
            start: self.here(),
            length: 1,
        };
        self.emit(list, entry.name);
        ProgramEntry {
            body,
            is_recursive: false,
            bytes: match self.layouts.model() {
                MemoryModel::Frame => size_of::<CountedArray>() as u32,
                MemoryModel::C(_) => entry.bytes,
            },
            ..entry
        }
    }

    fn entry(
        &mut self,
        key: MessageId,
        plan: &'a Plan,
        (layout, bytes): (Layout<'a>, u32),
        owner: &'a str,
    ) -> ProgramEntry {
        let name = self.text(owner.to_owned());
        let inside = self.inside(layout, owner, name);
        let body = self.body(&plan.body, &inside);
        ProgramEntry {
            key,
            body,
            is_recursive: plan.recursive,
            array: ArrayCodec::default(),
            bytes: bytes.max(1),
            name,
        }
    }

    fn inside(&self, layout: Layout<'a>, owner: &'a str, name: u32) -> BodyContext<'a> {
        let starts = match layout {
            Layout::Record(fields) => self.layouts.offsets(self.schema, fields).into(),
            Layout::Use(_) | Layout::Definition(_) | Layout::Nothing => Cow::Borrowed(&[][..]),
        };
        BodyContext {
            layout,
            starts,
            owner,
            name,
        }
    }

    fn bytes_of(&self, layout: Layout<'_>) -> u32 {
        narrow(self.layouts.extent(self.schema, layout).size)
    }

    fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    fn text(&mut self, text: String) -> u32 {
        self.program.texts.push(text);
        self.program.texts.len() as u32 - 1
    }

    fn emit(&mut self, step: ProgramStep, name: u32) {
        if let Some(last) = self.program.steps.last_mut()
            && let Some(both) = join(last, &step)
        {
            *last = both;
            return;
        }
        self.program.steps.push(step);
        self.program.names.push(name);
    }

    fn body(&mut self, body: &'a Ops, inside: &BodyContext<'a>) -> StepRange {
        let start = self.here();
        for op in body {
            self.op(op, inside);
        }
        self.steps_since(start)
    }

    fn steps_since(&self, start: u32) -> StepRange {
        StepRange {
            start,
            length: self.here() - start,
        }
    }

    /// A block with a check of its own. A message that ends inside a block ends before all of it; its first item gives
    /// the error a name.
    fn reserve(&mut self, block: &ReservedBlock, inside: &BodyContext<'a>) {
        let first = block.items().next();
        let name = self.name(inside, first.map(|item| &item.place));
        let bytes = block.bytes;
        self.emit(ProgramStep::Reserve { bytes }, name);
        self.parts(block, inside);
    }

    /// The parts of a block that is there. The interpreter trusts that they lie inside it, which is asserted here.
    fn parts(&mut self, block: &ReservedBlock, inside: &BodyContext<'a>) {
        for part in &block.parts {
            let end = u64::from(part.offset()) + part.bytes(&self.plans.representation);
            assert!(end <= block.bytes.into(), "verified plans");
            match part {
                BlockPart::Hole(hole) => {
                    let (bytes, offset) = (hole.bytes, hole.offset);
                    self.emit(ProgramStep::Zero { bytes, offset }, inside.name);
                }
                BlockPart::Item(item) => self.fixed(item, inside),
            }
        }
    }

    fn fixed(&mut self, item: &FixedItem, inside: &BodyContext<'a>) {
        let name = self.name(inside, Some(&item.place));
        let (_, at) = self.locate(inside, &item.place);
        let offset = item.offset;
        let step = match &item.kind {
            FixedKind::Put { scalar } => ProgramStep::Put {
                number: self.number(*scalar),
                at,
                offset,
            },
            FixedKind::PutArray { scalar, count } => ProgramStep::PutArray {
                number: self.number(*scalar),
                at,
                count: *count,
                offset,
            },
            FixedKind::Copy { bytes } => ProgramStep::Copy {
                at,
                bytes: *bytes,
                padding: narrow(self.plans.representation.padded((*bytes).into())) - *bytes,
                offset,
            },
            FixedKind::Blit { item, count } => ProgramStep::Blit {
                item: self.item(item),
                at,
                bytes: narrow(item.bytes() * u64::from(*count)),
                offset,
            },
        };
        self.emit(step, name);
    }

    /// Returns the name of an error at `place`, as a position in `texts`.
    fn name(&mut self, inside: &BodyContext<'a>, place: Option<&Place>) -> u32 {
        match place {
            Some(place) if !place.0.is_empty() => {
                let path = inside.layout.path(self.schema, place);
                let owner = self.struct_at(inside.layout).unwrap_or(inside.owner);
                self.text(format!("{owner}.{path}"))
            }
            _ => inside.name,
        }
    }

    /// The struct that `it` is, where it is moved field by field without being called.
    fn struct_at(&self, layout: Layout<'a>) -> Option<&'a str> {
        match layout {
            Layout::Use(ty) => match self.schema.resolve(ty) {
                Type::Named(id) => Some(&self.schema.type_def(*id).name),
                _ => None,
            },
            Layout::Nothing | Layout::Record(_) | Layout::Definition(_) => None,
        }
    }

    /// Returns the layout of the item at `place`, and its offset from `it`.
    fn locate(&self, inside: &BodyContext<'a>, place: &Place) -> (Layout<'a>, u32) {
        let (layout, start) = match (inside.layout, place.0.split_first()) {
            (Layout::Record(fields), Some((first, rest))) => {
                let (first, rest) = (*first as usize, Place(rest.to_vec()));
                let field = Layout::Use(&fields[first].ty);
                let (layout, start) = self.found(field, &rest);
                (layout, inside.starts[first] + start)
            }
            (layout, _) => self.found(layout, place),
        };
        (layout, narrow(start))
    }

    fn found(&self, layout: Layout<'a>, place: &Place) -> (Layout<'a>, u64) {
        match self.layouts.locate(self.schema, layout, place) {
            Some(found) => found,
            None => unreachable!("the verifier lets only places pass that exist"),
        }
    }

    fn element(&self, of: Layout<'a>) -> Layout<'a> {
        of.element(self.schema).unwrap_or(Layout::Nothing)
    }

    fn number(&mut self, scalar: Scalar) -> NumberFormat {
        let (schema, members, program) = (self.schema, &mut self.members, &mut self.program);
        let model = self.layouts.model();
        NumberFormat::of(scalar, &self.plans.representation, model, |id| {
            *members.entry(id).or_insert_with(|| {
                program.members.push(members_of(schema, id));
                program.members.len() as u32 - 1
            })
        })
    }

    fn item(&mut self, item: &Blittable) -> BlockItem {
        match item.unit() {
            Some(unit) => BlockItem::Units(unit),
            None => {
                self.program.runs.push(item.runs.as_slice().into());
                BlockItem::Runs(self.program.runs.len() as u32 - 1)
            }
        }
    }

    fn op(&mut self, op: &'a Op, inside: &BodyContext<'a>) {
        let name = self.name(inside, op.place());
        let place = op.place().map(|place| self.locate(inside, place));
        let (layout, at) = place.unwrap_or((Layout::Nothing, 0));
        let step = match op {
            Op::Reserve(block) => return self.reserve(block, inside),
            Op::Align { to, before } => ProgramStep::Align {
                to: *to,
                before: *before,
            },
            Op::PutCounted { scalar, bound, .. } => ProgramStep::PutCounted {
                number: self.number(*scalar),
                at,
                bound: *bound,
            },
            Op::CopyCounted {
                bound, text: true, ..
            } if self.layouts.model().is_c() => ProgramStep::Text { at, bound: *bound },
            Op::CopyCounted { bound, .. } => ProgramStep::CopyCounted { at, bound: *bound },
            Op::BlitCounted { item, bound, .. } => ProgramStep::BlitCounted {
                item: self.item(item),
                stride: narrow(item.bytes()),
                at,
                bound: *bound,
            },
            Op::List {
                first_bare,
                element,
                ..
            } => self.list(*element, *first_bare, at),
            Op::Call { plan, .. } => ProgramStep::Call { at, of: *plan },
            Op::External { .. } => ProgramStep::External,
            Op::PutElements {
                count,
                element: block,
                ..
            } => {
                let element = self.inside(self.element(layout), inside.owner, name);
                return self.elements(block, *count, &element, at);
            }
            Op::Loop {
                count,
                element: known,
                body,
                ..
            } => {
                let element = self.inside(self.element(layout), inside.owner, name);
                let (count, fewest) = (*count, known.min);
                return self.nested(body, &element, |stride, length| ProgramStep::Loop {
                    at,
                    count,
                    stride,
                    fewest,
                    length,
                });
            }
            Op::Optional { body, .. } => {
                let element = self.inside(self.element(layout), inside.owner, name);
                return self.nested(body, &element, |bytes, length| ProgramStep::Optional {
                    at,
                    bytes,
                    length,
                });
            }
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                let bodies = (arms.as_slice(), default.as_ref());
                return self.switch(*discriminant, bodies, layout, inside.owner, (at, name));
            }
        };
        self.emit(step, name);
    }

    fn list(&mut self, element: TypeId, first_bare: bool, at: u32) -> ProgramStep {
        let plan = self.plans.of_type(element);
        let list = ListStep {
            at,
            stride: narrow(self.layouts.named(element).size),
            link: match self.layouts.model() {
                MemoryModel::Frame => 0,
                MemoryModel::C(_) => narrow(self.layouts.link_offset(element)),
            },
            first_bare,
            is_flagged: self.plans.representation.lists == Lists::Flagged,
            element,
            fewest: u32::try_from(plan.size.min).unwrap_or(u32::MAX),
            align: plan.align,
        };
        self.program.lists.push(list);
        let list = self.program.lists.len() as u32 - 1;
        match self.layouts.model() {
            MemoryModel::Frame => ProgramStep::List { list },
            MemoryModel::C(_) => ProgramStep::Chain { list },
        }
    }

    /// Elements that are a block each.
    fn elements(
        &mut self,
        block: &ReservedBlock,
        count: Count,
        element: &BodyContext<'a>,
        at: u32,
    ) {
        let position = self.step_later(element.name);
        self.parts(block, element);
        let StepRange { length, .. } = self.steps_since(position + 1);
        self.program.steps[position as usize] = ProgramStep::PutElements {
            at,
            count,
            stride: self.bytes_of(element.layout),
            bytes: block.bytes,
            length,
        };
    }

    /// An operation with one body inside, where `it` is `element`; `step` makes it of the bytes of that in memory and
    /// the number of the steps inside.
    fn nested(
        &mut self,
        body: &'a Ops,
        element: &BodyContext<'a>,
        step: impl FnOnce(u32, u32) -> ProgramStep,
    ) {
        let position = self.step_later(element.name);
        let StepRange { length, .. } = self.body(body, element);
        let bytes = self.bytes_of(element.layout);
        self.program.steps[position as usize] = step(bytes, length);
    }

    /// Has a step stand here that is known when those behind it are made, and returns its position.
    fn step_later(&mut self, name: u32) -> u32 {
        let position = self.here();
        self.emit(ProgramStep::External, name);
        position
    }

    /// The body of the arm at a position of a union, which may lie behind a pointer.
    fn arm(
        &mut self,
        body: &'a Ops,
        inside: &BodyContext<'a>,
        (id, position): (TypeId, usize),
    ) -> StepRange {
        let boxed = self
            .layouts
            .boxed_arm(self.schema, id, position, inside.layout);
        let Some(bytes) = boxed else {
            return self.body(body, inside);
        };
        let start = self.step_later(inside.name);
        let StepRange { length, .. } = self.body(body, inside);
        self.program.steps[start as usize] = ProgramStep::Boxed {
            at: 0,
            bytes: narrow(bytes),
            length,
        };
        self.steps_since(start)
    }

    fn switch(
        &mut self,
        discriminant: Scalar,
        (arms, default): (&'a [Arm], Option<&'a Ops>),
        layout: Layout<'a>,
        owner: &'a str,
        (at, name): (u32, u32),
    ) {
        let union = layout.named(self.schema).zip(layout.union(self.schema));
        let Some((id, union)) = union else {
            unreachable!("the verifier lets only unions be switched");
        };
        let position = self.step_later(name);
        let mut cases = Vec::new();
        for (index, (Arm { values, body }, of)) in arms.iter().zip(&union.arms).enumerate() {
            let inside = self.inside(Layout::of_arm(of.field.as_ref()), owner, name);
            let body = self.arm(body, &inside, (id, index));
            cases.extend(values.iter().map(|value| (*value, body)));
        }
        // The first arm that has a value is selected by it.
        cases.sort_by_key(|case| case.0);
        cases.dedup_by_key(|case| case.0);
        let default = default.map(|body| {
            let field = union.default.as_ref().and_then(Option::as_ref);
            let inside = self.inside(Layout::of_arm(field), owner, name);
            self.arm(body, &inside, (id, union.arms.len()))
        });
        let discriminant = (discriminant, self.number(discriminant));
        self.program.switches.push(UnionSwitch {
            at,
            arms_at: at + narrow(self.layouts.arms_offset(id)),
            discriminant: discriminant.1,
            scalar: discriminant.0,
            cases,
            default,
        });
        self.program.steps[position as usize] = ProgramStep::Switch {
            switch: self.program.switches.len() as u32 - 1,
            length: self.here() - position - 1,
        };
    }
}

/// Returns the functions that move a message, if its steps move one array and nothing else.
fn array(steps: &[ProgramStep], sent: bool, received: [bool; 2]) -> Option<ArrayCodec> {
    let [
        ProgramStep::BlitCounted {
            item,
            stride: stride @ 1..,
            at: 0,
            bound,
        },
    ] = *steps
    else {
        return None;
    };
    let unit = match item {
        BlockItem::Units(unit) => Some(unit),
        BlockItem::Runs(_) => None,
    };
    Some(ArrayCodec::of((stride, bound), unit, sent, received))
}

/// Memory holds no item that does not fit; see [`TypeLayouts`].
pub(super) fn narrow(bytes: u64) -> u32 {
    match u32::try_from(bytes) {
        Ok(bytes) => bytes,
        Err(_) => unreachable!("layouts and plans refuse what is so large"),
    }
}

fn members_of(schema: &Schema, id: TypeId) -> EnumValueSet {
    match &schema.type_def(id).kind {
        TypeKind::Enum(members) => EnumValueSet::new(members.iter().map(|it| it.value).collect()),
        _ => EnumValueSet::new(Vec::new()),
    }
}

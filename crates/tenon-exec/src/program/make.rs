//! Making of programs from resolved plans: they are laid out flat, one step behind the other.

use std::collections::HashMap;

use tenon_plan::{Blittable, Count, FixedKind, Lists, Order as WireOrder, Scalar};
use tenon_schema::TypeId;

use super::join::{join, settle};
use super::{
    BlockItem, EnumValueSet, InterpreterProgram, ListStep, NumberFormat, ProgramEntry, ProgramStep,
    ReceivedByteOrder, StepRange, UnionSwitch,
};
use crate::frame::MessageId;
use crate::frame::array::ArrayCodec;
use crate::layout::{CountedArray, MemoryModel};
use crate::resolved::{
    ResolvedArm, ResolvedBlock, ResolvedFixedItem, ResolvedItem, ResolvedKind, ResolvedOp,
    ResolvedPart, ResolvedPlan, ResolvedPlans, ResolvedSwitch, narrow,
};

impl InterpreterProgram {
    /// Makes the program of an interface.
    pub fn new(plans: &ResolvedPlans) -> Self {
        let mut builder = ProgramBuilder {
            plans,
            program: Self::empty(plans),
            members: HashMap::new(),
        };
        for (plan, id) in plans.types.iter().zip((0..).map(TypeId)) {
            builder.named(plan, id);
        }
        for (position, plans) in plans.procedures.iter().enumerate() {
            let keys = [MessageId::Arguments(position), MessageId::Result(position)];
            let [arguments, result] = plans;
            let entries = [(keys[0], arguments), (keys[1], result)]
                .map(|(key, plan)| builder.entry(key, plan).into());
            builder.program.procedures.push(entries);
        }
        builder.program.steps.iter_mut().for_each(settle);
        if !plans.model.is_c() {
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

    fn empty(plans: &ResolvedPlans) -> Self {
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
    plans: &'a ResolvedPlans,
    program: InterpreterProgram,
    /// The position of each enum's members.
    members: HashMap<TypeId, u32>,
}

impl<'a> ProgramBuilder<'a> {
    fn named(&mut self, plan: &'a ResolvedPlan, id: TypeId) {
        let entry = self.entry(MessageId::Type(id), plan);
        self.program.types.push(entry);
        let root = match plan.link {
            Some(_) => self.whole_list(id, entry),
            None => entry,
        };
        self.program.roots.push(root.into());
    }

    /// Makes the entry for a whole list of such elements, of which the first is not optional.
    fn whole_list(&mut self, element: TypeId, entry: ProgramEntry) -> ProgramEntry {
        let list = self.list(element, true, 0);
        let start = self.here();
        self.emit(list, entry.name);
        ProgramEntry {
            body: self.steps_since(start),
            is_recursive: false,
            bytes: match self.plans.model {
                MemoryModel::Frame => size_of::<CountedArray>() as u32,
                MemoryModel::C(_) => entry.bytes,
            },
            ..entry
        }
    }

    fn entry(&mut self, key: MessageId, plan: &'a ResolvedPlan) -> ProgramEntry {
        let name = self.text(&plan.name);
        ProgramEntry {
            key,
            body: self.body(&plan.body, name),
            is_recursive: plan.recursive,
            array: ArrayCodec::default(),
            bytes: plan.bytes.max(1),
            name,
        }
    }

    fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    fn steps_since(&self, start: u32) -> StepRange {
        StepRange {
            start,
            length: self.here() - start,
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        self.program.texts.push(text.to_owned());
        self.program.texts.len() as u32 - 1
    }

    /// Returns the name of an item as a position in `texts`: that of what it lies in, if it has none of its own.
    fn name(&mut self, own: Option<&String>, outside: u32) -> u32 {
        own.map_or(outside, |own| self.text(own))
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

    /// Has a step stand here that is known when those behind it are made, and returns its position.
    fn step_later(&mut self, name: u32) -> u32 {
        let position = self.here();
        self.emit(ProgramStep::External, name);
        position
    }

    /// The steps of a body; `name` is that of the value that it moves.
    fn body(&mut self, body: &'a [ResolvedOp], name: u32) -> StepRange {
        let start = self.here();
        for op in body {
            match op {
                ResolvedOp::Reserve(block) => self.reserve(block, name),
                ResolvedOp::Align { to, before } => {
                    let (to, before) = (*to, *before);
                    self.emit(ProgramStep::Align { to, before }, name);
                }
                ResolvedOp::Item(item) => self.item(item, name),
            }
        }
        self.steps_since(start)
    }

    /// A block with a check of its own. A message that ends inside a block ends before all of it; its first item gives
    /// the error a name.
    fn reserve(&mut self, block: &ResolvedBlock, outside: u32) {
        let first = block.parts.iter().find_map(|part| match part {
            ResolvedPart::Hole(_) => None,
            ResolvedPart::Item(item) => Some(item),
        });
        let name = self.name(first.and_then(|item| item.name.as_ref()), outside);
        let bytes = block.bytes;
        self.emit(ProgramStep::Reserve { bytes }, name);
        self.parts(block, outside);
    }

    /// The parts of a block that is there.
    fn parts(&mut self, block: &ResolvedBlock, outside: u32) {
        for part in &block.parts {
            match part {
                ResolvedPart::Hole(hole) => {
                    let (bytes, offset) = (hole.bytes, hole.offset);
                    self.emit(ProgramStep::Zero { bytes, offset }, outside);
                }
                ResolvedPart::Item(item) => self.fixed(item, outside),
            }
        }
    }

    fn fixed(&mut self, item: &ResolvedFixedItem, outside: u32) {
        let name = self.name(item.name.as_ref(), outside);
        let (at, offset) = (item.at, item.offset);
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
                item: self.block_item(item),
                at,
                bytes: narrow(item.bytes() * u64::from(*count)),
                offset,
            },
        };
        self.emit(step, name);
    }

    fn number(&mut self, scalar: Scalar) -> NumberFormat {
        let (plans, members, program) = (self.plans, &mut self.members, &mut self.program);
        NumberFormat::of(scalar, &plans.representation, plans.model, |id| {
            *members.entry(id).or_insert_with(|| {
                let values = plans.members[id.0 as usize].to_vec();
                program.members.push(EnumValueSet::new(values));
                program.members.len() as u32 - 1
            })
        })
    }

    fn block_item(&mut self, item: &Blittable) -> BlockItem {
        match item.unit() {
            Some(unit) => BlockItem::Units(unit),
            None => {
                self.program.runs.push(item.runs.as_slice().into());
                BlockItem::Runs(self.program.runs.len() as u32 - 1)
            }
        }
    }

    fn item(&mut self, item: &'a ResolvedItem, outside: u32) {
        let name = self.name(item.name.as_ref(), outside);
        let at = item.at;
        let step = match &item.kind {
            ResolvedKind::PutCounted { scalar, bound } => ProgramStep::PutCounted {
                number: self.number(*scalar),
                at,
                bound: *bound,
            },
            ResolvedKind::CopyCounted { bound, text: true } if self.plans.model.is_c() => {
                ProgramStep::Text { at, bound: *bound }
            }
            ResolvedKind::CopyCounted { bound, .. } => {
                ProgramStep::CopyCounted { at, bound: *bound }
            }
            ResolvedKind::BlitCounted { item, bound } => ProgramStep::BlitCounted {
                item: self.block_item(item),
                stride: narrow(item.bytes()),
                at,
                bound: *bound,
            },
            ResolvedKind::List {
                first_bare,
                element,
            } => self.list(*element, *first_bare, at),
            ResolvedKind::Call { plan } => ProgramStep::Call { at, of: *plan },
            ResolvedKind::External => ProgramStep::External,
            ResolvedKind::PutElements {
                count,
                stride,
                element,
            } => return self.elements((*count, *stride), element, (at, name)),
            ResolvedKind::Loop {
                count,
                fewest,
                stride,
                body,
            } => {
                let (count, fewest, stride) = (*count, *fewest, *stride);
                return self.nested(body, name, |length| ProgramStep::Loop {
                    at,
                    count,
                    stride,
                    fewest,
                    length,
                });
            }
            ResolvedKind::Optional { bytes, body } => {
                let bytes = *bytes;
                return self.nested(body, name, |length| ProgramStep::Optional {
                    at,
                    bytes,
                    length,
                });
            }
            ResolvedKind::Switch(switch) => return self.switch(switch, (at, name)),
        };
        self.emit(step, name);
    }

    fn list(&mut self, element: TypeId, first_bare: bool, at: u32) -> ProgramStep {
        let plan = self.plans.of_type(element);
        let list = ListStep {
            at,
            stride: plan.bytes,
            link: plan.link.unwrap_or(0),
            first_bare,
            is_flagged: self.plans.representation.lists == Lists::Flagged,
            element,
            fewest: u32::try_from(plan.fewest).unwrap_or(u32::MAX),
            align: plan.align,
        };
        self.program.lists.push(list);
        let list = self.program.lists.len() as u32 - 1;
        match self.plans.model {
            MemoryModel::Frame => ProgramStep::List { list },
            MemoryModel::C(_) => ProgramStep::Chain { list },
        }
    }

    /// Elements that are a block each.
    fn elements(
        &mut self,
        (count, stride): (Count, u32),
        block: &ResolvedBlock,
        (at, name): (u32, u32),
    ) {
        let position = self.step_later(name);
        self.parts(block, name);
        let StepRange { length, .. } = self.steps_since(position + 1);
        self.program.steps[position as usize] = ProgramStep::PutElements {
            at,
            count,
            stride,
            bytes: block.bytes,
            length,
        };
    }

    /// A step with one body inside; `step` makes it of the number of the steps there.
    fn nested(&mut self, body: &'a [ResolvedOp], name: u32, step: impl FnOnce(u32) -> ProgramStep) {
        let position = self.step_later(name);
        let StepRange { length, .. } = self.body(body, name);
        self.program.steps[position as usize] = step(length);
    }

    /// The steps of an arm, which may lie behind a pointer.
    fn arm(&mut self, arm: &'a ResolvedArm, name: u32) -> StepRange {
        let Some(bytes) = arm.boxed else {
            return self.body(&arm.body, name);
        };
        let start = self.here();
        self.nested(&arm.body, name, |length| ProgramStep::Boxed {
            at: 0,
            bytes,
            length,
        });
        self.steps_since(start)
    }

    fn switch(&mut self, switch: &'a ResolvedSwitch, (at, name): (u32, u32)) {
        let position = self.step_later(name);
        let mut cases = Vec::new();
        for arm in &switch.arms {
            let body = self.arm(arm, name);
            cases.extend(arm.values.iter().map(|value| (*value, body)));
        }
        // The first arm that has a value is selected by it.
        cases.sort_by_key(|case| case.0);
        cases.dedup_by_key(|case| case.0);
        let default = switch.default.as_ref().map(|arm| self.arm(arm, name));
        let discriminant = self.number(switch.discriminant);
        self.program.switches.push(UnionSwitch {
            at,
            arms_at: at + switch.arms_at,
            discriminant,
            scalar: switch.discriminant,
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

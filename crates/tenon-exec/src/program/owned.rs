//! The memory that values in C's layout own, found in their programs: the steps by which it is freed.

use std::collections::HashMap;

use tenon_plan::Count;
use tenon_schema::TypeId;

use super::{InterpreterProgram, ProgramEntry, ProgramStep, StepRange, UnionSwitch};
use crate::frame::MessageId;

/// The steps that free what values own, of all entries of a program.
#[derive(Debug)]
pub(crate) struct OwnedMemory {
    /// Of a value of each named type; of a link, of an element without the others.
    types: Vec<Box<[FreeStep]>>,
    /// Of whole messages of each named type.
    roots: Vec<Box<[FreeStep]>>,
    /// Of the arguments and the result of each procedure.
    procedures: Vec<[Box<[FreeStep]>; 2]>,
}

/// One piece of memory that a value owns. `at` is the offset in the value.
#[derive(Debug)]
pub(crate) enum FreeStep {
    /// Behind a pointer, with what that owns in turn.
    Pointer { at: u32, inner: Box<[FreeStep]> },
    /// The items of a counted array.
    Items {
        at: u32,
        stride: u32,
        inner: Box<[FreeStep]>,
    },
    /// What each of so many items in place owns.
    Each {
        at: u32,
        count: u32,
        stride: u32,
        inner: Box<[FreeStep]>,
    },
    /// What the arm of a union owns that is selected. The union is given by its position among the switches.
    Arms { switch: u32, arms: FreeArms },
    /// The elements of a list, linked by pointers at offset `link`.
    Chain {
        at: u32,
        first_bare: bool,
        link: u32,
        element: TypeId,
    },
    /// What a value of a named type owns.
    Named { at: u32, of: TypeId },
}

/// What the arms of a union own.
#[derive(Debug)]
pub(crate) struct FreeArms {
    /// The position of the arm that each value selects, in ascending order of the values.
    cases: Box<[(i32, usize)]>,
    arms: Vec<Box<[FreeStep]>>,
    default: Box<[FreeStep]>,
}

impl FreeArms {
    /// Returns the steps for the arm that `value` selects.
    pub fn select(&self, value: i32) -> &[FreeStep] {
        match self.cases.binary_search_by_key(&value, |case| case.0) {
            Ok(position) => &self.arms[self.cases[position].1],
            Err(_) => &self.default,
        }
    }
}

impl OwnedMemory {
    /// Finds what the values of a program own that a program in C holds.
    pub fn of(program: &InterpreterProgram) -> Self {
        let owners = Owners::of(program);
        let free = |entry: &ProgramEntry| owners.steps(program, program.steps_of(entry));
        Self {
            types: program.types.iter().map(free).collect(),
            roots: program
                .roots
                .iter()
                .map(|codec| free(&codec.entry))
                .collect(),
            procedures: program
                .procedures
                .iter()
                .map(|codecs| codecs.each_ref().map(|codec| free(&codec.entry)))
                .collect(),
        }
    }

    /// The steps for a value of a named type; of a link, for an element without the others.
    pub fn of_type(&self, id: TypeId) -> &[FreeStep] {
        &self.types[id.0 as usize]
    }

    /// The steps for a message; none if its values own nothing.
    pub fn of_message(&self, key: MessageId) -> &[FreeStep] {
        match key {
            MessageId::Type(id) => &self.roots[id.0 as usize],
            MessageId::Arguments(at) => &self.procedures[at][0],
            MessageId::Result(at) => &self.procedures[at][1],
        }
    }
}

/// The named types of values that own memory.
struct Owners(Vec<bool>);

impl Owners {
    /// Goes from those that own some themselves to those that hold them.
    fn of(program: &InterpreterProgram) -> Self {
        let mut holders = vec![Vec::new(); program.types.len()];
        let mut owners = vec![false; program.types.len()];
        let mut found = Vec::new();
        for (holder, entry) in program.types.iter().enumerate() {
            // What lies inside of operations and arms is among the steps.
            for step in program.steps_of(entry) {
                if let ProgramStep::Call { of, .. } = step {
                    holders[of.0 as usize].push(holder);
                }
            }
            if program.steps_of(entry).iter().any(takes_memory) {
                found.push(holder);
            }
        }
        while let Some(owner) = found.pop() {
            if !std::mem::replace(&mut owners[owner], true) {
                found.extend_from_slice(&holders[owner]);
            }
        }
        Self(owners)
    }

    /// The steps that free what a value owns that `steps` move.
    fn steps(&self, program: &InterpreterProgram, mut steps: &[ProgramStep]) -> Box<[FreeStep]> {
        let mut free = Vec::new();
        while let [step, rest @ ..] = steps {
            let inside = step.inside().min(rest.len());
            let (inner, behind) = rest.split_at(inside);
            steps = behind;
            free.extend(self.step(program, step, inner));
        }
        free.into()
    }

    fn step(
        &self,
        program: &InterpreterProgram,
        step: &ProgramStep,
        inner: &[ProgramStep],
    ) -> Option<FreeStep> {
        let pointer = |at, inner| FreeStep::Pointer { at, inner };
        let items = |at, stride, inner| FreeStep::Items { at, stride, inner };
        let nothing = Box::default;
        Some(match *step {
            ProgramStep::Text { at, .. } => pointer(at, nothing()),
            ProgramStep::PutCounted { at, .. }
            | ProgramStep::CopyCounted { at, .. }
            | ProgramStep::BlitCounted { at, .. } => items(at, 0, nothing()),
            ProgramStep::PutElements {
                at, count, stride, ..
            }
            | ProgramStep::Loop {
                at, count, stride, ..
            } => {
                let inner = self.steps(program, inner);
                match count {
                    Count::Counted(_) => items(at, stride, inner),
                    Count::Fixed(_) if inner.is_empty() => return None,
                    Count::Fixed(count) => FreeStep::Each {
                        at,
                        count,
                        stride,
                        inner,
                    },
                }
            }
            ProgramStep::Optional { at, .. } | ProgramStep::Boxed { at, .. } => {
                pointer(at, self.steps(program, inner))
            }
            ProgramStep::Switch { switch, .. } => {
                let arms = self.arms(program, program.switch(switch));
                let owns = arms.arms.iter().any(|arm| !arm.is_empty());
                if !owns && arms.default.is_empty() {
                    return None;
                }
                FreeStep::Arms { switch, arms }
            }
            ProgramStep::Chain { list } => {
                let list = program.list(list);
                FreeStep::Chain {
                    at: list.at,
                    first_bare: list.first_bare,
                    link: list.link,
                    element: list.element,
                }
            }
            ProgramStep::Call { at, of } if self.0[of.0 as usize] => FreeStep::Named { at, of },
            _ => return None,
        })
    }

    fn arms(&self, program: &InterpreterProgram, switch: &UnionSwitch) -> FreeArms {
        let steps = |arm: &StepRange| self.steps(program, program.steps(*arm));
        let (mut arms, mut known) = (Vec::new(), HashMap::new());
        let cases = switch.cases.iter().map(|(value, arm)| {
            // Many values may select one arm.
            let position = *known.entry(*arm).or_insert_with(|| {
                arms.push(steps(arm));
                arms.len() - 1
            });
            (*value, position)
        });
        FreeArms {
            cases: cases.collect(),
            arms,
            default: switch.default.as_ref().map(steps).unwrap_or_default(),
        }
    }
}

/// Returns whether memory is taken for the value that a step moves.
fn takes_memory(step: &ProgramStep) -> bool {
    match step {
        ProgramStep::Text { .. } | ProgramStep::Chain { .. } => true,
        ProgramStep::PutCounted { .. } | ProgramStep::CopyCounted { .. } => true,
        ProgramStep::BlitCounted { .. } => true,
        ProgramStep::Optional { .. } | ProgramStep::Boxed { .. } => true,
        ProgramStep::PutElements { count, .. } | ProgramStep::Loop { count, .. } => {
            matches!(count, Count::Counted(_))
        }
        ProgramStep::Reserve { .. } | ProgramStep::Align { .. } | ProgramStep::Zero { .. } => false,
        ProgramStep::Put { .. } | ProgramStep::PutArray { .. } => false,
        ProgramStep::Copy { .. } | ProgramStep::Blit { .. } => false,
        ProgramStep::Switch { .. } | ProgramStep::List { .. } => false,
        ProgramStep::Call { .. } | ProgramStep::External => false,
    }
}

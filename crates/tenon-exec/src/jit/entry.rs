//! Entries: the functions that a program calls. They are told everything in registers, and leave it
//! there unless something that they call has to know it: so a message of plain items costs little
//! more than its items.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value, types};
use tenon_plan::{Body, Count, Op, Plan};

use super::context::{Cursor, Decoding, Encoding};
use super::emit::{Around, Emitter, Registers, Spot};
use super::given::{Given, Way};
use super::helpers::{Helper, REWIND};
use super::linker::Routine;
use crate::frame::Place;
use crate::frame::arena::Arena;
use crate::frame::array::Whole;
use crate::layout::Counted;

/// Words that an entry takes.
pub(super) const PARAMETERS: usize = 6;

impl Way {
    /// Words that an entry gives.
    pub fn given(self) -> usize {
        match self {
            Self::Encode { .. } => 1,
            Self::Decode { .. } => 2,
        }
    }
}

/// What an entry is made of.
enum Manner {
    /// The message is an array of what moves as a block: what moves such arrays is called.
    Array(Whole, Helper),
    /// All that it needs fits into registers.
    Registers,
    /// It needs a context, and does all itself.
    Context,
    /// It needs a context, for what does all.
    Call,
}

impl<'a> Emitter<'a, '_> {
    /// All of an entry for a message of so many bytes that `routine` moves.
    pub fn entry(mut self, parameters: &[Value], routine: Routine, bytes: u32) {
        let &[place, at, end, base, modes, more] = parameters else {
            unreachable!("an entry has so many parameters");
        };
        self.set_cursor(at);
        let [behind, before] = [end, base].map(|value| {
            let variable = self.builder.declare_var(types::I64);
            self.builder.def_var(variable, value);
            variable
        });
        let manner = self.given.manner(self.way, routine, bytes);
        let given = match (self.way, &manner) {
            (way, Manner::Array(array, helper)) => {
                let (bound, stride) = (
                    self.word(array.bound.into()),
                    self.word(array.stride.into()),
                );
                self.call_for(way.given(), *helper, &[place, at, end, bound, stride, more])
            }
            (Way::Encode { .. }, manner) => {
                self.around = Around::Registers(Registers {
                    end: behind,
                    base: before,
                    more,
                });
                self.make_room_for(routine);
                self.put_context(manner, modes);
                let root = self.root(place, bytes);
                self.moved(manner, routine, root);
                vec![self.cursor()]
            }
            (Way::Decode { .. }, manner) => {
                let left = self.pay_for(bytes, more);
                self.around = Around::Registers(Registers {
                    end: behind,
                    base: before,
                    more: self.strictness(modes),
                });
                self.get_context(manner, place, (modes, left));
                let root = self.root(place, bytes);
                self.moved(manner, routine, root);
                vec![self.cursor(), self.memory_left(left)]
            }
        };
        self.finish(&given);
    }

    /// Makes the room that an encoder is entered with, if it is.
    fn make_room_for(&mut self, routine: Routine) {
        if let Some(room) = self.given.room_for(routine) {
            if room > 0 {
                let room = self.word(room);
                self.make_room(room);
            }
            self.covered = true;
        }
    }

    /// The memory that is still paid for, of which so much was left before anything was taken.
    fn memory_left(&mut self, before: Value) -> Value {
        match self.around {
            Around::Context(_) => {
                self.load_field(types::I64, offset_of!(Decoding<'_>, memory_left))
            }
            Around::Registers(_) => before,
        }
    }

    fn moved(&mut self, manner: &Manner, routine: Routine, root: Spot) {
        match manner {
            Manner::Call => self.call_routine(routine, root),
            Manner::Registers | Manner::Context | Manner::Array(..) => self.routine(routine, root),
        }
    }

    /// Where the value itself is.
    fn root(&mut self, place: Value, bytes: u32) -> Spot {
        match bytes as usize <= Place::SMALL_BYTES {
            true => Spot::at(place).plus(Place::SMALL as u64),
            false => {
                let large = Spot::at(place).plus(Place::LARGE as u64);
                Spot::at(self.load(types::I64, large))
            }
        }
    }

    /// What is left of the memory that is paid for.
    fn pay_for(&mut self, bytes: u32, left: Value) -> Value {
        let under = IntCC::UnsignedLessThan;
        let bytes = i64::from(bytes);
        let bad = self.builder.ins().icmp_imm(under, left, bytes);
        self.refuse_if(bad);
        self.builder.ins().iadd_imm(left, -bytes)
    }

    /// All ones if nothing is forgiven.
    fn strictness(&mut self, modes: Value) -> Value {
        let strict = self.builder.ins().ushr_imm(modes, 32);
        self.builder.ins().ineg(strict)
    }

    /// Keeps a context, if one is needed.
    fn put_context(&mut self, manner: &Manner, depth: Value) {
        let Around::Registers(registers) = self.around else {
            return;
        };
        if manner.needs_context() {
            let out = registers.more;
            self.keep(size_of::<Encoding<'_>>(), registers, depth);
            self.store_field(offset_of!(Encoding<'_>, out), out);
        }
    }

    /// As above. What was read before is forgotten.
    fn get_context(&mut self, manner: &Manner, place: Value, (modes, left): (Value, Value)) {
        let Around::Registers(registers) = self.around else {
            return;
        };
        if manner.needs_context() {
            let arena = self.address(Spot::at(place).plus(Place::ARENA as u64));
            let first = Spot::at(arena).plus(offset_of!(Arena, first) as u64);
            let first = self.load(types::I64, first);
            self.seldom(first, |this| {
                this.call_helper(REWIND, &[arena]);
            });
            let strict = registers.more;
            self.keep(size_of::<Decoding<'_>>(), registers, modes);
            self.store_field(offset_of!(Decoding<'_>, strict), strict);
            self.store_field(offset_of!(Decoding<'_>, memory_left), left);
            self.store_field(offset_of!(Decoding<'_>, arena), arena);
        }
    }

    /// Begins a context of so many bytes with what both directions have.
    fn keep(&mut self, bytes: usize, registers: Registers, depth: Value) {
        let kind = StackSlotKind::ExplicitSlot;
        let slot = StackSlotData::new(kind, bytes as u32, 3);
        let slot = self.builder.create_sized_stack_slot(slot);
        let context = self.builder.ins().stack_addr(types::I64, slot, 0);
        let end = self.builder.use_var(registers.end);
        let base = self.builder.use_var(registers.base);
        let depth = self.builder.ins().ireduce(types::I32, depth);
        self.around = Around::Context(context);
        self.store_field(offset_of!(Cursor, end), end);
        self.store_field(offset_of!(Cursor, base), base);
        self.store_field(offset_of!(Cursor, depth_left), depth);
    }
}

impl Manner {
    fn needs_context(&self) -> bool {
        match self {
            Self::Array(..) | Self::Registers => false,
            Self::Context | Self::Call => true,
        }
    }
}

impl Given {
    /// The entry for a message of so many bytes that is there before anything is made.
    pub fn ready_entry(&self, way: Way, routine: Routine, bytes: u32) -> Option<*const u8> {
        let array = self.whole(way, routine, bytes)?;
        match way {
            Way::Encode { .. } => array.put_plain().map(|put| put as *const u8),
            Way::Decode { .. } => array.get_plain().map(|get| get as *const u8),
        }
    }

    fn manner(&self, way: Way, routine: Routine, bytes: u32) -> Manner {
        let whole = self.whole(way, routine, bytes);
        let address = whole.and_then(|array| match way {
            Way::Encode { .. } => array.put().map(|put| put as *const u8),
            Way::Decode { .. } => array.get().map(|get| get as *const u8),
        });
        if let Some((array, address)) = whole.zip(address) {
            let parameters = PARAMETERS;
            let helper = Helper {
                address,
                parameters,
            };
            return Manner::Array(array, helper);
        }
        let is_list = matches!(routine, Routine::List(_));
        if !is_list && self.is_alone(way, self.routine(routine).0) {
            return Manner::Registers;
        }
        match self.is_called(routine) {
            true => Manner::Call,
            false => Manner::Context,
        }
    }

    /// The array that a message of so many bytes is, if it is that alone and one kernel moves it.
    fn whole(&self, way: Way, routine: Routine, bytes: u32) -> Option<Whole> {
        // What a list's plan moves is one of its elements, which may be such an array.
        if matches!(routine, Routine::List(_)) {
            return None;
        }
        let (plan, layout) = self.routine(routine);
        let [op] = plan.body.as_slice() else {
            return None;
        };
        let (place, bound, item) = match op {
            Op::BlitCounted { place, item, bound } => (place, *bound, item.clone()),
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => (place, *bound, self.plain(*scalar)?),
            _ => return None,
        };
        let (_, offset) = self.layouts.locate(&self.schema, layout, place)?;
        let is_all = offset == 0 && bytes as usize == size_of::<Counted>();
        let stride = u32::try_from(item.bytes()).ok()?;
        if plan.recursive || !is_all || stride == 0 {
            return None;
        }
        let unit = match way.swapped() {
            true => item.unit()?,
            false => 1,
        };
        Some(Whole {
            swapped: way.swapped(),
            unit,
            stride,
            bound,
        })
    }

    /// Whether all that a body does can be done without a context: nothing is called that would have
    /// to know it, no memory is taken, and no levels are counted.
    fn is_alone(&self, way: Way, plan: &Plan) -> bool {
        !plan.recursive && self.are_alone(way, &plan.body)
    }

    fn are_alone(&self, way: Way, body: &Body) -> bool {
        let takes_memory = matches!(way, Way::Decode { .. });
        let is_fixed = |count: &Count| matches!(count, Count::Fixed(_));
        body.iter().all(|op| match op {
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } => true,
            Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => true,
            Op::BlitCounted { .. } | Op::PutCounted { .. } => !takes_memory,
            Op::PutElements { count, body, .. } | Op::Loop { count, body, .. } => {
                (is_fixed(count) || !takes_memory) && self.are_alone(way, body)
            }
            Op::Switch { arms, default, .. } => {
                let mut bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.all(|body| self.are_alone(way, body))
            }
            Op::Optional { body, .. } => !takes_memory && self.are_alone(way, body),
            Op::Call { plan, .. } => {
                self.is_inlined(*plan) && self.is_alone(way, self.plans.of_type(*plan))
            }
            Op::CopyCounted { .. } | Op::List { .. } => false,
            Op::External { .. } => true,
        })
    }
}

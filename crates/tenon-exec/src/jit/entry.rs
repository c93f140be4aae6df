//! Entries: the functions that a program calls. They take their state in registers, and leave it there unless a
//! function that they call needs it: so a message of plain items costs little more than its items.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value, types};
use tenon_plan::Count;

use super::context::{ContextHeader, DecodeContext, EncodeContext};
use super::emit::{ContextLocation, ContextRegisters, FunctionEmitter, MemoryOperand};
use super::given::{CompilationInput, MarshalDirection};
use super::helpers::{HelperFunction, REWIND};
use super::linker::RoutineId;
use crate::frame::arena::FrameArena;
use crate::frame::array::ArrayMessage;
use crate::frame::{CSource, CTarget, FrameStorage};
use crate::layout::CountedArray;
use crate::resolved::{ResolvedItem, ResolvedKind, ResolvedOp, ResolvedPlan};

/// Words that an entry takes.
pub(super) const PARAMETERS: usize = 6;

impl MarshalDirection {
    /// Words that an entry returns.
    pub fn given(self) -> usize {
        match self {
            Self::Encode { .. } => 1,
            Self::Decode { .. } => 2,
        }
    }
}

/// The way in which an entry does its work.
enum EntryStrategy {
    /// The message is an array that moves as a block: it calls the function for such arrays.
    Array(ArrayMessage, HelperFunction),
    /// All its state fits into registers.
    Registers,
    /// It needs a context, and does all itself.
    Context,
    /// It makes a context, and calls the function that does all.
    Call,
}

impl<'a> FunctionEmitter<'a, '_> {
    /// Emits all of an entry for a message of so many bytes that `routine` moves.
    pub fn entry(mut self, parameters: &[Value], routine: RoutineId, bytes: u32) {
        let &[storage, at, end, base, modes, more] = parameters else {
            unreachable!("an entry has so many parameters");
        };
        self.set_cursor(at);
        let [behind, before] = [end, base].map(|value| {
            let variable = self.builder.declare_var(types::I64);
            self.builder.def_var(variable, value);
            variable
        });
        let strategy = self.given.strategy(self.way, routine, bytes);
        let given = match (self.way, &strategy) {
            (way, EntryStrategy::Array(array, helper)) => {
                let (bound, stride) = (
                    self.word(array.bound.into()),
                    self.word(array.stride.into()),
                );
                self.call_for(
                    way.given(),
                    *helper,
                    &[storage, at, end, bound, stride, more],
                )
            }
            (MarshalDirection::Encode { .. }, strategy) => {
                self.location = ContextLocation::Registers(ContextRegisters {
                    end: behind,
                    base: before,
                    more,
                });
                self.make_room_for(routine);
                self.put_context(strategy, storage, modes);
                let root = self.root(storage, bytes);
                self.moved(strategy, routine, root);
                vec![self.cursor()]
            }
            (MarshalDirection::Decode { .. }, strategy) => {
                let left = self.pay_for(bytes, more);
                self.location = ContextLocation::Registers(ContextRegisters {
                    end: behind,
                    base: before,
                    more: self.strictness(modes),
                });
                self.get_context(strategy, storage, (modes, left));
                let root = self.root(storage, bytes);
                self.moved(strategy, routine, root);
                vec![self.cursor(), self.memory_left(left)]
            }
        };
        self.finish(&given);
    }

    /// Makes the room that the encoder of a routine expects from its caller, if it does.
    fn make_room_for(&mut self, routine: RoutineId) {
        if let Some(room) = self.given.room_for(routine) {
            if room > 0 {
                let room = self.word(room);
                self.make_room(room);
            }
            self.covered = true;
        }
    }

    /// The memory that is still paid for; `before` was left before anything was taken.
    fn memory_left(&mut self, before: Value) -> Value {
        match self.location {
            ContextLocation::Context(_) => {
                self.load_field(types::I64, offset_of!(DecodeContext<'_>, memory_left))
            }
            ContextLocation::Registers(_) => before,
        }
    }

    fn moved(&mut self, strategy: &EntryStrategy, routine: RoutineId, root: MemoryOperand) {
        match strategy {
            EntryStrategy::Call => self.call_routine(routine, root),
            EntryStrategy::Registers | EntryStrategy::Context | EntryStrategy::Array(..) => {
                self.routine(routine, root)
            }
        }
    }

    /// Address of the value itself.
    fn root(&mut self, storage: Value, bytes: u32) -> MemoryOperand {
        if self.given.is_c() {
            const { assert!(offset_of!(CSource, value) == offset_of!(CTarget, value)) };
            let value = MemoryOperand::at(storage).plus(offset_of!(CSource, value) as u64);
            return MemoryOperand::at(self.load(types::I64, value));
        }
        match bytes as usize <= FrameStorage::SMALL_BYTES {
            true => MemoryOperand::at(storage).plus(FrameStorage::SMALL as u64),
            false => {
                let large = MemoryOperand::at(storage).plus(FrameStorage::LARGE as u64);
                MemoryOperand::at(self.load(types::I64, large))
            }
        }
    }

    /// Takes the price of the value itself out of the memory that is paid for, and returns the rest.
    fn pay_for(&mut self, bytes: u32, left: Value) -> Value {
        // A program in C has the room.
        if self.given.is_c() {
            return left;
        }
        let under = IntCC::UnsignedLessThan;
        let bytes = i64::from(bytes);
        let bad = self.builder.ins().icmp_imm(under, left, bytes);
        self.refuse_if(bad);
        self.builder.ins().iadd_imm(left, -bytes)
    }

    /// All ones in strict mode.
    fn strictness(&mut self, modes: Value) -> Value {
        let strict = self.builder.ins().ushr_imm(modes, 32);
        self.builder.ins().ineg(strict)
    }

    /// Makes the context of an encoder, if one is needed.
    fn put_context(&mut self, strategy: &EntryStrategy, storage: Value, depth: Value) {
        let ContextLocation::Registers(registers) = self.location else {
            return;
        };
        if strategy.needs_context() {
            let out = registers.more;
            self.keep(size_of::<EncodeContext<'_>>(), registers, depth);
            self.store_field(offset_of!(EncodeContext<'_>, out), out);
            if self.given.is_c() {
                let limit = MemoryOperand::at(storage).plus(offset_of!(CSource, limit) as u64);
                let limit = self.load(types::I64, limit);
                self.store_field(offset_of!(EncodeContext<'_>, limit), limit);
            }
        }
    }

    /// Makes the context of a decoder, if one is needed. Values that were read before are forgotten.
    fn get_context(
        &mut self,
        strategy: &EntryStrategy,
        storage: Value,
        (modes, left): (Value, Value),
    ) {
        let ContextLocation::Registers(registers) = self.location else {
            return;
        };
        if strategy.needs_context() {
            let arena = match self.given.is_c() {
                true => self.heap(storage),
                false => self.empty_arena(storage),
            };
            let strict = registers.more;
            self.keep(size_of::<DecodeContext<'_>>(), registers, modes);
            self.store_field(offset_of!(DecodeContext<'_>, strict), strict);
            self.store_field(offset_of!(DecodeContext<'_>, memory_left), left);
            self.store_field(offset_of!(DecodeContext<'_>, arena), arena);
        }
    }

    /// The memory for what a value points to that a program in C holds.
    fn heap(&mut self, storage: Value) -> Value {
        let heap = MemoryOperand::at(storage).plus(offset_of!(CTarget, heap) as u64);
        self.address(heap)
    }

    /// The memory for what the value of a frame points to, with nothing in it.
    fn empty_arena(&mut self, storage: Value) -> Value {
        let arena = self.address(MemoryOperand::at(storage).plus(FrameStorage::ARENA as u64));
        let first = MemoryOperand::at(arena).plus(offset_of!(FrameArena, first) as u64);
        let first = self.load(types::I64, first);
        self.seldom(first, |this| {
            this.call_helper(REWIND, &[arena]);
        });
        arena
    }

    /// Begins a context of so many bytes with the header that both directions have.
    fn keep(&mut self, bytes: usize, registers: ContextRegisters, depth: Value) {
        let kind = StackSlotKind::ExplicitSlot;
        let slot = StackSlotData::new(kind, bytes as u32, 3);
        let slot = self.builder.create_sized_stack_slot(slot);
        let context = self.builder.ins().stack_addr(types::I64, slot, 0);
        let end = self.builder.use_var(registers.end);
        let base = self.builder.use_var(registers.base);
        let depth = self.builder.ins().ireduce(types::I32, depth);
        self.location = ContextLocation::Context(context);
        self.store_field(offset_of!(ContextHeader, end), end);
        self.store_field(offset_of!(ContextHeader, base), base);
        self.store_field(offset_of!(ContextHeader, depth_left), depth);
    }
}

impl EntryStrategy {
    fn needs_context(&self) -> bool {
        match self {
            Self::Array(..) | Self::Registers => false,
            Self::Context | Self::Call => true,
        }
    }
}

impl CompilationInput {
    /// The entry for a message of so many bytes, if a function of the library serves as it is.
    pub fn ready_entry(
        &self,
        way: MarshalDirection,
        routine: RoutineId,
        bytes: u32,
    ) -> Option<*const u8> {
        let array = self.whole(way, routine, bytes)?;
        match way {
            MarshalDirection::Encode { .. } => array.put_plain().map(|put| put as *const u8),
            MarshalDirection::Decode { .. } => array.get_plain().map(|get| get as *const u8),
        }
    }

    fn strategy(&self, way: MarshalDirection, routine: RoutineId, bytes: u32) -> EntryStrategy {
        let whole = self.whole(way, routine, bytes);
        let address = whole.and_then(|array| match way {
            MarshalDirection::Encode { .. } => array.put().map(|put| put as *const u8),
            MarshalDirection::Decode { .. } => array.get().map(|get| get as *const u8),
        });
        if let Some((array, address)) = whole.zip(address) {
            let parameters = PARAMETERS;
            let helper = HelperFunction {
                address,
                parameters,
            };
            return EntryStrategy::Array(array, helper);
        }
        let is_list = matches!(routine, RoutineId::List(_));
        // What C holds may be too large to be sent, which the context says.
        let is_limited = self.is_c() && matches!(way, MarshalDirection::Encode { .. });
        if !is_list && !is_limited && self.is_alone(way, self.routine(routine)) {
            return EntryStrategy::Registers;
        }
        match self.is_called(routine) {
            true => EntryStrategy::Call,
            false => EntryStrategy::Context,
        }
    }

    /// The array that a message of so many bytes is, if it is that alone and one kernel moves it.
    fn whole(&self, way: MarshalDirection, routine: RoutineId, bytes: u32) -> Option<ArrayMessage> {
        // The plan of a list moves one of its elements, which may be such an array. The functions for arrays work on
        // frames.
        if matches!(routine, RoutineId::List(_)) || self.is_c() {
            return None;
        }
        let plan = self.routine(routine);
        let [ResolvedOp::Item(ResolvedItem { at: 0, kind, .. })] = plan.body.as_slice() else {
            return None;
        };
        let (bound, item) = match kind {
            ResolvedKind::BlitCounted { item, bound } => (*bound, item.clone()),
            ResolvedKind::PutCounted { scalar, bound } => (*bound, self.plain(*scalar)?),
            _ => return None,
        };
        let is_all = bytes as usize == size_of::<CountedArray>();
        let stride = u32::try_from(item.bytes()).ok()?;
        if plan.recursive || !is_all || stride == 0 {
            return None;
        }
        let unit = match way.swapped() {
            true => item.unit()?,
            false => 1,
        };
        Some(ArrayMessage {
            swapped: way.swapped(),
            unit,
            stride,
            bound,
        })
    }

    /// Returns whether a plan can be carried out without a context: no function that needs one is called, no memory is
    /// taken, and no levels are counted.
    fn is_alone(&self, way: MarshalDirection, plan: &ResolvedPlan) -> bool {
        !plan.recursive && self.are_alone(way, &plan.body)
    }

    fn are_alone(&self, way: MarshalDirection, body: &[ResolvedOp]) -> bool {
        let takes_memory = matches!(way, MarshalDirection::Decode { .. });
        let is_fixed = |count: &Count| matches!(count, Count::Fixed(_));
        body.iter().all(|op| {
            let ResolvedOp::Item(item) = op else {
                return true;
            };
            match &item.kind {
                ResolvedKind::BlitCounted { .. } | ResolvedKind::PutCounted { .. } => !takes_memory,
                ResolvedKind::PutElements { count, .. } => is_fixed(count) || !takes_memory,
                ResolvedKind::Loop { count, body, .. } => {
                    (is_fixed(count) || !takes_memory) && self.are_alone(way, body)
                }
                ResolvedKind::Switch(switch) => {
                    let mut arms = switch.all_arms();
                    arms.all(|arm| self.are_alone(way, &arm.body))
                }
                ResolvedKind::Optional { body, .. } => !takes_memory && self.are_alone(way, body),
                ResolvedKind::Call { plan } => {
                    self.is_inlined(*plan) && self.is_alone(way, self.plans.of_type(*plan))
                }
                ResolvedKind::CopyCounted { .. } | ResolvedKind::List { .. } => false,
                ResolvedKind::External => true,
            }
        })
    }
}

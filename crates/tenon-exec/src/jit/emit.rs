//! Code that both directions emit: the cursor, loads, stores, checks and calls.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, Block, InstBuilder, MemFlags, SigRef, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use tenon_plan::Scalar;
use tenon_schema::TypeId;

use super::context::{ContextHeader, DecodeContext};
use super::given::{CompilationInput, MarshalDirection};
use super::helpers::{HelperFunction, OpaqueForm, OpaqueHelpers, REFUSED};
use super::linker::{JitLinker, RoutineId, RoutinePart};
use crate::resolved::{ResolvedOp, ResolvedPlan};

/// A place in memory: an address and an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryOperand {
    pub base: Value,
    pub offset: i32,
}

impl MemoryOperand {
    pub fn at(base: Value) -> Self {
        Self { base, offset: 0 }
    }

    /// The place so many bytes behind it.
    pub fn plus(self, bytes: u64) -> Self {
        let offset = i32::try_from(bytes).unwrap_or(i32::MAX);
        Self {
            offset: self.offset.saturating_add(offset),
            ..self
        }
    }
}

/// Emits the code of one function.
pub(super) struct FunctionEmitter<'a, 'f> {
    pub given: &'a CompilationInput,
    pub way: MarshalDirection,
    pub builder: FunctionBuilder<'f>,
    pub location: ContextLocation,
    /// Address of the next byte.
    cursor: Variable,
    linker: &'f mut JitLinker,
    call_conv: CallConv,
    signatures: HashMap<(usize, usize), SigRef>,
    refuse: Block,
    refuses: bool,
    /// Set while there is room for all that is being appended.
    pub covered: bool,
    /// Checks of the items that were just moved, which are not emitted yet.
    pub checks: DeferredChecks,
}

/// Location of the state that a function is entered with beside a value and a cursor.
#[derive(Debug, Clone, Copy)]
pub(super) enum ContextLocation {
    /// In memory: an [`EncodeContext`](super::context::EncodeContext) or a [`DecodeContext`].
    Context(Value),
    /// In registers: only if no function that needs it is called.
    Registers(ContextRegisters),
}

/// The state of a function that keeps no context.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextRegisters {
    /// Behind the last byte that may be read or written.
    pub end: Variable,
    /// Beginning of the message.
    pub base: Variable,
    /// The buffer that an encoder appends to; of a decoder, all ones in strict mode.
    pub more: Value,
}

/// Conditions under which items are refused. They are checked together.
#[derive(Default)]
pub(super) struct DeferredChecks {
    /// One byte each; not zero is bad.
    pub always: Vec<Value>,
    /// 64 bits each; not zero is bad in strict mode.
    pub strictly: Vec<Value>,
}

impl<'a, 'f> FunctionEmitter<'a, 'f> {
    /// Begins a function in `builder`, and returns its parameters, of which the caller knows the meaning.
    pub fn begin(
        given: &'a CompilationInput,
        way: MarshalDirection,
        linker: &'f mut JitLinker,
        mut builder: FunctionBuilder<'f>,
    ) -> (Self, Vec<Value>) {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let refuse = builder.create_block();
        builder.set_cold_block(refuse);
        let parameters = builder.block_params(entry).to_vec();
        let cursor = builder.declare_var(types::I64);
        let emitter = Self {
            given,
            way,
            location: ContextLocation::Context(parameters[0]),
            cursor,
            call_conv: linker.call_conv(),
            linker,
            signatures: HashMap::new(),
            refuse,
            refuses: false,
            covered: false,
            checks: DeferredChecks::default(),
            builder,
        };
        (emitter, parameters)
    }

    /// Ends the function, which returns `given`; if it refuses, it returns as many words of [`REFUSED`].
    pub fn finish(mut self, given: &[Value]) {
        self.builder.ins().return_(given);
        self.builder.seal_block(self.refuse);
        if self.refuses {
            self.builder.switch_to_block(self.refuse);
            let refused = self.word(REFUSED);
            let refused = vec![refused; given.len()];
            self.builder.ins().return_(&refused);
        }
        self.builder.finalize();
    }

    /// Emits all of a function `(context, it, at) -> at`, which returns null if it refuses. The caller of an encoder
    /// has made room if [`room_for`](CompilationInput::room_for) says how much.
    pub fn inside(mut self, parameters: &[Value], routine: RoutineId) {
        let &[context, it, at] = parameters else {
            unreachable!("what is called inside has so many parameters");
        };
        self.location = ContextLocation::Context(context);
        self.set_cursor(at);
        self.covered = self.given.room_for(routine).is_some();
        self.routine(routine, MemoryOperand::at(it));
        let behind = self.cursor();
        self.finish(&[behind]);
    }

    /// Moves the value of a routine.
    pub fn routine(&mut self, routine: RoutineId, it: MemoryOperand) {
        match (routine, self.way) {
            (RoutineId::List(id), MarshalDirection::Encode { .. }) => self.put_list(true, id, it),
            (RoutineId::List(id), MarshalDirection::Decode { .. }) => self.get_list(true, id, it),
            _ => self.plan(self.given.routine(routine), it),
        }
    }

    /// Moves the value of `plan`, one level deeper if it is recursive.
    pub fn plan(&mut self, plan: &'a ResolvedPlan, it: MemoryOperand) {
        let outside = plan.recursive.then(|| self.enter());
        self.body(&plan.body, it);
        if let Some(depth) = outside {
            self.store_field(offset_of!(ContextHeader, depth_left), depth);
        }
    }

    /// Moves the items of `body` of the value at `it`.
    pub fn body(&mut self, body: &'a [ResolvedOp], it: MemoryOperand) {
        match self.way {
            MarshalDirection::Encode { .. } => self.encode(body, it),
            MarshalDirection::Decode { .. } => self.decode(body, it),
        }
    }

    /// Moves a value of a named type.
    pub fn call_type(&mut self, id: TypeId, it: MemoryOperand) {
        if self.given.is_inlined(id) {
            return self.plan(self.given.plans.of_type(id), it);
        }
        let routine = self.given.target(RoutineId::Type(id));
        self.call_routine(routine, it);
    }

    /// Calls the function that moves a value.
    pub fn call_routine(&mut self, routine: RoutineId, it: MemoryOperand) {
        let part = (self.way, routine, RoutinePart::Inside);
        let Some(function) = self.linker.function(part, self.builder.func) else {
            return self.refuse_always();
        };
        if let (MarshalDirection::Encode { .. }, false, Some(bytes)) =
            (self.way, self.covered, self.given.room_for(routine))
        {
            let bytes = self.word(bytes);
            self.make_room(bytes);
        }
        let arguments = [self.context(), self.address(it), self.cursor()];
        let call = self.builder.ins().call(function, &arguments);
        let behind = self.builder.inst_results(call)[0];
        self.refuse_unless(behind);
        self.set_cursor(behind);
    }

    fn enter(&mut self) -> Value {
        let offset = offset_of!(ContextHeader, depth_left);
        let depth = self.load_field(types::I32, offset);
        self.refuse_unless(depth);
        let inside = self.builder.ins().iadd_imm(depth, -1);
        self.store_field(offset, inside);
        depth
    }

    /// The helpers for counted bytes, or for a string; `None` if no code is made for their padding.
    pub fn opaque_helpers(&self, text: bool) -> Option<OpaqueHelpers> {
        let form = match (self.given.is_c(), text) {
            (false, _) => OpaqueForm::Frame,
            (true, false) => OpaqueForm::Counted,
            (true, true) => OpaqueForm::Text,
        };
        let padding = self.given.plans.representation.padding;
        OpaqueHelpers::of(form, padding, self.way.swapped())
    }

    /// Size of an element of a list.
    pub fn list_element(&self, id: TypeId) -> u64 {
        self.given.element_bytes(id)
    }

    /// Bytes of a scalar on the wire.
    pub fn wire_bytes(&self, scalar: Scalar) -> u64 {
        self.given.plans.representation.bytes(scalar).into()
    }

    // The cursor.

    pub fn cursor(&mut self) -> Value {
        self.builder.use_var(self.cursor)
    }

    pub fn set_cursor(&mut self, at: Value) {
        self.builder.def_var(self.cursor, at);
    }

    /// Takes the bytes up to `behind`, to which the cursor is set.
    pub fn step(&mut self, behind: Value) -> MemoryOperand {
        let at = self.cursor();
        self.set_cursor(behind);
        MemoryOperand::at(at)
    }

    /// Bytes of the hole before the next position so that the item `before` bytes further is aligned to a multiple of
    /// `to`.
    pub fn hole(&mut self, to: u32, before: u32) -> Value {
        let at = self.cursor();
        let base = self.base();
        let back = self.builder.ins().isub(base, at);
        let back = match before {
            0 => back,
            before => self.builder.ins().iadd_imm(back, -i64::from(before)),
        };
        self.builder.ins().band_imm(back, i64::from(to) - 1)
    }

    // The state that a function is entered with.

    /// The context in memory.
    pub fn context(&self) -> Value {
        match self.location {
            ContextLocation::Context(context) => context,
            ContextLocation::Registers(_) => unreachable!("it was looked for what needs a context"),
        }
    }

    /// Behind the last byte that may be read or written.
    pub fn end(&mut self) -> Value {
        match self.location {
            ContextLocation::Context(_) => {
                self.load_field(types::I64, offset_of!(ContextHeader, end))
            }
            ContextLocation::Registers(ContextRegisters { end, .. }) => self.builder.use_var(end),
        }
    }

    /// Beginning of the message.
    fn base(&mut self) -> Value {
        match self.location {
            ContextLocation::Context(_) => {
                self.load_field(types::I64, offset_of!(ContextHeader, base))
            }
            ContextLocation::Registers(ContextRegisters { base, .. }) => self.builder.use_var(base),
        }
    }

    /// Of a decoder: all ones in strict mode.
    pub fn strict(&mut self) -> Value {
        match self.location {
            ContextLocation::Context(_) => {
                self.load_field(types::I64, offset_of!(DecodeContext<'_>, strict))
            }
            ContextLocation::Registers(ContextRegisters { more, .. }) => more,
        }
    }

    // Numbers and memory.

    pub fn word(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(types::I64, value as i64)
    }

    /// Multiplies `value` by a constant.
    pub fn times(&mut self, value: Value, factor: u64) -> Value {
        match factor.is_power_of_two() {
            true => {
                let shift = i64::from(factor.trailing_zeros());
                self.builder.ins().ishl_imm(value, shift)
            }
            false => self.builder.ins().imul_imm(value, factor as i64),
        }
    }

    pub fn address(&mut self, spot: MemoryOperand) -> Value {
        match spot.offset {
            0 => spot.base,
            offset => self.builder.ins().iadd_imm(spot.base, i64::from(offset)),
        }
    }

    pub fn load(&mut self, ty: Type, from: MemoryOperand) -> Value {
        let ins = self.builder.ins();
        ins.load(ty, unaligned(), from.base, from.offset)
    }

    pub fn store(&mut self, value: Value, to: MemoryOperand) {
        let ins = self.builder.ins();
        ins.store(unaligned(), value, to.base, to.offset);
    }

    pub fn load_field(&mut self, ty: Type, offset: usize) -> Value {
        let context = self.context();
        let ins = self.builder.ins();
        ins.load(ty, MemFlags::trusted(), context, offset as i32)
    }

    pub fn store_field(&mut self, offset: usize, value: Value) {
        let context = self.context();
        let ins = self.builder.ins();
        ins.store(MemFlags::trusted(), value, context, offset as i32);
    }

    /// Between the order of the wire and the processor's.
    pub fn ordered(&mut self, value: Value) -> Value {
        let bytes = self.builder.func.dfg.value_type(value).bytes();
        match self.way.swapped() && bytes > 1 {
            true => self.builder.ins().bswap(value),
            false => value,
        }
    }

    // Checks.

    pub fn refuse_if(&mut self, bad: Value) {
        let good = self.builder.create_block();
        self.builder.ins().brif(bad, self.refuse, &[], good, &[]);
        self.refuses = true;
        self.go_on(good);
    }

    pub fn refuse_unless(&mut self, good: Value) {
        let next = self.builder.create_block();
        self.builder.ins().brif(good, next, &[], self.refuse, &[]);
        self.refuses = true;
        self.go_on(next);
    }

    pub fn refuse_always(&mut self) {
        self.builder.ins().jump(self.refuse, &[]);
        self.refuses = true;
        let never = self.builder.create_block();
        self.go_on(never);
    }

    /// The block that refuses, as the target of a branch.
    pub fn refusal(&mut self) -> Block {
        self.refuses = true;
        self.refuse
    }

    /// Continues in a block of which all predecessors are known.
    pub fn go_on(&mut self, block: Block) {
        self.builder.seal_block(block);
        self.builder.switch_to_block(block);
    }

    /// Emits the deferred checks of the items that were just moved.
    pub fn settle(&mut self) {
        let DeferredChecks { always, strictly } = std::mem::take(&mut self.checks);
        let always = self.any(always);
        let Some(strictly) = self.any(strictly) else {
            if let Some(bad) = always {
                self.refuse_if(bad);
            }
            return;
        };
        let strict = self.strict();
        let mut bad = self.builder.ins().band(strictly, strict);
        if let Some(always) = always {
            let always = self.builder.ins().uextend(types::I64, always);
            bad = self.builder.ins().bor(bad, always);
        }
        self.refuse_if(bad);
    }

    fn any(&mut self, conditions: Vec<Value>) -> Option<Value> {
        let mut conditions = conditions.into_iter();
        let first = conditions.next()?;
        Some(conditions.fold(first, |any, next| self.builder.ins().bor(any, next)))
    }

    /// Refuses a count over `bound`.
    pub fn check_bound(&mut self, count: Value, bound: u32) {
        if bound < u32::MAX {
            let over = IntCC::UnsignedGreaterThan;
            let bad = self.builder.ins().icmp_imm(over, count, i64::from(bound));
            self.refuse_if(bad);
        }
    }

    // Calls.

    /// Calls a helper that does not refuse.
    pub fn call_helper(&mut self, helper: HelperFunction, arguments: &[Value]) -> Value {
        self.call_for(1, helper, arguments)[0]
    }

    /// Calls a helper that returns so many words.
    pub fn call_for(
        &mut self,
        words: usize,
        helper: HelperFunction,
        arguments: &[Value],
    ) -> Vec<Value> {
        let signature = self.signature(helper.parameters, words);
        let address = self.word(helper.address as u64);
        let ins = self.builder.ins();
        let call = ins.call_indirect(signature, address, arguments);
        self.builder.inst_results(call).to_vec()
    }

    /// Calls a helper that may refuse.
    pub fn ask_helper(&mut self, helper: HelperFunction, arguments: &[Value]) -> Value {
        let given = self.call_helper(helper, arguments);
        self.refuse_unless(given);
        given
    }

    /// Calls a function that moves bytes, `(from, to, bytes)`, and drops its result. It is at `address`, or, if it is
    /// `chosen` only when it is first called, behind the pointer at `address`.
    pub fn call_mover(&mut self, address: *const u8, chosen: bool, arguments: &[Value]) {
        let signature = self.signature(arguments.len(), 1);
        let mut mover = self.word(address as u64);
        if chosen {
            mover = self.load(types::I64, MemoryOperand::at(mover));
        }
        let ins = self.builder.ins();
        ins.call_indirect(signature, mover, arguments);
    }

    fn signature(&mut self, parameters: usize, words: usize) -> SigRef {
        let (builder, call_conv) = (&mut self.builder, self.call_conv);
        let words = (parameters, words);
        *self
            .signatures
            .entry(words)
            .or_insert_with(|| builder.import_signature(signature(words, call_conv)))
    }
}

/// Signature of a function that takes so many words and returns so many.
pub(super) fn signature((parameters, given): (usize, usize), call_conv: CallConv) -> ir::Signature {
    let mut signature = ir::Signature::new(call_conv);
    signature.params = vec![AbiParam::new(types::I64); parameters];
    signature.returns = vec![AbiParam::new(types::I64); given];
    signature
}

/// Places in a frame and in messages lie anywhere, but they are there.
fn unaligned() -> MemFlags {
    MemFlags::new().with_notrap()
}

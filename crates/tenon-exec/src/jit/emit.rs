//! What both directions emit: the cursor, loads, stores, checks and calls.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, Block, InstBuilder, MemFlags, SigRef, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use tenon_plan::{Body, Layout, Op, Place, Plan, Scalar};
use tenon_schema::{Schema, TypeId};

use super::context::{Cursor, Decoding};
use super::given::{Given, Way};
use super::helpers::{Helper, REFUSED};
use super::linker::{Linker, Routine};

/// A place in memory, so far from an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub base: Value,
    pub offset: i32,
}

impl Spot {
    pub fn at(base: Value) -> Self {
        Self { base, offset: 0 }
    }

    /// So many bytes behind it.
    pub fn plus(self, bytes: u64) -> Self {
        let offset = i32::try_from(bytes).unwrap_or(i32::MAX);
        Self {
            offset: self.offset.saturating_add(offset),
            ..self
        }
    }
}

/// One function in the making.
pub(super) struct Emitter<'a, 'f> {
    pub given: &'a Given,
    pub way: Way,
    pub builder: FunctionBuilder<'f>,
    pub context: Value,
    /// Where the next byte is.
    cursor: Variable,
    linker: &'f mut Linker,
    call_conv: CallConv,
    signatures: HashMap<usize, SigRef>,
    /// That of what moves bytes.
    mover: Option<SigRef>,
    refuse: Block,
    refuses: bool,
    /// Whether there is room for all that is being appended.
    pub covered: bool,
    /// What is bad about the items that were just read, and not refused yet.
    pub suspicions: Suspicions,
}

/// Conditions under which items are refused. They are looked at together.
#[derive(Default)]
pub(super) struct Suspicions {
    /// One byte each; not zero is bad.
    pub always: Vec<Value>,
    /// 64 bits each; not zero is bad where nothing is forgiven.
    pub strictly: Vec<Value>,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Begins a function `(context, it, at) -> at` in `builder`, and gives `it`. What it returns
    /// is null if it refuses. Whether there is room for all that is appended, `covered` says.
    pub fn begin(
        given: &'a Given,
        (way, covered): (Way, bool),
        linker: &'f mut Linker,
        mut builder: FunctionBuilder<'f>,
    ) -> (Self, Spot) {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let refuse = builder.create_block();
        builder.set_cold_block(refuse);
        let parameters = builder.block_params(entry);
        let (context, it, at) = (parameters[0], parameters[1], parameters[2]);
        let cursor = builder.declare_var(types::I64);
        builder.def_var(cursor, at);
        let emitter = Self {
            given,
            way,
            context,
            cursor,
            call_conv: linker.call_conv(),
            linker,
            signatures: HashMap::new(),
            mover: None,
            refuse,
            refuses: false,
            covered,
            suspicions: Suspicions::default(),
            builder,
        };
        (emitter, Spot::at(it))
    }

    /// Ends it: all is done.
    pub fn finish(mut self) {
        let at = self.cursor();
        self.builder.ins().return_(&[at]);
        self.builder.seal_block(self.refuse);
        if self.refuses {
            self.builder.switch_to_block(self.refuse);
            let refused = self.word(REFUSED);
            self.builder.ins().return_(&[refused]);
        }
        self.builder.finalize();
    }

    pub fn schema(&self) -> &'a Schema {
        &self.given.schema
    }

    /// Moves what `plan` is about, one level deeper if it is recursive.
    pub fn plan(&mut self, plan: &'a Plan, layout: Layout<'a>, it: Spot) {
        let outside = plan.recursive.then(|| self.enter());
        self.body(&plan.body, layout, it);
        if let Some(depth) = outside {
            self.store_field(offset_of!(Cursor, depth_left), depth);
        }
    }

    /// Moves what `body` says of the value at `it`.
    pub fn body(&mut self, body: &'a Body, layout: Layout<'a>, it: Spot) {
        match self.way {
            Way::Encode { .. } => self.encode(body, layout, it),
            Way::Decode { .. } => self.decode(body, layout, it),
        }
    }

    /// Moves a value of a named type.
    pub fn call_type(&mut self, id: TypeId, it: Spot) {
        let plan = self.given.plans.of_type(id);
        if self.given.is_inlined(id) {
            return self.plan(plan, Layout::of_type(self.schema(), id), it);
        }
        let routine = self.given.target(Routine::Type(id));
        let function = self.linker.function(self.way, routine, self.builder.func);
        let Some(function) = function else {
            return self.refuse_always();
        };
        if let (Way::Encode { .. }, false, Some(bytes)) =
            (self.way, self.covered, self.given.room_for(routine))
        {
            let bytes = self.word(bytes);
            self.make_room(bytes);
        }
        let arguments = [self.context, self.address(it), self.cursor()];
        let call = self.builder.ins().call(function, &arguments);
        let behind = self.builder.inst_results(call)[0];
        self.refuse_unless(behind);
        self.set_cursor(behind);
    }

    fn enter(&mut self) -> Value {
        let offset = offset_of!(Cursor, depth_left);
        let depth = self.load_field(types::I32, offset);
        self.refuse_unless(depth);
        let inside = self.builder.ins().iadd_imm(depth, -1);
        self.store_field(offset, inside);
        depth
    }

    /// What lies at `place` of what lies at `it`.
    pub fn locate(&mut self, layout: Layout<'a>, place: &Place, it: Spot) -> (Layout<'a>, Spot) {
        let found = self.linker.places.locate(self.given, layout, place);
        let Some((layout, offset)) = found else {
            unreachable!("the verifier has looked for every place");
        };
        (layout, it.plus(offset))
    }

    /// What an array or pointer holds, and its room.
    pub fn element(&self, layout: Layout<'a>) -> (Layout<'a>, u64) {
        let Some(element) = layout.element(self.schema()) else {
            unreachable!("the verifier has looked for every element");
        };
        (element, self.given.bytes(element))
    }

    /// Room of an element of a list.
    pub fn list_element(&self, id: TypeId) -> u64 {
        self.given.bytes(Layout::of_type(self.schema(), id))
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

    /// The bytes up to `behind`, where the cursor is then.
    pub fn step(&mut self, behind: Value) -> Spot {
        let at = self.cursor();
        self.set_cursor(behind);
        Spot::at(at)
    }

    /// How many bytes there are to the next position so that what lies `before` further is at a
    /// multiple of `to`.
    pub fn hole(&mut self, to: u32, before: u32) -> Value {
        let at = self.cursor();
        let base = self.load_field(types::I64, offset_of!(Cursor, base));
        let back = self.builder.ins().isub(base, at);
        let back = match before {
            0 => back,
            before => self.builder.ins().iadd_imm(back, -i64::from(before)),
        };
        self.builder.ins().band_imm(back, i64::from(to) - 1)
    }

    // Numbers and memory.

    pub fn word(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(types::I64, value as i64)
    }

    /// So many times `value`.
    pub fn times(&mut self, value: Value, factor: u64) -> Value {
        match factor.is_power_of_two() {
            true => {
                let shift = i64::from(factor.trailing_zeros());
                self.builder.ins().ishl_imm(value, shift)
            }
            false => self.builder.ins().imul_imm(value, factor as i64),
        }
    }

    pub fn address(&mut self, spot: Spot) -> Value {
        match spot.offset {
            0 => spot.base,
            offset => self.builder.ins().iadd_imm(spot.base, i64::from(offset)),
        }
    }

    pub fn load(&mut self, ty: Type, from: Spot) -> Value {
        let ins = self.builder.ins();
        ins.load(ty, unaligned(), from.base, from.offset)
    }

    pub fn store(&mut self, value: Value, to: Spot) {
        let ins = self.builder.ins();
        ins.store(unaligned(), value, to.base, to.offset);
    }

    pub fn load_field(&mut self, ty: Type, offset: usize) -> Value {
        let ins = self.builder.ins();
        ins.load(ty, MemFlags::trusted(), self.context, offset as i32)
    }

    pub fn store_field(&mut self, offset: usize, value: Value) {
        let ins = self.builder.ins();
        ins.store(MemFlags::trusted(), value, self.context, offset as i32);
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

    /// Where something is refused that has a block for it.
    pub fn refusal(&mut self) -> Block {
        self.refuses = true;
        self.refuse
    }

    /// Continues in a block to which all ways lead already.
    pub fn go_on(&mut self, block: Block) {
        self.builder.seal_block(block);
        self.builder.switch_to_block(block);
    }

    /// Refuses the items that were just moved if there is something bad about one.
    pub fn settle(&mut self) {
        let Suspicions { always, strictly } = std::mem::take(&mut self.suspicions);
        let always = self.any(always);
        let Some(strictly) = self.any(strictly) else {
            if let Some(bad) = always {
                self.refuse_if(bad);
            }
            return;
        };
        let strict = self.load_field(types::I64, offset_of!(Decoding<'_>, strict));
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
    pub fn call_helper(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        let signature = self.signature(helper.parameters);
        let address = self.word(helper.address as u64);
        let ins = self.builder.ins();
        let call = ins.call_indirect(signature, address, arguments);
        self.builder.inst_results(call)[0]
    }

    /// Calls a helper that may refuse.
    pub fn ask_helper(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        let given = self.call_helper(helper, arguments);
        self.refuse_unless(given);
        given
    }

    /// Calls what moves bytes, `(from, to, bytes)`, and gives nothing: at `address`, or where it says if it
    /// is `chosen` only when it is first called.
    pub fn call_mover(&mut self, address: *const u8, chosen: bool, arguments: &[Value]) {
        let signature = match self.mover {
            Some(signature) => signature,
            None => {
                let mut signature = signature(arguments.len(), self.call_conv);
                signature.returns.clear();
                *self.mover.insert(self.builder.import_signature(signature))
            }
        };
        let mut mover = self.word(address as u64);
        if chosen {
            mover = self.load(types::I64, Spot::at(mover));
        }
        let ins = self.builder.ins();
        ins.call_indirect(signature, mover, arguments);
    }

    fn signature(&mut self, parameters: usize) -> SigRef {
        let (builder, call_conv) = (&mut self.builder, self.call_conv);
        *self
            .signatures
            .entry(parameters)
            .or_insert_with(|| builder.import_signature(signature(parameters, call_conv)))
    }
}

/// Of a function that takes so many words and gives one.
pub(super) fn signature(parameters: usize, call_conv: CallConv) -> ir::Signature {
    let mut signature = ir::Signature::new(call_conv);
    signature.params = vec![AbiParam::new(types::I64); parameters];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// The items that follow a check of room for them.
pub(super) fn block(ops: &[Op]) -> &[Op] {
    let items = ops.iter().take_while(|op| op.is_fixed()).count();
    &ops[..items]
}

/// Places in a frame and in messages lie anywhere, but they are there.
fn unaligned() -> MemFlags {
    MemFlags::new().with_notrap()
}

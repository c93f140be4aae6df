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
use super::linker::{Linker, Part, Routine};

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
    pub around: Around,
    /// Where the next byte is.
    cursor: Variable,
    linker: &'f mut Linker,
    call_conv: CallConv,
    signatures: HashMap<(usize, usize), SigRef>,
    refuse: Block,
    refuses: bool,
    /// Whether there is room for all that is being appended.
    pub covered: bool,
    /// What is bad about the items that were just read, and not refused yet.
    pub suspicions: Suspicions,
}

/// Where that is what a function is entered with beside a value and a cursor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Around {
    /// In memory: an [`Encoding`](super::context::Encoding) or a [`Decoding`].
    Context(Value),
    /// In registers. So it is where nothing is called that would have to know it.
    Registers(Registers),
}

/// What a function is entered with that keeps no context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    /// Behind the last byte that may be read or written.
    pub end: Variable,
    /// Where the message begins.
    pub base: Variable,
    /// The buffer that an encoder appends to; of a decoder, all ones if nothing is forgiven.
    pub more: Value,
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
    /// Begins a function in `builder`, and gives its parameters: what they are, whoever goes on
    /// knows.
    pub fn begin(
        given: &'a Given,
        way: Way,
        linker: &'f mut Linker,
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
            around: Around::Context(parameters[0]),
            cursor,
            call_conv: linker.call_conv(),
            linker,
            signatures: HashMap::new(),
            refuse,
            refuses: false,
            covered: false,
            suspicions: Suspicions::default(),
            builder,
        };
        (emitter, parameters)
    }

    /// Ends it: all is done, and `given` is what it gives. It gives as many refusals if it refuses.
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

    pub fn schema(&self) -> &'a Schema {
        &self.given.schema
    }

    /// All of a function `(context, it, at) -> at`, which gives null if it refuses. Whoever calls an
    /// encoder has made room if it says how much.
    pub fn inside(mut self, parameters: &[Value], routine: Routine) {
        let &[context, it, at] = parameters else {
            unreachable!("what is called inside has so many parameters");
        };
        self.around = Around::Context(context);
        self.set_cursor(at);
        self.covered = self.given.room_for(routine).is_some();
        self.routine(routine, Spot::at(it));
        let behind = self.cursor();
        self.finish(&[behind]);
    }

    /// Moves what a routine is about.
    pub fn routine(&mut self, routine: Routine, it: Spot) {
        let (plan, layout) = self.given.routine(routine);
        match (routine, self.way) {
            (Routine::List(id), Way::Encode { .. }) => self.put_list(true, id, it),
            (Routine::List(id), Way::Decode { .. }) => self.get_list(true, id, it),
            _ => self.plan(plan, layout, it),
        }
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
        self.call_routine(routine, it);
    }

    /// Calls what moves a value.
    pub fn call_routine(&mut self, routine: Routine, it: Spot) {
        let part = (self.way, routine, Part::Inside);
        let Some(function) = self.linker.function(part, self.builder.func) else {
            return self.refuse_always();
        };
        if let (Way::Encode { .. }, false, Some(bytes)) =
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
        let base = self.base();
        let back = self.builder.ins().isub(base, at);
        let back = match before {
            0 => back,
            before => self.builder.ins().iadd_imm(back, -i64::from(before)),
        };
        self.builder.ins().band_imm(back, i64::from(to) - 1)
    }

    // What a function is entered with.

    /// The context in memory.
    pub fn context(&self) -> Value {
        match self.around {
            Around::Context(context) => context,
            Around::Registers(_) => unreachable!("it was looked for what needs a context"),
        }
    }

    /// Behind the last byte that may be read or written.
    pub fn end(&mut self) -> Value {
        match self.around {
            Around::Context(_) => self.load_field(types::I64, offset_of!(Cursor, end)),
            Around::Registers(Registers { end, .. }) => self.builder.use_var(end),
        }
    }

    /// Where the message begins.
    fn base(&mut self) -> Value {
        match self.around {
            Around::Context(_) => self.load_field(types::I64, offset_of!(Cursor, base)),
            Around::Registers(Registers { base, .. }) => self.builder.use_var(base),
        }
    }

    /// Of a decoder: all ones if nothing is forgiven.
    pub fn strict(&mut self) -> Value {
        match self.around {
            Around::Context(_) => self.load_field(types::I64, offset_of!(Decoding<'_>, strict)),
            Around::Registers(Registers { more, .. }) => more,
        }
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
    pub fn call_helper(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        self.call_for(1, helper, arguments)[0]
    }

    /// Calls a helper that gives so many words.
    pub fn call_for(&mut self, words: usize, helper: Helper, arguments: &[Value]) -> Vec<Value> {
        let signature = self.signature(helper.parameters, words);
        let address = self.word(helper.address as u64);
        let ins = self.builder.ins();
        let call = ins.call_indirect(signature, address, arguments);
        self.builder.inst_results(call).to_vec()
    }

    /// Calls a helper that may refuse.
    pub fn ask_helper(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        let given = self.call_helper(helper, arguments);
        self.refuse_unless(given);
        given
    }

    /// Calls what moves bytes, `(from, to, bytes)`, and gives what nobody needs here: at `address`, or where
    /// it says if it is `chosen` only when it is first called.
    pub fn call_mover(&mut self, address: *const u8, chosen: bool, arguments: &[Value]) {
        let signature = self.signature(arguments.len(), 1);
        let mut mover = self.word(address as u64);
        if chosen {
            mover = self.load(types::I64, Spot::at(mover));
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

/// Of a function that takes so many words and gives so many.
pub(super) fn signature((parameters, given): (usize, usize), call_conv: CallConv) -> ir::Signature {
    let mut signature = ir::Signature::new(call_conv);
    signature.params = vec![AbiParam::new(types::I64); parameters];
    signature.returns = vec![AbiParam::new(types::I64); given];
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

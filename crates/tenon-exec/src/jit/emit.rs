//! What both directions emit: loads, stores, checks, loops and calls.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, Block, InstBuilder, MemFlags, SigRef, Type, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Switch};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use tenon_plan::{Arm, Body, Layout, Op, Place, Plan, Scalar};
use tenon_schema::{EnumMember, Schema, TypeId, TypeKind};

use super::context::Cursor;
use super::helpers::{Helper, REFUSED};
use crate::Interface;
use crate::layout::{Layouts, of_scalar};

/// What a body may hold at most to be inlined where it is called.
const MAX_INLINED: usize = 16;

/// How many operations one function takes in from others at most.
const BUDGET: usize = 256;

/// Fixed arrays of so many items at most are unrolled.
const MAX_UNROLLED: u32 = 8;

/// The context is Rust's own.
const CURSOR_FLAGS: MemFlags = MemFlags::trusted();

/// A place in memory, so far from an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub base: ir::Value,
    pub offset: i32,
}

impl Spot {
    pub fn at(base: ir::Value) -> Self {
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

/// How a direction moves a body.
pub(super) type Move = for<'e, 'a, 'f> fn(&'e mut Emitter<'a, 'f>, &'a [Op], Layout<'a>, Spot);

/// One function in the making.
pub(super) struct Emitter<'a, 'f> {
    pub interface: &'a Interface,
    pub layouts: &'a Layouts,
    pub builder: FunctionBuilder<'f>,
    pub context: ir::Value,
    module: &'f mut JITModule,
    /// The functions of this direction that move named types.
    functions: &'f HashMap<TypeId, FuncId>,
    move_body: Move,
    call_conv: CallConv,
    signatures: HashMap<usize, SigRef>,
    refuse: Block,
    budget: usize,
}

/// What all functions of a direction are made with.
pub(super) struct Surroundings<'a, 'f> {
    pub interface: &'a Interface,
    pub layouts: &'a Layouts,
    pub module: &'f mut JITModule,
    pub functions: &'f HashMap<TypeId, FuncId>,
    pub move_body: Move,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Begins a function `(context, it) -> done` in `builder`, and gives `it`.
    pub fn begin(with: Surroundings<'a, 'f>, mut builder: FunctionBuilder<'f>) -> (Self, Spot) {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let refuse = builder.create_block();
        builder.set_cold_block(refuse);
        let (context, it) = (
            builder.block_params(entry)[0],
            builder.block_params(entry)[1],
        );
        let emitter = Self {
            interface: with.interface,
            layouts: with.layouts,
            context,
            call_conv: with.module.isa().default_call_conv(),
            module: with.module,
            functions: with.functions,
            move_body: with.move_body,
            signatures: HashMap::new(),
            refuse,
            budget: BUDGET,
            builder,
        };
        (emitter, Spot::at(it))
    }

    /// Ends it: all is done.
    pub fn finish(mut self) {
        self.give(1);
        self.builder.switch_to_block(self.refuse);
        self.give(0);
        self.builder.seal_all_blocks();
        self.builder.finalize();
    }

    fn give(&mut self, done: i64) {
        let done = self.builder.ins().iconst(types::I64, done);
        self.builder.ins().return_(&[done]);
    }

    pub fn schema(&self) -> &'a Schema {
        self.interface.schema()
    }

    /// Moves what `plan` is about, one level deeper if it is recursive.
    pub fn plan(&mut self, plan: &'a Plan, layout: Layout<'a>, it: Spot) {
        let outside = plan.recursive.then(|| self.enter());
        self.body(&plan.body, layout, it);
        if let Some(depth) = outside {
            self.store_field(offset_of!(Cursor, depth_left), depth);
        }
    }

    pub fn body(&mut self, body: &'a [Op], layout: Layout<'a>, it: Spot) {
        (self.move_body)(self, body, layout, it);
    }

    /// Moves a value of a named type.
    pub fn call_type(&mut self, id: TypeId, it: Spot) {
        let plan = self.interface.plans().of_type(id);
        let layout = Layout::of_type(self.schema(), id);
        let operations = weight(&plan.body);
        if !plan.recursive && operations <= MAX_INLINED && operations <= self.budget {
            self.budget -= operations;
            return self.plan(plan, layout, it);
        }
        let function = self.functions[&id];
        let function = self
            .module
            .declare_func_in_func(function, self.builder.func);
        let it = self.address(it);
        let call = self.builder.ins().call(function, &[self.context, it]);
        let done = self.builder.inst_results(call)[0];
        self.refuse_unless(done);
    }

    fn enter(&mut self) -> ir::Value {
        let offset = offset_of!(Cursor, depth_left);
        let depth = self.load_field(types::I32, offset);
        self.refuse_unless(depth);
        let inside = self.builder.ins().iadd_imm(depth, -1);
        self.store_field(offset, inside);
        depth
    }

    /// What lies at `place` of what lies at `it`.
    pub fn locate(&self, layout: Layout<'a>, place: &Place, it: Spot) -> (Layout<'a>, Spot) {
        let found = self.layouts.locate(self.schema(), layout, place);
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
        (element, self.layouts.extent(self.schema(), element).size)
    }

    /// Room of an element of a list.
    pub fn list_element(&self, id: TypeId) -> u64 {
        let layout = Layout::of_type(self.schema(), id);
        self.layouts.extent(self.schema(), layout).size
    }

    // Numbers and memory.

    pub fn word(&mut self, value: u64) -> ir::Value {
        self.builder.ins().iconst(types::I64, value as i64)
    }

    pub fn address(&mut self, spot: Spot) -> ir::Value {
        match spot.offset {
            0 => spot.base,
            offset => self.builder.ins().iadd_imm(spot.base, i64::from(offset)),
        }
    }

    pub fn load(&mut self, ty: Type, from: Spot) -> ir::Value {
        let ins = self.builder.ins();
        ins.load(ty, unaligned(), from.base, from.offset)
    }

    pub fn store(&mut self, value: ir::Value, to: Spot) {
        let ins = self.builder.ins();
        ins.store(unaligned(), value, to.base, to.offset);
    }

    pub fn load_field(&mut self, ty: Type, offset: usize) -> ir::Value {
        let ins = self.builder.ins();
        ins.load(ty, CURSOR_FLAGS, self.context, offset as i32)
    }

    pub fn store_field(&mut self, offset: usize, value: ir::Value) {
        let ins = self.builder.ins();
        ins.store(CURSOR_FLAGS, value, self.context, offset as i32);
    }

    /// Between the processor's byte order and the network's.
    pub fn swapped(&mut self, value: ir::Value) -> ir::Value {
        match cfg!(target_endian = "big") {
            true => value,
            false => self.builder.ins().bswap(value),
        }
    }

    /// Copies a few bytes, or many by a helper.
    pub fn copy(&mut self, from: Spot, to: Spot, bytes: u32) {
        if bytes > 64 {
            let (from, to) = (self.address(from), self.address(to));
            let bytes = self.word(bytes.into());
            self.call_helper(super::helpers::COPY, &[from, to, bytes]);
            return;
        }
        let mut at = 0;
        while at < bytes {
            let (ty, step) = match bytes - at {
                8.. => (types::I64, 8),
                4..8 => (types::I32, 4),
                2..4 => (types::I16, 2),
                _ => (types::I8, 1),
            };
            let piece = self.load(ty, from.plus(at.into()));
            self.store(piece, to.plus(at.into()));
            at += step;
        }
    }

    // Checks.

    pub fn refuse_if(&mut self, bad: ir::Value) {
        let good = self.builder.create_block();
        self.builder.ins().brif(bad, self.refuse, &[], good, &[]);
        self.builder.switch_to_block(good);
    }

    pub fn refuse_unless(&mut self, good: ir::Value) {
        let bad = self.builder.ins().icmp_imm(IntCC::Equal, good, 0);
        self.refuse_if(bad);
    }

    pub fn refuse_always(&mut self) {
        self.builder.ins().jump(self.refuse, &[]);
        let never = self.builder.create_block();
        self.builder.switch_to_block(never);
    }

    /// Refuses a count over `bound`.
    pub fn check_bound(&mut self, count: ir::Value, bound: u32) {
        if bound < u32::MAX {
            let over = IntCC::UnsignedGreaterThan;
            let bad = self.builder.ins().icmp_imm(over, count, i64::from(bound));
            self.refuse_if(bad);
        }
    }

    /// Refuses a word that is no member of the enum.
    pub fn check_member(&mut self, id: TypeId, word: ir::Value) {
        let values = members(self.schema(), id);
        let (least, most) = (values.iter().min(), values.iter().max());
        let (Some(least), Some(most)) = (least, most) else {
            return self.refuse_always();
        };
        let span = i64::from(*most) - i64::from(*least);
        if values.len() as i64 == span + 1 {
            let distance = self.builder.ins().iadd_imm(word, -i64::from(*least));
            let over = IntCC::UnsignedGreaterThan;
            let bad = self.builder.ins().icmp_imm(over, distance, span);
            return self.refuse_if(bad);
        }
        let member = self.builder.create_block();
        let mut switch = Switch::new();
        for value in values {
            switch.set_entry(u128::from(value as u32), member);
        }
        switch.emit(&mut self.builder, word, self.refuse);
        self.builder.switch_to_block(member);
    }

    // Control.

    /// Runs `body` so often, with the index.
    pub fn repeat(&mut self, count: ir::Value, body: impl FnOnce(&mut Self, ir::Value)) {
        let index = self.builder.declare_var(types::I64);
        let zero = self.word(0);
        self.builder.def_var(index, zero);
        let [head, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let at = self.builder.use_var(index);
        let less = self.builder.ins().icmp(IntCC::UnsignedLessThan, at, count);
        self.builder.ins().brif(less, inside, &[], after, &[]);
        self.builder.switch_to_block(inside);
        body(self, at);
        let next = self.builder.ins().iadd_imm(at, 1);
        self.builder.def_var(index, next);
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(after);
    }

    /// Runs `body` for each of a fixed number of items: few are unrolled. It is told how far the
    /// item is from the first of those that lie `steps` apart.
    pub fn each<const N: usize>(
        &mut self,
        count: u32,
        firsts: [Spot; N],
        steps: [u64; N],
        body: impl Fn(&mut Self, [Spot; N]),
    ) {
        if count <= MAX_UNROLLED {
            for index in 0..u64::from(count) {
                let spots = std::array::from_fn(|at| firsts[at].plus(index * steps[at]));
                body(self, spots);
            }
            return;
        }
        let count = self.word(count.into());
        self.each_of(count, firsts, steps, body);
    }

    /// [`each`](Self::each) of a number of items that is known later.
    pub fn each_of<const N: usize>(
        &mut self,
        count: ir::Value,
        firsts: [Spot; N],
        steps: [u64; N],
        body: impl Fn(&mut Self, [Spot; N]),
    ) {
        self.repeat(count, |this, index| {
            let spots = std::array::from_fn(|at| {
                let step = steps[at] as i64;
                let distance = this.builder.ins().imul_imm(index, step);
                let base = this.builder.ins().iadd(firsts[at].base, distance);
                Spot { base, ..firsts[at] }
            });
            body(this, spots);
        });
    }

    /// Runs `body` unless `condition` is zero.
    pub fn when(&mut self, condition: ir::Value, body: impl FnOnce(&mut Self)) {
        let [inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().brif(condition, inside, &[], after, &[]);
        self.builder.switch_to_block(inside);
        body(self);
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(after);
    }

    /// Moves the arm of the union at `it` that the word `value` selects.
    pub fn arms(
        &mut self,
        value: ir::Value,
        arms: &'a [Arm],
        default: Option<&'a Body>,
        union: (Layout<'a>, Spot),
    ) {
        let (layout, it) = union;
        let Some(definition) = layout.union(self.schema()) else {
            unreachable!("the verifier has looked for every union");
        };
        let held = it.plus(self.layouts.arms_offset(self.schema(), definition));
        let after = self.builder.create_block();
        let mut switch = Switch::new();
        let mut seen = HashSet::new();
        let mut bodies = Vec::new();
        for (arm, definition) in arms.iter().zip(&definition.arms) {
            let block = self.builder.create_block();
            bodies.push((block, &arm.body, Layout::of_arm(definition.field.as_ref())));
            for value in arm.values.iter().filter(|value| seen.insert(**value)) {
                switch.set_entry(u128::from(*value as u32), block);
            }
        }
        let otherwise = match default {
            Some(body) => {
                let block = self.builder.create_block();
                let field = definition.default.as_ref().and_then(Option::as_ref);
                bodies.push((block, body, Layout::of_arm(field)));
                block
            }
            None => self.refuse,
        };
        switch.emit(&mut self.builder, value, otherwise);
        for (block, body, layout) in bodies {
            self.builder.switch_to_block(block);
            self.body(body, layout, held);
            self.builder.ins().jump(after, &[]);
        }
        self.builder.switch_to_block(after);
    }

    /// Calls a helper that does not refuse.
    pub fn call_helper(&mut self, helper: Helper, arguments: &[ir::Value]) -> ir::Value {
        let signature = self.signature(helper.parameters);
        let address = self.word(helper.address as u64);
        let ins = self.builder.ins();
        let call = ins.call_indirect(signature, address, arguments);
        self.builder.inst_results(call)[0]
    }

    /// Calls a helper that may refuse.
    pub fn ask_helper(&mut self, helper: Helper, arguments: &[ir::Value]) -> ir::Value {
        let given = self.call_helper(helper, arguments);
        let ins = self.builder.ins();
        let bad = ins.icmp_imm(IntCC::Equal, given, REFUSED as i64);
        self.refuse_if(bad);
        given
    }

    fn signature(&mut self, parameters: usize) -> SigRef {
        let (builder, call_conv) = (&mut self.builder, self.call_conv);
        *self.signatures.entry(parameters).or_insert_with(|| {
            let mut signature = ir::Signature::new(call_conv);
            signature.params = vec![AbiParam::new(types::I64); parameters];
            signature.returns = vec![AbiParam::new(types::I64)];
            builder.import_signature(signature)
        })
    }
}

/// How many operations and arms there are.
fn weight(body: &[Op]) -> usize {
    let weights = body.iter().map(|op| match op {
        Op::Align { .. } | Op::Zero { .. } | Op::Blit { .. } | Op::BlitCounted { .. } => 1,
        Op::PutElements { body, .. } => 1 + weight(body),
        Op::Loop { body, .. } | Op::Optional { body, .. } => 1 + weight(body),
        Op::Switch { arms, default, .. } => {
            let bodies = arms.iter().map(|arm| &arm.body).chain(default);
            bodies.map(|body| 1 + weight(body)).sum()
        }
        Op::Reserve { .. } | Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } => 1,
        Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::List { .. } => 1,
        Op::Call { .. } | Op::External { .. } => 1,
    });
    weights.sum()
}

/// The frame's side of a scalar.
pub(super) fn memory_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::I8 | Scalar::U8 => types::I8,
        Scalar::I16 | Scalar::U16 => types::I16,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => types::I32,
        Scalar::Bool | Scalar::Enum(_) => types::I32,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => types::I64,
        Scalar::F128 => types::I128,
    }
}

/// Bytes of a scalar in memory.
pub(super) fn memory_bytes(scalar: Scalar) -> u64 {
    of_scalar(scalar).size
}

/// Whether arrays of it are moved by the kernels: each item is as long on the wire as in memory,
/// and every pattern is a value.
pub(super) fn is_plain(scalar: Scalar) -> bool {
    match scalar {
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => true,
        Scalar::F32 | Scalar::F64 | Scalar::F128 => true,
        Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => false,
        Scalar::Bool | Scalar::Enum(_) => false,
    }
}

fn unaligned() -> MemFlags {
    MemFlags::new().with_notrap()
}

fn members(schema: &Schema, id: TypeId) -> HashSet<i32> {
    let value = |member: &EnumMember| member.value;
    match &schema.type_def(id).kind {
        TypeKind::Enum(members) => members.iter().map(value).collect(),
        _ => HashSet::new(),
    }
}

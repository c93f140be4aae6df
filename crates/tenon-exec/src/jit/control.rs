//! Control flow: loops, conditions, arms of unions.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use cranelift_frontend::Switch;
use tenon_plan::Scalar;

use super::emit::{FunctionEmitter, MemoryOperand};
use super::given::MarshalDirection;
use crate::resolved::{ResolvedArm, ResolvedSwitch};

/// Fixed arrays of so many items at most are unrolled.
const MAX_UNROLLED: u32 = 4;

impl<'a> FunctionEmitter<'a, '_> {
    /// Runs `body` for each of a fixed number of items, the first of which lie at `firsts` and the
    /// others `steps` apart.
    pub fn each<const N: usize>(
        &mut self,
        count: u32,
        firsts: [MemoryOperand; N],
        steps: [u64; N],
        body: impl Fn(&mut Self, [MemoryOperand; N]),
    ) {
        if count > MAX_UNROLLED {
            let count = self.word(count.into());
            return self.repeat(count, firsts, steps, body);
        }
        for index in 0..u64::from(count) {
            let spots = std::array::from_fn(|at| firsts[at].plus(index * steps[at]));
            body(self, spots);
        }
    }

    /// Runs `body` for each of `count` items, of which there may be none.
    pub fn each_of<const N: usize>(
        &mut self,
        count: Value,
        firsts: [MemoryOperand; N],
        steps: [u64; N],
        body: impl FnOnce(&mut Self, [MemoryOperand; N]),
    ) {
        self.when(count, |this| this.repeat(count, firsts, steps, body));
    }

    /// Runs `body` for each of `count` items, of which there is at least one.
    fn repeat<const N: usize>(
        &mut self,
        count: Value,
        firsts: [MemoryOperand; N],
        steps: [u64; N],
        body: impl FnOnce(&mut Self, [MemoryOperand; N]),
    ) {
        let inside = self.builder.create_block();
        let after = self.builder.create_block();
        let mut arguments = vec![BlockArg::Value(count)];
        arguments.extend(firsts.map(|first| BlockArg::Value(self.address(first))));
        self.builder.ins().jump(inside, &arguments);
        self.builder.switch_to_block(inside);
        let left = self.builder.append_block_param(inside, types::I64);
        let items = firsts.map(|_| self.builder.append_block_param(inside, types::I64));
        body(self, items.map(MemoryOperand::at));
        let left = self.builder.ins().iadd_imm(left, -1);
        let mut arguments = vec![BlockArg::Value(left)];
        for (item, step) in items.into_iter().zip(steps) {
            let next = self.builder.ins().iadd_imm(item, step as i64);
            arguments.push(BlockArg::Value(next));
        }
        let ins = self.builder.ins();
        ins.brif(left, inside, &arguments, after, &[]);
        self.builder.seal_block(inside);
        self.go_on(after);
    }

    /// Runs `body` for each element of a list from `first` on, of which there may be none; `link` is the offset of the
    /// pointer to the next.
    pub fn each_link(
        &mut self,
        first: Value,
        link: u64,
        body: impl FnOnce(&mut Self, MemoryOperand),
    ) {
        self.when(first, |this| {
            let inside = this.builder.create_block();
            let after = this.builder.create_block();
            this.builder.ins().jump(inside, &[BlockArg::Value(first)]);
            this.builder.switch_to_block(inside);
            let item = this.builder.append_block_param(inside, types::I64);
            let item = MemoryOperand::at(item);
            body(this, item);
            let next = this.load(types::I64, item.plus(link));
            let again = [BlockArg::Value(next)];
            this.builder.ins().brif(next, inside, &again, after, &[]);
            this.builder.seal_block(inside);
            this.go_on(after);
        });
    }

    /// Runs `body` if `condition` is not zero.
    pub fn when(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let [inside, after] = std::array::from_fn(|_| self.builder.create_block());
        let ins = self.builder.ins();
        ins.brif(condition, inside, &[], after, &[]);
        self.go_on(inside);
        body(self);
        self.builder.ins().jump(after, &[]);
        self.go_on(after);
    }

    /// [`when`](Self::when) for a condition that is seldom true.
    pub fn seldom(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let [inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.set_cold_block(inside);
        let ins = self.builder.ins();
        ins.brif(condition, inside, &[], after, &[]);
        self.go_on(inside);
        body(self);
        self.builder.ins().jump(after, &[]);
        self.go_on(after);
    }

    /// [`seldom`](Self::seldom) with a result: that of `body`, and otherwise `usual`.
    pub fn when_seldom(
        &mut self,
        condition: Value,
        usual: Value,
        body: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let [inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.set_cold_block(inside);
        let given = self.builder.append_block_param(after, types::I64);
        let usual = [BlockArg::Value(usual)];
        let ins = self.builder.ins();
        ins.brif(condition, inside, &[], after, &usual);
        self.go_on(inside);
        let instead = [BlockArg::Value(body(self))];
        self.builder.ins().jump(after, &instead);
        self.go_on(after);
        given
    }

    /// Runs the arm that `value` selects of the union at `at`.
    pub fn arms(&mut self, union: &'a ResolvedSwitch, value: Value, at: MemoryOperand) {
        if let Scalar::Enum(of) = union.discriminant {
            let mut values = union.arms.iter().flat_map(|arm| &arm.values);
            let has_others = !values.all(|value| self.given.is_member(of, *value));
            // Without a default arm, a value that selects an arm is a member.
            if union.default.is_some() || has_others {
                self.check_member(of, value);
                self.settle();
            }
        }
        let held = at.plus(union.arms_at.into());
        let after = self.builder.create_block();
        let mut blocks = Vec::new();
        let mut target = |this: &mut Self, arm: &'a ResolvedArm| {
            if arm.body.is_empty() && arm.boxed.is_none() {
                return after;
            }
            let block = this.builder.create_block();
            blocks.push((block, arm));
            block
        };
        let mut entries = BTreeMap::new();
        for arm in &union.arms {
            let block = target(self, arm);
            for value in &arm.values {
                entries.entry(*value as u32).or_insert(block);
            }
        }
        let otherwise = match &union.default {
            Some(arm) => target(self, arm),
            None => self.refusal(),
        };
        self.select((union.discriminant, value), &entries, otherwise);
        for (block, arm) in blocks {
            self.go_on(block);
            let at = arm
                .boxed
                .map_or(held, |bytes| self.behind(held, bytes.into()));
            self.body(&arm.body, at);
            self.builder.ins().jump(after, &[]);
        }
        self.go_on(after);
    }

    /// The address of a value of so many bytes behind the pointer at `at`; a decoder allocates it.
    fn behind(&mut self, at: MemoryOperand, bytes: u64) -> MemoryOperand {
        match self.way {
            MarshalDirection::Encode { .. } => {
                let held = self.load(types::I64, at);
                if self.given.is_c() {
                    self.refuse_unless(held);
                }
                MemoryOperand::at(held)
            }
            MarshalDirection::Decode { .. } => self.get_boxed(at, bytes),
        }
    }

    /// Goes to the block of `entries` that `value` selects, or to `otherwise`.
    fn select(
        &mut self,
        (scalar, value): (Scalar, Value),
        entries: &BTreeMap<u32, Block>,
        otherwise: Block,
    ) {
        if scalar == Scalar::Bool {
            // It is 0 or 1 by now.
            let [zero, one] = [0, 1].map(|value| entries.get(&value).copied().unwrap_or(otherwise));
            self.builder.ins().brif(value, one, &[], zero, &[]);
            return;
        }
        let mut switch = Switch::new();
        for (value, block) in entries {
            switch.set_entry((*value).into(), *block);
        }
        switch.emit(&mut self.builder, value, otherwise);
    }

    /// Adds a check that a word is a member of the enum.
    pub fn check_member(&mut self, id: tenon_schema::TypeId, word: Value) {
        let clusters = self.given.clusters(id);
        let mut outside = None;
        for cluster in clusters {
            let distance = match cluster.least {
                0 => word,
                least => self.builder.ins().iadd_imm(word, -i64::from(least)),
            };
            let over = IntCC::UnsignedGreaterThan;
            let span = i64::from(cluster.span);
            let mut bad = self.builder.ins().icmp_imm(over, distance, span);
            if cluster.missing != 0 {
                let missing = self.word(cluster.missing);
                let bit = self.builder.ins().ushr(missing, distance);
                let bit = self.builder.ins().band_imm(bit, 1);
                let bit = self.builder.ins().ireduce(types::I8, bit);
                bad = self.builder.ins().bor(bad, bit);
            }
            outside = Some(match outside {
                None => bad,
                Some(outside) => self.builder.ins().band(outside, bad),
            });
        }
        match outside {
            Some(outside) => self.checks.always.push(outside),
            None => self.refuse_always(),
        }
    }
}

//! Encoders: the code that each operation emits to append its items.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use tenon_plan::{Blittable, COUNT_BYTES, Count, FixedKind, Lists, Scalar};
use tenon_schema::TypeId;

use super::blit::CoalescedCopies;
use super::c_helpers::{CHAIN_LENGTH, TRY_GROW};
use super::emit::{ContextLocation, ContextRegisters, FunctionEmitter, MemoryOperand};
use super::given::{HOLE_BYTES, MAX_COVERED};
use super::helpers::{GROW, GROW_BUFFER};
use crate::layout::CountedArray;
use crate::resolved::{ResolvedBlock, ResolvedFixedItem, ResolvedKind, ResolvedOp, ResolvedPart};

impl<'a> FunctionEmitter<'a, '_> {
    /// Appends the items of `body` of the value at `it`.
    pub fn encode(&mut self, body: &'a [ResolvedOp], it: MemoryOperand) {
        let mut covered = 0;
        for (index, op) in body.iter().enumerate() {
            if covered == 0 && !self.covered {
                covered = self.cover(&body[index..]);
            }
            let outside = self.covered;
            self.covered |= covered > 0;
            self.put_op(op, it);
            covered = covered.saturating_sub(1);
            self.covered = outside;
        }
    }

    /// Makes room for as many of the next operations as are worth one check, and returns their number.
    fn cover(&mut self, ops: &[ResolvedOp]) -> usize {
        let (mut covered, mut bytes) = (0, 0);
        for op in ops {
            let Some(more) = self.given.most(op) else {
                break;
            };
            // A block that is too large gets a check of its own.
            if covered > 0 && more > 0 && bytes + more > MAX_COVERED {
                break;
            }
            bytes += more;
            covered += 1;
        }
        if let ([ResolvedOp::Item(item), ..], 1) = (ops, covered)
            && let ResolvedKind::CopyCounted { .. } = item.kind
        {
            // It makes its own check.
            return 0;
        }
        if bytes > 0 {
            let bytes = self.word(bytes);
            self.make_room(bytes);
        }
        covered
    }

    /// Emits the code of an operation.
    fn put_op(&mut self, op: &'a ResolvedOp, it: MemoryOperand) {
        match op {
            ResolvedOp::Reserve(block) => {
                let to = self.room(block.bytes.into());
                self.put_items(block, it, to);
            }
            ResolvedOp::Align { to, before } => self.put_hole(*to, *before),
            ResolvedOp::Item(item) => self.put_alone(&item.kind, it.plus(item.at.into())),
        }
    }

    /// Emits the code of an item that is in no block.
    fn put_alone(&mut self, kind: &'a ResolvedKind, from: MemoryOperand) {
        match kind {
            ResolvedKind::BlitCounted { item, bound } => self.put_blitted(item, *bound, from),
            ResolvedKind::PutElements {
                count,
                stride,
                element,
            } => self.put_elements((*count, (*stride).into()), element, from),
            ResolvedKind::CopyCounted { bound, text } => self.put_opaque(*bound, *text, from),
            ResolvedKind::PutCounted { scalar, bound } => self.put_counted(*scalar, *bound, from),
            ResolvedKind::Loop {
                count,
                stride,
                body,
                ..
            } => self.put_loop((*count, (*stride).into()), body, from),
            ResolvedKind::Switch(switch) => {
                let to = self.room(self.wire_bytes(switch.discriminant));
                let value = self.put_discriminant(switch.discriminant, from, to);
                self.arms(switch, value, from);
            }
            ResolvedKind::Optional { body, .. } => {
                let held = self.load(types::I64, from);
                let is_some = self.builder.ins().icmp_imm(IntCC::NotEqual, held, 0);
                self.put_flag(is_some);
                self.when(is_some, |this| this.body(body, MemoryOperand::at(held)));
            }
            ResolvedKind::List {
                first_bare,
                element,
            } => self.put_list(*first_bare, *element, from),
            ResolvedKind::Call { plan } => self.call_type(*plan, from),
            ResolvedKind::External => self.refuse_always(),
        }
    }

    /// Writes items of fixed size to the block at `to`.
    fn put_items(&mut self, block: &'a ResolvedBlock, it: MemoryOperand, to: MemoryOperand) {
        let mut plain = CoalescedCopies::none(self.way.swapped());
        for part in &block.parts {
            let to = to.plus(part.offset().into());
            match part {
                ResolvedPart::Hole(hole) => self.put_zeros(hole.bytes, to),
                ResolvedPart::Item(item) => {
                    self.put_item(item, (it.plus(item.at.into()), to), &mut plain);
                }
            }
        }
        self.blit_plain(plain, it, to);
        self.settle();
    }

    /// Writes an item of a block, or adds it to those that are copied together.
    fn put_item(
        &mut self,
        item: &ResolvedFixedItem,
        (from, to): (MemoryOperand, MemoryOperand),
        plain: &mut CoalescedCopies,
    ) {
        let (memory, offset) = (item.at.into(), item.offset.into());
        match &item.kind {
            FixedKind::Put { scalar } => match self.plain(*scalar) {
                Some(item) => plain.add(memory, offset, &item, 1),
                None => {
                    self.put(*scalar, from, to);
                }
            },
            FixedKind::PutArray { scalar, count } => match self.plain(*scalar) {
                Some(item) => plain.add(memory, offset, &item, *count),
                None => self.put_array(*scalar, *count, from, to),
            },
            FixedKind::Copy { bytes } => {
                plain.add(memory, offset, &Blittable::uniform(1, *bytes), 1);
                let padded = self.given.plans.representation.padded((*bytes).into());
                let behind = to.plus(u64::from(*bytes));
                self.put_zeros((padded - u64::from(*bytes)) as u32, behind);
            }
            FixedKind::Blit { item, count } => plain.add(memory, offset, item, *count),
        }
    }

    fn put_array(&mut self, scalar: Scalar, count: u32, from: MemoryOperand, to: MemoryOperand) {
        let steps = [self.memory_bytes(scalar), self.wire_bytes(scalar)];
        self.settle();
        self.each(count, [from, to], steps, |this, [from, to]| {
            this.put(scalar, from, to);
            this.settle();
        });
    }

    fn put_zeros(&mut self, bytes: u32, to: MemoryOperand) {
        let mut at = 0;
        while at < bytes {
            let (ty, step) = match bytes - at {
                8.. => (types::I64, 8),
                4..8 => (types::I32, 4),
                2..4 => (types::I16, 2),
                _ => (types::I8, 1),
            };
            let zero = self.builder.ins().iconst(ty, 0);
            self.store(zero, to.plus(at.into()));
            at += step;
        }
    }

    fn put_hole(&mut self, to: u32, before: u32) {
        if to <= 1 {
            return;
        }
        if !self.covered {
            let bytes = self.word(HOLE_BYTES);
            self.make_room(bytes);
        }
        let hole = self.hole(to, before);
        let at = self.cursor();
        let zero = self.word(0);
        self.store(zero, MemoryOperand::at(at));
        let behind = self.builder.ins().iadd(at, hole);
        self.set_cursor(behind);
    }

    /// Appends a linked list.
    pub fn put_list(&mut self, first_bare: bool, element: TypeId, from: MemoryOperand) {
        if self.given.is_c() {
            return self.put_chain(first_bare, element, from);
        }
        let (count, items) = self.counted(from, u32::MAX);
        if first_bare {
            self.refuse_unless(count);
        }
        match self.given.plans.representation.lists {
            Lists::Flagged => self.put_flagged(first_bare, element, count, items),
            Lists::Counted => {
                let to = self.put_elements_count(count, 0);
                self.set_cursor(to.base);
                let stride = self.list_element(element);
                self.each_of(count, [items], [stride], |this, [item]| {
                    this.put_element(element, item);
                });
            }
        }
    }

    fn put_flagged(
        &mut self,
        first_bare: bool,
        element: TypeId,
        count: Value,
        items: MemoryOperand,
    ) {
        let stride = self.list_element(element);
        let (mut left, mut items) = (count, items);
        if first_bare {
            self.call_type(element, items);
            items = MemoryOperand::at(self.address(items.plus(stride)));
            left = self.builder.ins().iadd_imm(count, -1);
        }
        self.each_of(left, [items], [stride], |this, [item]| {
            let one = this.builder.ins().iconst(types::I8, 1);
            this.put_flag(one);
            this.put_element(element, item);
        });
        let none = self.builder.ins().iconst(types::I8, 0);
        self.put_flag(none);
    }

    /// Appends a list that is linked by pointers.
    fn put_chain(&mut self, first_bare: bool, element: TypeId, from: MemoryOperand) {
        let mut first = match first_bare {
            true => self.address(from),
            false => self.load(types::I64, from),
        };
        let link = self.given.link_offset(element);
        let is_flagged = self.given.plans.representation.lists == Lists::Flagged;
        if is_flagged && first_bare {
            self.call_type(element, MemoryOperand::at(first));
            first = self.load(types::I64, MemoryOperand::at(first).plus(link));
        }
        if !is_flagged {
            let fewest = self.given.plans.of_type(element).fewest;
            let [offset, fewest] = [link, fewest].map(|value| self.word(value));
            let arguments = [self.context(), first, offset, fewest];
            let count = self.ask_helper(CHAIN_LENGTH, &arguments);
            let count = self.builder.ins().iadd_imm(count, -1);
            let to = self.put_elements_count(count, 0);
            self.set_cursor(to.base);
        }
        self.each_link(first, link, |this, item| {
            if is_flagged {
                let one = this.builder.ins().iconst(types::I8, 1);
                this.put_flag(one);
            }
            this.put_element(element, item);
        });
        if is_flagged {
            let none = self.builder.ins().iconst(types::I8, 0);
            self.put_flag(none);
        }
    }

    fn put_element(&mut self, element: TypeId, item: MemoryOperand) {
        if self.given.plans.representation.aligned {
            self.put_hole(self.given.plans.of_type(element).align, 0);
        }
        self.call_type(element, item);
    }

    /// Makes sure that there is room for `bytes` more.
    pub fn make_room(&mut self, bytes: Value) {
        let at = self.cursor();
        let end = self.end();
        let behind = self.builder.ins().iadd(at, bytes);
        let over = IntCC::UnsignedGreaterThan;
        let full = self.builder.ins().icmp(over, behind, end);
        self.seldom(full, |this| match this.location {
            ContextLocation::Context(context) => {
                let at = match this.given.is_c() {
                    true => this.ask_helper(TRY_GROW, &[context, at, bytes]),
                    false => this.call_helper(GROW, &[context, at, bytes]),
                };
                this.set_cursor(at);
            }
            ContextLocation::Registers(registers) => this.grow(registers, at, bytes),
        });
    }

    /// Makes room for `bytes` more behind `at`, in a function that keeps no context.
    fn grow(&mut self, registers: ContextRegisters, at: Value, bytes: Value) {
        let ContextRegisters { end, base, more } = registers;
        let base_before = self.builder.use_var(base);
        let grown = self.call_for(2, GROW_BUFFER, &[more, at, bytes]);
        let moved = self.builder.ins().isub(grown[0], at);
        let base_behind = self.builder.ins().iadd(base_before, moved);
        self.builder.def_var(base, base_behind);
        self.builder.def_var(end, grown[1]);
        self.set_cursor(grown[0]);
    }

    /// Takes room for `bytes` more.
    fn room(&mut self, bytes: u64) -> MemoryOperand {
        if !self.covered {
            let bytes = self.word(bytes);
            self.make_room(bytes);
        }
        let at = self.cursor();
        let behind = self.builder.ins().iadd_imm(at, bytes as i64);
        self.step(behind)
    }

    /// The number of elements, which is checked against `bound`, and their address.
    fn counted(&mut self, from: MemoryOperand, bound: u32) -> (Value, MemoryOperand) {
        let count = self.load(
            types::I32,
            from.plus(offset_of!(CountedArray, count) as u64),
        );
        let count = self.builder.ins().uextend(types::I64, count);
        self.check_bound(count, bound);
        let items = self.load(
            types::I64,
            from.plus(offset_of!(CountedArray, items) as u64),
        );
        let items = match self.given.is_c() {
            true => self.items_in_c(count, items),
            false => items,
        };
        (count, MemoryOperand::at(items))
    }

    /// The address of `count` items at `items`: null is refused unless there are none, and then another address is as
    /// good.
    fn items_in_c(&mut self, count: Value, items: Value) -> Value {
        let is_null = self.builder.ins().icmp_imm(IntCC::Equal, items, 0);
        let is_some = self.builder.ins().icmp_imm(IntCC::NotEqual, count, 0);
        let bad = self.builder.ins().band(is_null, is_some);
        self.refuse_if(bad);
        let elsewhere = self.word(align_of::<u64>() as u64);
        self.builder.ins().select(is_null, elsewhere, items)
    }

    fn put_opaque(&mut self, bound: u32, text: bool, from: MemoryOperand) {
        let Some(opaque) = self.opaque_helpers(text) else {
            return self.refuse_always();
        };
        let arguments = [
            self.context(),
            self.cursor(),
            self.address(from),
            self.word(bound.into()),
        ];
        let behind = self.ask_helper(opaque.put, &arguments);
        self.set_cursor(behind);
    }

    /// Appends a count, and room for so many elements.
    fn put_elements_count(&mut self, count: Value, bytes: u64) -> MemoryOperand {
        let elements = self.times(count, bytes);
        self.put_count(count, elements)
    }

    /// Appends a count, and room for the `elements` bytes behind it.
    fn put_count(&mut self, count: Value, elements: Value) -> MemoryOperand {
        let all = self
            .builder
            .ins()
            .iadd_imm(elements, i64::from(COUNT_BYTES));
        if !self.covered {
            self.make_room(all);
        }
        let at = self.cursor();
        let behind = self.builder.ins().iadd(at, all);
        let to = self.step(behind);
        let count = self.builder.ins().ireduce(types::I32, count);
        let count = self.ordered(count);
        self.store(count, to);
        MemoryOperand::at(self.address(to.plus(COUNT_BYTES.into())))
    }

    fn put_counted(&mut self, scalar: Scalar, bound: u32, from: MemoryOperand) {
        if let Some(item) = self.plain(scalar) {
            return self.put_blitted(&item, bound, from);
        }
        let (count, items) = self.counted(from, bound);
        let wire = self.wire_bytes(scalar);
        let to = self.put_elements_count(count, wire);
        let steps = [self.memory_bytes(scalar), wire];
        self.each_of(count, [items, to], steps, |this, [from, to]| {
            this.put(scalar, from, to);
            this.settle();
        });
    }

    fn put_blitted(&mut self, item: &Blittable, bound: u32, from: MemoryOperand) {
        let (count, items) = self.counted(from, bound);
        let elements = self.times(count, item.bytes());
        let to = self.put_count(count, elements);
        self.blit_counted(item, (count, elements), items, to);
    }

    fn put_elements(
        &mut self,
        (count, stride): (Count, u64),
        block: &'a ResolvedBlock,
        from: MemoryOperand,
    ) {
        let bytes = u64::from(block.bytes);
        let steps = [stride, bytes];
        let inside = |this: &mut Self, [from, to]: [MemoryOperand; 2]| {
            this.put_items(block, from, to);
        };
        match count {
            Count::Fixed(count) => {
                let to = self.room(bytes.saturating_mul(count.into()));
                self.each(count, [from, to], steps, inside);
            }
            Count::Counted(bound) => {
                let (count, items) = self.counted(from, bound);
                let to = self.put_elements_count(count, bytes);
                self.each_of(count, [items, to], steps, inside);
            }
        }
    }

    fn put_loop(
        &mut self,
        (count, stride): (Count, u64),
        body: &'a [ResolvedOp],
        from: MemoryOperand,
    ) {
        let inside = |this: &mut Self, [item]: [MemoryOperand; 1]| this.encode(body, item);
        match count {
            Count::Fixed(count) => {
                let count = self.word(count.into());
                self.each_of(count, [from], [stride], inside);
            }
            Count::Counted(bound) => {
                let (count, items) = self.counted(from, bound);
                let to = self.put_elements_count(count, 0);
                self.set_cursor(to.base);
                // Of elements without bytes there is a count alone.
                if !body.is_empty() {
                    self.each_of(count, [items], [stride], inside);
                }
            }
        }
    }

    /// Appends the flag that says whether something follows.
    fn put_flag(&mut self, is_some: Value) {
        let to = self.room(self.wire_bytes(Scalar::Bool));
        let flag = self.builder.ins().uextend(types::I32, is_some);
        self.put_word(Scalar::Bool, flag, to);
    }
}

//! Decoders: the code that each operation emits to read its items.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value, types};
use tenon_plan::{Blittable, COUNT_BYTES, Count, FixedKind, Lists, Scalar};
use tenon_schema::TypeId;

use super::blit::CoalescedCopies;
use super::c_helpers::{TAKE_BYTES_IN_C, TAKE_IN_C, TAKE_ITEMS_IN_C};
use super::emit::{FunctionEmitter, MemoryOperand};
use super::helpers::{ARE_ZERO, GrowingList, HelperFunction, NEXT, TAKE};
use crate::layout::CountedArray;
use crate::resolved::{ResolvedBlock, ResolvedFixedItem, ResolvedKind, ResolvedOp, ResolvedPart};

/// Bytes of an element above which counting them could overflow. No frame holds one.
const MAX_ELEMENT: u64 = 1 << 31;

impl<'a> FunctionEmitter<'a, '_> {
    /// Reads the items of `body` to the value at `it`.
    pub fn decode(&mut self, body: &'a [ResolvedOp], it: MemoryOperand) {
        for op in body {
            self.get_op(op, it);
        }
    }

    /// Emits the code of an operation.
    fn get_op(&mut self, op: &'a ResolvedOp, it: MemoryOperand) {
        match op {
            ResolvedOp::Reserve(block) => {
                let from = self.next_bytes(block.bytes.into());
                self.get_items(block, it, from);
            }
            ResolvedOp::Align { to, before } => self.get_hole(*to, *before),
            ResolvedOp::Item(item) => self.get_alone(&item.kind, it.plus(item.at.into())),
        }
    }

    /// Emits the code of an item that is in no block.
    fn get_alone(&mut self, kind: &'a ResolvedKind, to: MemoryOperand) {
        match kind {
            ResolvedKind::BlitCounted { item, bound } => self.get_blitted(item, *bound, to),
            ResolvedKind::PutElements {
                count,
                stride,
                element,
            } => self.get_elements((*count, (*stride).into()), element, to),
            ResolvedKind::CopyCounted { bound, text } => self.get_opaque(*bound, *text, to),
            ResolvedKind::PutCounted { scalar, bound } => self.get_counted(*scalar, *bound, to),
            ResolvedKind::Loop {
                count,
                fewest,
                stride,
                body,
            } => self.get_loop((*count, (*stride).into()), *fewest, body, to),
            ResolvedKind::Switch(switch) => {
                let from = self.next_bytes(self.wire_bytes(switch.discriminant));
                let value = self.get_discriminant(switch.discriminant, from, to);
                self.settle();
                self.arms(switch, value, to);
            }
            ResolvedKind::Optional { bytes, body } => {
                self.get_optional((*bytes).into(), body, to);
            }
            ResolvedKind::List {
                first_bare,
                element,
            } => self.get_list(*first_bare, *element, to),
            ResolvedKind::Call { plan } => self.call_type(*plan, to),
            ResolvedKind::External => self.refuse_always(),
        }
    }

    /// Reads items of fixed size from the block at `from`.
    fn get_items(&mut self, block: &'a ResolvedBlock, it: MemoryOperand, from: MemoryOperand) {
        let mut plain = CoalescedCopies::none(self.way.swapped());
        for part in &block.parts {
            let from = from.plus(part.offset().into());
            match part {
                ResolvedPart::Hole(hole) => self.get_zeros(hole.bytes, from),
                ResolvedPart::Item(item) => {
                    self.get_item(item, (from, it.plus(item.at.into())), &mut plain);
                }
            }
        }
        self.blit_plain(plain, it, from);
        self.settle();
    }

    /// Reads an item of a block, or adds it to those that are copied together.
    fn get_item(
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
                    self.get(*scalar, from, to);
                }
            },
            FixedKind::PutArray { scalar, count } => match self.plain(*scalar) {
                Some(item) => plain.add(memory, offset, &item, *count),
                None => self.get_array(*scalar, *count, from, to),
            },
            FixedKind::Copy { bytes } => {
                plain.add(memory, offset, &Blittable::uniform(1, *bytes), 1);
                let padded = self.given.plans.representation.padded((*bytes).into());
                let behind = from.plus(u64::from(*bytes));
                self.get_zeros((padded - u64::from(*bytes)) as u32, behind);
            }
            FixedKind::Blit { item, count } => plain.add(memory, offset, item, *count),
        }
    }

    fn get_array(&mut self, scalar: Scalar, count: u32, from: MemoryOperand, to: MemoryOperand) {
        let steps = [self.wire_bytes(scalar), self.memory_bytes(scalar)];
        self.settle();
        self.each(count, [from, to], steps, |this, [from, to]| {
            this.get(scalar, from, to);
            this.settle();
        });
    }

    /// Adds a check that bytes are zero, in strict mode.
    fn get_zeros(&mut self, bytes: u32, from: MemoryOperand) {
        for at in 0..bytes {
            let byte = self.load(types::I8, from.plus(at.into()));
            let byte = self.builder.ins().uextend(types::I64, byte);
            self.checks.strictly.push(byte);
        }
    }

    fn get_hole(&mut self, to: u32, before: u32) {
        if to <= 1 {
            return;
        }
        let hole = self.hole(to, before);
        let from = self.next_of(hole);
        let strict = self.strict();
        let is_looked_at = self.builder.ins().band(hole, strict);
        let fine = self.word(1);
        let fine = self.when_seldom(is_looked_at, fine, |this| {
            this.call_helper(ARE_ZERO, &[from.base, hole])
        });
        self.refuse_unless(fine);
    }

    /// Reads a linked list.
    pub fn get_list(&mut self, first_bare: bool, element: TypeId, to: MemoryOperand) {
        if self.given.is_c() {
            return self.get_chain(first_bare, element, to);
        }
        match self.given.plans.representation.lists {
            Lists::Flagged => self.get_flagged(first_bare, element, to),
            Lists::Counted => {
                let fewest = self.given.plans.of_type(element).fewest;
                let stride = self.list_element(element);
                let (count, items) = self.get_elements_count(u32::MAX, fewest, stride, to);
                if first_bare {
                    self.refuse_unless(count);
                }
                self.each_of(count, [items], [stride], |this, [item]| {
                    this.get_element(element, item);
                });
            }
        }
    }

    fn get_flagged(&mut self, first_bare: bool, element: TypeId, to: MemoryOperand) {
        let list = self.empty_list();
        let stride = self.list_element(element);
        let stride = self.word(stride);
        if first_bare {
            let item = self.ask_helper(NEXT, &[self.context(), list.base, stride]);
            self.call_type(element, MemoryOperand::at(item));
        }
        let [head, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let more = self.get_flag();
        self.builder.ins().brif(more, inside, &[], after, &[]);
        self.go_on(inside);
        let item = self.ask_helper(NEXT, &[self.context(), list.base, stride]);
        self.get_element(element, MemoryOperand::at(item));
        self.builder.ins().jump(head, &[]);
        self.builder.seal_block(head);
        self.go_on(after);
        let count = self.load(types::I64, list.plus(offset_of!(GrowingList, count) as u64));
        let items = self.load(types::I64, list.plus(offset_of!(GrowingList, items) as u64));
        self.store_counted(count, items, to);
    }

    /// Reads a list that is linked by pointers.
    fn get_chain(&mut self, first_bare: bool, element: TypeId, to: MemoryOperand) {
        let link = self.given.link_offset(element);
        let is_flagged = self.given.plans.representation.lists == Lists::Flagged;
        let left = self.builder.declare_var(types::I64);
        if !is_flagged {
            let fewest = self.given.plans.of_type(element).fewest;
            let count = self.get_count(u32::MAX);
            self.check_elements(count, fewest);
            let mut count = count;
            if first_bare {
                self.refuse_unless(count);
                count = self.builder.ins().iadd_imm(count, -1);
            }
            self.builder.def_var(left, count);
        }
        let mut pointer = to;
        let null = self.word(0);
        if first_bare {
            pointer = to.plus(link);
            self.store(null, pointer);
            match is_flagged {
                true => self.call_type(element, to),
                false => self.get_element(element, to),
            }
        } else {
            self.store(null, pointer);
        }
        let place = self.builder.declare_var(types::I64);
        let first = self.address(pointer);
        self.builder.def_var(place, first);
        let [head, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let more = match is_flagged {
            true => self.get_flag(),
            false => self.builder.use_var(left),
        };
        self.builder.ins().brif(more, inside, &[], after, &[]);
        self.go_on(inside);
        if !is_flagged {
            let fewer = self.builder.ins().iadd_imm(more, -1);
            self.builder.def_var(left, fewer);
        }
        let bytes = self.list_element(element);
        let at = self.builder.use_var(place);
        let item = self.get_boxed(MemoryOperand::at(at), bytes);
        let behind = self.address(item.plus(link));
        self.builder.def_var(place, behind);
        self.get_element(element, item);
        self.builder.ins().jump(head, &[]);
        self.builder.seal_block(head);
        self.go_on(after);
    }

    fn get_element(&mut self, element: TypeId, item: MemoryOperand) {
        if self.given.plans.representation.aligned {
            self.get_hole(self.given.plans.of_type(element).align, 0);
        }
        self.call_type(element, item);
    }

    fn empty_list(&mut self) -> MemoryOperand {
        let kind = StackSlotKind::ExplicitSlot;
        let slot = StackSlotData::new(kind, size_of::<GrowingList>() as u32, 3);
        let slot = self.builder.create_sized_stack_slot(slot);
        let list = self.builder.ins().stack_addr(types::I64, slot, 0);
        let list = MemoryOperand::at(list);
        let zero = self.word(0);
        for field in [
            offset_of!(GrowingList, count),
            offset_of!(GrowingList, room),
            offset_of!(GrowingList, items),
        ] {
            self.store(zero, list.plus(field as u64));
        }
        list
    }

    /// Takes the next `bytes`; refuses if there are fewer.
    fn next_bytes(&mut self, bytes: u64) -> MemoryOperand {
        let bytes = self.word(bytes);
        self.next_of(bytes)
    }

    fn next_of(&mut self, bytes: Value) -> MemoryOperand {
        let at = self.cursor();
        let behind = self.check_bytes(at, bytes);
        self.step(behind)
    }

    /// Refuses if there are fewer than `bytes` at `at`, and returns the address behind them.
    fn check_bytes(&mut self, at: Value, bytes: Value) -> Value {
        let behind = self.builder.ins().iadd(at, bytes);
        let end = self.end();
        let over = IntCC::UnsignedGreaterThan;
        let truncated = self.builder.ins().icmp(over, behind, end);
        self.refuse_if(truncated);
        behind
    }

    fn store_counted(&mut self, count: Value, items: Value, to: MemoryOperand) {
        self.store_count(count, to);
        self.store(items, to.plus(offset_of!(CountedArray, items) as u64));
    }

    fn store_count(&mut self, count: Value, to: MemoryOperand) {
        let count = self.builder.ins().ireduce(types::I32, count);
        self.store(count, to.plus(offset_of!(CountedArray, count) as u64));
    }

    /// Reads the boolean that says whether something follows.
    fn get_flag(&mut self) -> Value {
        let from = self.next_bytes(self.wire_bytes(Scalar::Bool));
        let flag = self.load(self.wire_type(Scalar::Bool), from);
        let flag = self.ordered(flag);
        self.truth(flag);
        self.settle();
        flag
    }

    fn get_opaque(&mut self, bound: u32, text: bool, to: MemoryOperand) {
        let Some(opaque) = self.opaque_helpers(text) else {
            return self.refuse_always();
        };
        let arguments = [
            self.context(),
            self.cursor(),
            self.address(to),
            self.word(bound.into()),
        ];
        let behind = self.ask_helper(opaque.get, &arguments);
        self.set_cursor(behind);
    }

    fn get_count(&mut self, bound: u32) -> Value {
        let from = self.next_bytes(COUNT_BYTES.into());
        let count = self.load(types::I32, from);
        let count = self.ordered(count);
        let count = self.builder.ins().uextend(types::I64, count);
        self.check_bound(count, bound);
        count
    }

    /// Reads a count of elements that take at least `fewest` bytes on the wire and `room` in
    /// memory each, and makes room for them.
    fn get_elements_count(
        &mut self,
        bound: u32,
        fewest: u64,
        room: u64,
        to: MemoryOperand,
    ) -> (Value, MemoryOperand) {
        let count = self.get_count(bound);
        self.check_elements(count, fewest);
        let all = self.times(count, room);
        let price = if room == 0 { count } else { all };
        self.store_count(count, to);
        let items = self.take_items(TAKE_ITEMS_IN_C, (all, price), to);
        (count, MemoryOperand::at(items))
    }

    /// Refuses a count of elements of which each takes at least `fewest` bytes on the wire, unless they are there.
    fn check_elements(&mut self, count: Value, fewest: u64) {
        // Elements that follow the count as one block are checked for there.
        if fewest > 0 {
            let fewest = fewest.min(MAX_ELEMENT);
            let needed = self.times(count, fewest);
            let at = self.cursor();
            self.check_bytes(at, needed);
        }
    }

    /// Allocates memory for what a value points to. An element that takes none still costs the time to make it: as a
    /// byte.
    fn take(&mut self, bytes: Value, price: Value) -> Value {
        let helper = match self.given.is_c() {
            true => TAKE_IN_C,
            false => TAKE,
        };
        self.ask_helper(helper, &[self.context(), bytes, price])
    }

    /// Allocates memory for the items of the counted array at `to`, by `in_c` if a program in C holds them, and stores its
    /// address there.
    fn take_items(
        &mut self,
        in_c: HelperFunction,
        (bytes, price): (Value, Value),
        to: MemoryOperand,
    ) -> Value {
        let place = to.plus(offset_of!(CountedArray, items) as u64);
        if self.given.is_c() {
            let arguments = [self.context(), self.address(place), bytes, price];
            return self.ask_helper(in_c, &arguments);
        }
        let items = self.take(bytes, price);
        self.store(items, place);
        items
    }

    /// Takes the bytes of `count` elements, which were found to be there.
    fn read_elements(&mut self, count: Value, bytes: u64) -> MemoryOperand {
        let all = self.times(count, bytes);
        let at = self.cursor();
        let behind = self.builder.ins().iadd(at, all);
        self.step(behind)
    }

    fn get_counted(&mut self, scalar: Scalar, bound: u32, to: MemoryOperand) {
        let wire = self.wire_bytes(scalar);
        if let Some(item) = self.plain(scalar) {
            return self.get_blitted(&item, bound, to);
        }
        let (count, items) = self.get_elements_count(bound, wire, self.memory_bytes(scalar), to);
        let from = self.read_elements(count, wire);
        let steps = [wire, self.memory_bytes(scalar)];
        self.each_of(count, [from, items], steps, |this, [from, to]| {
            this.get(scalar, from, to);
            this.settle();
        });
    }

    fn get_blitted(&mut self, item: &Blittable, bound: u32, to: MemoryOperand) {
        let count = self.get_count(bound);
        let all = self.times(count, item.bytes());
        let from = self.cursor();
        self.check_bytes(from, all);
        // Stored before there is memory for them, so that it need not be kept across the call. A value
        // that is refused is not read.
        self.store_count(count, to);
        let items = self.take_items(TAKE_BYTES_IN_C, (all, all), to);
        let behind = self.builder.ins().iadd(from, all);
        self.set_cursor(behind);
        self.blit_counted(
            item,
            (count, all),
            MemoryOperand::at(items),
            MemoryOperand::at(from),
        );
    }

    fn get_elements(
        &mut self,
        (count, stride): (Count, u64),
        block: &'a ResolvedBlock,
        to: MemoryOperand,
    ) {
        let bytes = u64::from(block.bytes);
        let steps = [bytes, stride];
        let inside = |this: &mut Self, [from, to]: [MemoryOperand; 2]| {
            this.get_items(block, to, from);
        };
        match count {
            Count::Fixed(count) => {
                let from = self.next_bytes(bytes.saturating_mul(count.into()));
                self.each(count, [from, to], steps, inside);
            }
            Count::Counted(bound) => {
                let (count, items) = self.get_elements_count(bound, bytes, stride, to);
                let from = self.read_elements(count, bytes);
                self.each_of(count, [from, items], steps, inside);
            }
        }
    }

    fn get_loop(
        &mut self,
        (count, stride): (Count, u64),
        fewest: u32,
        body: &'a [ResolvedOp],
        to: MemoryOperand,
    ) {
        let (count, items) = match count {
            Count::Fixed(count) => (self.word(count.into()), to),
            Count::Counted(bound) => self.get_elements_count(bound, fewest.into(), stride, to),
        };
        // Of elements without bytes there is a count alone.
        if !body.is_empty() {
            self.each_of(count, [items], [stride], |this, [item]| {
                this.decode(body, item);
            });
        }
    }

    fn get_optional(&mut self, room: u64, body: &'a [ResolvedOp], to: MemoryOperand) {
        let is_some = self.get_flag();
        let none = self.word(0);
        self.store(none, to);
        self.when(is_some, |this| {
            let held = this.get_boxed(to, room);
            this.decode(body, held);
        });
    }

    /// Allocates memory for a value of so many bytes, and stores a pointer to it at `to`.
    pub fn get_boxed(&mut self, to: MemoryOperand, bytes: u64) -> MemoryOperand {
        let (room, price) = (self.word(bytes), self.word(bytes.max(1)));
        let held = self.take(room, price);
        self.store(held, to);
        MemoryOperand::at(held)
    }
}

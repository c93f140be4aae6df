//! Decoders: what each operation reads.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, StackSlotData, StackSlotKind, types};
use tenon_plan::{Count, Layout, Op, Representation, Scalar};
use tenon_schema::TypeId;

use super::context::Cursor;
use super::emit::{Emitter, Spot, is_plain, memory_bytes, memory_type};
use super::helpers::{COUNT, FROM_WIRE, GET_NUMBERS, GET_OPAQUE, Growing, NEXT, TAKE};
use crate::layout::Counted;

impl<'a> Emitter<'a, '_> {
    /// Reads what `body` says to the value at `it`.
    pub fn decode(&mut self, body: &'a [Op], layout: Layout<'a>, it: Spot) {
        let mut block = it;
        for op in body {
            match op {
                Op::Align { .. }
                | Op::Zero { .. }
                | Op::Blit { .. }
                | Op::BlitCounted { .. }
                | Op::PutElements { .. } => {
                    unreachable!("the passes that make these are not run for this")
                }
                Op::Reserve { bytes } => {
                    let bytes = self.word((*bytes).into());
                    block = self.next_bytes(bytes);
                }
                Op::Put {
                    place,
                    scalar,
                    offset,
                } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.get(*scalar, block.plus((*offset).into()), to);
                }
                Op::PutArray {
                    place,
                    scalar,
                    count,
                    offset,
                } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.get_array(*scalar, *count, block.plus((*offset).into()), to);
                }
                Op::Copy {
                    place,
                    bytes,
                    offset,
                } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.get_bytes(*bytes, block.plus((*offset).into()), to);
                }
                Op::CopyCounted { place, bound, .. } => {
                    let (_, to) = self.locate(layout, place, it);
                    let (to, bound) = (self.address(to), self.word((*bound).into()));
                    self.ask_helper(GET_OPAQUE, &[self.context, to, bound]);
                }
                Op::PutCounted {
                    place,
                    scalar,
                    bound,
                } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.get_counted(*scalar, *bound, to);
                }
                Op::Loop {
                    place,
                    count,
                    element,
                    body,
                } => {
                    let (layout, to) = self.locate(layout, place, it);
                    self.get_loop(*count, element.min, body, layout, to);
                }
                Op::Switch {
                    place,
                    discriminant,
                    arms,
                    default,
                } => {
                    let union = self.locate(layout, place, it);
                    let bytes = self.word(4);
                    let from = self.next_bytes(bytes);
                    let value = self.get(*discriminant, from, union.1);
                    self.arms(value, arms, default.as_ref(), union);
                }
                Op::Optional { place, body } => {
                    let (layout, to) = self.locate(layout, place, it);
                    self.get_optional(body, layout, to);
                }
                Op::List {
                    place,
                    first_bare,
                    element,
                } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.get_list(*first_bare, *element, to);
                }
                Op::Call { place, plan } => {
                    let (_, to) = self.locate(layout, place, it);
                    self.call_type(*plan, to);
                }
                Op::External { .. } => self.refuse_always(),
            }
        }
    }

    /// Reads a linked list.
    pub fn get_list(&mut self, first_bare: bool, element: TypeId, to: Spot) {
        let kind = StackSlotKind::ExplicitSlot;
        let slot = StackSlotData::new(kind, size_of::<Growing>() as u32, 3);
        let slot = self.builder.create_sized_stack_slot(slot);
        let list = self.builder.ins().stack_addr(types::I64, slot, 0);
        let list = Spot::at(list);
        let zero = self.word(0);
        for field in [
            offset_of!(Growing, count),
            offset_of!(Growing, room),
            offset_of!(Growing, items),
        ] {
            self.store(zero, list.plus(field as u64));
        }
        let stride = self.list_element(element);
        let [head, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        let first = if first_bare { inside } else { head };
        self.builder.ins().jump(first, &[]);
        self.builder.switch_to_block(head);
        let more = self.get_flag();
        self.builder.ins().brif(more, inside, &[], after, &[]);
        self.builder.switch_to_block(inside);
        let stride = self.word(stride);
        let item = self.ask_helper(NEXT, &[self.context, list.base, stride]);
        self.call_type(element, Spot::at(item));
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(after);
        let count = self.load(types::I64, list.plus(offset_of!(Growing, count) as u64));
        let items = self.load(types::I64, list.plus(offset_of!(Growing, items) as u64));
        self.store_counted(count, items, to);
    }

    /// The next `bytes`, if they are there.
    fn next_bytes(&mut self, bytes: ir::Value) -> Spot {
        let at = offset_of!(Cursor, at);
        let place = self.load_field(types::I64, at);
        let end = self.load_field(types::I64, offset_of!(Cursor, end));
        let left = self.builder.ins().isub(end, place);
        let less = IntCC::UnsignedLessThan;
        let truncated = self.builder.ins().icmp(less, left, bytes);
        self.refuse_if(truncated);
        let behind = self.builder.ins().iadd(place, bytes);
        self.store_field(at, behind);
        Spot::at(place)
    }

    /// Pays for memory as the interpreter does.
    fn pay(&mut self, price: ir::Value) {
        let memory = offset_of!(Cursor, memory_left);
        let left = self.load_field(types::I64, memory);
        let less = IntCC::UnsignedLessThan;
        let unpaid = self.builder.ins().icmp(less, left, price);
        self.refuse_if(unpaid);
        let left = self.builder.ins().isub(left, price);
        self.store_field(memory, left);
    }

    /// Memory of the frame.
    fn take(&mut self, bytes: ir::Value) -> Spot {
        let taken = self.ask_helper(TAKE, &[self.context, bytes]);
        Spot::at(taken)
    }

    fn store_counted(&mut self, count: ir::Value, items: ir::Value, to: Spot) {
        let count = self.builder.ins().ireduce(types::I32, count);
        self.store(count, to.plus(offset_of!(Counted, count) as u64));
        self.store(items, to.plus(offset_of!(Counted, items) as u64));
    }

    /// Refuses in strict mode what is `bad`.
    fn refuse_strictly(&mut self, bad: ir::Value) {
        let strict = self.load_field(types::I32, offset_of!(Cursor, strict));
        let strict = self.builder.ins().icmp_imm(IntCC::NotEqual, strict, 0);
        let bad = self.builder.ins().band(bad, strict);
        self.refuse_if(bad);
    }

    fn next_word(&mut self) -> ir::Value {
        let bytes = self.word(4);
        let from = self.next_bytes(bytes);
        let word = self.load(types::I32, from);
        self.swapped(word)
    }

    /// Whether something follows.
    fn get_flag(&mut self) -> ir::Value {
        let word = self.next_word();
        self.truth(word)
    }

    fn truth(&mut self, word: ir::Value) -> ir::Value {
        let over = IntCC::UnsignedGreaterThan;
        let no_boolean = self.builder.ins().icmp_imm(over, word, 1);
        self.refuse_strictly(no_boolean);
        let is_true = self.builder.ins().icmp_imm(IntCC::NotEqual, word, 0);
        self.builder.ins().uextend(types::I32, is_true)
    }

    /// Reads an item to memory and gives it as it is there, or as a word.
    fn get(&mut self, scalar: Scalar, from: Spot, to: Spot) -> ir::Value {
        if scalar == Scalar::F128 {
            let item = self.load(types::I128, from);
            self.store(item, to);
            return item;
        }
        let wire = match Representation::XDR.bytes(scalar) {
            8 => types::I64,
            _ => types::I32,
        };
        let word = self.load(wire, from);
        let word = self.swapped(word);
        let (item, word) = match scalar {
            Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => self.small(scalar, word),
            Scalar::Bool => {
                let truth = self.truth(word);
                (truth, truth)
            }
            Scalar::Enum(id) => {
                self.check_member(id, word);
                (word, word)
            }
            Scalar::I32 | Scalar::U32 | Scalar::F32 => (word, word),
            Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::F128 => (word, word),
        };
        self.store(item, to);
        word
    }

    /// The low bits of a word, and the word that they stand for.
    fn small(&mut self, scalar: Scalar, word: ir::Value) -> (ir::Value, ir::Value) {
        let item = self.builder.ins().ireduce(memory_type(scalar), word);
        let full = match scalar {
            Scalar::I16 | Scalar::I8 => self.builder.ins().sextend(types::I32, item),
            _ => self.builder.ins().uextend(types::I32, item),
        };
        let lost = self.builder.ins().icmp(IntCC::NotEqual, full, word);
        self.refuse_strictly(lost);
        (item, full)
    }

    fn get_array(&mut self, scalar: Scalar, count: u32, from: Spot, to: Spot) {
        let wire = u64::from(Representation::XDR.bytes(scalar));
        let bytes = u64::from(count) * wire;
        if is_plain(scalar) && bytes > 32 {
            let arguments = [
                self.address(to),
                self.address(from),
                self.word(bytes),
                self.word(wire),
            ];
            self.call_helper(FROM_WIRE, &arguments);
            return;
        }
        let steps = [wire, memory_bytes(scalar)];
        self.each(count, [from, to], steps, |this, [from, to]| {
            this.get(scalar, from, to);
        });
    }

    fn get_bytes(&mut self, bytes: u32, from: Spot, to: Spot) {
        self.copy(from, to, bytes);
        let padding = bytes..bytes.next_multiple_of(4);
        if padding.is_empty() {
            return;
        }
        let mut all = self.builder.ins().iconst(types::I8, 0);
        for at in padding {
            let byte = self.load(types::I8, from.plus(at.into()));
            all = self.builder.ins().bor(all, byte);
        }
        let bad = self.builder.ins().icmp_imm(IntCC::NotEqual, all, 0);
        self.refuse_strictly(bad);
    }

    fn get_counted(&mut self, scalar: Scalar, bound: u32, to: Spot) {
        let wire = u64::from(Representation::XDR.bytes(scalar));
        if is_plain(scalar) {
            let to = self.address(to);
            let (bound, wire) = (self.word(bound.into()), self.word(wire));
            self.ask_helper(GET_NUMBERS, &[self.context, to, bound, wire]);
            return;
        }
        let (count, items) = self.get_elements(bound, wire, memory_bytes(scalar), to);
        let bytes = self.builder.ins().imul_imm(count, wire as i64);
        let from = self.next_bytes(bytes);
        let steps = [wire, memory_bytes(scalar)];
        self.each_of(count, [from, items], steps, |this, [from, to]| {
            this.get(scalar, from, to);
        });
    }

    /// Reads a count of elements that take at least `fewest` bytes on the wire and `room` in
    /// memory each, and makes room for them.
    fn get_elements(&mut self, bound: u32, fewest: u64, room: u64, to: Spot) -> (ir::Value, Spot) {
        let (bound, fewest) = (self.word(bound.into()), self.word(fewest));
        let count = self.ask_helper(COUNT, &[self.context, bound, fewest]);
        let price = self.builder.ins().imul_imm(count, room.max(1) as i64);
        self.pay(price);
        let bytes = self.builder.ins().imul_imm(count, room as i64);
        let items = self.take(bytes);
        self.store_counted(count, items.base, to);
        (count, items)
    }

    fn get_loop(
        &mut self,
        count: Count,
        element_min: u32,
        body: &'a [Op],
        layout: Layout<'a>,
        to: Spot,
    ) {
        let (element, stride) = self.element(layout);
        let (count, items) = match count {
            Count::Fixed(count) => (self.word(count.into()), to),
            Count::Counted(bound) => self.get_elements(bound, element_min.into(), stride, to),
        };
        self.each_of(count, [items], [stride], |this, [item]| {
            this.body(body, element, item);
        });
    }

    fn get_optional(&mut self, body: &'a [Op], layout: Layout<'a>, to: Spot) {
        let (element, room) = self.element(layout);
        let none = self.word(0);
        self.store(none, to);
        let is_some = self.get_flag();
        self.when(is_some, |this| {
            let price = this.word(room.max(1));
            this.pay(price);
            let bytes = this.word(room);
            let held = this.take(bytes);
            this.store(held.base, to);
            this.body(body, element, held);
        });
    }
}

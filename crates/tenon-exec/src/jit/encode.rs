//! Encoders: what each operation appends.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use tenon_plan::{Count, Layout, Op, Representation, Scalar};
use tenon_schema::TypeId;

use super::context::Cursor;
use super::emit::{Emitter, Spot, is_plain, memory_bytes, memory_type};
use super::helpers::{GROW, PUT_NUMBERS, PUT_OPAQUE, TO_WIRE};
use crate::layout::Counted;

impl<'a> Emitter<'a, '_> {
    /// Appends what `body` says of the value at `it`.
    pub fn encode(&mut self, body: &'a [Op], layout: Layout<'a>, it: Spot) {
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
                    block = self.room(bytes);
                }
                Op::Put {
                    place,
                    scalar,
                    offset,
                } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.put(*scalar, from, block.plus((*offset).into()));
                }
                Op::PutArray {
                    place,
                    scalar,
                    count,
                    offset,
                } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.put_array(*scalar, *count, from, block.plus((*offset).into()));
                }
                Op::Copy {
                    place,
                    bytes,
                    offset,
                } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.put_bytes(*bytes, from, block.plus((*offset).into()));
                }
                Op::CopyCounted { place, bound, .. } => {
                    let (_, from) = self.locate(layout, place, it);
                    let (from, bound) = (self.address(from), self.word((*bound).into()));
                    self.ask_helper(PUT_OPAQUE, &[self.context, from, bound]);
                }
                Op::PutCounted {
                    place,
                    scalar,
                    bound,
                } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.put_counted(*scalar, *bound, from);
                }
                Op::Loop {
                    place, count, body, ..
                } => {
                    let (layout, from) = self.locate(layout, place, it);
                    self.put_loop(*count, body, layout, from);
                }
                Op::Switch {
                    place,
                    discriminant,
                    arms,
                    default,
                } => {
                    let union = self.locate(layout, place, it);
                    let bytes = self.word(4);
                    let to = self.room(bytes);
                    let value = self.put(*discriminant, union.1, to);
                    self.arms(value, arms, default.as_ref(), union);
                }
                Op::Optional { place, body } => {
                    let (layout, from) = self.locate(layout, place, it);
                    let (element, _) = self.element(layout);
                    let held = self.load(types::I64, from);
                    self.put_flag(held);
                    self.when(held, |this| this.body(body, element, Spot::at(held)));
                }
                Op::List {
                    place,
                    first_bare,
                    element,
                } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.put_list(*first_bare, *element, from);
                }
                Op::Call { place, plan } => {
                    let (_, from) = self.locate(layout, place, it);
                    self.call_type(*plan, from);
                }
                Op::External { .. } => self.refuse_always(),
            }
        }
    }

    /// Appends a linked list.
    pub fn put_list(&mut self, first_bare: bool, element: TypeId, from: Spot) {
        let (count, items) = self.counted(from);
        if first_bare {
            self.refuse_unless(count);
        }
        let stride = self.list_element(element);
        self.repeat(count, |this, index| {
            let flag = this.word(1);
            match first_bare {
                true => this.when(index, |this| this.put_flag(flag)),
                false => this.put_flag(flag),
            }
            let distance = this.builder.ins().imul_imm(index, stride as i64);
            let item = this.builder.ins().iadd(items.base, distance);
            this.call_type(element, Spot::at(item));
        });
        let none = self.word(0);
        self.put_flag(none);
    }

    /// Room for `bytes` more.
    fn room(&mut self, bytes: ir::Value) -> Spot {
        let at = offset_of!(Cursor, at);
        let place = self.load_field(types::I64, at);
        let end = self.load_field(types::I64, offset_of!(Cursor, end));
        let left = self.builder.ins().isub(end, place);
        let less = IntCC::UnsignedLessThan;
        let full = self.builder.ins().icmp(less, left, bytes);
        self.when(full, |this| {
            this.call_helper(GROW, &[this.context, bytes]);
        });
        let place = self.load_field(types::I64, at);
        let behind = self.builder.ins().iadd(place, bytes);
        self.store_field(at, behind);
        Spot::at(place)
    }

    fn counted(&mut self, from: Spot) -> (ir::Value, Spot) {
        let count = self.load(types::I32, from.plus(offset_of!(Counted, count) as u64));
        let count = self.builder.ins().uextend(types::I64, count);
        let items = self.load(types::I64, from.plus(offset_of!(Counted, items) as u64));
        (count, Spot::at(items))
    }

    /// Writes an item and gives it as it is in memory, or as a word.
    fn put(&mut self, scalar: Scalar, from: Spot, to: Spot) -> ir::Value {
        let item = self.load(memory_type(scalar), from);
        let word = match scalar {
            Scalar::F128 => {
                self.store(item, to);
                return item;
            }
            Scalar::I32 | Scalar::U32 | Scalar::F32 => item,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => item,
            Scalar::I16 | Scalar::I8 => self.builder.ins().sextend(types::I32, item),
            Scalar::U16 | Scalar::U8 => self.builder.ins().uextend(types::I32, item),
            Scalar::Bool => {
                let is_true = self.builder.ins().icmp_imm(IntCC::NotEqual, item, 0);
                self.builder.ins().uextend(types::I32, is_true)
            }
            Scalar::Enum(id) => {
                self.check_member(id, item);
                item
            }
        };
        let swapped = self.swapped(word);
        self.store(swapped, to);
        word
    }

    fn put_array(&mut self, scalar: Scalar, count: u32, from: Spot, to: Spot) {
        let wire = u64::from(Representation::XDR.bytes(scalar));
        let bytes = u64::from(count) * wire;
        if is_plain(scalar) && bytes > 32 {
            let arguments = [
                self.address(from),
                self.address(to),
                self.word(bytes),
                self.word(wire),
            ];
            self.call_helper(TO_WIRE, &arguments);
            return;
        }
        let steps = [memory_bytes(scalar), wire];
        self.each(count, [from, to], steps, |this, [from, to]| {
            this.put(scalar, from, to);
        });
    }

    fn put_bytes(&mut self, bytes: u32, from: Spot, to: Spot) {
        self.copy(from, to, bytes);
        let zero = self.builder.ins().iconst(types::I8, 0);
        for at in bytes..bytes.next_multiple_of(4) {
            self.store(zero, to.plus(at.into()));
        }
    }

    fn put_counted(&mut self, scalar: Scalar, bound: u32, from: Spot) {
        let wire = u64::from(Representation::XDR.bytes(scalar));
        if is_plain(scalar) {
            let from = self.address(from);
            let (bound, wire) = (self.word(bound.into()), self.word(wire));
            self.ask_helper(PUT_NUMBERS, &[self.context, from, bound, wire]);
            return;
        }
        let (count, items) = self.counted(from);
        self.check_bound(count, bound);
        self.put_count(count);
        let bytes = self.builder.ins().imul_imm(count, wire as i64);
        let to = self.room(bytes);
        let steps = [memory_bytes(scalar), wire];
        self.each_of(count, [items, to], steps, |this, [from, to]| {
            this.put(scalar, from, to);
        });
    }

    fn put_loop(&mut self, count: Count, body: &'a [Op], layout: Layout<'a>, from: Spot) {
        let (element, stride) = self.element(layout);
        let (count, items) = match count {
            Count::Fixed(count) => (self.word(count.into()), from),
            Count::Counted(bound) => {
                let (count, items) = self.counted(from);
                self.check_bound(count, bound);
                self.put_count(count);
                (count, items)
            }
        };
        self.each_of(count, [items], [stride], |this, [item]| {
            this.body(body, element, item);
        });
    }

    /// Appends a count, or another word.
    fn put_count(&mut self, count: ir::Value) {
        let bytes = self.word(4);
        let to = self.room(bytes);
        let count = self.builder.ins().ireduce(types::I32, count);
        let count = self.swapped(count);
        self.store(count, to);
    }

    /// Appends the word that says whether something follows: unless `held` is zero.
    fn put_flag(&mut self, held: ir::Value) {
        let is_some = self.builder.ins().icmp_imm(IntCC::NotEqual, held, 0);
        let flag = self.builder.ins().uextend(types::I64, is_some);
        self.put_count(flag);
    }
}

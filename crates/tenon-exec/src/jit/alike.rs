//! Types that are moved alike, under different names: one function serves all of them. In an
//! interface like NFS every second type is like another one.

use std::collections::HashMap;

use tenon_plan::links::is_link;
use tenon_plan::{
    Blittable, BlockPart, Count, FixedKind, Layout, Op, Place, Plan, Plans, ReservedBlock, Scalar,
};
use tenon_schema::{Schema, TypeId, TypeKind};

use crate::layout::TypeLayouts;

/// Finds for each type the first one that is moved like it.
pub(super) fn alike(schema: &Schema, plans: &Plans, layouts: &TypeLayouts) -> Vec<TypeId> {
    let mut firsts = HashMap::new();
    let mut alike = Vec::new();
    for (index, plan) in plans.types.iter().enumerate() {
        let id = TypeId(index as u32);
        let mut signature = StructuralSignature {
            schema,
            layouts,
            alike: &alike,
            words: Vec::new(),
        };
        let first = match signature.plan(id, plan) {
            Some(()) => *firsts.entry(signature.words).or_insert(id),
            None => id,
        };
        alike.push(first);
    }
    alike
}

/// All that the code of a type depends on, as words. Its methods return `None` if it depends on more.
struct StructuralSignature<'a> {
    schema: &'a Schema,
    layouts: &'a TypeLayouts,
    /// Result for the types before.
    alike: &'a [TypeId],
    words: Vec<u64>,
}

impl<'a> StructuralSignature<'a> {
    fn plan(&mut self, id: TypeId, plan: &Plan) -> Option<()> {
        if plan.recursive {
            return None;
        }
        let layout = Layout::of_type(self.schema, id);
        let is_c = self.layouts.model().is_c();
        self.words.push(self.layouts.named(id).size);
        if is_c && is_link(self.schema, id) {
            self.words.push(self.layouts.link_offset(id));
        }
        self.words.extend([plan.size.min, plan.align.into()]);
        if let TypeKind::Enum(members) = &self.schema.type_def(id).kind {
            let mut values: Vec<i32> = members.iter().map(|member| member.value).collect();
            values.sort_unstable();
            values.dedup();
            self.words
                .extend(values.into_iter().map(|value| value as u64));
            return Some(());
        }
        self.body(&plan.body, layout)
    }

    fn body(&mut self, body: &[Op], layout: Layout<'a>) -> Option<()> {
        self.words.push(body.len() as u64);
        body.iter().try_for_each(|op| self.op(op, layout))
    }

    fn op(&mut self, op: &Op, layout: Layout<'a>) -> Option<()> {
        let at = match op.place() {
            Some(place) => self.place(layout, place)?,
            None => Layout::Nothing,
        };
        match op {
            Op::Reserve(block) => {
                self.words.push(0);
                self.block(block, layout)?;
            }
            Op::Align { to, before } => self.words.extend([1, (*to).into(), (*before).into()]),
            Op::BlitCounted { item, bound, .. } => {
                self.words.extend([7, (*bound).into()]);
                self.blittable(item);
            }
            Op::PutElements { count, element, .. } => {
                self.words.push(8);
                let of = self.repeated(*count, at)?;
                self.block(element, of)?;
            }
            Op::CopyCounted { bound, text, .. } => {
                // In a frame, strings are counted as opaque data is.
                let is_text = *text && self.layouts.model().is_c();
                self.words.extend([9, (*bound).into(), is_text.into()]);
            }
            Op::PutCounted { scalar, bound, .. } => {
                self.words.extend([10, (*bound).into()]);
                self.scalar(*scalar)?;
            }
            Op::Loop {
                count,
                element,
                body,
                ..
            } => {
                self.words.extend([11, element.min.into()]);
                self.elements(*count, body, at)?;
            }
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                let (id, union) = at.named(self.schema).zip(at.union(self.schema))?;
                let offset = self.layouts.arms_offset(id);
                self.words.extend([12, offset, arms.len() as u64]);
                self.scalar(*discriminant)?;
                let held = union.alternatives().map(Layout::of_arm).enumerate();
                let behind = held.map(|(position, arm)| {
                    let boxed = self.layouts.boxed_arm(self.schema, id, position, arm);
                    boxed.map_or(0, |bytes| bytes + 1)
                });
                self.words.extend(behind);
                for (arm, definition) in arms.iter().zip(&union.arms) {
                    self.words.push(arm.values.len() as u64);
                    self.words
                        .extend(arm.values.iter().map(|value| *value as u64));
                    self.body(&arm.body, Layout::of_arm(definition.field.as_ref()))?;
                }
                self.words.push(default.is_some().into());
                if let Some(body) = default {
                    let field = union.default.as_ref().and_then(Option::as_ref);
                    self.body(body, Layout::of_arm(field))?;
                }
            }
            Op::Optional { body, .. } => {
                self.words.push(13);
                self.elements(Count::Fixed(1), body, at)?;
            }
            Op::List {
                first_bare,
                element,
                ..
            } => {
                self.words.extend([14, (*first_bare).into()]);
                self.named(*element)?;
            }
            Op::Call { plan, .. } => {
                self.words.push(15);
                self.named(*plan)?;
            }
            Op::External { .. } => return None,
        }
        Some(())
    }

    fn place(&mut self, layout: Layout<'a>, place: &Place) -> Option<Layout<'a>> {
        let (at, offset) = self.layouts.locate(self.schema, layout, place)?;
        self.words.push(offset);
        Some(at)
    }

    fn block(&mut self, block: &ReservedBlock, layout: Layout<'a>) -> Option<()> {
        self.words
            .extend([block.bytes.into(), block.parts.len() as u64]);
        block
            .parts
            .iter()
            .try_for_each(|part| self.part(part, layout))
    }

    fn part(&mut self, part: &BlockPart, layout: Layout<'a>) -> Option<()> {
        self.words.push(part.offset().into());
        let item = match part {
            BlockPart::Hole(hole) => {
                self.words.extend([2, hole.bytes.into()]);
                return Some(());
            }
            BlockPart::Item(item) => item,
        };
        self.place(layout, &item.place)?;
        match &item.kind {
            FixedKind::Put { scalar } => {
                self.words.push(3);
                self.scalar(*scalar)?;
            }
            FixedKind::PutArray { scalar, count } => {
                self.words.extend([4, (*count).into()]);
                self.scalar(*scalar)?;
            }
            FixedKind::Copy { bytes } => self.words.extend([5, (*bytes).into()]),
            FixedKind::Blit { item, count } => {
                self.words.extend([6, (*count).into()]);
                self.blittable(item);
            }
        }
        Some(())
    }

    fn elements(&mut self, count: Count, body: &[Op], at: Layout<'a>) -> Option<()> {
        let element = self.repeated(count, at)?;
        self.body(body, element)
    }

    /// Adds how many elements there are; returns one.
    fn repeated(&mut self, count: Count, at: Layout<'a>) -> Option<Layout<'a>> {
        let element = at.element(self.schema)?;
        let (is_fixed, count) = match count {
            Count::Fixed(count) => (true, count),
            Count::Counted(bound) => (false, bound),
        };
        let stride = self.layouts.extent(self.schema, element).size;
        self.words.extend([is_fixed.into(), count.into(), stride]);
        Some(element)
    }

    fn blittable(&mut self, item: &Blittable) {
        self.words.push(item.runs.len() as u64);
        let runs = item.runs.iter();
        let words = runs.flat_map(|run| [u64::from(run.unit), run.units.into()]);
        self.words.extend(words);
    }

    fn scalar(&mut self, scalar: Scalar) -> Option<()> {
        let kind = match scalar {
            Scalar::I32 => 0,
            Scalar::U32 => 1,
            Scalar::I64 => 2,
            Scalar::U64 => 3,
            Scalar::I16 => 4,
            Scalar::U16 => 5,
            Scalar::I8 => 6,
            Scalar::U8 => 7,
            Scalar::F32 => 8,
            Scalar::F64 => 9,
            Scalar::F128 => 10,
            Scalar::Bool => 11,
            Scalar::Enum(id) => {
                self.words.push(12);
                return self.named(id);
            }
        };
        self.words.push(kind);
        Some(())
    }

    fn named(&mut self, id: TypeId) -> Option<()> {
        let first = self.alike.get(id.0 as usize)?;
        self.words.push(first.0.into());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use tenon_plan::{Pass, Representation, lower, specialize};

    use super::*;

    #[test]
    fn names_and_docs_make_no_difference_and_all_else_does() {
        let text = "
            enum a { ONE = 1 }; enum b { UN = 1 }; enum c { TWO = 2 };
            struct pair { int x; a kind; string name<9>; };
            struct same { int first; b second; string third<9>; };
            struct other { int x; c kind; string name<9>; };
            struct bound { int x; a kind; string name<8>; };
            union u switch (a on) { case ONE: pair p; };
            union v switch (b on) { case UN: same p; };
            union w switch (b on) { case UN: other p; };
            typedef pair pairs<>;
            typedef same sames<>;
            struct chain { chain *next; int x; };
            struct chained { chained *next; int x; };
        ";
        let parsed = tenon_idl::parse_text("test.x", text, &Default::default());
        let schema = parsed.schema.expect("an interface");
        for representation in [Representation::XDR, Representation::LEAN] {
            let mut plans = lower(&schema, representation).expect("types that end");
            specialize(&schema, &mut plans, Pass::ALL).expect("good passes");
            let layouts = TypeLayouts::new(&schema).expect("a layout");
            let firsts = alike(&schema, &plans, &layouts);
            let firsts: Vec<u32> = firsts.into_iter().map(|id| id.0).collect();
            assert_eq!(firsts, [0, 0, 2, 3, 3, 5, 6, 7, 7, 9, 10, 10, 12, 13]);
        }
    }
}

//! Types that are moved alike, under different names: one function serves all of them. In an
//! interface like NFS every second type is like another one.

use std::collections::HashMap;

use tenon_plan::{Blittable, Count, FixedKind, Scalar};
use tenon_schema::TypeId;

use crate::resolved::{
    ResolvedArm, ResolvedBlock, ResolvedItem, ResolvedKind, ResolvedOp, ResolvedPart, ResolvedPlan,
    ResolvedPlans,
};

/// Finds for each type the first one that is moved like it.
pub(super) fn alike(plans: &ResolvedPlans) -> Vec<TypeId> {
    let mut firsts = HashMap::new();
    let mut alike = Vec::new();
    for (index, plan) in plans.types.iter().enumerate() {
        let id = TypeId(index as u32);
        let mut signature = StructuralSignature {
            plans,
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
    plans: &'a ResolvedPlans,
    /// Result for the types before.
    alike: &'a [TypeId],
    words: Vec<u64>,
}

/// The word that stands before what an operation, or a part of a block, depends on.
#[derive(Clone, Copy)]
enum Tag {
    Reserve,
    Align,
    Item,
    Hole,
    Put,
    PutArray,
    Copy,
    Blit,
    BlitCounted,
    PutElements,
    CopyCounted,
    PutCounted,
    Loop,
    Switch,
    Optional,
    List,
    Call,
}

impl StructuralSignature<'_> {
    fn tag(&mut self, tag: Tag) {
        self.words.push(tag as u64);
    }

    fn plan(&mut self, id: TypeId, plan: &ResolvedPlan) -> Option<()> {
        if plan.recursive {
            return None;
        }
        self.words.push(plan.bytes.into());
        if self.plans.model.is_c() {
            self.words.extend(plan.link.map(u64::from));
        }
        self.words.extend([plan.fewest, plan.align.into()]);
        let members = &self.plans.members[id.0 as usize];
        if !members.is_empty() {
            let mut values = members.to_vec();
            values.sort_unstable();
            values.dedup();
            self.words
                .extend(values.into_iter().map(|value| value as u64));
            return Some(());
        }
        self.body(&plan.body)
    }

    fn body(&mut self, body: &[ResolvedOp]) -> Option<()> {
        self.words.push(body.len() as u64);
        body.iter().try_for_each(|op| match op {
            ResolvedOp::Reserve(block) => {
                self.tag(Tag::Reserve);
                self.block(block)
            }
            ResolvedOp::Align { to, before } => {
                self.tag(Tag::Align);
                self.words.extend([to, before].map(|word| u64::from(*word)));
                Some(())
            }
            ResolvedOp::Item(item) => self.item(item),
        })
    }

    fn item(&mut self, item: &ResolvedItem) -> Option<()> {
        self.tag(Tag::Item);
        self.words.push(item.at.into());
        match &item.kind {
            ResolvedKind::BlitCounted { item, bound } => {
                self.tag(Tag::BlitCounted);
                self.words.push((*bound).into());
                self.blittable(item);
            }
            ResolvedKind::PutElements {
                count,
                stride,
                element,
            } => {
                self.tag(Tag::PutElements);
                self.repeated(*count, *stride);
                self.block(element)?;
            }
            ResolvedKind::CopyCounted { bound, text } => {
                // In a frame, strings are counted as opaque data is.
                let is_text = *text && self.plans.model.is_c();
                self.tag(Tag::CopyCounted);
                self.words.extend([u64::from(*bound), is_text.into()]);
            }
            ResolvedKind::PutCounted { scalar, bound } => {
                self.tag(Tag::PutCounted);
                self.words.push((*bound).into());
                self.scalar(*scalar)?;
            }
            ResolvedKind::Loop {
                count,
                fewest,
                stride,
                body,
            } => {
                self.tag(Tag::Loop);
                self.words.push((*fewest).into());
                self.repeated(*count, *stride);
                self.body(body)?;
            }
            ResolvedKind::Switch(switch) => {
                let arms = switch.arms.len() as u64;
                self.tag(Tag::Switch);
                self.words.extend([switch.arms_at.into(), arms]);
                self.scalar(switch.discriminant)?;
                self.words.push(switch.default.is_some().into());
                switch.all_arms().try_for_each(|arm| self.arm(arm))?;
            }
            ResolvedKind::Optional { bytes, body } => {
                self.tag(Tag::Optional);
                self.words.push((*bytes).into());
                self.body(body)?;
            }
            ResolvedKind::List {
                first_bare,
                element,
            } => {
                self.tag(Tag::List);
                self.words.push((*first_bare).into());
                self.named(*element)?;
            }
            ResolvedKind::Call { plan } => {
                self.tag(Tag::Call);
                self.named(*plan)?;
            }
            ResolvedKind::External => return None,
        }
        Some(())
    }

    fn arm(&mut self, arm: &ResolvedArm) -> Option<()> {
        self.words
            .push(arm.boxed.map_or(0, |bytes| u64::from(bytes) + 1));
        self.words.push(arm.values.len() as u64);
        self.words
            .extend(arm.values.iter().map(|value| *value as u64));
        self.body(&arm.body)
    }

    fn block(&mut self, block: &ResolvedBlock) -> Option<()> {
        self.words
            .extend([block.bytes.into(), block.parts.len() as u64]);
        block.parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &ResolvedPart) -> Option<()> {
        self.words.push(part.offset().into());
        let item = match part {
            ResolvedPart::Hole(hole) => {
                self.tag(Tag::Hole);
                self.words.push(hole.bytes.into());
                return Some(());
            }
            ResolvedPart::Item(item) => item,
        };
        self.words.push(item.at.into());
        match &item.kind {
            FixedKind::Put { scalar } => {
                self.tag(Tag::Put);
                self.scalar(*scalar)?;
            }
            FixedKind::PutArray { scalar, count } => {
                self.tag(Tag::PutArray);
                self.words.push((*count).into());
                self.scalar(*scalar)?;
            }
            FixedKind::Copy { bytes } => {
                self.tag(Tag::Copy);
                self.words.push((*bytes).into());
            }
            FixedKind::Blit { item, count } => {
                self.tag(Tag::Blit);
                self.words.push((*count).into());
                self.blittable(item);
            }
        }
        Some(())
    }

    /// Adds how many elements there are, and how far they lie from each other.
    fn repeated(&mut self, count: Count, stride: u32) {
        let (is_fixed, count) = match count {
            Count::Fixed(count) => (true, count),
            Count::Counted(bound) => (false, bound),
        };
        self.words
            .extend([u64::from(is_fixed), count.into(), stride.into()]);
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
    use crate::layout::TypeLayouts;

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
            let firsts = alike(&ResolvedPlans::new(&schema, &plans, &layouts));
            let firsts: Vec<u32> = firsts.into_iter().map(|id| id.0).collect();
            assert_eq!(firsts, [0, 0, 2, 3, 3, 5, 6, 7, 7, 9, 10, 10, 12, 13]);
        }
    }
}

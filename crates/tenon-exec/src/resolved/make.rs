//! Resolves plans onto the layouts of their values.

use std::borrow::Cow;

use tenon_plan::links::is_link;
use tenon_plan::{
    Arm, BlockPart, Body, FixedItem, Layout, Op, Place, Plan, Plans, ReservedBlock, Scalar,
};
use tenon_schema::{Field, Schema, Type, TypeId, TypeKind};

use super::{
    ResolvedArm, ResolvedBlock, ResolvedFixedItem, ResolvedItem, ResolvedKind, ResolvedOp,
    ResolvedPart, ResolvedPlan, ResolvedPlans, ResolvedSwitch, narrow,
};
use crate::layout::{MemoryModel, TypeLayouts};

impl ResolvedPlans {
    /// Resolves all plans, which the verifier has passed and which were [stripped](Plans::stripped)
    /// then.
    ///
    /// # Panics
    /// If they are not for this schema.
    pub fn new(schema: &Schema, plans: &Plans, layouts: &TypeLayouts) -> Self {
        let resolver = PlanResolver {
            schema,
            plans,
            layouts,
        };
        let types = plans.types.iter().zip((0..).map(TypeId));
        let procedures = plans.procedures.iter().map(|plan| {
            let version = &schema.programs[plan.program].versions[plan.version];
            let procedure = &version.procedures[plan.procedure];
            let arguments = Layout::Record(&procedure.arguments);
            let result = procedure.result.as_ref();
            let result = result.map_or(Layout::Nothing, Layout::Use);
            [(&plan.arguments, arguments), (&plan.result, result)]
                .map(|(plan, layout)| resolver.plan(plan, layout, &procedure.name))
        });
        Self {
            representation: plans.representation,
            model: layouts.model(),
            types: types.map(|(plan, id)| resolver.named(plan, id)).collect(),
            procedures: procedures.collect(),
            members: schema.types.iter().map(|def| members(&def.kind)).collect(),
        }
    }
}

fn members(kind: &TypeKind) -> Box<[i32]> {
    match kind {
        TypeKind::Enum(members) => members.iter().map(|member| member.value).collect(),
        _ => Box::default(),
    }
}

struct PlanResolver<'a> {
    schema: &'a Schema,
    plans: &'a Plans,
    layouts: &'a TypeLayouts,
}

/// A body in the making.
struct BodyContext<'a> {
    /// Layout of `it`, the value that the body moves.
    layout: Layout<'a>,
    /// Offsets of its fields, if it is a record.
    starts: Cow<'a, [u64]>,
    /// The type or procedure of the plan that it belongs to.
    owner: &'a str,
}

impl<'a> PlanResolver<'a> {
    fn named(&self, plan: &'a Plan, id: TypeId) -> ResolvedPlan {
        let layout = Layout::of_type(self.schema, id);
        let link = is_link(self.schema, id).then(|| match self.layouts.model() {
            MemoryModel::Frame => 0,
            MemoryModel::C(_) => narrow(self.layouts.link_offset(id)),
        });
        ResolvedPlan {
            bytes: narrow(self.layouts.named(id).size),
            link,
            ..self.plan(plan, layout, &self.schema.type_def(id).name)
        }
    }

    fn plan(&self, plan: &'a Plan, layout: Layout<'a>, owner: &'a str) -> ResolvedPlan {
        ResolvedPlan {
            name: owner.to_owned(),
            body: self.body(&plan.body, &self.inside(layout, owner)),
            bytes: self.bytes_of(layout),
            fewest: plan.size.min,
            align: plan.align,
            recursive: plan.recursive,
            link: None,
        }
    }

    fn inside(&self, layout: Layout<'a>, owner: &'a str) -> BodyContext<'a> {
        let starts = match layout {
            Layout::Record(fields) => self.layouts.offsets(self.schema, fields).into(),
            Layout::Use(_) | Layout::Definition(_) | Layout::Nothing => Cow::Borrowed(&[][..]),
        };
        BodyContext {
            layout,
            starts,
            owner,
        }
    }

    fn bytes_of(&self, layout: Layout<'_>) -> u32 {
        narrow(self.layouts.extent(self.schema, layout).size)
    }

    fn body(&self, body: &'a Body, inside: &BodyContext<'a>) -> Vec<ResolvedOp> {
        body.iter().map(|op| self.op(op, inside)).collect()
    }

    /// Returns the name of an error at `place`, if it is another than that of the body.
    fn name(&self, inside: &BodyContext<'a>, place: &Place) -> Option<String> {
        (!place.0.is_empty()).then(|| {
            let path = inside.layout.path(self.schema, place);
            let owner = self.struct_at(inside.layout).unwrap_or(inside.owner);
            format!("{owner}.{path}")
        })
    }

    /// The struct that `it` is, where it is moved field by field without being called.
    fn struct_at(&self, layout: Layout<'a>) -> Option<&'a str> {
        match layout {
            Layout::Use(ty) => match self.schema.resolve(ty) {
                Type::Named(id) => Some(&self.schema.type_def(*id).name),
                _ => None,
            },
            Layout::Nothing | Layout::Record(_) | Layout::Definition(_) => None,
        }
    }

    /// Returns the layout of the item at `place`, and its offset from `it`.
    fn locate(&self, inside: &BodyContext<'a>, place: &Place) -> (Layout<'a>, u32) {
        let (layout, start) = match (inside.layout, place.0.split_first()) {
            (Layout::Record(fields), Some((first, rest))) => {
                let (first, rest) = (*first as usize, Place(rest.to_vec()));
                let field = Layout::Use(&fields[first].ty);
                let (layout, start) = self.found(field, &rest);
                (layout, inside.starts[first] + start)
            }
            (layout, _) => self.found(layout, place),
        };
        (layout, narrow(start))
    }

    fn found(&self, layout: Layout<'a>, place: &Place) -> (Layout<'a>, u64) {
        match self.layouts.locate(self.schema, layout, place) {
            Some(found) => found,
            None => unreachable!("the verifier lets only places pass that exist"),
        }
    }

    fn op(&self, op: &'a Op, inside: &BodyContext<'a>) -> ResolvedOp {
        let (place, kind) = match op {
            Op::Reserve(block) => return ResolvedOp::Reserve(self.block(block, inside)),
            Op::Align { to, before } => {
                let (to, before) = (*to, *before);
                return ResolvedOp::Align { to, before };
            }
            Op::BlitCounted { place, item, bound } => {
                let (item, bound) = (item.clone(), *bound);
                (place, ResolvedKind::BlitCounted { item, bound })
            }
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => {
                let inside = self.element(inside, place);
                let elements = ResolvedKind::PutElements {
                    count: *count,
                    stride: self.bytes_of(inside.layout),
                    element: self.block(element, &inside),
                };
                (place, elements)
            }
            Op::CopyCounted { place, bound, text } => {
                let (bound, text) = (*bound, *text);
                (place, ResolvedKind::CopyCounted { bound, text })
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => {
                let (scalar, bound) = (*scalar, *bound);
                (place, ResolvedKind::PutCounted { scalar, bound })
            }
            Op::Loop {
                place,
                count,
                element,
                body,
            } => {
                let inside = self.element(inside, place);
                let elements = ResolvedKind::Loop {
                    count: *count,
                    fewest: element.min,
                    stride: self.bytes_of(inside.layout),
                    body: self.body(body, &inside),
                };
                (place, elements)
            }
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => {
                let (union, _) = self.locate(inside, place);
                let bodies = (arms.as_slice(), default.as_ref());
                let switch = self.switch(union, *discriminant, bodies, inside.owner);
                (place, ResolvedKind::Switch(switch))
            }
            Op::Optional { place, body } => {
                let inside = self.element(inside, place);
                let optional = ResolvedKind::Optional {
                    bytes: self.bytes_of(inside.layout),
                    body: self.body(body, &inside),
                };
                (place, optional)
            }
            Op::List {
                place,
                first_bare,
                element,
            } => {
                let (first_bare, element) = (*first_bare, *element);
                let list = ResolvedKind::List {
                    first_bare,
                    element,
                };
                (place, list)
            }
            Op::Call { place, plan } => (place, ResolvedKind::Call { plan: *plan }),
            Op::External { place, .. } => (place, ResolvedKind::External),
        };
        ResolvedOp::Item(ResolvedItem {
            at: self.locate(inside, place).1,
            name: self.name(inside, place),
            kind,
        })
    }

    /// The element of the array, or the target of the pointer, at `place`.
    fn element(&self, inside: &BodyContext<'a>, place: &Place) -> BodyContext<'a> {
        let (of, _) = self.locate(inside, place);
        let element = of.element(self.schema).unwrap_or(Layout::Nothing);
        self.inside(element, inside.owner)
    }

    fn switch(
        &self,
        layout: Layout<'a>,
        discriminant: Scalar,
        (arms, default): (&'a [Arm], Option<&'a Body>),
        owner: &'a str,
    ) -> ResolvedSwitch {
        let union = layout.named(self.schema).zip(layout.union(self.schema));
        let Some((id, union)) = union else {
            unreachable!("the verifier lets only unions be switched");
        };
        let held = |position, values: &[i32], body, field: Option<&'a Field>| {
            let layout = Layout::of_arm(field);
            let boxed = self.layouts.boxed_arm(self.schema, id, position, layout);
            ResolvedArm {
                values: values.to_vec(),
                boxed: boxed.map(narrow),
                body: self.body(body, &self.inside(layout, owner)),
            }
        };
        let all = arms.iter().zip(&union.arms).enumerate();
        let all = all
            .map(|(position, (arm, of))| held(position, &arm.values, &arm.body, of.field.as_ref()));
        let default = default.map(|body| {
            let field = union.default.as_ref().and_then(Option::as_ref);
            held(union.arms.len(), &[], body, field)
        });
        ResolvedSwitch {
            discriminant,
            arms_at: narrow(self.layouts.arms_offset(id)),
            arms: all.collect(),
            default,
        }
    }

    /// Resolves a block. Engines trust that its parts lie inside it, which is asserted here.
    fn block(&self, block: &ReservedBlock, inside: &BodyContext<'a>) -> ResolvedBlock {
        let parts = block.parts.iter().map(|part| {
            let end = u64::from(part.offset()) + part.bytes(&self.plans.representation);
            assert!(end <= block.bytes.into(), "verified plans");
            match part {
                BlockPart::Hole(hole) => ResolvedPart::Hole(*hole),
                BlockPart::Item(item) => ResolvedPart::Item(self.fixed(item, inside)),
            }
        });
        ResolvedBlock {
            bytes: block.bytes,
            parts: parts.collect(),
        }
    }

    fn fixed(&self, item: &FixedItem, inside: &BodyContext<'a>) -> ResolvedFixedItem {
        ResolvedFixedItem {
            at: self.locate(inside, &item.place).1,
            name: self.name(inside, &item.place),
            offset: item.offset,
            kind: item.kind.clone(),
        }
    }
}

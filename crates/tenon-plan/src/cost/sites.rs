//! Where plans are called from. A compiler puts a routine that has one caller into it.

use tenon_schema::TypeId;

use crate::{Op, Plans};

/// For each type, in how many places its plan is called.
pub(super) struct Sites(Vec<u32>);

impl Sites {
    pub fn of(plans: &Plans) -> Self {
        let mut sites = Self(vec![0; plans.types.len()]);
        plans.types.iter().for_each(|plan| sites.count(&plan.body));
        for plan in &plans.procedures {
            sites.count(&plan.arguments.body);
            sites.count(&plan.result.body);
        }
        sites
    }

    /// Whether it is called from several.
    pub fn are_many(&self, ty: TypeId) -> bool {
        self.0[ty.0 as usize] > 1
    }

    fn count(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Call { plan, .. } | Op::List { element: plan, .. } => {
                    self.0[plan.0 as usize] += 1;
                }
                Op::Loop { body, .. }
                | Op::PutElements { body, .. }
                | Op::Optional { body, .. } => self.count(body),
                Op::Switch { arms, default, .. } => {
                    arms.iter().for_each(|arm| self.count(&arm.body));
                    self.count(default.as_deref().unwrap_or_default());
                }
                _ => {}
            }
        }
    }
}

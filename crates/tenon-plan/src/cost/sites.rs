//! Call sites of plans. A compiler inlines a routine that has one caller.

use tenon_schema::TypeId;

use crate::{Op, Plans};

/// For each type, in how many places its plan is called.
pub(super) struct CallSites(Vec<u32>);

impl CallSites {
    pub fn of(plans: &Plans) -> Self {
        let mut sites = Self(vec![0; plans.types.len()]);
        plans.types.iter().for_each(|plan| sites.count(&plan.body));
        for plan in &plans.procedures {
            sites.count(&plan.arguments.body);
            sites.count(&plan.result.body);
        }
        sites
    }

    /// Returns whether it is called from several.
    pub fn are_many(&self, ty: TypeId) -> bool {
        self.0[ty.0 as usize] > 1
    }

    fn count(&mut self, ops: &[Op]) {
        for op in ops {
            if let Some(called) = op.called() {
                self.0[called.0 as usize] += 1;
            }
            op.bodies().for_each(|body| self.count(body));
        }
    }
}

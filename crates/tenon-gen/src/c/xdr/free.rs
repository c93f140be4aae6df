//! Freeing: what a value owns goes back to where libtirpc takes memory from.

use tenon_plan::links::is_link;
use tenon_plan::{Body, Count, Op, Plans};
use tenon_schema::{Schema, TypeId, TypeKind};

use super::generic;
use super::pieces::{Step, steps};
use super::routine::Routine;
use crate::c::spot::Spot;
use crate::writer::Writer;

/// Which types own memory.
pub struct Owners {
    types: Vec<bool>,
    elements: Vec<bool>,
}

impl Owners {
    pub fn new(planned: &Schema, plans: &Plans) -> Self {
        let count = planned.types.len();
        let mut owners = Self {
            types: vec![false; count],
            elements: vec![false; count],
        };
        // What is added by one round may make others owners.
        loop {
            let mut changed = false;
            for index in 0..count {
                let id = TypeId(index as u32);
                let is_external = planned.types[index].kind == TypeKind::External;
                let element = is_external || owners.owns_body(&plans.types[index].body);
                let whole = element || is_link(planned, id);
                changed |= (element, whole) != (owners.elements[index], owners.types[index]);
                (owners.elements[index], owners.types[index]) = (element, whole);
            }
            if !changed {
                return owners;
            }
        }
    }

    /// Whether a value of this type owns memory.
    pub fn owns(&self, id: TypeId) -> bool {
        self.types[id.0 as usize]
    }

    /// The same for an element of a list, without what follows it.
    pub fn owns_element(&self, id: TypeId) -> bool {
        self.elements[id.0 as usize]
    }

    /// Whether what a body moves owns memory.
    pub fn owns_body(&self, body: &Body) -> bool {
        body.iter().any(|op| self.owns_op(op))
    }

    /// Whether what an operation moves owns memory.
    pub fn owns_op(&self, op: &Op) -> bool {
        match op {
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => false,
            Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => false,
            Op::BlitCounted { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => true,
            Op::PutElements { count, .. } => matches!(count, Count::Counted(_)),
            Op::Loop { count, body, .. } => {
                matches!(count, Count::Counted(_)) || self.owns_body(body)
            }
            Op::Switch { arms, default, .. } => {
                let mut bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.any(|body| self.owns_body(body))
            }
            Op::Optional { .. } | Op::List { .. } | Op::External { .. } => true,
            Op::Call { plan, .. } => self.owns(*plan),
        }
    }
}

impl<'a> Routine<'a> {
    /// Frees what the value at `spot` owns.
    pub fn free(&self, w: &mut Writer, spot: &Spot<'a>, body: &'a Body) {
        for step in steps(body) {
            if let Step::Op(op) = step
                && self.owners.owns_op(op)
            {
                self.free_op(w, spot, op);
            }
        }
    }

    fn free_op(&self, w: &mut Writer, spot: &Spot<'a>, op: &'a Op) {
        let at = op.place().map(|place| spot.at(self.of, place));
        let Some(at) = at else { return };
        match op {
            Op::BlitCounted { .. } | Op::PutCounted { .. } | Op::PutElements { .. } => {
                release(w, &at.elements(self.of));
            }
            Op::CopyCounted { text: true, .. } => release(w, &at.value()),
            Op::CopyCounted { text: false, .. } => release(w, &at.elements(self.of)),
            Op::Loop { count, body, .. } => self.free_loop(w, &at, *count, body),
            Op::Switch { arms, default, .. } => {
                self.switch(w, &at, (arms, default), "break;", |w, holds, body| {
                    self.free(w, holds, body);
                });
            }
            Op::Optional { body, .. } => {
                let pointer = at.value();
                if self.owners.owns_body(body) {
                    w.braces(&format!("if ({pointer} != NULL)"), |w| {
                        self.free(w, &at.target(self.of), body);
                    });
                }
                release(w, &pointer);
            }
            Op::List {
                element,
                first_bare,
                ..
            } => self.free_list(w, &at, *element, *first_bare),
            Op::Call { plan, .. } => self.call(w, "free", &at, *plan),
            Op::External { .. } => self.external(w, &at),
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => {}
            Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => {}
        }
    }

    fn free_loop(&self, w: &mut Writer, at: &Spot<'a>, count: Count, body: &'a Body) {
        let elements = |w: &mut Writer, length: &str| {
            self.with_index(w, |w, index| {
                w.braces_below(|w| {
                    w.line(format!("u_int {index};"));
                    w.line("");
                    let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
                    w.braces(&head, |w| {
                        self.free(w, &at.element(self.of, index), body);
                    });
                });
            });
        };
        let owns = self.owners.owns_body(body);
        match count {
            Count::Fixed(count) => elements(w, &format!("{count}u")),
            Count::Counted(_) => {
                let memory = at.elements(self.of);
                if owns {
                    w.line(format!("if ({memory} != NULL)"));
                    elements(w, &at.length(self.of));
                }
                release(w, &memory);
            }
        }
    }

    fn free_list(&self, w: &mut Writer, at: &Spot<'a>, element: TypeId, first_bare: bool) {
        let name = &self.of.schema.type_def(element).name;
        match first_bare {
            true => self.must(w, &format!("xdr_{name} (xdrs, {})", at.pointer())),
            false => {
                self.must(
                    w,
                    &format!("tenon_list_free_{name} (xdrs, {})", at.pointer()),
                );
            }
        }
    }

    /// Calls the function of a type.
    pub fn call(&self, w: &mut Writer, verb: &str, at: &Spot<'a>, id: TypeId) {
        if self.of.is_elsewhere(id) {
            return self.external(w, at);
        }
        let (name, pointer) = (&self.of.schema.type_def(id).name, at.pointer());
        self.must(w, &format!("tenon_{verb}_{name} (xdrs, {pointer})"));
    }

    /// Calls the program's own routine, or libtirpc's for an array whose length C alone knows.
    pub fn external(&self, w: &mut Writer, at: &Spot<'a>) {
        self.must(w, &generic::call(self.of, at));
    }
}

/// Gives memory back, and forgets it.
fn release(w: &mut Writer, pointer: &str) {
    w.line(format!("free ({pointer});"));
    w.line(format!("{pointer} = NULL;"));
}

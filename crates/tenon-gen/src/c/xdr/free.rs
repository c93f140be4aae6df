//! Freeing: releases the memory that a value owns to libtirpc's allocator.

use tenon_plan::links::is_link;
use tenon_plan::{Body, Count, Op, Plans};
use tenon_schema::{Type, TypeId, TypeKind};

use super::routine::RoutineWriter;
use crate::c::planned::LoweringSchema;
use crate::c::spot::CLvalue;
use crate::writer::SourceWriter;

/// The set of types that own memory.
pub struct HeapOwnership {
    types: Vec<bool>,
    elements: Vec<bool>,
}

impl HeapOwnership {
    pub fn new(planned: &LoweringSchema, plans: &Plans) -> Self {
        Self::with(planned, plans, |_| false)
    }

    /// Of types some of which own memory beside what their plans tell.
    pub fn with(planned: &LoweringSchema, plans: &Plans, owns: impl Fn(TypeId) -> bool) -> Self {
        let types = &planned.schema.types;
        let count = types.len();
        let mut owners = Self {
            types: vec![false; count],
            elements: vec![false; count],
        };
        // An owner that one round adds may make other types owners.
        loop {
            let mut changed = false;
            for (index, def) in types.iter().enumerate() {
                let id = TypeId(index as u32);
                let element = match planned.array(id) {
                    Some(elements) => owners.owns_elements(elements),
                    None => {
                        let is_external = def.kind == TypeKind::External;
                        is_external || owns(id) || owners.owns_body(&plans.types[index].body)
                    }
                };
                let whole = element || is_link(&planned.schema, id);
                changed |= (element, whole) != (owners.elements[index], owners.types[index]);
                (owners.elements[index], owners.types[index]) = (element, whole);
            }
            if !changed {
                return owners;
            }
        }
    }

    /// The same for an element of an array of a length that only C knows.
    fn owns_elements(&self, element: &Type) -> bool {
        element.innermost_name().is_some_and(|id| self.owns(id))
    }

    /// Returns whether a value of this type owns memory.
    pub fn owns(&self, id: TypeId) -> bool {
        self.types[id.0 as usize]
    }

    /// The same for an element of a list, without what follows it.
    pub fn owns_element(&self, id: TypeId) -> bool {
        self.elements[id.0 as usize]
    }

    /// Returns whether a value that a body moves owns memory.
    pub fn owns_body(&self, body: &Body) -> bool {
        body.iter().any(|op| self.owns_op(op))
    }

    /// Returns whether a value that an operation moves owns memory.
    pub fn owns_op(&self, op: &Op) -> bool {
        match op {
            Op::Reserve(_) | Op::Align { .. } => false,
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

impl<'a> RoutineWriter<'a> {
    /// Frees what the value at `spot` owns. A value that `ends` is not looked at again.
    pub fn free(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, body: &'a [Op], ends: bool) {
        for op in body.iter().filter(|op| self.owners.owns_op(op)) {
            self.free_op(w, spot, op, ends);
        }
    }

    fn free_op(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, op: &'a Op, ends: bool) {
        let at = op.place().map(|place| spot.at(self.of, place));
        let Some(at) = at else { return };
        match op {
            Op::BlitCounted { .. } | Op::PutCounted { .. } | Op::PutElements { .. } => {
                release(w, &at.elements(self.of), ends);
            }
            Op::CopyCounted { text: true, .. } => release(w, &at.value(), ends),
            Op::CopyCounted { text: false, .. } => release(w, &at.elements(self.of), ends),
            Op::Loop { count, body, .. } => self.free_loop(w, &at, *count, body, ends),
            Op::Switch { arms, default, .. } => {
                self.switch(w, &at, "break;", |w, selected, holds| {
                    self.free(w, holds, selected.body(arms, default), ends);
                });
            }
            Op::Optional { body, .. } => {
                let pointer = at.value();
                if self.owners.owns_body(body) {
                    w.braces(&format!("if ({pointer} != NULL)"), |w| {
                        self.free(w, &at.target(self.of), body, true);
                    });
                }
                release(w, &pointer, ends);
            }
            Op::List {
                element,
                first_bare,
                ..
            } => self.free_list(w, &at, *element, *first_bare),
            Op::Call { plan, .. } if self.is_alone(*plan) => self.free_external(w, &at),
            Op::Call { plan, .. } => {
                let name = &self.of.schema.type_def(*plan).name;
                w.line(format!("tenon_free_{name} (xdrs, {});", at.pointer()));
            }
            Op::External { .. } => self.free_external(w, &at),
            Op::Reserve(_) | Op::Align { .. } => {}
        }
    }

    fn free_loop(
        &self,
        w: &mut SourceWriter,
        at: &CLvalue<'a>,
        count: Count,
        body: &'a Body,
        ends: bool,
    ) {
        let elements = |w: &mut SourceWriter, length: &str, ends: bool| {
            self.for_each(w, length, |w, index| {
                self.free(w, &at.element(self.of, index), body, ends);
            });
        };
        match count {
            Count::Fixed(count) => elements(w, &format!("{count}u"), ends),
            Count::Counted(_) => {
                let memory = at.elements(self.of);
                if self.owners.owns_body(body) {
                    w.line(format!("if ({memory} != NULL)"));
                    elements(w, &at.length(self.of), true);
                }
                release(w, &memory, ends);
            }
        }
    }

    fn free_list(&self, w: &mut SourceWriter, at: &CLvalue<'a>, element: TypeId, first_bare: bool) {
        if self.is_alone(element) {
            return self.free_external(w, at);
        }
        let (name, pointer) = (&self.of.schema.type_def(element).name, at.pointer());
        w.line(if first_bare {
            format!("tenon_whole_free_{name} (xdrs, {pointer});")
        } else {
            format!("tenon_list_free_{name} (xdrs, {pointer}, FALSE);")
        });
    }

    /// Calls the program's own routine.
    fn free_external(&self, w: &mut SourceWriter, at: &CLvalue<'a>) {
        w.line(format!("{};", self.generic.call(at, "xdrs")));
    }
}

/// Gives memory back, and forgets it unless what holds it `ends`.
fn release(w: &mut SourceWriter, pointer: &str, ends: bool) {
    w.line(format!("free ({pointer});"));
    if !ends {
        w.line(format!("{pointer} = NULL;"));
    }
}

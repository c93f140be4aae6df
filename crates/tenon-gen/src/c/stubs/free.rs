//! Freeing: releases the memory that a value owns.

use tenon_plan::links::is_link;
use tenon_plan::{Body, BoxedArms, Count, Op, Plans};
use tenon_schema::{TypeId, TypeKind};

use super::chunks::CFunction;
use super::codec::{ArmValue, LabelledLvalue, write_switch};
use super::messages::message_name;
use crate::c::Interface;
use crate::c::spot::{CLvalue, link};
use crate::c::xdr::free::HeapOwnership;
use crate::writer::SourceWriter;

/// Writes the functions that free.
pub struct FreeWriter<'a> {
    pub of: Interface<'a>,
    pub owners: &'a HeapOwnership,
    pub plans: &'a Plans,
    pub boxed: &'a BoxedArms,
}

impl<'a> FreeWriter<'a> {
    /// The function that frees values of a type; `NULL` if they own nothing.
    pub fn of_named(&self, id: TypeId) -> String {
        let name = &self.of.schema.type_def(id).name;
        match self.owners.owns(id) {
            true => format!("tenon_free_{name}"),
            false => "NULL".to_owned(),
        }
    }

    /// The functions of a type; none if its values own nothing.
    pub fn of_type(&self, id: TypeId) -> Vec<CFunction> {
        let name = &self.of.schema.type_def(id).name;
        let body = &self.plans.of_type(id).body;
        let spot = CLvalue::type_behind(self.of, "it", id);
        let label = String::new();
        let here = LabelledLvalue { spot, label };
        match is_link(self.of.schema, id) {
            true => self.of_link(id, &here, body),
            false if !self.owners.owns(id) => Vec::new(),
            false => vec![self.function(format!("tenon_free_{name}"), name, &here, body)],
        }
    }

    /// A function that frees a value of the C type `ty`.
    pub fn function(
        &self,
        name: String,
        ty: &str,
        here: &LabelledLvalue<'a>,
        body: &'a Body,
    ) -> CFunction {
        let mut w = SourceWriter::with_tabs();
        w.line("static void");
        w.line(format!("{name} (void *value)"));
        w.braces_below(|w| {
            w.line(format!("{ty} *it = ({ty} *) value;"));
            w.line("");
            self.free(w, here, body, 0);
        });
        CFunction {
            prototype: format!("static void {name} (void *value);"),
            name,
            text: w.finish(),
        }
    }

    fn of_link(&self, id: TypeId, here: &LabelledLvalue<'a>, body: &'a Body) -> Vec<CFunction> {
        let name = &self.of.schema.type_def(id).name;
        let next = link(self.of, id);
        let owns = self.owners.owns_element(id);
        let mut chunks = Vec::new();
        let (mut one, mut one_bare) = (String::new(), String::new());
        if owns {
            let function = format!("tenon_one_free_{name}");
            one = format!("\t\t{function} (each);\n");
            one_bare = format!("\t{function} (it);\n");
            chunks.push(self.function(function, name, here, body));
        }
        let list = format!("tenon_list_free_{name}");
        chunks.push(CFunction {
            prototype: format!("static void {list} ({name} **at);"),
            text: format!(
                "static void
{list} ({name} **at)
{{
	{name} *each, *next;

	for (each = *at; each != NULL; each = next) {{
		next = each->{next};
{one}		free (each);
	}}
	*at = NULL;
}}
"
            ),
            name: list.clone(),
        });
        let whole = format!("tenon_free_{name}");
        chunks.push(CFunction {
            prototype: format!("static void {whole} (void *value);"),
            text: format!(
                "static void
{whole} (void *value)
{{
	{name} *it = ({name} *) value;

{one_bare}	{list} (&it->{next});
}}
"
            ),
            name: whole,
        });
        chunks
    }

    /// Frees what the value at `here` owns, inside of so many loops.
    fn free(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, body: &'a Body, loops: usize) {
        for op in body.iter().filter(|op| self.owners.owns_op(op)) {
            self.free_op(w, here, op, loops);
        }
    }

    fn free_op(&self, w: &mut SourceWriter, here: &LabelledLvalue<'a>, op: &'a Op, loops: usize) {
        let Some(place) = op.place() else { return };
        let at = here.at(self.of, place);
        match op {
            Op::BlitCounted { .. } | Op::PutCounted { .. } | Op::PutElements { .. } => {
                release(w, &at.spot.elements(self.of));
            }
            Op::CopyCounted { text: true, .. } => release(w, &at.spot.value()),
            Op::CopyCounted { text: false, .. } => release(w, &at.spot.elements(self.of)),
            Op::Loop { count, body, .. } => self.free_loop(w, &at, *count, body, loops),
            Op::Switch { arms, default, .. } => {
                write_switch(
                    w,
                    (self.of, self.boxed),
                    &at,
                    (arms, default),
                    "break;",
                    |w, holds, body| self.free_arm(w, holds, body, loops),
                );
            }
            Op::Optional { body, .. } => {
                let pointer = at.spot.value();
                if self.owners.owns_body(body) {
                    w.braces(&format!("if ({pointer} != NULL)"), |w| {
                        self.free(w, &at.inside(at.spot.target(self.of)), body, loops);
                    });
                }
                release(w, &pointer);
            }
            Op::List {
                element,
                first_bare,
                ..
            } => {
                let name = &self.of.schema.type_def(*element).name;
                let what = match first_bare {
                    true => "free",
                    false => "list_free",
                };
                w.line(format!("tenon_{what}_{name} ({});", at.spot.pointer()));
            }
            Op::Call { plan, .. } | Op::External { ty: plan, .. } => {
                self.free_named(w, &at, *plan);
            }
            Op::Reserve(_) | Op::Align { .. } => {}
        }
    }

    fn free_arm(&self, w: &mut SourceWriter, holds: &ArmValue<'a>, body: &'a Body, loops: usize) {
        let Some(pointer) = &holds.pointer else {
            return self.free(w, &holds.here, body, loops);
        };
        let pointer = pointer.spot.value();
        if self.owners.owns_body(body) {
            w.braces(&format!("if ({pointer} != NULL)"), |w| {
                self.free(w, &holds.here, body, loops);
            });
        }
        release(w, &pointer);
    }

    fn free_named(&self, w: &mut SourceWriter, at: &LabelledLvalue<'a>, id: TypeId) {
        let def = self.of.schema.type_def(id);
        let pointer = at.spot.pointer();
        match def.kind {
            TypeKind::External => {
                let message = message_name(&def.name);
                w.line(format!("if ({message}.free != NULL)"));
                w.indented(|w| w.line(format!("{message}.free ({pointer});")));
            }
            _ => w.line(format!("tenon_free_{} ({pointer});", def.name)),
        }
    }

    fn free_loop(
        &self,
        w: &mut SourceWriter,
        at: &LabelledLvalue<'a>,
        count: Count,
        body: &'a Body,
        loops: usize,
    ) {
        let index = format!("i{loops}");
        let elements = |w: &mut SourceWriter, length: &str| {
            let head = format!("for (uint32_t {index} = 0; {index} < {length}; {index}++)");
            w.braces(&head, |w| {
                let item = at.inside(at.spot.element(self.of, &index));
                self.free(w, &item, body, loops + 1);
            });
        };
        match count {
            Count::Fixed(count) => elements(w, &count.to_string()),
            Count::Counted(_) => {
                let memory = at.spot.elements(self.of);
                if self.owners.owns_body(body) {
                    w.braces(&format!("if ({memory} != NULL)"), |w| {
                        elements(w, &at.spot.length(self.of));
                    });
                }
                release(w, &memory);
            }
        }
    }
}

/// Gives memory back, and forgets it.
fn release(w: &mut SourceWriter, pointer: &str) {
    w.line(format!("free ({pointer});"));
    w.line(format!("{pointer} = NULL;"));
}

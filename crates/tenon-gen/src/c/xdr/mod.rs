//! The `xdr_` routines: one for each type, made of what the plan says.
//!
//! Each routine asks once what it is called for; encoding, decoding and freeing are functions of their
//! own, which call one another directly. What they share stands in `runtime.c`.

mod decode;
mod encode;
pub mod free;
mod generic;
pub mod pieces;
mod routine;
pub mod runtime;

use std::collections::BTreeSet;

use tenon_plan::links::is_link;
use tenon_plan::{Body, Op, Plan, Plans};
use tenon_schema::written::Item;
use tenon_schema::{Length, Schema, Type, TypeId, TypeKind};

use super::procedures::{has_record, procedures};
use super::spot::Spot;
use super::{Interface, Options, heading};
use crate::writer::Writer;
use free::Owners;
use pieces::suits;
use routine::Routine;

/// The plans of an interface, of which each type uses one.
pub struct Choice {
    /// With blocks of memory.
    pub blocks: Plans,
    /// Without: for what C has in other sizes than the plan believes.
    pub items: Plans,
}

/// The file of the routines; empty if there are none. `planned` is the schema that the plans are made of.
pub fn write(of: Interface<'_>, planned: &Schema, plans: &Choice, options: &Options) -> String {
    let owners = Owners::new(planned, &plans.items);
    let mut file = File {
        of,
        plans,
        owners: &owners,
        declared: BTreeSet::new(),
    };
    let mut body = Writer::with_tabs();
    let mut routines = 0;
    for item in &of.written.items {
        match item {
            Item::Passthrough(line) => body.raw(&line.text),
            Item::Constant { .. } => {}
            Item::Type(id) => {
                file.of_type(&mut body, *id);
                routines += 1;
            }
            Item::Program(program) => routines += file.records(&mut body, options, *program),
        }
    }
    if routines == 0 {
        return String::new();
    }
    let body = body.finish();
    let mut w = Writer::with_tabs();
    heading(&mut w, options);
    w.line(format!("#include \"{}\"", options.header));
    runtime::write(&mut w, &body);
    w.finish() + &body
}

struct File<'a> {
    of: Interface<'a>,
    plans: &'a Choice,
    owners: &'a Owners,
    /// The types whose functions may be called.
    declared: BTreeSet<TypeId>,
}

impl<'a> File<'a> {
    fn of_type(&mut self, w: &mut Writer, id: TypeId) {
        let def = self.of.schema.type_def(id);
        let spot = Spot::of_type(self.of, id);
        let blocks = self.plans.blocks.of_type(id);
        let plan = match suits(self.of, &spot, &blocks.body) {
            true => blocks,
            false => self.plans.items.of_type(id),
        };
        self.declare(w, id, plan);
        let parameter = match &def.kind {
            TypeKind::Typedef(
                Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)),
            ) => format!("{} objp", def.name),
            _ => format!("{} *objp", def.name),
        };
        let routine = Routine::new(self.of, self.owners, &def.name, &parameter);
        if is_link(self.of.schema, id) {
            routine.write_link(w, id, &spot, plan);
        } else {
            routine.write(w, &spot, plan, self.owners.owns(id));
        }
    }

    /// The routines of the records of arguments; how many there are.
    fn records(&mut self, w: &mut Writer, options: &Options, program: usize) -> usize {
        let mut written = 0;
        let each = procedures(self.of).zip(&self.plans.blocks.procedures);
        for ((procedure, blocks), items) in each.zip(&self.plans.items.procedures) {
            if procedure.program != program || !has_record(&procedure, options) {
                continue;
            }
            let fields = &procedure.definition.arguments;
            let spot = Spot::of_record(fields, &procedure.written.arguments);
            let plan = match suits(self.of, &spot, &blocks.arguments.body) {
                true => &blocks.arguments,
                false => &items.arguments,
            };
            let name = procedure.record_name();
            let parameter = format!("{name} *objp");
            let routine = Routine::new(self.of, self.owners, &name, &parameter);
            let owns = self.owners.owns_body(&plan.body);
            routine.write(w, &spot, plan, owns);
            written += 1;
        }
        written
    }

    /// Announces the functions of types that stand further behind.
    fn declare(&mut self, w: &mut Writer, id: TypeId, plan: &Plan) {
        self.declared.insert(id);
        let mut called = BTreeSet::new();
        collect(&plan.body, &mut called);
        for called in called.into_iter().filter(|called| *called != id) {
            if self.of.is_elsewhere(called) || !self.declared.insert(called) {
                continue;
            }
            let def = self.of.schema.type_def(called);
            let parameter = format!("{} *objp", def.name);
            let routine = Routine::new(self.of, self.owners, &def.name, &parameter);
            w.line("");
            routine.declare(w, called);
        }
    }
}

/// The types whose functions a body calls.
fn collect(body: &Body, called: &mut BTreeSet<TypeId>) {
    for op in body {
        match op {
            Op::Call { plan, .. } => {
                called.insert(*plan);
            }
            Op::List { element, .. } => {
                called.insert(*element);
            }
            Op::Loop { body, .. } | Op::PutElements { body, .. } | Op::Optional { body, .. } => {
                collect(body, called);
            }
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.for_each(|body| collect(body, called));
            }
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => {}
            Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } | Op::BlitCounted { .. } => {}
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::External { .. } => {}
        }
    }
}

//! The `xdr_` routines: one for each type, made from its plan.
//!
//! Each routine asks once what it is called for; encoding, decoding and freeing are functions of their
//! own, which call one another directly and hand the position in the stream on. What they share stands in
//! `runtime.c`. Names of variables there begin with `_`: constants of the interface are macros.

mod believed;
mod decode;
mod emit;
mod encode;
mod forms;
pub mod free;
mod generic;
pub mod pieces;
mod procedural;
mod routine;
pub mod runtime;

use std::collections::BTreeSet;

use tenon_plan::links::is_link;
use tenon_plan::{Body, Op, Plan, Plans, Scalar};
use tenon_schema::written::Item;
use tenon_schema::{Length, Type, TypeId, TypeKind};

use super::planned::LoweringSchema;
use super::procedures::{has_record, procedures};
use super::spot::CLvalue;
use super::{Interface, Options, heading};
use crate::writer::SourceWriter;
use forms::{RoutineForm, RoutineForms, counts_nothing};
use free::HeapOwnership;
use generic::RoutineCalls;
use pieces::suits;
use routine::{RoutineSignature, RoutineWriter};

/// The plans of an interface, of which each type uses one.
pub struct PlanVariants {
    /// With blocks of memory.
    pub blocks: Plans,
    /// Without: for items that C has in other sizes than the plan assumes.
    pub items: Plans,
}

impl PlanVariants {
    /// The plan that the functions of a type are printed from.
    fn of_type(&self, of: Interface<'_>, id: TypeId) -> &Plan {
        let is_own = (id.0 as usize) < of.schema.types.len();
        let blocks = self.blocks.of_type(id);
        if is_own && suits(of, &CLvalue::of_type(of, id), &blocks.body) {
            blocks
        } else {
            self.items.of_type(id)
        }
    }

    /// The plan that the functions of the record of a procedure's arguments, which is at `spot`, are printed from.
    fn of_arguments(&self, of: Interface<'_>, procedure: usize, spot: &CLvalue<'_>) -> &Plan {
        let blocks = &self.blocks.procedures[procedure].arguments;
        if suits(of, spot, &blocks.body) {
            blocks
        } else {
            &self.items.procedures[procedure].arguments
        }
    }
}

/// The file of the routines; empty if there are none.
pub fn write(
    of: Interface<'_>,
    planned: &LoweringSchema,
    plans: &PlanVariants,
    options: &Options,
) -> String {
    let owners = HeapOwnership::new(planned, &plans.items);
    let forms = RoutineForms::new(of, plans, options.size);
    let mut file = XdrFile {
        of,
        plans,
        generic: RoutineCalls {
            of,
            size: options.size,
        },
        owners: &owners,
        forms: &forms,
        declared: BTreeSet::new(),
    };
    let mut body = SourceWriter::with_tabs();
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
    let mut w = SourceWriter::with_tabs();
    heading(&mut w, options);
    // The header comes first: builds replace its line by `config.h` and the header.
    w.line(format!("#include \"{}\"", options.header));
    runtime::write(&mut w, &body);
    w.finish() + &body
}

struct XdrFile<'a> {
    of: Interface<'a>,
    plans: &'a PlanVariants,
    generic: RoutineCalls<'a>,
    owners: &'a HeapOwnership,
    forms: &'a RoutineForms,
    /// Types with functions that are declared and may be called.
    declared: BTreeSet<TypeId>,
}

impl<'a> XdrFile<'a> {
    fn of_type(&mut self, w: &mut SourceWriter, id: TypeId) {
        let spot = CLvalue::of_type(self.of, id);
        let routine = self.routine(self.subject(id));
        let routine = routine.repeated(self.forms.is_repeated(id));
        if let Some(call) = self.alone(id, &spot) {
            return routine.write_call(w, &call);
        }
        let form = self.forms.of(id);
        let plan = self.plans.of_type(self.of, id);
        if form == RoutineForm::Procedural {
            return routine.write_procedural(w, id, plan);
        }
        self.declare(w, id, plan);
        if is_link(self.of.schema, id) {
            routine.write_link(w, id, &spot, plan);
        } else if form == RoutineForm::Inner {
            routine.write_functions(w, &spot, plan);
            routine.write_procedural(w, id, plan);
        } else {
            routine.write(w, &spot, plan);
        }
    }

    fn routine(&self, subject: RoutineSignature<'a>) -> RoutineWriter<'a> {
        RoutineWriter::new(self.generic, (self.owners, self.forms), subject)
    }

    /// The call that the routine of a type consists of, if it is no more: of an enum, or of a name for another type, as
    /// uses of that are specialised where they are. The type that a message begins with is specialised for itself, if
    /// that is worth it.
    fn alone(&self, id: TypeId, spot: &CLvalue<'a>) -> Option<String> {
        if spot.is_record(self.of) {
            return None;
        }
        let body = &self.plans.items.of_type(id).body;
        let is_call = match body.as_slice() {
            [Op::Reserve(block)] if block.only_scalar().is_some() => {
                if let Some((_, Scalar::Enum(_))) = block.only_scalar() {
                    return Some("xdr_enum (xdrs, (enum_t *) objp)".to_owned());
                }
                true
            }
            [Op::External { .. } | Op::Call { .. } | Op::CopyCounted { .. }] => true,
            _ => !counts_nothing(body) && self.forms.of(id) == RoutineForm::Procedural,
        };
        is_call.then(|| self.generic.call(spot, "xdrs"))
    }

    /// The type `id`, as its functions take it.
    fn subject(&self, id: TypeId) -> RoutineSignature<'a> {
        let def = self.of.schema.type_def(id);
        let name = &def.name;
        let is_vector = matches!(
            &def.kind,
            TypeKind::Typedef(Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)))
        );
        if is_vector {
            let elements = CLvalue::of_type(self.of, id).inner_type(self.of);
            return RoutineSignature {
                name,
                parameter: format!("{name} objp"),
                pointed: elements,
            };
        }
        RoutineSignature::record(name)
    }

    /// The routines of the records of arguments; how many there are.
    fn records(&mut self, w: &mut SourceWriter, options: &Options, program: usize) -> usize {
        let mut written = 0;
        for (position, procedure) in procedures(self.of).enumerate() {
            if procedure.program != program || !has_record(&procedure, options) {
                continue;
            }
            written += 1;
            let fields = &procedure.definition.arguments;
            let spot = CLvalue::of_record(fields, &procedure.written.arguments);
            let plan = self.plans.of_arguments(self.of, position, &spot);
            let name = procedure.record_name();
            let subject = RoutineSignature::record(&name);
            let routine = RoutineWriter::new(self.generic, (self.owners, self.forms), subject);
            if self.forms.specialises_arguments(position) {
                routine.write(w, &spot, plan);
            } else {
                routine.write_procedural_record(w, &spot, fields.len());
            }
        }
        written
    }

    /// Announces the functions of types that stand further behind.
    fn declare(&mut self, w: &mut SourceWriter, id: TypeId, plan: &Plan) {
        self.declared.insert(id);
        let mut called = BTreeSet::new();
        collect(&plan.body, &mut called);
        for called in called.into_iter().filter(|called| *called != id) {
            let is_alone =
                self.of.is_elsewhere(called) || self.forms.of(called) == RoutineForm::Procedural;
            if is_alone || !self.declared.insert(called) {
                continue;
            }
            let routine = self.routine(self.subject(called));
            w.line("");
            routine.declare(w, called, is_link(self.of.schema, called));
        }
    }
}

impl<'a> RoutineSignature<'a> {
    /// A struct, a union, or what else a routine takes by a pointer.
    fn record(name: &'a str) -> Self {
        Self {
            name,
            parameter: format!("{name} *objp"),
            pointed: name.to_owned(),
        }
    }
}

/// Collects the types of the functions that a body calls.
fn collect(body: &Body, called: &mut BTreeSet<TypeId>) {
    for op in body {
        called.extend(op.called());
        op.bodies().for_each(|body| collect(body, called));
    }
}

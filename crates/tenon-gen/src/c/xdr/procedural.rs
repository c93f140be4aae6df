//! Routines that are not specialised: as small as rpcgen's. Arrays of numbers and bytes, which may take up a message at
//! once, are moved as fast for all that; lists are loops, and depth has a limit.

use tenon_plan::Plan;
use tenon_plan::links::is_link;
use tenon_schema::{TypeId, TypeKind};

use super::routine::RoutineWriter;
use crate::c::spot::{CLvalue, link};
use crate::writer::SourceWriter;

impl<'a> RoutineWriter<'a> {
    /// Writes the routine of the struct or union `id`, which calls those of its parts one by one.
    pub fn write_procedural(&self, w: &mut SourceWriter, id: TypeId, plan: &Plan) {
        let name = self.subject.name;
        if plan.recursive {
            w.line("");
            w.line("static bool_t");
            w.line(format!("tenon_inside_{name} (XDR *xdrs, {name} *objp)"));
            w.braces_below(|w| self.parts(w, id));
            let call = format!("tenon_xdr_deeper (xdrs, objp, (xdrproc_t) tenon_inside_{name})");
            self.write_call(w, &call);
        } else {
            self.routine(w, |w| self.parts(w, id));
        }
    }

    /// Writes the routine of the record of so many arguments at `spot`.
    pub fn write_procedural_record(
        &self,
        w: &mut SourceWriter,
        spot: &CLvalue<'a>,
        arguments: usize,
    ) {
        self.routine(w, |w| self.record(w, spot, arguments));
    }

    fn parts(&self, w: &mut SourceWriter, id: TypeId) {
        let spot = CLvalue::of_type(self.of, id);
        match &self.of.schema.type_def(id).kind {
            TypeKind::Struct(fields) if is_link(self.of.schema, id) => {
                self.list(w, id, &spot, fields.len() - 1);
            }
            TypeKind::Struct(fields) => self.record(w, &spot, fields.len()),
            _ => self.choice(w, &spot),
        }
    }

    fn record(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, fields: usize) {
        if fields == 0 {
            w.line("bool_t _done = TRUE;");
            w.line("");
            w.line("(void) xdrs;");
            w.line("(void) objp;");
        } else {
            let calls = self.calls(spot, fields);
            w.line(format!("bool_t _done = {};", calls.join(" &&\n\t    ")));
            w.line("");
        }
        w.line("return _done;");
    }

    /// The calls that move the first fields of a struct.
    fn calls(&self, spot: &CLvalue<'a>, fields: usize) -> Vec<String> {
        let fields = (0..fields).map(|position| spot.field(self.of, position));
        fields
            .map(|field| self.generic.call(&field, "xdrs"))
            .collect()
    }

    fn choice(&self, w: &mut SourceWriter, spot: &CLvalue<'a>) {
        let discriminant = self.generic.call(&self.discriminant(spot), "xdrs");
        w.line(format!("bool_t _done = {discriminant};"));
        w.line("");
        w.line("if (!_done)");
        w.indented(|w| w.line("return FALSE;"));
        // A value that was refused half-way may be freed.
        let otherwise = "return xdrs->x_op == XDR_FREE;";
        self.switch(w, spot, otherwise, |w, _, holds| {
            w.line(format!("_done = {};", self.generic.call(holds, "xdrs")));
        });
        w.line("return _done;");
    }

    /// An element, and all that follow it.
    fn list(&self, w: &mut SourceWriter, id: TypeId, spot: &CLvalue<'a>, fields: usize) {
        let (name, next) = (self.subject.name, link(self.of, id));
        let link = format!("tenon_xdr_link (xdrs, &objp->{next}, sizeof ({name}), &_next)");
        let mut calls = self.calls(spot, fields);
        calls.push(link);
        w.line(format!("{name} *_first = objp;"));
        w.line("");
        w.braces("for (;;)", |w| {
            w.line("void *_next;");
            w.line(format!("bool_t _done = {};", calls.join(" &&\n\t\t    ")));
            w.line("");
            w.line("if (xdrs->x_op == XDR_FREE && objp != _first)");
            w.indented(|w| w.line("free (objp);"));
            w.line("if (!_done || _next == NULL)");
            w.indented(|w| w.line("return _done;"));
            w.line(format!("objp = ({name} *) _next;"));
        });
    }
}

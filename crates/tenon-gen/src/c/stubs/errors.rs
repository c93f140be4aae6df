//! The errors that procedures raise: for each a function by which a handler raises it, and one by which a caller gets it.

use tenon_schema::TypeId;

use super::messages::{StubProcedure, message_name};
use super::{StubPrinter, StubVersion};
use crate::writer::{SourceWriter, literal};

/// An error that a procedure raises.
struct RaisedType<'a> {
    id: TypeId,
    /// Its position behind `raises`.
    position: usize,
    /// The name of its type.
    ty: &'a str,
    /// The name of the procedure in C.
    procedure: String,
}

impl RaisedType<'_> {
    fn raise(&self) -> String {
        format!("{}_raise_{}", self.procedure, self.ty)
    }

    fn raised(&self) -> String {
        format!("{}_raised_{}", self.procedure, self.ty)
    }

    fn raise_head(&self) -> String {
        let (name, ty) = (self.raise(), self.ty);
        format!("{name} (tenon_request *request, const {ty} *value, const char *words)")
    }

    fn raised_head(&self) -> String {
        let (name, ty) = (self.raised(), self.ty);
        format!("{name} ({ty} *value)")
    }
}

impl<'a> StubPrinter<'a> {
    fn raised_types(&self, call: &StubProcedure<'a>) -> impl Iterator<Item = RaisedType<'a>> {
        let schema = self.of.schema;
        let procedure = call.procedure.c_name();
        let raised = call.procedure.definition.annotations.raises.iter();
        raised.enumerate().map(move |(position, id)| RaisedType {
            id: *id,
            position,
            ty: &schema.type_def(*id).name,
            procedure: procedure.clone(),
        })
    }

    fn raised_of_version(&self, version: &StubVersion<'a>) -> Vec<RaisedType<'a>> {
        let calls = version.calls.iter();
        calls
            .flat_map(|(_, call)| self.raised_types(call))
            .collect()
    }

    /// The names of the functions for the errors of a procedure.
    pub fn made_for_errors(&self, call: &StubProcedure<'a>) -> Vec<String> {
        let names = |raised: RaisedType<'_>| [raised.raise(), raised.raised()];
        self.raised_types(call).flat_map(names).collect()
    }

    /// Declares the functions by which callers get errors.
    pub fn declare_errors_of_calls(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        let raised = self.raised_of_version(version);
        if raised.is_empty() {
            return;
        }
        w.line("");
        w.line("/*");
        w.line(" * Whether the call of this thread that has just failed did so because its procedure raised this error, and");
        w.line(" * the error, which is freed as a result is; NULL only asks. Lean calls alone carry errors.");
        w.line(" */");
        for error in raised {
            w.line(format!("bool {};", error.raised_head()));
        }
    }

    /// Declares the functions by which handlers raise errors.
    pub fn declare_errors_of_handlers(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        let raised = self.raised_of_version(version);
        if raised.is_empty() {
            return;
        }
        w.line("");
        w.line("/*");
        w.line(" * Refuse a call with an error of its procedure, which a lean client gets, and words for people; words that");
        w.line(" * are NULL are the name of its type. They return false, which the handler returns in turn.");
        w.line(" */");
        for error in raised {
            w.line(format!("bool {};", error.raise_head()));
        }
    }

    /// Writes both functions for each error of a procedure.
    pub fn write_errors(&self, w: &mut SourceWriter, call: &StubProcedure<'a>) {
        for error in self.raised_types(call) {
            let lean = &self.plans[1].types[error.id.0 as usize];
            let table = format!("tenon_{}", error.raised());
            w.line("");
            w.line(format!(
                "static const tenon_raised_type {table} = {{ {}, {}, {}, &{} }};",
                error.position,
                literal(error.ty),
                lean.align,
                message_name(error.ty)
            ));
            w.line("");
            w.line("bool");
            w.line(error.raise_head());
            w.braces_below(|w| {
                w.line(format!(
                    "return tenon_raise (request, &{table}, value, words);"
                ))
            });
            w.line("");
            w.line("bool");
            w.line(error.raised_head());
            w.braces_below(|w| w.line(format!("return tenon_raised (&{table}, value);")));
        }
    }
}

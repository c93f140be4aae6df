//! `Debug` of types with fields that the interface calls `sensitive`, which does not show their values.

use tenon_schema::{Field, TypeDef, TypeKind};

use super::code::{BlockExpr, Expr, Statement};
use crate::writer::SourceWriter;

/// Returns whether a type has a field that is not to be shown.
pub fn is_sensitive(def: &TypeDef) -> bool {
    let of = |field: &Field| field.annotations.sensitive;
    match &def.kind {
        TypeKind::Struct(fields) => fields.iter().any(of),
        TypeKind::Union(union) => {
            let arms = union.arms.iter().map(|arm| arm.field.as_ref());
            let mut fields = arms.chain([union.default.as_ref().and_then(Option::as_ref)]);
            fields.any(|field| field.is_some_and(of))
        }
        _ => false,
    }
}

/// Writes `Debug` of a type, `name` with its `parameters`, which shows these fields and says that there are others. Of a
/// union nothing is shown: its arm may be a secret, too.
pub fn write_debug<'f>(
    w: &mut SourceWriter,
    (name, parameters): (&str, &str),
    fields: impl Iterator<Item = (&'f Field, &'f String)>,
) {
    let mut statements = Vec::new();
    for (field, member) in fields.filter(|(field, _)| !field.annotations.sensitive) {
        let arguments = [format!("\"{}\"", field.name), format!("&self.{member}")];
        statements.push(Statement::Do(Expr::call(
            "shown.field",
            arguments.map(Expr::text),
        )));
    }
    w.gap();
    w.line("/// Shows no value of a field that is sensitive.");
    w.braces(
        &format!("impl core::fmt::Debug for {name}{parameters}"),
        |w| {
            let head = "fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result";
            w.braces(head, |w| {
                if statements.is_empty() {
                    return w.line(format!(
                        "f.debug_struct(\"{name}\").finish_non_exhaustive()"
                    ));
                }
                w.line(format!("let mut shown = f.debug_struct(\"{name}\");"));
                BlockExpr {
                    statements,
                    value: Some(Expr::text("shown.finish_non_exhaustive()")),
                }
                .write(w);
            });
        },
    );
}

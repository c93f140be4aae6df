//! The fingerprints of a version, for the other end of a lean connection to compare.

use super::{LeanMarshalling, ServiceVersion};
use crate::rust::code::Expr;
use crate::writer::{SourceWriter, literal};

/// Writes the fingerprints of a version and of its parts as constant data.
pub fn write(w: &mut SourceWriter, lean: LeanMarshalling<'_>, of: &ServiceVersion<'_>) {
    lean.with.rust.uses(&["LeanInterface"]);
    let digits = |fingerprint: u64| format!("{fingerprint:#018x}");
    let parts = lean.fingerprints.parts(of.version);
    let parts = parts.into_iter().map(|part| {
        // The number says that it is a procedure.
        let name = part.name.strip_prefix("procedure ").unwrap_or(&part.name);
        let (name, procedure) = (literal(name), part.procedure.to_string());
        let (fingerprint, layout) = (digits(part.fingerprint), digits(part.layout));
        Expr::call(
            "",
            [&name, &fingerprint, &layout, &procedure].map(Expr::text),
        )
    });
    let fingerprint = digits(lean.fingerprints.of_version(of.version));
    let [program, number, fingerprint] =
        [&of.program.number, &of.names.number, &fingerprint].map(Expr::text);
    let parts = Expr::Array(parts.collect());
    let interface = Expr::call("LeanInterface::new", [program, number, fingerprint, parts]);
    w.gap();
    w.line(format!(
        "/// What `{}` was made from: lean clients and servers compare it.",
        of.version.name
    ));
    interface.write_static(w, &of.names.interface, "LeanInterface");
}

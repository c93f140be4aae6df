//! The errors of procedures: `CallError` under a name for each procedure, or, of one that raises errors of the interface,
//! an enum of these, for callers and for handlers.

use super::{ProtocolSet, ServiceMethod};
use crate::rust::RustFile;
use crate::rust::code::Expr;
use crate::writer::{HoleContent, SourceWriter, literal};

/// Writes the error of a call of a procedure.
pub fn write(w: &mut SourceWriter, protocols: ProtocolSet<'_>, method: &ServiceMethod<'_>) {
    let rust = protocols.onc.rust;
    rust.uses(&["CallError"]);
    let (name, error) = (&method.procedure.name, &method.names.error);
    w.gap();
    if !raises(method) {
        w.line(format!("/// The error of a call of `{name}`."));
        return w.line(format!("pub type {error} = CallError;"));
    }
    rust.uses(&["CallErrorKind", "ProcedureError", "Refusal"]);
    let variants = variants(rust, method);
    let is_lean = method.lean.is_some();
    w.skeleton(
        ENUM,
        &[
            ("name", HoleContent::Text(error)),
            ("procedure", HoleContent::Text(name)),
            (
                "variants",
                HoleContent::Lines(&|w| write_variants(w, &variants)),
            ),
            (
                "refusals",
                HoleContent::Lines(&|w| write_refusals(w, &variants, is_lean)),
            ),
            ("shown", HoleContent::Lines(&|w| write_shown(w, &variants))),
            (
                "of_call",
                HoleContent::Lines(&|w| write_of_call(w, &variants, is_lean)),
            ),
        ],
    );
    for variant in &variants {
        write_conversion(w, error, variant);
    }
}

/// The enum, and conversions that do not depend on what is raised. A handler's is another type than a caller's, so that
/// `?` makes it of any error.
const ENUM: &str = "
/// The error of a call of `$procedure$`: one that the procedure raises, or why there is no result otherwise. A handler
/// returns it with a [`Refusal`] as the other reason, which `?` makes of any error.
#[derive(Debug, Clone)]
pub enum $name$<F = CallError> {
    $variants$
    /// The call failed for another reason.
    Other(F),
}

impl $name$ {
    /// What the call failed of.
    pub fn kind(&self) -> CallErrorKind {
        match self {
            Self::Other(error) => error.kind(),
            _ => CallErrorKind::Raised,
        }
    }
}

impl core::fmt::Display for $name$ {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            $shown$
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for $name$ {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<CallError> for $name$ {
    fn from(error: CallError) -> Self {
        $of_call$
    }
}

impl ProcedureError for $name$ {
    fn call_error(&self) -> Option<&CallError> {
        match self {
            Self::Other(error) => Some(error),
            _ => None,
        }
    }
}

impl $name$<Refusal> {
    /// What the caller is told of a handler's error.
    pub fn into_refusal(self) -> Refusal {
        match self {
            $refusals$
            Self::Other(refusal) => refusal,
        }
    }
}

impl<E: Into<Refusal>> From<E> for $name$<Refusal> {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}
";

/// An error that a procedure raises.
struct RaisedVariant<'a> {
    /// Its position behind `raises`.
    position: usize,
    /// The name of its type in the interface.
    declared: &'a str,
    /// The name of the variant.
    name: &'a str,
    /// The type that it holds.
    held: String,
}

fn variants<'a>(rust: &'a RustFile<'_>, method: &'a ServiceMethod<'_>) -> Vec<RaisedVariant<'a>> {
    let raised = method.procedure.annotations.raises.iter();
    let raised = raised.zip(&method.names.raised).enumerate();
    let variants = raised.map(|(position, (id, name))| RaisedVariant {
        position,
        declared: &rust.schema.type_def(*id).name,
        name,
        held: rust.type_name(*id),
    });
    variants.collect()
}

fn write_variants(w: &mut SourceWriter, variants: &[RaisedVariant<'_>]) {
    for RaisedVariant {
        declared,
        name,
        held,
        ..
    } in variants
    {
        w.line(format!("/// `{declared}` of the interface."));
        w.line(format!("{name}({held}),"));
    }
}

/// Writes how the errors are shown.
fn write_shown(w: &mut SourceWriter, variants: &[RaisedVariant<'_>]) {
    for RaisedVariant { name, .. } in variants {
        let shown = r#"write!(f, "the procedure raised {error:?}")"#;
        w.line(format!("Self::{name}(error) => {shown},"));
    }
}

/// Writes the refusals that carry the errors. A reply of ONC RPC has no room for them.
fn write_refusals(w: &mut SourceWriter, variants: &[RaisedVariant<'_>], is_lean: bool) {
    for variant in variants {
        let RaisedVariant { name, position, .. } = variant;
        let declared = literal(variant.declared);
        if is_lean {
            let refusal = format!("Refusal::raise({position}, {declared}, &error)");
            w.line(format!("Self::{name}(error) => {refusal},"));
            continue;
        }
        w.line(format!("Self::{name}(_) => Refusal::Raised {{"));
        w.indented(|w| {
            w.line(format!("message: {declared}.to_owned(),"));
            w.line("details: Vec::new(),");
        });
        w.line("},");
    }
}

/// Writes the body that finds out what a call failed of.
fn write_of_call(w: &mut SourceWriter, variants: &[RaisedVariant<'_>], is_lean: bool) {
    if !is_lean {
        return w.line("Self::Other(error)");
    }
    w.line("let exception = error.exception();");
    w.line("let raised = exception.and_then(|exception| match exception.raised() {");
    w.indented(|w| {
        for RaisedVariant { position, name, .. } in variants {
            w.line(format!(
                "Some({position}) => exception.raised_as().ok().map(Self::{name}),"
            ));
        }
        w.line("_ => None,");
    });
    w.line("});");
    w.line("raised.unwrap_or(Self::Other(error))");
}

/// Writes that `?` and `into` make the error of what it holds.
fn write_conversion(w: &mut SourceWriter, error: &str, variant: &RaisedVariant<'_>) {
    let RaisedVariant { name, held, .. } = variant;
    w.gap();
    w.braces(&format!("impl<F> From<{held}> for {error}<F>"), |w| {
        w.braces(&format!("fn from(error: {held}) -> Self"), |w| {
            w.line(format!("Self::{name}(error)"));
        });
    });
}

fn raises(method: &ServiceMethod<'_>) -> bool {
    !method.procedure.annotations.raises.is_empty()
}

/// Returns the type of the error of a handler of the procedure.
pub fn of_handler(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    rust.uses(&["Refusal"]);
    match raises(method) {
        true => format!("{}<Refusal>", method.names.error),
        false => "Refusal".to_owned(),
    }
}

/// Makes the error of what a handler returned a refusal, if it is none yet.
pub fn refused(method: &ServiceMethod<'_>, handled: Expr) -> Expr {
    match raises(method) {
        true => Expr::Then(Box::new(handled), "map_err(|error| error.into_refusal())"),
        false => handled,
    }
}

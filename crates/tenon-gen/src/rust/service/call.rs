//! A call of a procedure as a value: its arguments as the client was lent them, and the codec of its messages.

use tenon_plan::ProcedurePlan;

use super::lent::{ArgumentMode, unboxed};
use super::{ProtocolSet, ServiceMethod, ServiceVersion};
use crate::rust::code::{BlockExpr, Expr, FunctionSignature};
use crate::rust::marshal::{ItemOperand, MarshalGenerator, PlaceBindings, parameter, uses_cursor};
use crate::rust::shape::TypeShape;
use crate::rust::{Marker, RustFile};
use crate::writer::SourceWriter;

/// Returns the type of a procedure's calls.
pub fn type_text(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    let lifetime = if is_borrowing(rust, method) {
        "<'_>"
    } else {
        ""
    };
    format!("{}{lifetime}", method.names.call)
}

/// Returns whether a call of the procedure borrows some of its arguments.
pub fn is_borrowing(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> bool {
    let mut lent = method
        .parameters
        .iter()
        .map(|shape| ArgumentMode::of(rust, shape));
    lent.any(|lent| !matches!(lent, ArgumentMode::Value(_)))
}

/// Writes the call of a procedure as a value, and the codec of its messages in each protocol.
pub fn write(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    method: &ServiceMethod<'_>,
) {
    let rust = protocols.onc.rust;
    rust.uses(&[
        "CalledProcedure",
        "CallCodec",
        "ProcedureInfo",
        "wire::DecodeError",
        "wire::Decoder",
    ]);
    let name = &method.names.call;
    let lent = method
        .parameters
        .iter()
        .map(|shape| ArgumentMode::of(rust, shape));
    let parameter = if is_borrowing(rust, method) {
        "<'a>"
    } else {
        ""
    };
    w.gap();
    w.line(format!("/// A call of `{}`.", method.procedure.name));
    match method.parameters.is_empty() {
        true => w.line(format!("struct {name};")),
        false => w.braces(&format!("struct {name}{parameter}"), |w| {
            for (lent, name) in lent.zip(&method.names.parameters) {
                w.line(format!("{name}: {},", lent.field()));
            }
        }),
    }
    let result = method.result_text(rust);
    w.gap();
    let head = format!("impl CalledProcedure for {}", type_text(rust, method));
    w.braces(&head, |w| {
        let number = &method.names.number;
        w.line(format!("const PROCEDURE: u32 = {number};"));
        let info = of.info(method);
        info.write_constant(w, "INFO", "ProcedureInfo<'static>");
        if method.lean.is_none() {
            w.line("const HAS_LEAN: bool = false;");
        }
        w.gap();
        w.line(format!("type Result = {result};"));
        w.line(format!("type Error = {};", method.names.error));
    });
    match (protocols.lean, method.lean) {
        (Some(lean), Some(plan)) => match method.shared {
            Some(shared) => write_codec(w, shared, plan, method),
            None => {
                write_codec(w, protocols.onc, method.plan, method);
                write_codec(w, lean.with, plan, method);
            }
        },
        _ => {
            write_codec(w, protocols.onc, method.plan, method);
            let lean = Marker::lean();
            rust.uses(&lean.imports);
            w.gap();
            w.line(format!("{} {{}}", codec_head(&lean, rust, method)));
        }
    }
}

fn codec_head(marker: &Marker, rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    let (generics, path) = (marker.generics(), &marker.path);
    format!(
        "impl{generics} CallCodec<{path}> for {}",
        type_text(rust, method)
    )
}

/// Returns a reference to a call of the procedure with the arguments that are in variables of their names.
pub fn literal(method: &ServiceMethod<'_>) -> Expr {
    let path = format!("&{}", method.names.call);
    let fields = method.names.parameters.iter();
    let fields: Vec<_> = fields
        .map(|name| (name.clone(), Expr::text(name)))
        .collect();
    match fields.is_empty() {
        true => Expr::text(path),
        false => Expr::Struct(path, fields),
    }
}

/// Writes the codec of the messages of a call in one representation, or in all.
fn write_codec(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
) {
    let marker = &with.form.marker;
    with.rust.uses(&marker.imports);
    w.gap();
    w.braces(&codec_head(marker, with.rust, method), |w| {
        if !method.parameters.is_empty() {
            write_encode(w, with, plan, method);
            w.gap();
        }
        write_decode(w, with, plan, method);
    });
}

fn write_encode(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
) {
    with.rust.uses(&["wire::EncodeError", "wire::Encoder"]);
    let name = &method.procedure.name;
    let arguments = lent_arguments(with.rust, method, "self.");
    let body = with.encode_parameters(&plan.arguments.body, name, arguments);
    let cursor = with.form.marker.cursor("Encoder");
    let out = parameter("out", uses_cursor(&body));
    let head = FunctionSignature {
        name: "fn encode".to_owned(),
        parameters: vec!["&self".to_owned(), format!("{out}: &mut {cursor}")],
        result: "Result<(), EncodeError>".to_owned(),
    };
    w.line("#[inline]");
    head.write_function(w, &body);
}

fn write_decode(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
) {
    let body = match &method.result {
        None => BlockExpr::value(Expr::text("Ok(())")),
        Some(shape) => {
            let result = PlaceBindings::whole(ItemOperand::behind("item", shape.clone(), None));
            with.decode_item(&plan.result.body, &result)
        }
    };
    let cursor = with.form.marker.cursor("Decoder");
    let input = parameter("input", uses_cursor(&body));
    let head = FunctionSignature {
        name: "fn decode".to_owned(),
        parameters: vec![format!("{input}: &mut {cursor}")],
        result: format!("Result<{}, DecodeError>", method.result_text(with.rust)),
    };
    w.line("#[inline]");
    head.write_function(w, &body);
}

/// The arguments of a call, as variables that own them.
pub fn arguments(method: &ServiceMethod<'_>) -> Vec<ItemOperand> {
    let owned = |name: &String, shape: &TypeShape, label| {
        ItemOperand::owned(name.clone(), name, shape.clone(), Some(label))
    };
    labelled(method)
        .map(|(name, shape, label)| owned(name, shape, label))
        .collect()
}

/// The arguments of a call as a client is lent them, each behind `of`.
fn lent_arguments(rust: &RustFile<'_>, method: &ServiceMethod<'_>, of: &str) -> Vec<ItemOperand> {
    let lent = |(name, shape, label): (&String, &TypeShape, String)| {
        let (value, label) = (format!("{of}{name}"), Some(label));
        match ArgumentMode::of(rust, shape) {
            ArgumentMode::Value(_) => ItemOperand::owned(value, name, shape.clone(), label),
            ArgumentMode::Bytes => ItemOperand::behind(&value, shape.clone(), label),
            // A reference leads to the array itself.
            ArgumentMode::Reference(_) => {
                ItemOperand::behind(&value, unboxed(shape).clone(), label)
            }
            ArgumentMode::Option(_) => ItemOperand {
                is_lent: true,
                ..ItemOperand::behind(&value, shape.clone(), label)
            },
        }
    };
    labelled(method).map(lent).collect()
}

/// The parameters of a procedure: their names, their shapes, and their labels in errors.
fn labelled<'a>(
    method: &'a ServiceMethod<'_>,
) -> impl Iterator<Item = (&'a String, &'a TypeShape, String)> {
    let names = method.names.parameters.iter().zip(&method.parameters);
    let fields = method.procedure.arguments.iter();
    names.zip(fields).map(|((name, shape), field)| {
        let label = format!("{}.{}", method.procedure.name, field.name);
        (name, shape, label)
    })
}

//! The adapters that call a server of the same process, for threads and for tasks. Arguments go to the server without
//! being encoded, unless it is handed views of a message.

use super::call;
use super::calls::{self, CallTrait};
use super::lent::ArgumentMode;
use super::{ProtocolSet, ServiceMethod, ServiceVersion, errors, reserved};
use crate::rust::RustFile;
use crate::rust::code::{BlockExpr, Expr, Statement};
use crate::rust::shape::TypeShape;
use crate::rust::types::default;
use crate::writer::{HoleContent, SourceWriter};

/// Writes the adapter of what implements the trait `server`.
pub fn write(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    calls: &CallTrait<'_>,
    server: &str,
) {
    let rust = protocols.onc.rust;
    w.gap();
    w.skeleton(
        "
/// Calls a [`$server$`] of the same process on the caller's $caller$, without a connection. Its
/// handlers are told of calls that have no transport and no credential; what they refuse is told
/// as over a connection, and a panic is passed on. $encoded$.
#[derive(Debug, Clone)]
pub struct $name$<T>(pub T);
",
        &[
            ("server", HoleContent::Text(server)),
            ("name", HoleContent::Text(calls.in_process)),
            (
                "caller",
                HoleContent::Text(if calls.is_async { "task" } else { "thread" }),
            ),
            (
                "encoded",
                HoleContent::Text(if rust.options.views && !calls.is_async {
                    "Bounds of results are not checked"
                } else {
                    "Bounds of values are not checked"
                }),
            ),
        ],
    );
    let head = format!(
        "impl<T: {server}> {} for {}<T>",
        calls.name, calls.in_process
    );
    calls::write_implementation(w, rust, of, calls, &head, |method| {
        carry_out(protocols, method, calls.is_async)
    });
}

/// Has the server carry a call out.
fn carry_out(protocols: ProtocolSet<'_>, method: &ServiceMethod<'_>, is_async: bool) -> BlockExpr {
    let rust = protocols.onc.rust;
    if method.procedure.number == 0 {
        return null(rust, method);
    }
    let is_viewed = !is_async && rust.options.views;
    if is_viewed && call::is_borrowing(rust, method) {
        return with_message(protocols, method);
    }
    directly(rust, method, is_async)
}

/// Answers procedure 0, which every server does by itself.
fn null(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> BlockExpr {
    let ignored = method.names.parameters.iter();
    let ignored = ignored.map(|name| Statement::Let("_".to_owned(), Expr::text(name)));
    let value = if method.result.is_none() {
        Expr::text("Ok(())")
    } else {
        rust.uses(&["Refusal"]);
        let error = error(rust, method);
        Expr::text(format!("Err({error}(Refusal::ProcedureUnavailable))"))
    };
    BlockExpr {
        statements: ignored.collect(),
        value: Some(value),
    }
}

/// Hands the server owned arguments, made of those that the caller lent.
fn directly(rust: &RustFile<'_>, method: &ServiceMethod<'_>, is_async: bool) -> BlockExpr {
    rust.uses(&["CallInfo"]);
    let info = format!("CallInfo::in_process({})", method.names.number);
    let mut statements = vec![Statement::Let("call".to_owned(), Expr::text(info))];
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let mut arguments: Vec<_> = parameters
        .map(|(shape, name)| Expr::text(owned(rust, shape, name)))
        .collect();
    let mut value = Expr::call("result.map_err", [Expr::text(error(rust, method))]);
    if let (Some(_), Some(shape)) = (reserved::of(rust, method), &method.result) {
        let reply = format!("mut reply: {}", rust.type_text(shape));
        statements.push(Statement::Let(reply, default(rust, shape)));
        arguments.push(Expr::text("&mut reply"));
        let result = served(method, "&call", arguments, is_async);
        statements.push(Statement::Let("result".to_owned(), result));
        statements.push(Statement::Do(Expr::Try(Box::new(value))));
        value = Expr::text("Ok(reply)");
    } else {
        let result = served(method, "&call", arguments, is_async);
        statements.push(Statement::Let("result".to_owned(), result));
    }
    BlockExpr {
        statements,
        value: Some(value),
    }
}

/// Hands the server views of a message that the arguments are encoded into.
fn with_message(protocols: ProtocolSet<'_>, method: &ServiceMethod<'_>) -> BlockExpr {
    let rust = protocols.onc.rust;
    rust.uses(&["in_process"]);
    let arguments = call::arguments(method);
    let name = &method.procedure.name;
    let mut statements =
        protocols
            .onc
            .view()
            .decode_parameters(&method.plan.arguments.body, name, arguments);
    let locals = method.names.parameters.iter().map(Expr::text);
    let mut value = served(method, "call", locals, false);
    if let (Some(_), Some(shape)) = (reserved::of(rust, method), &method.result) {
        let reply = format!("mut reply: {}", rust.type_text(shape));
        statements.push(Statement::Let(reply, default(rust, shape)));
        let locals = method.names.parameters.iter().map(Expr::text);
        let arguments = locals.chain([Expr::text("&mut reply")]);
        let carry_out = Expr::Try(Box::new(served(method, "call", arguments, false)));
        statements.push(Statement::Do(carry_out));
        value = Expr::text("Ok(reply)");
    }
    let body = BlockExpr {
        statements,
        value: Some(value),
    };
    BlockExpr::value(Expr::call(
        "in_process::call_with_message",
        [call::literal(method), Expr::closure("|call, input|", body)],
    ))
}

/// The server's method, called with these arguments.
fn served(
    method: &ServiceMethod<'_>,
    call: &str,
    arguments: impl IntoIterator<Item = Expr>,
    is_async: bool,
) -> Expr {
    let handled = Expr::call(
        format!("self.0.{}", method.names.method),
        [Expr::text(call)].into_iter().chain(arguments),
    );
    let handled = match is_async {
        true => Expr::Then(Box::new(handled), "await"),
        false => handled,
    };
    errors::refused(method, handled)
}

/// The function that makes an error of a refusal.
fn error(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    rust.uses(&["in_process"]);
    format!("in_process::error::<{}>", call::type_text(rust, method))
}

/// A value of a parameter, made of the variable `name` which lends it.
fn owned(rust: &RustFile<'_>, shape: &TypeShape, name: &str) -> String {
    match (ArgumentMode::of(rust, shape), shape.real()) {
        (ArgumentMode::Value(_), _) => name.to_owned(),
        (_, TypeShape::Option(to)) => format!("{name}{}", map_owned(rust, to)),
        (_, TypeShape::Boxed(to)) => boxed(rust, to, name),
        (_, TypeShape::Opaque | TypeShape::Vec(_)) => format!("{name}.to_vec()"),
        (_, TypeShape::Text) => format!("{name}.into()"),
        _ => copied(rust, shape, name),
    }
}

/// The methods that make an option of an owned value of one that lends it.
fn map_owned(rust: &RustFile<'_>, to: &TypeShape) -> String {
    let map = match to.real() {
        TypeShape::Boxed(to) => match to.real() {
            TypeShape::Array(..) | TypeShape::Bytes(_) => boxed_copy(rust),
            _ => return ".cloned().map(Box::new)".to_owned(),
        },
        TypeShape::Opaque | TypeShape::Vec(_) => "<[_]>::to_vec",
        TypeShape::Text => "Into::into",
        _ => return ".cloned()".to_owned(),
    };
    format!(".map({map})")
}

fn boxed(rust: &RustFile<'_>, to: &TypeShape, name: &str) -> String {
    match to.real() {
        TypeShape::Array(..) | TypeShape::Bytes(_) => format!("{}({name})", boxed_copy(rust)),
        _ => format!("Box::new({})", copied(rust, to, name)),
    }
}

/// A copy of the value that the variable `name` refers to.
fn copied(rust: &RustFile<'_>, shape: &TypeShape, name: &str) -> String {
    if is_copy(rust, shape) {
        format!("*{name}")
    } else {
        format!("{name}.clone()")
    }
}

/// Returns whether the type is `Copy`, as arrays are of any length.
fn is_copy(rust: &RustFile<'_>, shape: &TypeShape) -> bool {
    match shape.real() {
        TypeShape::Bytes(_) => true,
        TypeShape::Array(to, _) => is_copy(rust, to),
        _ => rust.shapes.is_copy(shape),
    }
}

fn boxed_copy(rust: &RustFile<'_>) -> &'static str {
    rust.uses(&["wire::boxed_copy"]);
    "boxed_copy"
}

//! The traits of callers of the procedures of a version, for threads and for tasks: a client, a server in the same
//! process, or a test double of them.

use super::lent::ArgumentMode;
use super::{ServiceMethod, ServiceVersion, write_further_doc};
use crate::rust::RustFile;
use crate::rust::code::{BlockExpr, Expr, FunctionSignature};
use crate::writer::SourceWriter;

/// One of the traits of callers.
pub struct CallTrait<'a> {
    /// Its name.
    pub name: &'a str,
    /// The client that implements it, and the trait of what that wraps.
    pub client: &'a str,
    pub makes_calls: &'a str,
    /// The adapter that implements it for a server of the same process.
    pub in_process: &'a str,
    pub is_async: bool,
}

/// Writes the trait.
pub fn write(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &ServiceVersion<'_>,
    calls: &CallTrait<'_>,
) {
    let from = if calls.is_async { " from tasks" } else { "" };
    w.gap();
    w.line(format!(
        "/// Calls the procedures of `{}`{from}: over a connection ([`{}`]), in the",
        of.version.name, calls.client
    ));
    w.line(format!(
        "/// same process ([`{}`]), or in a test without either. The error of a",
        calls.in_process
    ));
    w.line("/// call that failed says who is to blame.");
    write_further_doc(w, &of.version.doc);
    let head = format!("pub trait {}", calls.name);
    if of.methods.is_empty() {
        return w.line(format!("{head} {{}}"));
    }
    w.braces(&head, |w| {
        for (index, method) in of.methods.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            method.write_doc(w);
            method.write_deprecated(w);
            declaration(rust, method, calls.is_async).write(w, ";");
        }
    });
}

/// Writes that the client implements the trait.
pub fn write_client(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &ServiceVersion<'_>,
    calls: &CallTrait<'_>,
) {
    let (client, makes_calls) = (calls.client, calls.makes_calls);
    let head = format!("impl<C: {makes_calls}> {} for {client}<C>", calls.name);
    write_implementation(w, rust, of, calls, &head, |method| {
        let arguments = method.names.parameters.iter().map(Expr::text);
        let call = Expr::call(
            format!("Self::{}", method.names.method),
            [Expr::text("self")].into_iter().chain(arguments),
        );
        BlockExpr::value(if calls.is_async {
            Expr::Then(Box::new(call), "await")
        } else {
            call
        })
    });
}

/// Writes an implementation of the trait, its methods with bodies that `body` makes.
pub fn write_implementation<'m>(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &'m ServiceVersion<'_>,
    calls: &CallTrait<'_>,
    head: &str,
    body: impl Fn(&'m ServiceMethod<'_>) -> BlockExpr,
) {
    w.gap();
    if of.methods.is_empty() {
        return w.line(format!("{head} {{}}"));
    }
    w.braces(head, |w| {
        for (index, method) in of.methods.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            definition(rust, method, calls.is_async).write_function(w, &body(method));
        }
    });
}

/// The head of a method in the trait.
fn declaration(
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    is_async: bool,
) -> FunctionSignature {
    let head = definition(rust, method, false);
    if !is_async {
        return head;
    }
    FunctionSignature {
        result: format!("impl core::future::Future<Output = {}> + Send", head.result),
        ..head
    }
}

/// The head of a method in an implementation.
fn definition(
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    is_async: bool,
) -> FunctionSignature {
    let function = if is_async { "async fn" } else { "fn" };
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let lent = parameters.map(|(shape, name)| match ArgumentMode::of(rust, shape) {
        // The trait can be used as `dyn`.
        ArgumentMode::Bytes => format!("{name}: &[u8]"),
        lent => format!("{name}: {}", lent.parameter()),
    });
    let (result, error) = (method.result_text(rust), &method.names.error);
    FunctionSignature {
        name: format!("{function} {}", method.names.method),
        parameters: ["&self".to_owned()].into_iter().chain(lent).collect(),
        result: format!("Result<{result}, {error}>"),
    }
}

//! The server of a version for tasks: the trait with an asynchronous method per procedure, the adapter
//! that makes an implementation of it a service of `tenon-tokio`, and the codec of the messages of its calls.

use tenon_plan::ProcedurePlan;

use super::call::arguments;
use super::streams::{self, StreamFlavor};
use super::{ProtocolSet, ServiceMethod, ServiceVersion, errors, reserved, write_further_doc};
use crate::rust::code::{BlockExpr, Expr, FunctionSignature, Statement};
use crate::rust::marshal::{ItemOperand, MarshalGenerator, PlaceBindings, parameter, uses_cursor};
use crate::rust::{Marker, RustFile};
use crate::writer::{HoleContent, SourceWriter};

/// Writes the trait, the adapter, and a type for the calls of each procedure. `tokio` is the path of the
/// crate that they need.
pub fn write(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    tokio: &str,
) {
    let methods = of.served();
    write_trait(w, protocols.onc.rust, of, &methods, tokio);
    write_service(w, protocols, of, &methods, tokio);
    for method in methods.into_iter().chain(&of.streamed) {
        write_request(w, protocols, method, tokio);
    }
}

fn write_trait(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &ServiceVersion<'_>,
    methods: &[&ServiceMethod<'_>],
    tokio: &str,
) {
    rust.uses(&["CallInfo"]);
    let name = &of.version.name;
    w.gap();
    w.line(format!(
        "/// What a server of `{name}` does whose procedures wait for something: each of its methods may be"
    ));
    w.line("/// an `async fn`, and each call has a task. Callers are told of refusals, and why.");
    write_further_doc(w, &of.version.doc);
    let head = format!("pub trait {}: Send + Sync + 'static", of.names.async_server);
    if methods.is_empty() && of.streamed.is_empty() {
        return w.line(format!("{head} {{}}"));
    }
    w.braces(&head, |w| {
        for (index, method) in methods.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            method.write_doc(w);
            reserved::write_doc(w, rust, method);
            let result = reserved::returned_text(rust, method);
            let error = errors::of_handler(rust, method);
            let mut parameters = parameters(rust, method);
            parameters.extend(reserved::parameter(rust, method));
            let head = FunctionSignature {
                name: format!("fn {}", method.names.method),
                parameters,
                result: format!(
                    "impl core::future::Future<Output = Result<{result}, {error}>> + Send"
                ),
            };
            head.write(w, ";");
        }
        for (index, method) in of.streamed.iter().enumerate() {
            if index > 0 || !methods.is_empty() {
                w.gap();
            }
            method.write_doc(w);
            let (parameters, flavor) = (parameters(rust, method), StreamFlavor::Tasks(tokio));
            streams::handler(rust, method, parameters, flavor).write(w, ";");
        }
    });
}

/// The parameters of a server's method.
fn parameters(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> Vec<String> {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let parameters = parameters.map(|(shape, name)| format!("{name}: {}", rust.type_text(shape)));
    ["&self", "call: &CallInfo<'_>"]
        .map(str::to_owned)
        .into_iter()
        .chain(parameters)
        .collect()
}

fn write_service(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    methods: &[&ServiceMethod<'_>],
    tokio: &str,
) {
    let rust = protocols.onc.rust;
    let interface = |w: &mut SourceWriter| {
        if protocols.lean.is_some() {
            let interface = format!("{}::lean::Interface", rust.options.tenon);
            let head = format!("fn interface(&self) -> Option<std::sync::Arc<{interface}>>");
            w.gap();
            w.braces(&head, |w| {
                w.line(format!("Some({}.shared())", of.names.interface));
            });
        }
    };
    let is_used = !methods.is_empty() || !of.streamed.is_empty();
    let call = if is_used { "call" } else { "_call" };
    let head = FunctionSignature {
        name: "async fn call".to_owned(),
        parameters: vec!["&self".to_owned(), format!("{call}: {tokio}::Call")],
        result: format!("Result<{tokio}::Answer, Refusal>"),
    };
    w.gap();
    w.skeleton(
        "
/// Serves a [`$server$`]: hand it to the builder of a server of tasks.
#[derive(Debug, Clone)]
pub struct $service$<T>(pub T);

impl<T: $server$> $tokio$::AsyncService for $service$<T> {
    fn program(&self) -> u32 {
        $program$
    }

    fn version(&self) -> u32 {
        $number$
    }
    $procedure$
    $interface$

    $call$
}
",
        &[
            ("server", HoleContent::Text(&of.names.async_server)),
            ("service", HoleContent::Text(&of.names.async_service)),
            ("tokio", HoleContent::Text(tokio)),
            ("program", HoleContent::Text(&of.program.number)),
            ("number", HoleContent::Text(&of.names.number)),
            (
                "procedure",
                HoleContent::Lines(&|w| of.write_procedure(w, rust)),
            ),
            ("interface", HoleContent::Lines(&interface)),
            (
                "call",
                HoleContent::Lines(&|w| {
                    head.write_function(w, &dispatch(protocols, of, methods, tokio))
                }),
            ),
        ],
    );
}

/// Finds the procedure by its number.
fn dispatch(
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    methods: &[&ServiceMethod<'_>],
    tokio: &str,
) -> BlockExpr {
    let refuse = Expr::text("Err(Refusal::ProcedureUnavailable)");
    let rust = protocols.onc.rust;
    let served = methods.iter();
    let mut arms: Vec<_> = served
        .map(|method| (method.names.number.clone(), serve(rust, method)))
        .collect();
    arms.extend(of.streamed.iter().map(|method| {
        let served = streams::serve_async(rust, method, read(method), tokio);
        (method.names.number.clone(), served)
    }));
    if arms.is_empty() {
        return BlockExpr::value(refuse);
    }
    arms.push(("_".to_owned(), BlockExpr::value(refuse)));
    BlockExpr::value(Expr::Match(Box::new(Expr::text("call.procedure()")), arms))
}

/// Reads the arguments of a call into variables.
fn read(method: &ServiceMethod<'_>) -> Statement {
    let request = &method.names.request;
    match method.parameters.is_empty() {
        true => Statement::Do(Expr::text(format!("call.read::<{request}>()?"))),
        false => {
            let fields = method.names.parameters.join(", ");
            Statement::Let(
                format!("{request} {{ {fields} }}"),
                Expr::text("call.read()?"),
            )
        }
    }
}

/// Reads the arguments, has the server carry the call out and answers with the result.
fn serve(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> BlockExpr {
    let request = &method.names.request;
    let is_reserved = reserved::of(rust, method).is_some();
    let locals = method.names.parameters.iter().map(Expr::text);
    let carry_out = Expr::call(
        format!("self.0.{}", method.names.method),
        [Expr::text("&call.info()")]
            .into_iter()
            .chain(locals)
            .chain(is_reserved.then(|| Expr::text("&mut reply"))),
    );
    let carry_out = Expr::Then(Box::new(carry_out), "await");
    let carry_out = errors::refused(method, carry_out);
    let mut statements = vec![read(method)];
    if is_reserved {
        let room = Expr::text(format!("call.reserve::<{request}>()"));
        statements.push(Statement::Let("mut reply".to_owned(), room));
    }
    statements.push(Statement::Let("outcome".to_owned(), carry_out));
    let answer = if is_reserved {
        "call.respond_reserved(reply, outcome)".to_owned()
    } else {
        format!("call.respond::<{request}>(outcome)")
    };
    BlockExpr {
        statements,
        value: Some(Expr::text(answer)),
    }
}

/// The type of the result in the codec of a procedure: without its box, if the handler has room for it.
fn result_text(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    match reserved::of(rust, method) {
        Some(shape) => rust.type_text(shape),
        None => method.result_text(rust),
    }
}

/// Writes the type of a procedure's calls, and the codec of their messages in either protocol.
fn write_request(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    method: &ServiceMethod<'_>,
    tokio: &str,
) {
    let rust = protocols.onc.rust;
    rust.uses(&["wire::DecodeError", "wire::Decoder"]);
    let name = &method.names.request;
    w.gap();
    w.line(format!(
        "/// A call of `{}` as it comes in.",
        method.procedure.name
    ));
    match method.parameters.is_empty() {
        true => w.line(format!("struct {name};")),
        false => w.braces(&format!("struct {name}"), |w| {
            for (shape, name) in method.parameters.iter().zip(&method.names.parameters) {
                w.line(format!("{name}: {},", rust.type_text(shape)));
            }
        }),
    }
    w.gap();
    let head = format!("impl {tokio}::RequestedProcedure for {name}");
    w.braces(&head, |w| {
        w.line(format!("type Result = {};", result_text(rust, method)));
    });
    let lean = protocols.lean.map(|lean| lean.with);
    match (lean, method.lean) {
        (Some(lean), Some(plan)) => match method.shared {
            Some(shared) => write_codec(w, shared, plan, method, tokio),
            None => {
                write_codec(w, protocols.onc, method.plan, method, tokio);
                write_codec(w, lean, plan, method, tokio);
            }
        },
        _ => {
            write_codec(w, protocols.onc, method.plan, method, tokio);
            let lean = Marker::lean();
            rust.uses(&lean.imports);
            w.gap();
            w.line(format!("{} {{}}", codec_head(&lean, method, tokio)));
        }
    }
}

fn codec_head(marker: &Marker, method: &ServiceMethod<'_>, tokio: &str) -> String {
    let (generics, path) = (marker.generics(), &marker.path);
    let name = &method.names.request;
    format!("impl{generics} {tokio}::RequestCodec<{path}> for {name}")
}

/// Writes the codec of the messages of a procedure in one representation, or in all.
fn write_codec(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
    tokio: &str,
) {
    let marker = &with.form.marker;
    with.rust.uses(&marker.imports);
    let is_reserved = reserved::of(with.rust, method).is_some();
    let is_blitted = is_reserved && with.is_one_blit(&plan.result.body);
    w.gap();
    w.braces(&codec_head(marker, method, tokio), |w| {
        if is_blitted {
            w.line("const RESULT_IS_BLITTED: bool = true;");
            w.gap();
        }
        write_decode(w, with, plan, method);
        if !is_blitted {
            w.gap();
            write_encode(w, with, plan, method);
        }
    });
}

/// Writes the function that reads the arguments.
fn write_decode(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
) {
    let name = &method.procedure.name;
    let statements = with.decode_parameters(&plan.arguments.body, name, arguments(method));
    let fields = method.names.parameters.iter();
    let fields: Vec<_> = fields
        .map(|name| (name.clone(), Expr::text(name)))
        .collect();
    let value = match fields.is_empty() {
        true => Expr::text("Self"),
        false => Expr::Struct("Self".to_owned(), fields),
    };
    let cursor = with.form.marker.cursor("Decoder");
    let input = parameter("input", !statements.is_empty());
    let head = FunctionSignature {
        name: "fn decode".to_owned(),
        parameters: vec![format!("{input}: &mut {cursor}")],
        result: "Result<Self, DecodeError>".to_owned(),
    };
    let body = BlockExpr {
        statements,
        value: Some(Expr::ok(value)),
    };
    head.write_function(w, &body);
}

/// Writes the function that appends the result.
fn write_encode(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    plan: &ProcedurePlan,
    method: &ServiceMethod<'_>,
) {
    with.rust.uses(&["wire::EncodeError", "wire::Encoder"]);
    let body = match &method.result {
        None => BlockExpr::value(Expr::text("Ok(())")),
        Some(shape) => {
            let label = Some(method.procedure.name.clone());
            // Where there is room for the result, a reference leads to what is in its box.
            let shape = reserved::of(with.rust, method).unwrap_or(shape);
            let reply = PlaceBindings::whole(ItemOperand::behind("reply", shape.clone(), label));
            with.encode_item(&plan.result.body, &reply)
        }
    };
    let is_used = uses_cursor(&body);
    let reply = if is_used { "reply" } else { "_reply" };
    let out = parameter("out", is_used);
    let cursor = with.form.marker.cursor("Encoder");
    let result = result_text(with.rust, method);
    let head = FunctionSignature {
        name: "fn encode".to_owned(),
        parameters: vec![
            format!("{reply}: &{result}"),
            format!("{out}: &mut {cursor}"),
        ],
        result: "Result<(), EncodeError>".to_owned(),
    };
    head.write_function(w, &body);
}

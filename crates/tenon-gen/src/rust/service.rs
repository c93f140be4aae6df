//! Clients and servers: for each version of a program its numbers, a client with a method per
//! procedure, a trait for the server, and the adapter between that and the run time.

use tenon_plan::ProcedurePlan;
use tenon_schema::{Procedure, Program, Version};

use super::Rust;
use super::code::{Block, Expr, Head, Statement};
use super::marshal::{Item, Marshalling};
use super::names::{ProcedureNames, ProgramNames, VersionNames};
use super::shape::Shape;
use crate::writer::{Hole, Writer};

/// A procedure with all that is known about it.
struct Method<'a> {
    procedure: &'a Procedure,
    names: &'a ProcedureNames,
    plan: &'a ProcedurePlan,
    parameters: Vec<Shape>,
    result: Option<Shape>,
}

/// Writes the programs of the interface.
pub fn write(w: &mut Writer, with: Marshalling<'_>) {
    let rust = with.rust;
    let mut plans = with.form.plans.procedures.iter();
    for (program, names) in rust.schema.programs.iter().zip(&rust.names.programs) {
        write_program_number(w, program, names);
        for (version, version_names) in program.versions.iter().zip(&names.versions) {
            let procedures = version.procedures.iter().zip(&version_names.procedures);
            let methods: Vec<_> = procedures
                .zip(&mut plans)
                .map(|((procedure, names), plan)| Method {
                    procedure,
                    names,
                    plan,
                    parameters: procedure
                        .arguments
                        .iter()
                        .map(|field| rust.shapes.of(&field.ty))
                        .collect(),
                    result: procedure.result.as_ref().map(|ty| rust.shapes.of(ty)),
                })
                .collect();
            write_version(w, with, version, names, version_names, &methods);
        }
    }
}

fn write_program_number(w: &mut Writer, program: &Program, names: &ProgramNames) {
    w.gap();
    w.line(format!("/// The number of the program `{}`.", program.name));
    write_further_doc(w, &program.doc);
    w.line(format!(
        "pub const {}: u32 = {};",
        names.number, program.number
    ));
}

fn write_further_doc(w: &mut Writer, doc: &str) {
    if !doc.trim().is_empty() {
        w.line("///");
        w.doc("///", doc);
    }
}

fn write_version(
    w: &mut Writer,
    with: Marshalling<'_>,
    version: &Version,
    program: &ProgramNames,
    names: &VersionNames,
    methods: &[Method<'_>],
) {
    w.gap();
    w.line(format!("/// The number of the version `{}`.", version.name));
    w.line(format!(
        "pub const {}: u32 = {};",
        names.number, version.number
    ));
    for method in methods
        .iter()
        .filter(|method| !method.names.number_is_known)
    {
        w.gap();
        w.line(format!(
            "/// The number of the procedure `{}`.",
            method.procedure.name
        ));
        w.line(format!(
            "pub const {}: u32 = {};",
            method.names.number, method.procedure.number
        ));
    }
    write_client(w, with, version, program, names, methods);
    let served: Vec<_> = methods
        .iter()
        .filter(|method| method.procedure.number != 0)
        .collect();
    write_trait(w, with.rust, version, names, &served);
    write_service(w, with, program, names, &served);
}

fn write_client(
    w: &mut Writer,
    with: Marshalling<'_>,
    version: &Version,
    program: &ProgramNames,
    names: &VersionNames,
    methods: &[Method<'_>],
) {
    with.rust.uses(&[
        "CallError",
        "Channel",
        "Client",
        "ConnectError",
        "Credential",
        "PendingCall",
    ]);
    let client = |function: &str, first: &str| {
        let arguments = [first, &program.number, &names.number].map(Expr::text);
        Expr::call(format!("Client::{function}"), arguments)
    };
    let connected = Expr::Try(Box::new(client("connect", "address")));
    let connect = Block::value(Expr::ok(Expr::call("Self", [connected])));
    let over = Block::value(Expr::call("Self", [client("over", "channel")]));
    w.gap();
    w.skeleton(
        "
/// Calls the procedures of `$version$`. Clones share the connection.
#[derive(Debug, Clone)]
pub struct $client$(pub Client);

impl $client$ {
    /// Connects to the server at `address`, such as `tcp://host:port`. Without a port the host's
    /// rpcbind is asked for it.
    ///
    /// # Errors
    /// The address is none, or nobody answers there.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        $connect$
    }

    /// Calls over `channel`, which other clients may share.
    pub fn over(channel: Channel) -> Self {
        $over$
    }

    /// The same client with `timeout` for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: core::time::Duration) -> Self {
        Self(self.0.with_timeout(timeout))
    }

    /// The same client with `credential` for each call.
    #[must_use]
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        Self(self.0.with_credential(credential))
    }
    $methods$
}
",
        &[
            ("version", Hole::Text(&version.name)),
            ("client", Hole::Text(&names.client)),
            ("connect", Hole::Lines(&|w| connect.write(w))),
            ("over", Hole::Lines(&|w| over.write(w))),
            (
                "methods",
                Hole::Lines(&|w| {
                    for method in methods {
                        write_calls(w, with, method);
                    }
                }),
            ),
        ],
    );
}

/// The methods that call a procedure and wait, and that start a call.
fn write_calls(w: &mut Writer, with: Marshalling<'_>, method: &Method<'_>) {
    let rust = with.rust;
    let result = result_text(rust, method);
    w.gap();
    write_method_doc(w, method);
    w.line("///");
    w.line("/// # Errors");
    w.line("/// The call failed; the error says who is to blame.");
    let head = Head {
        name: format!("pub fn {}", method.names.method),
        parameters: borrowed(rust, method),
        result: format!("Result<{result}, CallError>"),
    };
    head.write_function(w, &call(with, method, "self.0.call"));
    w.gap();
    w.line(format!(
        "/// Starts [`{}`](Self::{0}) and returns a ticket for its result.",
        method.names.method
    ));
    w.line("///");
    w.line("/// # Errors");
    w.line("/// The call cannot be sent.");
    let head = Head {
        name: format!("pub fn {}", method.names.start),
        result: format!("Result<PendingCall<{result}>, CallError>"),
        ..head
    };
    head.write_function(w, &call(with, method, "self.0.start"));
}

fn write_method_doc(w: &mut Writer, method: &Method<'_>) {
    match method.procedure.doc.trim().is_empty() {
        true => w.line(format!("/// The procedure `{}`.", method.procedure.name)),
        false => w.doc("///", &method.procedure.doc),
    }
}

/// The parameters of a client's method.
fn borrowed(rust: &Rust<'_>, method: &Method<'_>) -> Vec<String> {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let borrowed =
        parameters.map(|(shape, name)| format!("{name}: {}", borrowed_type(rust, shape)));
    ["&self".to_owned()].into_iter().chain(borrowed).collect()
}

fn borrowed_type(rust: &Rust<'_>, shape: &Shape) -> String {
    match shape {
        Shape::Opaque => "&[u8]".to_owned(),
        Shape::Text => {
            rust.uses(&["wire::BStr"]);
            "&BStr".to_owned()
        }
        Shape::Vec(element) => format!("&[{}]", rust.type_text(element)),
        shape if is_by_value(shape) => rust.type_text(shape),
        shape => format!("&{}", rust.type_text(shape)),
    }
}

fn is_by_value(shape: &Shape) -> bool {
    matches!(shape.real(), Shape::Scalar(_))
}

/// The parameters of a server's method.
fn owned(rust: &Rust<'_>, method: &Method<'_>) -> Vec<String> {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let owned = parameters.map(|(shape, name)| format!("{name}: {}", rust.type_text(shape)));
    ["&self", "call: &CallInfo<'_>"]
        .map(str::to_owned)
        .into_iter()
        .chain(owned)
        .collect()
}

fn result_text(rust: &Rust<'_>, method: &Method<'_>) -> String {
    method
        .result
        .as_ref()
        .map_or("()".to_owned(), |shape| rust.type_text(shape))
}

/// The call of `function` with the procedure's number and the functions that move its messages.
fn call(with: Marshalling<'_>, method: &Method<'_>, function: &str) -> Block {
    let number = Expr::text(&method.names.number);
    let encode = Expr::closure(
        if method.parameters.is_empty() {
            "|_|"
        } else {
            "|out|"
        },
        with.encode_parameters(
            &method.plan.arguments.body,
            &method.procedure.name,
            arguments(method),
        ),
    );
    let decode = decode_result(with, method);
    Block::value(Expr::call(function, [number, encode, decode]))
}

fn arguments(method: &Method<'_>) -> Vec<Item> {
    let parameters = method
        .procedure
        .arguments
        .iter()
        .zip(&method.parameters)
        .zip(&method.names.parameters);
    parameters
        .map(|((field, shape), name)| {
            let label = format!("{}.{}", method.procedure.name, field.name);
            match is_by_value(shape) {
                true => Item::owned(name.clone(), name, shape.clone(), Some(label)),
                false => Item::behind(name, shape.clone(), Some(label)),
            }
        })
        .collect()
}

fn decode_result(with: Marshalling<'_>, method: &Method<'_>) -> Expr {
    match &method.result {
        None => Expr::closure("|_|", Block::value(Expr::text("Ok(())"))),
        Some(shape) => with.element_decoder(&method.plan.result.body, shape),
    }
}

fn write_trait(
    w: &mut Writer,
    rust: &Rust<'_>,
    version: &Version,
    names: &VersionNames,
    methods: &[&Method<'_>],
) {
    rust.uses(&["CallInfo", "Refusal"]);
    w.gap();
    w.line(format!("/// What a server of `{}` does.", version.name));
    write_further_doc(w, &version.doc);
    let head = format!("pub trait {}: Send + Sync + 'static", names.server);
    if methods.is_empty() {
        return w.line(format!("{head} {{}}"));
    }
    w.braces(&head, |w| {
        for (index, method) in methods.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            write_method_doc(w, method);
            w.line("///");
            w.line("/// # Errors");
            w.line("/// The caller is told that the call is not carried out.");
            let result = result_text(rust, method);
            let head = Head {
                name: format!("fn {}", method.names.method),
                parameters: owned(rust, method),
                result: format!("Result<{result}, Refusal>"),
            };
            head.write(w, ";");
        }
    });
}

fn write_service(
    w: &mut Writer,
    with: Marshalling<'_>,
    program: &ProgramNames,
    names: &VersionNames,
    methods: &[&Method<'_>],
) {
    with.rust.uses(&[
        "CallInfo",
        "Refusal",
        "Service",
        "wire::Decoder",
        "wire::Encoder",
    ]);
    let writes = methods.iter().any(|method| method.result.is_some());
    w.gap();
    w.skeleton(
        "
/// Serves a [`$server$`]: hand it to the builder of a server.
#[derive(Debug, Clone)]
pub struct $service$<T>(pub T);

impl<T: $server$> Service for $service$<T> {
    fn program(&self) -> u32 {
        $program$
    }

    fn version(&self) -> u32 {
        $number$
    }

    fn call(
        &self,
        $call$: &CallInfo<'_>,
        $input$: &mut Decoder<'_>,
        $out$: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        $body$
    }
}
",
        &[
            ("server", Hole::Text(&names.server)),
            ("service", Hole::Text(&names.service)),
            ("program", Hole::Text(&program.number)),
            ("number", Hole::Text(&names.number)),
            (
                "call",
                Hole::Text(if methods.is_empty() { "_call" } else { "call" }),
            ),
            (
                "input",
                Hole::Text(if methods.is_empty() {
                    "_input"
                } else {
                    "input"
                }),
            ),
            ("out", Hole::Text(if writes { "out" } else { "_out" })),
            ("body", Hole::Lines(&|w| dispatch(with, methods).write(w))),
        ],
    );
}

/// Finds the procedure by its number.
fn dispatch(with: Marshalling<'_>, methods: &[&Method<'_>]) -> Block {
    let refuse = Expr::text("Err(Refusal::ProcedureUnavailable)");
    if methods.is_empty() {
        return Block::value(refuse);
    }
    let mut arms: Vec<_> = methods
        .iter()
        .map(|method| (method.names.number.clone(), serve(with, method)))
        .collect();
    arms.push(("_".to_owned(), Block::value(refuse)));
    Block::value(Expr::Match(Box::new(Expr::text("call.procedure")), arms))
}

/// Reads the arguments, has the server carry the call out and appends the result.
fn serve(with: Marshalling<'_>, method: &Method<'_>) -> Block {
    let body = &method.plan.arguments.body;
    let mut statements = with.decode_parameters(body, &method.procedure.name, arguments(method));
    statements.push(Statement::Do(Expr::text("input.finish()?")));
    let locals = method.names.parameters.iter().map(Expr::text);
    let carry_out = Expr::call(
        format!("self.0.{}", method.names.method),
        [Expr::text("call")].into_iter().chain(locals),
    );
    let Some(shape) = &method.result else {
        let value = Some(carry_out);
        return Block { statements, value };
    };
    let carry_out = Expr::Try(Box::new(carry_out));
    statements.push(Statement::Let("reply".to_owned(), carry_out));
    let label = method.procedure.name.clone();
    let reply = Item::owned("reply".to_owned(), "reply", shape.clone(), Some(label));
    statements.extend(with.encode_result(&method.plan.result.body, reply));
    Block {
        statements,
        value: Some(Expr::text("Ok(())")),
    }
}

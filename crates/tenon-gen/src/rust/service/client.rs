//! The clients of a version: one for threads, with a method that calls each procedure and one that
//! starts a call of it, and one for tasks if that is asked for.

use tenon_plan::ProcedurePlan;

use super::lent::{Lent, unboxed};
use super::{Method, Protocols, Versioned};
use crate::rust::Rust;
use crate::rust::code::{Block, Expr, Head, Statement};
use crate::rust::marshal::{Item, Marshalling, Subject, parameter, uses_cursor};
use crate::rust::shape::Shape;
use crate::writer::{Hole, Writer};

/// How a client's callers wait.
struct Flavor<'a> {
    /// The client's name.
    name: &'a str,
    /// What it wraps, and what it goes over.
    client: String,
    channel: String,
    /// What it is good for, behind `Calls the procedures of`.
    from: &'static str,
    is_async: bool,
}

/// Writes the clients and, if they speak both protocols, the calls that they make.
pub fn write(w: &mut Writer, protocols: Protocols<'_>, of: &Versioned<'_>) {
    let rust = protocols.onc.rust;
    rust.uses(&["CallError", "ConnectError", "Credential"]);
    rust.uses(&["Channel", "ChannelOptions", "Client", "PendingCall"]);
    let blocking = Flavor {
        name: &of.names.client,
        client: "Client".to_owned(),
        channel: "Channel".to_owned(),
        from: "",
        is_async: false,
    };
    write_client(w, protocols, of, &blocking);
    if let Some(tokio) = &rust.options.tokio {
        let awaited = Flavor {
            name: &of.names.async_client,
            client: format!("{tokio}::Client"),
            channel: format!("{tokio}::Channel"),
            from: " from tasks",
            is_async: true,
        };
        write_client(w, protocols, of, &awaited);
    }
    if let Some(lean) = protocols.lean {
        for method in &of.methods {
            write_call(w, protocols.onc, lean.with, method);
        }
    }
}

fn write_client(w: &mut Writer, protocols: Protocols<'_>, of: &Versioned<'_>, flavor: &Flavor<'_>) {
    let connects = match (protocols.lean, flavor.is_async) {
        (None, false) => [
            "such as `tcp://host:port`. Without a port the host's",
            "rpcbind is asked for it.",
        ],
        (None, true) => ["such as `tcp://host:port`.", "Nobody is asked for a port."],
        (Some(_), false) => [
            "by ONC RPC at `tcp://host:port`, by the lean",
            "protocol at `lean+tcp://host:port`. Without a port the host's rpcbind is asked for it.",
        ],
        (Some(_), true) => [
            "by ONC RPC at `tcp://host:port`, by the lean",
            "protocol at `lean+tcp://host:port`. Nobody is asked for a port.",
        ],
    };
    let connect_with = connect(protocols, of, flavor, "connect_with", Some("options"));
    let connect = connect(protocols, of, flavor, "connect", None);
    let over = over(protocols, of, flavor);
    let is_async = if flavor.is_async { "async " } else { "" };
    let head = Head {
        name: format!("pub {is_async}fn connect_with"),
        parameters: ["address: &str", "options: ChannelOptions"]
            .map(str::to_owned)
            .to_vec(),
        result: "Result<Self, ConnectError>".to_owned(),
    };
    w.gap();
    w.skeleton(
        "
/// Calls the procedures of `$version$`$from$. Clones share the connection.
#[derive(Debug, Clone)]
pub struct $name$(pub $client$);

impl $name$ {
    /// Connects to the server at `address`, $connects$
    /// $further$
    ///
    /// # Errors
    /// The address is none, or nobody answers there.
    pub $async$fn connect(address: &str) -> Result<Self, ConnectError> {
        $connect$
    }

    /// Connects as [`connect`](Self::connect) does, by a channel with `options`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    $connect_with$

    /// Calls over `channel`, which other clients may share.
    pub fn over(channel: $channel$) -> Self {
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
            ("version", Hole::Text(&of.version.name)),
            ("from", Hole::Text(flavor.from)),
            ("name", Hole::Text(flavor.name)),
            ("client", Hole::Text(&flavor.client)),
            ("channel", Hole::Text(&flavor.channel)),
            ("async", Hole::Text(is_async)),
            ("connects", Hole::Text(connects[0])),
            ("further", Hole::Text(connects[1])),
            ("connect", Hole::Lines(&|w| connect.write(w))),
            (
                "connect_with",
                Hole::Lines(&|w| head.write_function(w, &connect_with)),
            ),
            ("over", Hole::Lines(&|w| over.write(w))),
            (
                "methods",
                Hole::Lines(&|w| {
                    for method in &of.methods {
                        match flavor.is_async {
                            false => write_methods(w, protocols.onc, method),
                            true => write_async_method(w, protocols.onc, method),
                        }
                    }
                }),
            ),
        ],
    );
}

/// The client that `function` makes of `first`, of the numbers and of `last`.
fn made(
    of: &Versioned<'_>,
    flavor: &Flavor<'_>,
    function: &str,
    first: &str,
    last: Option<&str>,
) -> Expr {
    let arguments = [first, &of.program.number, &of.names.number];
    let arguments = arguments.into_iter().chain(last).map(Expr::text);
    Expr::call(format!("{}::{function}", flavor.client), arguments)
}

/// The body of what connects by `function`.
fn connect(
    protocols: Protocols<'_>,
    of: &Versioned<'_>,
    flavor: &Flavor<'_>,
    function: &str,
    options: Option<&str>,
) -> Block {
    let client = made(of, flavor, function, "address", options);
    let client = match flavor.is_async {
        true => Expr::Then(Box::new(client), "await"),
        false => client,
    };
    let client = Statement::Let("client".to_owned(), Expr::Try(Box::new(client)));
    let known = Expr::call("Self", [known(protocols, of)]);
    Block {
        statements: vec![client],
        value: Some(Expr::ok(known)),
    }
}

/// The body of `over`.
fn over(protocols: Protocols<'_>, of: &Versioned<'_>, flavor: &Flavor<'_>) -> Block {
    let client = made(of, flavor, "over", "channel", None);
    let (statements, client) = match protocols.lean {
        None => (Vec::new(), client),
        Some(_) => {
            let client = Statement::Let("client".to_owned(), client);
            (vec![client], known(protocols, of))
        }
    };
    Block {
        statements,
        value: Some(Expr::call("Self", [client])),
    }
}

/// The client in the variable `client`, so that it knows what it was built from.
fn known(protocols: Protocols<'_>, of: &Versioned<'_>) -> Expr {
    match protocols.lean {
        None => Expr::text("client"),
        Some(_) => {
            let interface = &of.names.interface;
            Expr::text(format!("client.with_interface({interface}.shared())"))
        }
    }
}

/// The methods that call a procedure and wait, and that start a call.
fn write_methods(w: &mut Writer, with: Marshalling<'_>, method: &Method<'_>) {
    let result = method.result_text(with.rust);
    let (call, start) = match method.lean {
        Some(_) => ("self.0.invoke", "self.0.submit"),
        None => ("self.0.call", "self.0.start"),
    };
    let head = write_head_of_call(w, with, method, "pub fn");
    head.write_function(w, &calling(with, method, call, None));
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
    head.write_function(w, &calling(with, method, start, None));
}

/// The method that calls a procedure and is awaited.
fn write_async_method(w: &mut Writer, with: Marshalling<'_>, method: &Method<'_>) {
    let call = match method.lean {
        Some(_) => "self.0.invoke",
        None => "self.0.call",
    };
    let head = write_head_of_call(w, with, method, "pub async fn");
    head.write_function(w, &calling(with, method, call, Some("await")));
}

/// Writes the documentation of a method that calls a procedure, and returns what stands behind it.
fn write_head_of_call(
    w: &mut Writer,
    with: Marshalling<'_>,
    method: &Method<'_>,
    function: &str,
) -> Head {
    w.gap();
    method.write_doc(w);
    w.line("///");
    w.line("/// # Errors");
    w.line("/// The call failed; the error says who is to blame.");
    Head {
        name: format!("{function} {}", method.names.method),
        parameters: borrowed(with.rust, method),
        result: format!("Result<{}, CallError>", method.result_text(with.rust)),
    }
}

/// The parameters of a client's method.
fn borrowed(rust: &Rust<'_>, method: &Method<'_>) -> Vec<String> {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let borrowed =
        parameters.map(|(shape, name)| format!("{name}: {}", Lent::of(rust, shape).parameter()));
    ["&self".to_owned()].into_iter().chain(borrowed).collect()
}

/// The body of a client's method: the call, which `function` makes, and what is done `with` it.
fn calling(
    with: Marshalling<'_>,
    method: &Method<'_>,
    function: &str,
    then: Option<&'static str>,
) -> Block {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let bytes = parameters.filter(|(shape, _)| Lent::of(with.rust, shape) == Lent::Bytes);
    let bytes = bytes.map(|(_, name)| {
        let borrowed = Expr::text(format!("{name}.as_ref()"));
        Statement::Let(name.clone(), borrowed)
    });
    let arguments = match method.lean {
        Some(_) => vec![literal_of_call(method)],
        None => messages(with, method),
    };
    let call = Expr::call(function, arguments);
    Block {
        statements: bytes.collect(),
        value: Some(match then {
            Some(then) => Expr::Then(Box::new(call), then),
            None => call,
        }),
    }
}

/// The procedure's number and the functions that move its messages.
fn messages(with: Marshalling<'_>, method: &Method<'_>) -> Vec<Expr> {
    let parameters = match method.parameters.is_empty() {
        true => "|_|",
        false => "|out|",
    };
    let arguments = lent_arguments(with.rust, method, "");
    let encode = with.encode_parameters(
        &method.plan.arguments.body,
        &method.procedure.name,
        arguments,
    );
    let decode = match &method.result {
        None => Expr::closure("|_|", Block::value(Expr::text("Ok(())"))),
        Some(shape) => with.element_decoder(&method.plan.result.body, shape),
    };
    let number = Expr::text(&method.names.number);
    vec![number, Expr::closure(parameters, encode), decode]
}

/// The arguments of a call, as variables that own them.
pub(super) fn arguments(method: &Method<'_>) -> Vec<Item> {
    let owned = |name: &String, shape: &Shape, label| {
        Item::owned(name.clone(), name, shape.clone(), Some(label))
    };
    labelled(method)
        .map(|(name, shape, label)| owned(name, shape, label))
        .collect()
}

/// The same as a client is lent them, each behind `of`.
fn lent_arguments(rust: &Rust<'_>, method: &Method<'_>, of: &str) -> Vec<Item> {
    let lent = |(name, shape, label): (&String, &Shape, String)| {
        let (value, label) = (format!("{of}{name}"), Some(label));
        match Lent::of(rust, shape) {
            Lent::Value(_) => Item::owned(value, name, shape.clone(), label),
            Lent::Bytes => Item::behind(&value, shape.clone(), label),
            // A reference leads to the array itself.
            Lent::Reference(_) => Item::behind(&value, unboxed(shape).clone(), label),
            Lent::Option(_) => Item {
                is_lent: true,
                ..Item::behind(&value, shape.clone(), label)
            },
        }
    };
    labelled(method).map(lent).collect()
}

/// The parameters of a procedure: their names, their shapes, and what errors call them.
fn labelled<'a>(method: &'a Method<'_>) -> impl Iterator<Item = (&'a String, &'a Shape, String)> {
    let names = method.names.parameters.iter().zip(&method.parameters);
    let fields = method.procedure.arguments.iter();
    names.zip(fields).map(|((name, shape), field)| {
        let label = format!("{}.{}", method.procedure.name, field.name);
        (name, shape, label)
    })
}

fn literal_of_call(method: &Method<'_>) -> Expr {
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

/// Writes the call of a procedure as a value, and how its messages are moved by either protocol.
fn write_call(w: &mut Writer, onc: Marshalling<'_>, lean: Marshalling<'_>, method: &Method<'_>) {
    let rust = onc.rust;
    rust.uses(&[
        "ProcedureCall",
        "wire::DecodeError",
        "wire::Decoder",
        "wire::Lean",
        "wire::Order",
    ]);
    let name = &method.names.call;
    let lent = method.parameters.iter().map(|shape| Lent::of(rust, shape));
    let lent: Vec<Lent> = lent.collect();
    let is_borrowing = !lent.iter().all(|lent| matches!(lent, Lent::Value(_)));
    let (parameter, anonymous) = match is_borrowing {
        true => ("<'a>", "<'_>"),
        false => ("", ""),
    };
    w.gap();
    w.line(format!("/// A call of `{}`.", method.procedure.name));
    match method.parameters.is_empty() {
        true => w.line(format!("struct {name};")),
        false => w.braces(&format!("struct {name}{parameter}"), |w| {
            for (lent, name) in lent.iter().zip(&method.names.parameters) {
                w.line(format!("{name}: {},", lent.field()));
            }
        }),
    }
    let result = method.result_text(rust);
    w.gap();
    w.braces(&format!("impl ProcedureCall for {name}{anonymous}"), |w| {
        let number = &method.names.number;
        w.line(format!("const PROCEDURE: u32 = {number};"));
        w.gap();
        w.line(format!("type Result = {result};"));
        let plans = [Some(method.plan), method.lean];
        for (with, plan) in [onc, lean].into_iter().zip(plans.into_iter().flatten()) {
            if !method.parameters.is_empty() {
                write_encode(w, with, plan, method);
            }
            write_decode(w, with, plan, method);
        }
    });
}

fn write_encode(w: &mut Writer, with: Marshalling<'_>, plan: &ProcedurePlan, method: &Method<'_>) {
    with.rust.uses(&["wire::EncodeError", "wire::Encoder"]);
    let name = &method.procedure.name;
    let arguments = lent_arguments(with.rust, method, "self.");
    let body = with.encode_parameters(&plan.arguments.body, name, arguments);
    let (function, cursor) = match with.form.marker.is_default() {
        true => ("encode", "Encoder<'_>"),
        false => ("encode_lean", "Encoder<'_, Lean>"),
    };
    let out = parameter("out", uses_cursor(&body));
    let head = Head {
        name: format!("fn {function}"),
        parameters: vec!["&self".to_owned(), format!("{out}: &mut {cursor}")],
        result: "Result<(), EncodeError>".to_owned(),
    };
    w.gap();
    w.line("#[inline]");
    head.write_function(w, &body);
}

fn write_decode(w: &mut Writer, with: Marshalling<'_>, plan: &ProcedurePlan, method: &Method<'_>) {
    let body = match &method.result {
        None => Block::value(Expr::text("Ok(())")),
        Some(shape) => {
            let result = Subject::whole(Item::behind("item", shape.clone(), None));
            with.decode_item(&plan.result.body, &result)
        }
    };
    let (function, cursor) = match with.form.marker.is_default() {
        true => ("decode", "Decoder<'_>"),
        false => ("decode_lean<O: Order>", "Decoder<'_, Lean<O>>"),
    };
    let input = parameter("input", uses_cursor(&body));
    let head = Head {
        name: format!("fn {function}"),
        parameters: vec![format!("{input}: &mut {cursor}")],
        result: format!("Result<{}, DecodeError>", method.result_text(with.rust)),
    };
    w.gap();
    w.line("#[inline]");
    head.write_function(w, &body);
}

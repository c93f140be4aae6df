//! The clients of a version, one for threads, and one for tasks if that is asked for: each has a method that calls each
//! procedure and one that starts a call of it.

use super::lent::ArgumentMode;
use super::{ProtocolSet, ServiceMethod, ServiceVersion, call};
use crate::rust::RustFile;
use crate::rust::code::{BlockExpr, Expr, FunctionSignature, Statement};
use crate::rust::types::write_deprecated;
use crate::writer::{HoleContent, SourceWriter};

/// The type that a client wraps in a server, whose clients it calls.
const CALLBACK_CLIENT: &str = "CallbackClient";

/// The flavor of a client: it blocks its thread, or is awaited.
struct ClientFlavor<'a> {
    /// The client's name.
    name: &'a str,
    /// The type that it wraps, and the channel.
    client: String,
    channel: String,
    /// The trait of types that it may wrap.
    makes_calls: String,
    /// Its use in the documentation, behind `Calls the procedures of`.
    from: &'static str,
    is_async: bool,
}

/// Writes the client of threads.
pub fn write(w: &mut SourceWriter, protocols: ProtocolSet<'_>, of: &ServiceVersion<'_>) {
    let rust = protocols.onc.rust;
    rust.uses(&["Channel", "Client", "MakeCalls"]);
    let flavor = ClientFlavor {
        name: &of.names.client,
        client: "Client".to_owned(),
        channel: "Channel".to_owned(),
        makes_calls: "MakeCalls".to_owned(),
        from: "",
        is_async: false,
    };
    write_client(w, protocols, of, &flavor);
}

/// Writes the client of tasks, which needs the crate at the path `tokio`.
pub fn write_async(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    tokio: &str,
) {
    let flavor = ClientFlavor {
        name: &of.names.async_client,
        client: format!("{tokio}::Client"),
        channel: format!("{tokio}::Channel"),
        makes_calls: format!("{tokio}::MakeAsyncCalls"),
        from: " from tasks",
        is_async: true,
    };
    write_client(w, protocols, of, &flavor);
}

fn write_client(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    flavor: &ClientFlavor<'_>,
) {
    let rust = protocols.onc.rust;
    rust.uses(&[
        "CallOptions",
        "CallbackChannel",
        "CallbackClient",
        "ChannelOptions",
        "ConnectError",
        "Credential",
        "WithOptions",
    ]);
    let connects = if protocols.lean.is_some() {
        [
            "by ONC RPC at `tcp://host:port`, by the lean",
            "protocol at `lean+tcp://host:port`. Without a port the host's rpcbind is asked for it.",
        ]
    } else {
        [
            "such as `tcp://host:port`. Without a port the host's",
            "rpcbind is asked for it.",
        ]
    };
    let connect_with = connect(protocols, of, flavor, "connect_with", Some("options"));
    let connect = connect(protocols, of, flavor, "connect", None);
    let over = over(protocols, of, &flavor.client);
    let calling_back = self::over(protocols, of, CALLBACK_CLIENT);
    let is_async = if flavor.is_async { "async " } else { "" };
    let head = FunctionSignature {
        name: format!("pub {is_async}fn connect_with"),
        parameters: ["address: &str", "options: ChannelOptions"]
            .map(str::to_owned)
            .to_vec(),
        result: "Result<Self, ConnectError>".to_owned(),
    };
    w.gap();
    w.skeleton(
        "
/// Calls the procedures of `$version$`$from$. Clones share the connection. The error of a call that
/// failed says who is to blame; one that cannot be sent has no ticket.
$deprecated$
#[derive(Debug, Clone)]
pub struct $name$<C = $client$>(pub C);

impl $name$ {
    /// Connects to the server at `address`, $connects$
    /// $further$
    ///
    /// # Errors
    /// The address is invalid, or the server cannot be reached.
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
}

impl $name$<$calls_back$> {
    /// Calls a client of this server, which serves the procedures over the connection that it has opened.
    pub fn calling_back(channel: CallbackChannel) -> Self {
        $calling_back$
    }
}
",
        &[
            ("version", HoleContent::Text(&of.version.name)),
            ("from", HoleContent::Text(flavor.from)),
            ("name", HoleContent::Text(flavor.name)),
            (
                "deprecated",
                HoleContent::Lines(&|w| {
                    write_deprecated(w, of.version.annotations.deprecated.as_ref());
                }),
            ),
            ("client", HoleContent::Text(&flavor.client)),
            ("channel", HoleContent::Text(&flavor.channel)),
            ("async", HoleContent::Text(is_async)),
            ("connects", HoleContent::Text(connects[0])),
            ("further", HoleContent::Text(connects[1])),
            ("connect", HoleContent::Lines(&|w| connect.write(w))),
            (
                "connect_with",
                HoleContent::Lines(&|w| head.write_function(w, &connect_with)),
            ),
            ("over", HoleContent::Lines(&|w| over.write(w))),
            ("calls_back", HoleContent::Text(CALLBACK_CLIENT)),
            (
                "calling_back",
                HoleContent::Lines(&|w| calling_back.write(w)),
            ),
        ],
    );
    let has_ping = of
        .methods
        .iter()
        .any(|method| method.names.method == "ping");
    let (name, makes_calls) = (flavor.name, &flavor.makes_calls);
    w.gap();
    w.braces(&format!("impl<C: {makes_calls}> {name}<C>"), |w| {
        let view = BlockExpr::value(Expr::text(format!(
            "{name}(WithOptions::new(&self.0, options))"
        )));
        w.line("/// Returns this client with `options` for some calls, at no cost.");
        with_options(flavor).write_function(w, &view);
        w.gap();
        if !has_ping {
            rust.uses(&["CallError"]);
            write_ping(w, flavor.is_async);
        }
        for (index, method) in of.methods.iter().enumerate() {
            if index > 0 || !has_ping {
                w.gap();
            }
            write_methods(w, rust, method, flavor.is_async);
        }
    });
}

/// Writes the method that calls procedure 0, which every server answers. A procedure of the same name goes before.
fn write_ping(w: &mut SourceWriter, is_async: bool) {
    let (function, then) = if is_async {
        ("pub async fn", ".await")
    } else {
        ("pub fn", "")
    };
    w.line("/// Calls procedure 0, which shows that the server has the program.");
    w.braces(
        &format!("{function} ping(&self) -> Result<(), CallError>"),
        |w| w.line(format!("self.0.ping(){then}")),
    );
}

/// The head of the method that returns the client with options for some calls.
fn with_options(flavor: &ClientFlavor<'_>) -> FunctionSignature {
    FunctionSignature {
        name: "pub fn with_options<'c>".to_owned(),
        parameters: ["&'c self", "options: CallOptions<'c>"]
            .map(str::to_owned)
            .to_vec(),
        result: format!("{}<WithOptions<'c, C>>", flavor.name),
    }
}

/// The `client` that `function` makes of `first`, of the numbers and of `last`.
fn made(
    of: &ServiceVersion<'_>,
    client: &str,
    function: &str,
    first: &str,
    last: Option<&str>,
) -> Expr {
    let arguments = [first, &of.program.number, &of.names.number];
    let arguments = arguments.into_iter().chain(last).map(Expr::text);
    Expr::call(format!("{client}::{function}"), arguments)
}

/// The body of the method that connects by `function`.
fn connect(
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    flavor: &ClientFlavor<'_>,
    function: &str,
    options: Option<&str>,
) -> BlockExpr {
    let client = made(of, &flavor.client, function, "address", options);
    let client = match flavor.is_async {
        true => Expr::Then(Box::new(client), "await"),
        false => client,
    };
    let client = Statement::Let("client".to_owned(), Expr::Try(Box::new(client)));
    let known = Expr::call("Self", [known(protocols, of)]);
    BlockExpr {
        statements: vec![client],
        value: Some(Expr::ok(known)),
    }
}

/// The body of a function that makes a `client` over a channel.
fn over(protocols: ProtocolSet<'_>, of: &ServiceVersion<'_>, client: &str) -> BlockExpr {
    let client = made(of, client, "over", "channel", None);
    BlockExpr {
        statements: vec![Statement::Let("client".to_owned(), client)],
        value: Some(Expr::call("Self", [known(protocols, of)])),
    }
}

/// The client in the variable `client`, with the fingerprints that it was built from.
fn known(protocols: ProtocolSet<'_>, of: &ServiceVersion<'_>) -> Expr {
    match protocols.lean {
        None => Expr::text("client"),
        Some(_) => {
            let interface = &of.names.interface;
            Expr::text(format!("client.with_interface({interface}.shared())"))
        }
    }
}

/// The methods that call a procedure and that start a call.
fn write_methods(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    is_async: bool,
) {
    let (function, then) = if is_async {
        ("pub async fn", Some("await"))
    } else {
        ("pub fn", None)
    };
    let (result, error) = (method.result_text(rust), &method.names.error);
    let parameters = parameters(rust, method);
    method.write_doc(w);
    method.write_deprecated(w);
    let head = FunctionSignature {
        name: format!("{function} {}", method.names.method),
        parameters: parameters.clone(),
        result: format!("Result<{result}, {error}>"),
    };
    head.write_function(w, &calling(rust, method, "self.0.call", then));
    w.gap();
    w.line(format!(
        "/// Starts [`{}`](Self::{0}) and returns a ticket for its result.",
        method.names.method
    ));
    method.write_deprecated(w);
    let head = FunctionSignature {
        name: format!("pub fn {}", method.names.start),
        parameters,
        result: format!("Result<C::Pending<{result}, {error}>, {error}>"),
    };
    head.write_function(w, &calling(rust, method, "self.0.start", None));
}

/// The parameters of a client's method.
fn parameters(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> Vec<String> {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let lent = parameters
        .map(|(shape, name)| format!("{name}: {}", ArgumentMode::of(rust, shape).parameter()));
    ["&self".to_owned()].into_iter().chain(lent).collect()
}

/// The body of a client's method: the call, which `function` makes, and what is done `then`.
fn calling(
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    function: &str,
    then: Option<&'static str>,
) -> BlockExpr {
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let bytes =
        parameters.filter(|(shape, _)| ArgumentMode::of(rust, shape) == ArgumentMode::Bytes);
    let bytes = bytes.map(|(_, name)| {
        let borrowed = Expr::text(format!("{name}.as_ref()"));
        Statement::Let(name.clone(), borrowed)
    });
    let call = Expr::call(function, [call::literal(method)]);
    BlockExpr {
        statements: bytes.collect(),
        value: Some(match then {
            Some(then) => Expr::Then(Box::new(call), then),
            None => call,
        }),
    }
}

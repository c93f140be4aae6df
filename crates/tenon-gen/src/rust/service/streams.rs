//! Procedures with streams: the codec of their items, the methods of clients that open them, and those of servers. The
//! lean protocol alone carries them, so an interface that is not made for it has none of them.

use tenon_plan::{Plan, StreamPlans};
use tenon_schema::{Length, Procedure, Type};

use super::lent::ArgumentMode;
use super::{LeanMarshalling, ServiceMethod, ServiceVersion, call, errors};
use crate::rust::RustFile;
use crate::rust::code::{BlockExpr, Expr, FunctionSignature, Statement};
use crate::rust::marshal::{ItemOperand, MarshalGenerator, PlaceBindings, parameter, uses_cursor};
use crate::rust::shape::TypeShape;
use crate::writer::{HoleContent, SourceWriter};

/// The flavor of generated code: for threads, or for tasks by the crate at a path.
#[derive(Clone, Copy)]
pub enum StreamFlavor<'a> {
    /// It blocks its thread.
    Threads,
    /// It is awaited.
    Tasks(&'a str),
}

impl StreamFlavor<'_> {
    /// Returns a name of the run time: of the one for threads, or of the one for tasks.
    fn name(self, rust: &RustFile<'_>, threads: &'static str, tasks: &str) -> String {
        match self {
            Self::Threads => {
                rust.uses(&[threads]);
                threads.to_owned()
            }
            Self::Tasks(tokio) => format!("{tokio}::{tasks}"),
        }
    }
}

/// The streams of a procedure.
pub struct MethodStreams<'a> {
    /// The last argument.
    pub argument: Option<StreamedItem<'a>>,
    /// The result.
    pub result: Option<StreamedItem<'a>>,
}

/// The items of a stream.
pub struct StreamedItem<'a> {
    /// The plan for the lean protocol.
    plan: &'a Plan,
    shape: TypeShape,
    /// Bytes that an item may have, if items are opaque data of any length.
    opaque_max: Option<u32>,
    /// The name of the parameter of a handler that has them.
    name: String,
    /// The label in errors.
    label: String,
}

impl<'a> MethodStreams<'a> {
    /// The streams of a procedure that has these plans of them; the parameters of its methods have these `names`.
    pub fn of(
        rust: &'a RustFile<'a>,
        procedure: &Procedure,
        plans: &'a StreamPlans,
        names: &[String],
    ) -> Self {
        let argument = procedure.argument_item().zip(plans.argument.as_ref());
        let result = procedure.result_item().zip(plans.result.as_ref());
        let is_taken = |name: &str| names.iter().any(|taken| taken == name);
        let free = |name: &str| match is_taken(name) {
            true => format!("{name}_items"),
            false => name.to_owned(),
        };
        Self {
            argument: argument.map(|(field, plan)| StreamedItem {
                plan,
                shape: rust.shapes.of(&field.ty),
                opaque_max: opaque_max(rust, &field.ty),
                name: names.last().cloned().unwrap_or_default(),
                label: format!("{}.{}", procedure.name, field.name),
            }),
            result: result.map(|(ty, plan)| StreamedItem {
                plan,
                shape: rust.shapes.of(ty),
                opaque_max: opaque_max(rust, ty),
                name: free("results"),
                label: procedure.name.clone(),
            }),
        }
    }

    /// Returns the streams as a value of the run time.
    fn value(&self, rust: &RustFile<'_>) -> Expr {
        let field = |name: &str, is: bool| (name.to_owned(), Expr::text(is.to_string()));
        Expr::Struct(
            format!("{}::lean::CallStreams", rust.options.tenon),
            vec![
                field("argument", self.argument.is_some()),
                field("result", self.result.is_some()),
            ],
        )
    }
}

impl StreamedItem<'_> {
    fn type_text(&self, rust: &RustFile<'_>) -> String {
        rust.type_text(&self.shape)
    }

    /// Returns whether the items are opaque data of any length.
    fn has_bytes(&self) -> bool {
        self.opaque_max.is_some()
    }

    /// Returns `of`, which reads or writes the items: by their bytes as well, if they are opaque data.
    fn with_bytes(&self, of: String) -> String {
        match self.opaque_max {
            Some(max) => format!("{of}.with_opaque_items({max})"),
            None => of,
        }
    }

    /// Binds `value`, which reads or writes the items in a handler, to the parameter's name, by a pattern that begins with
    /// `mode`.
    fn bind(&self, mode: &str, value: String) -> Vec<Statement> {
        let last = format!("{mode}{}", self.name);
        let value = Expr::text(value);
        if !self.has_bytes() {
            return vec![Statement::Let(last, value)];
        }
        let with_bytes = Expr::text(self.with_bytes(self.name.clone()));
        vec![
            Statement::Let(self.name.clone(), value),
            Statement::Let(last, with_bytes),
        ]
    }
}

/// Returns how many bytes a value may have, if the type is opaque data of any length.
fn opaque_max(rust: &RustFile<'_>, ty: &Type) -> Option<u32> {
    match rust.shapes.schema.resolve(ty) {
        Type::Opaque(Length::Counted(bound)) => Some(*bound),
        _ => None,
    }
}

// ---- Items ----

/// Writes the functions that append and read the items of a procedure's streams.
pub fn write_items(w: &mut SourceWriter, with: MarshalGenerator<'_>, method: &ServiceMethod<'_>) {
    let Some(streams) = &method.streams else {
        return;
    };
    w.gap();
    w.braces(
        &format!("impl {}", call::type_text(with.rust, method)),
        |w| {
            let items = [(&streams.argument, "argument"), (&streams.result, "result")];
            let items = items
                .into_iter()
                .filter_map(|(item, of)| Some((item.as_ref()?, of)));
            for (index, (item, of)) in items.enumerate() {
                if index > 0 {
                    w.gap();
                }
                write_item(w, with, item, of);
            }
        },
    );
}

fn write_item(w: &mut SourceWriter, with: MarshalGenerator<'_>, item: &StreamedItem<'_>, of: &str) {
    let (rust, marker) = (with.rust, &with.form.marker);
    rust.uses(&marker.imports);
    rust.uses(&[
        "LeanInput",
        "wire::DecodeError",
        "wire::Decoder",
        "wire::EncodeError",
        "wire::Encoder",
    ]);
    let (ty, generics) = (item.type_text(rust), marker.generics());
    let place = ItemOperand::behind("item", item.shape.clone(), Some(item.label.clone()));
    let body = with.encode_item(&item.plan.body, &PlaceBindings::whole(place));
    let is_used = uses_cursor(&body);
    let (value, out) = (parameter("item", is_used), parameter("out", is_used));
    let head = FunctionSignature {
        name: format!("fn encode_{of}{generics}"),
        parameters: vec![
            format!("{value}: &{ty}"),
            format!("{out}: &mut {}", marker.cursor("Encoder")),
        ],
        result: "Result<(), EncodeError>".to_owned(),
    };
    head.write_function(w, &body);
    w.gap();
    let place = ItemOperand::behind("item", item.shape.clone(), None);
    let body = with.decode_item(&item.plan.body, &PlaceBindings::whole(place));
    let input = parameter("input", uses_cursor(&body));
    let head = FunctionSignature {
        name: format!("fn decode_{of}{generics}"),
        parameters: vec![format!("{input}: &mut {}", marker.cursor("Decoder"))],
        result: format!("Result<{ty}, DecodeError>"),
    };
    head.write_function(w, &body);
    w.gap();
    let read = Expr::text(format!("Self::decode_{of}(input)"));
    let arm = |order: &str| {
        let pattern = format!("LeanInput::{order}(input)");
        (pattern, BlockExpr::value(read.clone()))
    };
    let arms = vec![arm("Native"), arm("Swapped")];
    let head = FunctionSignature {
        name: format!("fn read_{of}"),
        parameters: vec!["input: &mut LeanInput<'_>".to_owned()],
        result: format!("Result<{ty}, DecodeError>"),
    };
    let body = BlockExpr::value(Expr::Match(Box::new(Expr::text("input")), arms));
    head.write_function(w, &body);
}

// ---- Clients ----

/// Writes the methods of a client that make calls with streams.
pub fn write_client(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &ServiceVersion<'_>,
    flavor: StreamFlavor<'_>,
) {
    if of.streamed.is_empty() {
        return;
    }
    rust.uses(&["CallOptions"]);
    w.gap();
    let opens = flavor.name(rust, "OpenStreams", "OpenAsyncStreams");
    let client = match flavor {
        StreamFlavor::Threads => &of.names.client,
        StreamFlavor::Tasks(_) => &of.names.async_client,
    };
    let head = format!("impl<C: {opens}> {client}<C>");
    w.braces(&head, |w| {
        for (index, method) in of.streamed.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            method.write_doc(w);
            method.write_deprecated(w);
            write_opening(w, rust, method, flavor);
        }
    });
}

fn write_opening(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    flavor: StreamFlavor<'_>,
) {
    let Some(streams) = &method.streams else {
        return;
    };
    let error = &method.names.error;
    let reader = |item: &StreamedItem<'_>| {
        let reader = flavor.name(rust, "ItemReader", "ItemStream");
        format!("{reader}<{}, {error}>", item.type_text(rust))
    };
    let (opens, opened) = match (&streams.argument, &streams.result) {
        (Some(argument), Some(result)) => {
            let pair = flavor.name(rust, "StreamPair", "AsyncStreamPair");
            let items = [argument, result].map(|item| item.type_text(rust));
            (
                "open_both",
                format!("{pair}<{}, {error}>", items.join(", ")),
            )
        }
        (Some(argument), None) => {
            let writer = flavor.name(rust, "ArgumentWriter", "ArgumentSink");
            let (item, result) = (argument.type_text(rust), method.result_text(rust));
            (
                "open_argument",
                format!("{writer}<{item}, {result}, {error}>"),
            )
        }
        (None, Some(result)) => ("open_result", reader(result)),
        (None, None) => return,
    };
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let lent = parameters
        .clone()
        .map(|(shape, name)| format!("{name}: {}", ArgumentMode::of(rust, shape).parameter()));
    let head = FunctionSignature {
        name: match flavor {
            StreamFlavor::Threads => format!("pub fn {}", method.names.method),
            StreamFlavor::Tasks(_) => format!("pub async fn {}", method.names.method),
        },
        parameters: ["&self".to_owned()].into_iter().chain(lent).collect(),
        result: format!("Result<{opened}, {error}>"),
    };
    let bytes =
        parameters.filter(|(shape, _)| ArgumentMode::of(rust, shape) == ArgumentMode::Bytes);
    let bytes = bytes.map(|(_, name)| {
        let borrowed = Expr::text(format!("{name}.as_ref()"));
        Statement::Let(name.clone(), borrowed)
    });
    let call = &method.names.call;
    let encode = streams
        .argument
        .as_ref()
        .map(|_| format!("{call}::encode_argument"));
    let decode = streams
        .result
        .as_ref()
        .map(|_| format!("{call}::read_result"));
    let codecs = encode.into_iter().chain(decode).map(Expr::text);
    let arguments = [call::literal(method)]
        .into_iter()
        .chain(codecs)
        .chain([Expr::text("CallOptions::new()")]);
    let opened = Expr::call(format!("self.0.{opens}"), arguments);
    let opened = match flavor {
        StreamFlavor::Threads => opened,
        StreamFlavor::Tasks(_) => Expr::Then(Box::new(opened), "await"),
    };
    let mut body = BlockExpr {
        statements: bytes.collect(),
        value: None,
    };
    match (&streams.argument, &streams.result) {
        (Some(argument), Some(result)) if argument.has_bytes() || result.has_bytes() => {
            let pair = "(writer, reader)".to_owned();
            let opened = Statement::Let(pair, Expr::Try(Box::new(opened)));
            let writer = argument.with_bytes("writer".to_owned());
            let reader = result.with_bytes("reader".to_owned());
            body.statements.push(opened);
            body.value = Some(Expr::text(format!("Ok(({writer}, {reader}))")));
        }
        (Some(item), None) | (None, Some(item)) if item.has_bytes() => {
            let opened = Statement::Let("items".to_owned(), Expr::Try(Box::new(opened)));
            let items = item.with_bytes("items".to_owned());
            body.statements.push(opened);
            body.value = Some(Expr::text(format!("Ok({items})")));
        }
        _ => body.value = Some(opened),
    }
    head.write_function(w, &body);
}

// ---- Servers ----

/// Returns the head of a procedure's method in the trait of servers.
pub fn handler(
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    mut parameters: Vec<String>,
    flavor: StreamFlavor<'_>,
) -> FunctionSignature {
    if let Some(streams) = &method.streams {
        if let Some(item) = &streams.argument {
            let reader = flavor.name(rust, "ItemReader", "ItemStream");
            let ty = item.type_text(rust);
            parameters.push(format!("{}: {reader}<{ty}>", item.name));
        }
        if let Some(item) = &streams.result {
            let writer = flavor.name(rust, "ItemWriter", "ItemSink");
            let ty = item.type_text(rust);
            parameters.push(format!("{}: &mut {writer}<{ty}>", item.name));
        }
    }
    let (result, error) = (method.result_text(rust), errors::of_handler(rust, method));
    let result = format!("Result<{result}, {error}>");
    FunctionSignature {
        name: format!("fn {}", method.names.method),
        parameters,
        result: match flavor {
            StreamFlavor::Threads => result,
            StreamFlavor::Tasks(_) => {
                format!("impl core::future::Future<Output = {result}> + Send")
            }
        },
    }
}

/// Writes the method of a lean service that carries out calls with streams.
pub fn write_call_streaming(w: &mut SourceWriter, rust: &RustFile<'_>, of: &ServiceVersion<'_>) {
    if of.streamed.is_empty() {
        return;
    }
    rust.uses(&["ServedStreams"]);
    w.gap();
    w.skeleton(
        "
fn call_streaming(
    &self,
    call: &CallInfo<'_>,
    input: LeanInput<'_>,
    streams: &ServedStreams,
    out: &mut Encoder<'_, Lean>,
) -> Result<(), Refusal> {
    match input {
        LeanInput::Native(mut input) => self.serve_streaming(call, &mut input, streams, out),
        LeanInput::Swapped(mut input) => self.serve_streaming(call, &mut input, streams, out),
    }
}
",
        &[],
    );
}

/// Writes the function that finds procedures with streams by their numbers, and carries their calls out.
pub fn write_serve(w: &mut SourceWriter, lean: LeanMarshalling<'_>, of: &ServiceVersion<'_>) {
    if of.streamed.is_empty() {
        return;
    }
    let with = lean.with;
    with.rust.uses(&["wire::Order"]);
    let writes = of.streamed.iter().any(|method| method.result.is_some());
    let arms = of.streamed.iter();
    let arms = arms.map(|method| (method.names.number.clone(), serve(with, method)));
    let refuse = Expr::text("Err(Refusal::ProcedureUnavailable)");
    let otherwise = ("_".to_owned(), BlockExpr::value(refuse));
    let arms = arms.chain([otherwise]).collect();
    let body = Expr::Match(Box::new(Expr::text("call.procedure()")), arms);
    w.gap();
    w.skeleton(
        "
impl<T: $server$> $service$<T> {
    fn serve_streaming<O: Order>(
        &self,
        call: &CallInfo<'_>,
        input: &mut Decoder<'_, Lean<O>>,
        streams: &ServedStreams,
        $out$: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        $body$
    }
}
",
        &[
            ("server", HoleContent::Text(&of.names.server)),
            ("service", HoleContent::Text(&of.names.service)),
            ("out", HoleContent::Text(parameter("out", writes))),
            (
                "body",
                HoleContent::Lines(&|w| BlockExpr::value(body.clone()).write(w)),
            ),
        ],
    );
}

/// Reads the arguments, has the server carry the call out, and sends the items of its result before the rest.
fn serve(with: MarshalGenerator<'_>, method: &ServiceMethod<'_>) -> BlockExpr {
    let (rust, name) = (with.rust, &method.procedure.name);
    let (Some(streams), Some(plan)) = (&method.streams, method.lean) else {
        return BlockExpr::value(Expr::text("Err(Refusal::ProcedureUnavailable)"));
    };
    let reading = match rust.options.views {
        true => with.view(),
        false => with,
    };
    let call = &method.names.call;
    let expected = Expr::call("streams.expect", [streams.value(rust)]);
    let mut statements = vec![Statement::Do(Expr::Try(Box::new(expected)))];
    statements.extend(reading.decode_parameters(
        &plan.arguments.body,
        name,
        call::arguments(method),
    ));
    statements.push(Statement::Do(Expr::text("input.finish()?")));
    let mut arguments = vec![Expr::text("call")];
    arguments.extend(method.names.parameters.iter().map(Expr::text));
    if let Some(item) = &streams.argument {
        let reader = format!("ItemReader::of_handler(streams, {call}::read_argument)");
        statements.extend(item.bind("", reader));
        arguments.push(Expr::text(&item.name));
    }
    if let Some(item) = &streams.result {
        let writer = format!("ItemWriter::of_handler(streams, {call}::encode_result)");
        statements.extend(item.bind("mut ", writer));
        arguments.push(Expr::text(format!("&mut {}", item.name)));
    }
    let handled = Expr::call(format!("self.0.{}", method.names.method), arguments);
    let handled = errors::refused(method, handled);
    statements.push(Statement::Let("handled".to_owned(), handled));
    if let Some(item) = &streams.result {
        // What was fed before a failure is sent before it is told.
        let flush = Expr::text(format!("{}.flush()", item.name));
        statements.push(Statement::Let("flushed".to_owned(), flush));
    }
    let reply = Expr::text("handled?");
    match &method.result {
        None => statements.push(Statement::Do(reply)),
        Some(_) => statements.push(Statement::Let("reply".to_owned(), reply)),
    }
    if streams.result.is_some() {
        statements.push(Statement::Do(Expr::text("flushed?")));
    }
    if let Some(shape) = &method.result {
        let reply = ItemOperand::owned(
            "reply".to_owned(),
            "reply",
            shape.clone(),
            Some(name.clone()),
        );
        statements.extend(with.encode_result(&plan.result.body, reply));
    }
    BlockExpr {
        statements,
        value: Some(Expr::text("Ok(())")),
    }
}

/// Reads the arguments, has a server of tasks carry the call out, and answers with the result, behind its items.
pub fn serve_async(
    rust: &RustFile<'_>,
    method: &ServiceMethod<'_>,
    read: Statement,
    tokio: &str,
) -> BlockExpr {
    let Some(streams) = &method.streams else {
        return BlockExpr::value(Expr::text("Err(Refusal::ProcedureUnavailable)"));
    };
    let (call, request) = (&method.names.call, &method.names.request);
    let declared = Expr::call("call.declared_streams", [streams.value(rust)]);
    let declared = Expr::Try(Box::new(declared));
    let mut statements = vec![Statement::Let("streams".to_owned(), declared), read];
    let mut arguments = vec![Expr::text("&call.info()")];
    arguments.extend(method.names.parameters.iter().map(Expr::text));
    if let Some(item) = &streams.argument {
        let items = format!("{tokio}::ItemStream::of_handler(streams, {call}::read_argument)");
        statements.extend(item.bind("", items));
        arguments.push(Expr::text(&item.name));
    }
    if let Some(item) = &streams.result {
        let items = format!("{tokio}::ItemSink::of_handler(streams, {call}::encode_result)");
        statements.extend(item.bind("mut ", items));
        arguments.push(Expr::text(format!("&mut {}", item.name)));
    }
    let handled = Expr::call(format!("self.0.{}", method.names.method), arguments);
    let handled = Expr::Then(Box::new(handled), "await");
    let handled = errors::refused(method, handled);
    statements.push(Statement::Let("outcome".to_owned(), handled));
    BlockExpr {
        statements,
        value: Some(Expr::text(format!("call.respond::<{request}>(outcome)"))),
    }
}

//! The server of a version: the trait with a method per procedure, and the adapter that makes an implementation
//! of it a service of the run time.

use tenon_plan::ProcedurePlan;

use super::call::arguments;
use super::streams::StreamFlavor;
use super::{ProtocolSet, ServiceMethod, ServiceVersion, write_further_doc};
use super::{errors, reserved, streams};
use crate::rust::RustFile;
use crate::rust::code::{BlockExpr, Expr, FunctionSignature, Statement};
use crate::rust::marshal::{ItemOperand, MarshalGenerator};
use crate::rust::types::default;
use crate::writer::{HoleContent, SourceWriter};

/// Procedures beyond this have no number in the lean protocol.
const LEAN_MAX: u32 = u16::MAX as u32;

/// Writes the trait and the adapter.
pub fn write(w: &mut SourceWriter, protocols: ProtocolSet<'_>, of: &ServiceVersion<'_>) {
    let served = of.served();
    write_trait(w, protocols.onc.rust, of, &served);
    let split = ServedProcedures::of(protocols.onc.rust, &served);
    write_service(w, protocols, of, &split);
    if let Some(lean) = protocols.lean {
        write_lean_service(w, lean.with, of, &split);
        streams::write_serve(w, lean, of);
    }
    if !split.shared.is_empty() {
        protocols.onc.rust.uses(&["wire::Representation"]);
        write_serve(w, of, &split.shared);
    }
}

/// The procedures that a server carries out.
struct ServedProcedures<'m> {
    /// Those with code for each protocol.
    apart: Vec<&'m ServiceMethod<'m>>,
    /// Those with code that serves both, and the generators of their marshalling code.
    shared: Vec<(&'m ServiceMethod<'m>, MarshalGenerator<'m>)>,
}

impl<'m> ServedProcedures<'m> {
    fn of(rust: &RustFile<'_>, methods: &[&'m ServiceMethod<'m>]) -> Self {
        let mut split = Self {
            apart: Vec::new(),
            shared: Vec::new(),
        };
        for method in methods {
            match method.shared.filter(|_| !rust.options.views) {
                Some(with) => split.shared.push((*method, with)),
                None => split.apart.push(*method),
            }
        }
        split
    }

    /// Returns the expression for a procedure that has no code of its own for a protocol.
    fn otherwise(&self) -> Expr {
        Expr::text(match self.shared.is_empty() {
            true => "Err(Refusal::ProcedureUnavailable)",
            false => "self.serve(call, input, out)",
        })
    }
}

fn write_trait(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    of: &ServiceVersion<'_>,
    methods: &[&ServiceMethod<'_>],
) {
    rust.uses(&["CallInfo"]);
    w.gap();
    w.line(format!(
        "/// What a server of `{}` does. Callers are told of refusals, and why.",
        of.version.name
    ));
    write_further_doc(w, &of.version.doc);
    let head = format!("pub trait {}: Send + Sync + 'static", of.names.server);
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
            let mut parameters = parameters(rust, method);
            parameters.extend(reserved::parameter(rust, method));
            let head = FunctionSignature {
                name: format!("fn {}", method.names.method),
                parameters,
                result: format!("Result<{result}, {}>", errors::of_handler(rust, method)),
            };
            head.write(w, ";");
        }
        for (index, method) in of.streamed.iter().enumerate() {
            if index > 0 || !methods.is_empty() {
                w.gap();
            }
            method.write_doc(w);
            let parameters = parameters(rust, method);
            streams::handler(rust, method, parameters, StreamFlavor::Threads).write(w, ";");
        }
    });
}

/// The parameters of a server's method: values, or views of the call's message if there are views.
fn parameters(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> Vec<String> {
    let text = |shape| match rust.options.views {
        true => rust.lent_text(shape),
        false => rust.type_text(shape),
    };
    let parameters = method.parameters.iter().zip(&method.names.parameters);
    let parameters = parameters.map(|(shape, name)| format!("{name}: {}", text(shape)));
    ["&self", "call: &CallInfo<'_>"]
        .map(str::to_owned)
        .into_iter()
        .chain(parameters)
        .collect()
}

/// The names of the parameters of a function that dispatches calls: those that it does not use
/// begin with `_`.
struct DispatchParameters {
    call: &'static str,
    input: &'static str,
    out: &'static str,
}

impl DispatchParameters {
    /// Of a function that serves some procedures, and the shared ones by another function.
    fn of_apart(split: &ServedProcedures<'_>, apart: &[&ServiceMethod<'_>]) -> Self {
        let is_shared = !split.shared.is_empty();
        let writes = apart.iter().any(|method| method.result.is_some());
        Self::new(is_shared || !apart.is_empty(), is_shared || writes)
    }

    fn new(reads: bool, writes: bool) -> Self {
        let name = |is_used: bool, name: &'static str| if is_used { &name[1..] } else { name };
        Self {
            call: name(reads, "_call"),
            input: name(reads, "_input"),
            out: name(writes, "_out"),
        }
    }
}

fn write_service(
    w: &mut SourceWriter,
    protocols: ProtocolSet<'_>,
    of: &ServiceVersion<'_>,
    split: &ServedProcedures<'_>,
) {
    let with = protocols.onc;
    with.rust.uses(&[
        "CallInfo",
        "Refusal",
        "Service",
        "wire::Decoder",
        "wire::Encoder",
    ]);
    let parameters = DispatchParameters::of_apart(split, &split.apart);
    let lean = |w: &mut SourceWriter| {
        if protocols.lean.is_some() {
            with.rust.uses(&["LeanService"]);
            w.gap();
            w.braces("fn lean(&self) -> Option<&dyn LeanService>", |w| {
                w.line("Some(self)");
            });
        }
    };
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
    $procedure$
    $lean$
}
",
        &[
            ("server", HoleContent::Text(&of.names.server)),
            ("service", HoleContent::Text(&of.names.service)),
            ("program", HoleContent::Text(&of.program.number)),
            ("number", HoleContent::Text(&of.names.number)),
            ("call", HoleContent::Text(parameters.call)),
            ("input", HoleContent::Text(parameters.input)),
            ("out", HoleContent::Text(parameters.out)),
            (
                "body",
                HoleContent::Lines(&|w| {
                    let served = split.apart.iter();
                    let served = served.map(|method| (*method, with, method.plan));
                    dispatch(served, split.otherwise()).write(w);
                }),
            ),
            (
                "procedure",
                HoleContent::Lines(&|w| of.write_procedure(w, with.rust)),
            ),
            ("lean", HoleContent::Lines(&lean)),
        ],
    );
}

/// Writes the service of the lean protocol: one function for both byte orders.
fn write_lean_service(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    of: &ServiceVersion<'_>,
    split: &ServedProcedures<'_>,
) {
    with.rust.uses(&["LeanInput", "LeanService", "wire::Lean"]);
    let apart = split.apart.iter().copied();
    let apart: Vec<_> = apart
        .filter(|method| method.procedure.number <= LEAN_MAX)
        .collect();
    let is_apart = !apart.is_empty() || split.shared.is_empty();
    let serve = if is_apart { "serve_lean" } else { "serve" };
    w.gap();
    w.skeleton(
        "
impl<T: $server$> LeanService for $service$<T> {
    fn interface(&self) -> std::sync::Arc<$tenon$::lean::Interface> {
        $interface$.shared()
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        input: LeanInput<'_>,
        out: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        match input {
            LeanInput::Native(mut input) => self.$serve$(call, &mut input, out),
            LeanInput::Swapped(mut input) => self.$serve$(call, &mut input, out),
        }
    }
    $streaming$
}
",
        &[
            ("server", HoleContent::Text(&of.names.server)),
            ("service", HoleContent::Text(&of.names.service)),
            ("tenon", HoleContent::Text(&with.rust.options.tenon)),
            ("interface", HoleContent::Text(&of.names.interface)),
            ("serve", HoleContent::Text(serve)),
            (
                "streaming",
                HoleContent::Lines(&|w| streams::write_call_streaming(w, with.rust, of)),
            ),
        ],
    );
    if is_apart {
        write_serve_lean(w, with, of, split, &apart);
    }
}

/// Writes the function that serves the procedures with code of their own for the lean protocol.
fn write_serve_lean(
    w: &mut SourceWriter,
    with: MarshalGenerator<'_>,
    of: &ServiceVersion<'_>,
    split: &ServedProcedures<'_>,
    apart: &[&ServiceMethod<'_>],
) {
    with.rust.uses(&["wire::Order"]);
    let parameters = DispatchParameters::of_apart(split, apart);
    w.gap();
    w.skeleton(
        "
impl<T: $server$> $service$<T> {
    fn serve_lean<O: Order>(
        &self,
        $call$: &CallInfo<'_>,
        $input$: &mut Decoder<'_, Lean<O>>,
        $out$: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        $body$
    }
}
",
        &[
            ("server", HoleContent::Text(&of.names.server)),
            ("service", HoleContent::Text(&of.names.service)),
            ("call", HoleContent::Text(parameters.call)),
            ("input", HoleContent::Text(parameters.input)),
            ("out", HoleContent::Text(parameters.out)),
            (
                "body",
                HoleContent::Lines(&|w| {
                    let served = apart.iter().copied();
                    let served = served.filter_map(|method| Some((method, with, method.lean?)));
                    dispatch(served, split.otherwise()).write(w);
                }),
            ),
        ],
    );
}

/// Writes the function that serves the procedures with code for both protocols.
fn write_serve(
    w: &mut SourceWriter,
    of: &ServiceVersion<'_>,
    shared: &[(&ServiceMethod<'_>, MarshalGenerator<'_>)],
) {
    let writes = shared.iter().any(|(method, _)| method.result.is_some());
    let parameters = DispatchParameters::new(true, writes);
    w.gap();
    w.skeleton(
        "
impl<T: $server$> $service$<T> {
    #[inline]
    fn serve<I: Representation, R: Representation>(
        &self,
        $call$: &CallInfo<'_>,
        $input$: &mut Decoder<'_, I>,
        $out$: &mut Encoder<'_, R>,
    ) -> Result<(), Refusal> {
        $body$
    }
}
",
        &[
            ("server", HoleContent::Text(&of.names.server)),
            ("service", HoleContent::Text(&of.names.service)),
            ("call", HoleContent::Text(parameters.call)),
            ("input", HoleContent::Text(parameters.input)),
            ("out", HoleContent::Text(parameters.out)),
            (
                "body",
                HoleContent::Lines(&|w| {
                    let served = shared.iter().copied();
                    let served =
                        served.filter_map(|(method, with)| Some((method, with, method.lean?)));
                    dispatch(served, Expr::text("Err(Refusal::ProcedureUnavailable)")).write(w);
                }),
            ),
        ],
    );
}

/// Finds the procedure by its number; `otherwise` is the expression for all others.
fn dispatch<'m>(
    served: impl Iterator<
        Item = (
            &'m ServiceMethod<'m>,
            MarshalGenerator<'m>,
            &'m ProcedurePlan,
        ),
    >,
    otherwise: Expr,
) -> BlockExpr {
    let mut arms: Vec<_> = served
        .map(|(method, with, plan)| (method.names.number.clone(), serve(with, method, plan)))
        .collect();
    if arms.is_empty() {
        return BlockExpr::value(otherwise);
    }
    arms.push(("_".to_owned(), BlockExpr::value(otherwise)));
    BlockExpr::value(Expr::Match(Box::new(Expr::text("call.procedure()")), arms))
}

/// Reads the arguments, has the server carry the call out and appends the result.
fn serve(
    with: MarshalGenerator<'_>,
    method: &ServiceMethod<'_>,
    plan: &ProcedurePlan,
) -> BlockExpr {
    let name = &method.procedure.name;
    let reading = match with.rust.options.views {
        true => with.view(),
        false => with,
    };
    let mut statements = reading.decode_parameters(&plan.arguments.body, name, arguments(method));
    statements.push(Statement::Do(Expr::text("input.finish()?")));
    let carry_out = |further: Option<&str>| {
        let locals = method.names.parameters.iter().map(Expr::text);
        let further = further.map(Expr::text);
        let handled = Expr::call(
            format!("self.0.{}", method.names.method),
            [Expr::text("call")]
                .into_iter()
                .chain(locals)
                .chain(further),
        );
        errors::refused(method, handled)
    };
    let Some(shape) = &method.result else {
        let value = Some(carry_out(None));
        return BlockExpr { statements, value };
    };
    match reserved::of(with.rust, method) {
        Some(_) if with.is_one_blit(&plan.result.body) => {
            let write = Expr::closure("|reply|", BlockExpr::value(carry_out(Some("reply"))));
            let value = Some(Expr::call("out.fill", [write]));
            return BlockExpr { statements, value };
        }
        Some(_) => {
            let reply = format!("mut reply: {}", with.rust.type_text(shape));
            let carry_out = Expr::Try(Box::new(carry_out(Some("&mut reply"))));
            statements.push(Statement::Let(reply, default(with.rust, shape)));
            statements.push(Statement::Do(carry_out));
        }
        None => {
            let carry_out = Expr::Try(Box::new(carry_out(None)));
            statements.push(Statement::Let("reply".to_owned(), carry_out));
        }
    }
    let reply = ItemOperand::owned(
        "reply".to_owned(),
        "reply",
        shape.clone(),
        Some(name.clone()),
    );
    statements.extend(with.encode_result(&plan.result.body, reply));
    BlockExpr {
        statements,
        value: Some(Expr::text("Ok(())")),
    }
}

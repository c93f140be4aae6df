//! The server of a version: the trait with a method per procedure, and the adapter that makes whoever
//! implements it a service of the run time.

use tenon_plan::ProcedurePlan;

use super::client::arguments;
use super::{Method, Protocols, Versioned, write_further_doc};
use super::{reserved, tasks};
use crate::rust::Rust;
use crate::rust::code::{Block, Expr, Head, Statement};
use crate::rust::marshal::{Item, Marshalling};
use crate::rust::types::default;
use crate::writer::{Hole, Writer};

/// Procedures beyond this have no number in the lean protocol.
const LEAN_MAX: u32 = u16::MAX as u32;

/// Writes the trait and the adapter.
pub fn write(w: &mut Writer, protocols: Protocols<'_>, of: &Versioned<'_>) {
    let methods = of.methods.iter();
    // Every server answers procedure 0 by itself.
    let served: Vec<_> = methods.filter(|of| of.procedure.number != 0).collect();
    write_trait(w, protocols.onc.rust, of, &served);
    write_service(w, protocols, of, &served);
    if let Some(lean) = protocols.lean {
        write_lean_service(w, lean.with, of, &served);
    }
    if let Some(tokio) = &protocols.onc.rust.options.tokio {
        tasks::write(w, protocols, of, &served, tokio);
    }
}

fn write_trait(w: &mut Writer, rust: &Rust<'_>, of: &Versioned<'_>, methods: &[&Method<'_>]) {
    rust.uses(&["CallInfo", "Refusal"]);
    w.gap();
    w.line(format!("/// What a server of `{}` does.", of.version.name));
    write_further_doc(w, &of.version.doc);
    let head = format!("pub trait {}: Send + Sync + 'static", of.names.server);
    if methods.is_empty() {
        return w.line(format!("{head} {{}}"));
    }
    w.braces(&head, |w| {
        for (index, method) in methods.iter().enumerate() {
            if index > 0 {
                w.gap();
            }
            method.write_doc(w);
            let reserved = reserved::of(rust, method);
            if reserved.is_some() {
                w.line("///");
                w.line("/// `reply` is what the caller gets if this succeeds. All of it is zero before.");
            }
            w.line("///");
            w.line("/// # Errors");
            w.line("/// The caller is told that the call is not carried out.");
            let mut parameters = parameters(rust, method);
            let result = match reserved {
                Some(shape) => {
                    parameters.push(format!("reply: &mut {}", rust.type_text(shape)));
                    "()".to_owned()
                }
                None => method.result_text(rust),
            };
            let head = Head {
                name: format!("fn {}", method.names.method),
                parameters,
                result: format!("Result<{result}, Refusal>"),
            };
            head.write(w, ";");
        }
    });
}

/// The parameters of a server's method: values, or views of the call's message if there are views.
fn parameters(rust: &Rust<'_>, method: &Method<'_>) -> Vec<String> {
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

/// How the parameters of a function are called that serves some procedures: those that it does not
/// use begin with `_`.
struct Parameters {
    call: &'static str,
    input: &'static str,
    out: &'static str,
}

impl Parameters {
    fn of(methods: &[&Method<'_>]) -> Self {
        let reads = !methods.is_empty();
        let writes = methods.iter().any(|method| method.result.is_some());
        let name = |is_used: bool, name: &'static str| if is_used { &name[1..] } else { name };
        Self {
            call: name(reads, "_call"),
            input: name(reads, "_input"),
            out: name(writes, "_out"),
        }
    }
}

fn write_service(
    w: &mut Writer,
    protocols: Protocols<'_>,
    of: &Versioned<'_>,
    methods: &[&Method<'_>],
) {
    let with = protocols.onc;
    with.rust.uses(&[
        "CallInfo",
        "Refusal",
        "Service",
        "wire::Decoder",
        "wire::Encoder",
    ]);
    let parameters = Parameters::of(methods);
    let lean = |w: &mut Writer| {
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
    $lean$
}
",
        &[
            ("server", Hole::Text(&of.names.server)),
            ("service", Hole::Text(&of.names.service)),
            ("program", Hole::Text(&of.program.number)),
            ("number", Hole::Text(&of.names.number)),
            ("call", Hole::Text(parameters.call)),
            ("input", Hole::Text(parameters.input)),
            ("out", Hole::Text(parameters.out)),
            (
                "body",
                Hole::Lines(&|w| {
                    let served = methods.iter().map(|method| (*method, method.plan));
                    dispatch(with, served).write(w);
                }),
            ),
            ("lean", Hole::Lines(&lean)),
        ],
    );
}

/// Writes how the lean protocol is served: one function for both orders of bytes.
fn write_lean_service(
    w: &mut Writer,
    with: Marshalling<'_>,
    of: &Versioned<'_>,
    methods: &[&Method<'_>],
) {
    with.rust
        .uses(&["LeanInput", "LeanService", "wire::Lean", "wire::Order"]);
    let served = methods.iter().copied();
    let served: Vec<_> = served
        .filter(|method| method.procedure.number <= LEAN_MAX)
        .collect();
    let parameters = Parameters::of(&served);
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
            LeanInput::Native(mut input) => self.serve_lean(call, &mut input, out),
            LeanInput::Swapped(mut input) => self.serve_lean(call, &mut input, out),
        }
    }
}

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
            ("server", Hole::Text(&of.names.server)),
            ("service", Hole::Text(&of.names.service)),
            ("tenon", Hole::Text(&with.rust.options.tenon)),
            ("interface", Hole::Text(&of.names.interface)),
            ("call", Hole::Text(parameters.call)),
            ("input", Hole::Text(parameters.input)),
            ("out", Hole::Text(parameters.out)),
            (
                "body",
                Hole::Lines(&|w| {
                    let served = served.iter().copied();
                    let served = served.filter_map(|method| Some((method, method.lean?)));
                    dispatch(with, served).write(w);
                }),
            ),
        ],
    );
}

/// Finds the procedure by its number.
fn dispatch<'m>(
    with: Marshalling<'_>,
    served: impl Iterator<Item = (&'m Method<'m>, &'m ProcedurePlan)>,
) -> Block {
    let refuse = Expr::text("Err(Refusal::ProcedureUnavailable)");
    let mut arms: Vec<_> = served
        .map(|(method, plan)| (method.names.number.clone(), serve(with, method, plan)))
        .collect();
    if arms.is_empty() {
        return Block::value(refuse);
    }
    arms.push(("_".to_owned(), Block::value(refuse)));
    Block::value(Expr::Match(Box::new(Expr::text("call.procedure")), arms))
}

/// Reads the arguments, has the server carry the call out and appends the result.
fn serve(with: Marshalling<'_>, method: &Method<'_>, plan: &ProcedurePlan) -> Block {
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
        Expr::call(
            format!("self.0.{}", method.names.method),
            [Expr::text("call")]
                .into_iter()
                .chain(locals)
                .chain(further),
        )
    };
    let Some(shape) = &method.result else {
        let value = Some(carry_out(None));
        return Block { statements, value };
    };
    match reserved::of(with.rust, method) {
        Some(_) if with.is_one_blit(&plan.result.body) => {
            let write = Expr::closure("|reply|", Block::value(carry_out(Some("reply"))));
            let value = Some(Expr::call("out.fill", [write]));
            return Block { statements, value };
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
    let reply = Item::owned(
        "reply".to_owned(),
        "reply",
        shape.clone(),
        Some(name.clone()),
    );
    statements.extend(with.encode_result(&plan.result.body, reply));
    Block {
        statements,
        value: Some(Expr::text("Ok(())")),
    }
}

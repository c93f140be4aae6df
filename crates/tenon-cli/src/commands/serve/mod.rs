//! `tenon serve`: a server without a program behind it, for those who write clients.

mod answer;
mod answers_file;
mod script;

use std::fmt::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tenon::rpcbind::LocalRpcbind;
use tenon::{Protocol, Refusal, Server};
use tenon_descriptor::Descriptor;
use tenon_dynamic::{DynamicCall, DynamicHandler, DynamicInterface, DynamicService};
use tenon_exec::{Procedure, Value};
use tenon_reflection::Reflection;

use self::answer::{Answer, AnswerKind};
use self::answers_file::AnswersFile;
use self::script::Script;
use crate::args::ServeArgs;
use crate::failure::CommandFailure;
use crate::output;

/// Time that calls have to be answered when the server ends.
const DRAIN: Duration = Duration::from_secs(1);

/// Most characters of a value that are shown of a call.
const SHOWN_MAX: usize = 200;

pub fn run(args: &ServeArgs) -> Result<(), CommandFailure> {
    let schema = args.interface.schema(&args.file)?;
    if schema.programs.is_empty() {
        return Err(CommandFailure::new("the interface has no program to serve"));
    }
    let interface = Arc::new(DynamicInterface::new(schema).map_err(CommandFailure::new)?);
    let source = match (&args.answers, &args.script) {
        (Some(file), _) => AnswerSource::File(AnswersFile::read(file, &interface)?),
        (None, Some(command)) => AnswerSource::Script(Script::start(command)?),
        (None, None) => AnswerSource::Examples,
    };
    let handler = MockHandler {
        source,
        is_quiet: args.quiet,
    };
    let server = start(args, &interface, handler)?;
    for address in server.addresses() {
        output::print(&format!("{address}\n"))?;
    }
    wait(&server)
}

fn start(
    args: &ServeArgs,
    interface: &Arc<DynamicInterface>,
    handler: MockHandler,
) -> Result<Server, CommandFailure> {
    let mut builder = Server::builder();
    for address in &args.listen {
        builder = builder.listen(address).map_err(CommandFailure::usage)?;
    }
    for service in DynamicService::of_all(interface, handler) {
        builder = builder.service(service);
    }
    if args.reflection {
        let schema = interface.of(Protocol::Onc).schema();
        let descriptor = Descriptor::new(schema).map_err(CommandFailure::new)?;
        let reflection = Reflection::new().with(descriptor);
        let reflection = reflection.map_err(CommandFailure::new)?;
        builder = builder.service(reflection.service());
    }
    if args.register {
        builder = builder.register_with(LocalRpcbind);
    }
    builder.start().map_err(CommandFailure::new)
}

/// Serves until Ctrl-C or SIGTERM.
#[cfg(unix)]
fn wait(server: &Server) -> Result<(), CommandFailure> {
    server.serve_until_signal(DRAIN)?;
    Ok(())
}

#[cfg(not(unix))]
fn wait(server: &Server) -> Result<(), CommandFailure> {
    server.wait();
    server.shutdown(DRAIN);
    Ok(())
}

/// The place that answers come from.
enum AnswerSource {
    /// The interface alone: an example of each result.
    Examples,
    File(AnswersFile),
    Script(Script),
}

/// Answers calls, and says on stderr what it was asked and what it answered.
struct MockHandler {
    source: AnswerSource,
    is_quiet: bool,
}

impl DynamicHandler for MockHandler {
    fn handle(&self, call: &DynamicCall<'_>, arguments: Value) -> Result<Value, Refusal> {
        let procedure = call.procedure();
        let answer = match &self.source {
            AnswerSource::Examples => Ok(example(procedure)),
            AnswerSource::File(file) => Ok(file.answer(procedure, &arguments)),
            AnswerSource::Script(script) => script.answer(procedure, &arguments),
        };
        let answer = answer.unwrap_or_else(|problem| {
            eprintln!("tenon: {problem}");
            Answer::at_once(AnswerKind::Fail(problem))
        });
        if !self.is_quiet {
            eprintln!("{}", line(call, &arguments, &answer.kind));
        }
        thread::sleep(answer.delay);
        match answer.kind {
            AnswerKind::Result(result) => Ok(result),
            AnswerKind::Raise(name, error) => Err(call.raise(&name, &error)),
            AnswerKind::Fail(reason) => Err(Refusal::SystemError(reason)),
            AnswerKind::Invalid(reason) => Err(Refusal::InvalidArguments(reason)),
            AnswerKind::Unavailable => Err(Refusal::ProcedureUnavailable),
        }
    }
}

fn example(procedure: Procedure<'_>) -> Answer {
    let name = procedure.name();
    Answer::at_once(match procedure.example_result() {
        Some(result) => AnswerKind::Result(result),
        None => AnswerKind::Fail(format!("a result of {name} is too large for an example")),
    })
}

/// What a call asked, and what it is answered, on one line.
fn line(call: &DynamicCall<'_>, arguments: &Value, answer: &AnswerKind) -> String {
    let procedure = call.procedure();
    let mut line = procedure.name().to_owned();
    if !procedure.parameters().is_empty() {
        let arguments = procedure.write_arguments(arguments).unwrap_or_default();
        let _ = write!(line, " {}", shortened(&output::json_text(&arguments, true)));
    }
    let shown = match answer {
        AnswerKind::Result(result) => {
            let result = procedure.write_result(result).unwrap_or_default();
            output::json_text(&result, true)
        }
        AnswerKind::Raise(name, _) => format!("raises {name}"),
        AnswerKind::Fail(reason) => format!("fails: {reason}"),
        AnswerKind::Invalid(reason) => format!("invalid arguments: {reason}"),
        AnswerKind::Unavailable => "no such procedure: it has no answer".to_owned(),
    };
    let _ = write!(line, " -> {}", shortened(&shown));
    line
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

//! `tenon serve`: a server without a program behind it, for those who write clients.

mod answer;
mod answers_file;
mod script;

use std::fmt::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value as Json;
use tenon::rpcbind::LocalRpcbind;
use tenon::{Protocol, Refusal, Server};
use tenon_descriptor::Descriptor;
use tenon_dynamic::{
    DynamicCall, DynamicHandler, DynamicInterface, DynamicService, DynamicStreams,
};
use tenon_exec::Value;
use tenon_reflection::Reflection;

use self::answer::{Answer, AnswerKind, AnswerTypes};
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
        let types = AnswerTypes::of(call.procedure(), None);
        let answer = self.find(types, &arguments, None);
        self.show(call, &arguments, None, &answer);
        thread::sleep(answer.delay);
        answer.kind.into_result(call)
    }

    /// Answers when all items of the last argument have come, if that is a stream.
    fn handle_streams(
        &self,
        call: &DynamicCall<'_>,
        arguments: Value,
        streams: &mut DynamicStreams<'_>,
    ) -> Result<Value, Refusal> {
        let types = AnswerTypes::of(call.procedure(), Some(streams.procedure()));
        let received = self.receive(streams)?;
        let count = received.as_ref().map(|received| received.count);
        let items = received.map(|received| received.shown);
        let answer = self.find(types, &arguments, items);
        self.show(call, &arguments, count, &answer);
        thread::sleep(answer.delay);
        if let Some(results) = &mut streams.results {
            results.send_all(&answer.items)?;
        }
        answer.kind.into_result(call)
    }
}

/// The items of an argument, as far as they are kept.
struct ReceivedItems {
    count: usize,
    /// For a script.
    shown: Vec<Json>,
}

impl MockHandler {
    fn find(&self, types: AnswerTypes<'_>, arguments: &Value, items: Option<Vec<Json>>) -> Answer {
        let answer = match &self.source {
            AnswerSource::Examples => Ok(example(types)),
            AnswerSource::File(file) => Ok(file.answer(types.procedure, arguments)),
            AnswerSource::Script(script) => script.answer(types, arguments, items),
        };
        answer.unwrap_or_else(|problem| {
            eprintln!("tenon: {problem}");
            Answer::at_once(AnswerKind::Fail(problem))
        })
    }

    /// Receives all items of the last argument, if that is a stream.
    fn receive(&self, streams: &mut DynamicStreams<'_>) -> Result<Option<ReceivedItems>, Refusal> {
        let item_type = streams.procedure().argument_item();
        let (Some(items), Some(item_type)) = (&mut streams.arguments, item_type) else {
            return Ok(None);
        };
        let is_asked = matches!(self.source, AnswerSource::Script(_));
        let mut received = ReceivedItems {
            count: 0,
            shown: Vec::new(),
        };
        for item in items {
            let item = item?;
            received.count += 1;
            if is_asked {
                received.shown.push(item_type.write_result(&item)?);
            }
        }
        Ok(Some(received))
    }

    /// Says on stderr what a call asked, and what it is answered.
    fn show(
        &self,
        call: &DynamicCall<'_>,
        arguments: &Value,
        count: Option<usize>,
        answer: &Answer,
    ) {
        if !self.is_quiet {
            eprintln!("{}", line(call, arguments, count, answer));
        }
    }
}

impl AnswerKind {
    /// Returns it as the result of a call.
    fn into_result(self, call: &DynamicCall<'_>) -> Result<Value, Refusal> {
        match self {
            AnswerKind::Result(result) => Ok(result),
            AnswerKind::Raise(name, error) => Err(call.raise(&name, &error)),
            AnswerKind::Fail(reason) => Err(Refusal::SystemError(reason)),
            AnswerKind::Invalid(reason) => Err(Refusal::InvalidArguments(reason)),
            AnswerKind::Unavailable => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// Answers with an example: of a result that is a stream, with one item.
fn example(types: AnswerTypes<'_>) -> Answer {
    let name = types.procedure.name();
    let too_large = || AnswerKind::Fail(format!("a result of {name} is too large for an example"));
    let item = match types.item.map(|item| item.example_result()) {
        Some(None) => return Answer::at_once(too_large()),
        Some(item) => item,
        None => None,
    };
    let kind = (types.procedure.example_result()).map_or_else(too_large, AnswerKind::Result);
    Answer {
        items: item.into_iter().collect(),
        ..Answer::at_once(kind)
    }
}

/// What a call asked, with so many items, and what it is answered, on one line.
fn line(
    call: &DynamicCall<'_>,
    arguments: &Value,
    count: Option<usize>,
    answer: &Answer,
) -> String {
    let procedure = call.procedure();
    let mut line = procedure.name().to_owned();
    if !procedure.parameters().is_empty() {
        let arguments = procedure.write_arguments(arguments).unwrap_or_default();
        let _ = write!(line, " {}", shortened(&output::json_text(&arguments, true)));
    }
    if let Some(count) = count {
        let _ = write!(line, " and {}", items(count));
    }
    if !answer.items.is_empty() {
        let _ = write!(line, " -> {}", items(answer.items.len()));
    }
    let shown = match &answer.kind {
        AnswerKind::Result(Value::Void) if !answer.items.is_empty() => return line,
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

fn items(count: usize) -> String {
    match count {
        1 => "1 item".to_owned(),
        _ => format!("{count} items"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

//! `tenon call` of a procedure with streams: items are read and written as they come.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tenon::{CallError, ClientView};
use tenon_dynamic::{OpenedCall, StreamedProcedure};
use tenon_exec::{Procedure, Value, json};
use tenon_schema::{Length, Schema, Type};

use crate::args::StreamArgs;
use crate::failure::CommandFailure;
use crate::output;

/// Most bytes of an item of `opaque` that is made of a file.
const BYTES_MAX: usize = 32 << 10;

/// Time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Where items come from and go to.
pub struct StreamedCall<'a> {
    pub schema: &'a Schema,
    pub procedure: &'a StreamedProcedure,
    pub args: &'a StreamArgs,
    /// True if a result is printed on one line.
    pub compact: bool,
}

/// The reason for which a call ended before its end.
pub enum StreamFailure {
    Call(CallError),
    /// Items could not be read or written.
    Items(CommandFailure),
}

impl From<CallError> for StreamFailure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<CommandFailure> for StreamFailure {
    fn from(failure: CommandFailure) -> Self {
        Self::Items(failure)
    }
}

impl From<io::Error> for StreamFailure {
    fn from(error: io::Error) -> Self {
        Self::Items(error.into())
    }
}

impl StreamedCall<'_> {
    /// Makes the call, and moves all items.
    pub fn run(&self, client: ClientView<'_>, arguments: &Value) -> Result<(), StreamFailure> {
        let input = match self.procedure.argument_item() {
            Some(item) => Some(ItemInput::open(self, item)?),
            None => None,
        };
        let mut out = match self.procedure.result_item() {
            Some(item) => Some(ItemOutput::open(self, item)?),
            None => None,
        };
        match tenon_dynamic::open(client, self.procedure, arguments)? {
            OpenedCall::Argument(mut items) => {
                if let Some(mut input) = input {
                    input.send_all(|item| items.send(item))?;
                }
                let result = items.finish()?;
                let json = self.procedure.call().write_result(&result);
                let json = json.map_err(CommandFailure::new)?;
                Ok(output::print_json(&json, self.compact)?)
            }
            OpenedCall::Result(items) => write_all(items, out.as_mut()),
            OpenedCall::Both((mut items, results)) => thread::scope(|scope| {
                let sending = scope.spawn(move || -> Result<(), StreamFailure> {
                    if let Some(mut input) = input {
                        input.send_all(|item| items.send(item))?;
                    }
                    Ok(items.finish()?)
                });
                let written = write_all(results, out.as_mut());
                let sent = sending.join().unwrap_or(Ok(()));
                match (written, sent) {
                    // The reply says more of why no further items are taken.
                    (written, Ok(()) | Err(StreamFailure::Call(_))) => written,
                    (_, Err(failure)) => Err(failure),
                }
            }),
        }
    }

    /// Returns how many bytes an item of `opaque` may have, if items are to be moved as bytes.
    fn bytes_max(&self, item: Procedure<'_>) -> Option<usize> {
        let ty = item.result().filter(|_| !self.args.json_items)?;
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Counted(max)) => Some(BYTES_MAX.min(*max as usize).max(1)),
            _ => None,
        }
    }
}

fn write_all(
    items: impl Iterator<Item = Result<Value, CallError>>,
    out: Option<&mut ItemOutput<'_>>,
) -> Result<(), StreamFailure> {
    let Some(out) = out else {
        return Ok(());
    };
    for item in items {
        if !out.write(&item?)? {
            return Ok(());
        }
    }
    Ok(out.finish()?)
}

// ---- Items that are sent ----

/// The items of an argument.
struct ItemInput<'a> {
    schema: &'a Schema,
    /// Has an item as its result.
    item: Procedure<'a>,
    ty: Type,
    /// Number of the last item that was read from a line, counted from 1.
    number: u64,
    /// Most bytes of an item, if they are bytes and not JSON.
    bytes_max: Option<usize>,
    source: Box<dyn BufRead + Send>,
    progress: Progress,
}

impl<'a> ItemInput<'a> {
    fn open(call: &StreamedCall<'a>, item: Procedure<'a>) -> Result<Self, CommandFailure> {
        let file = call.args.input.as_deref();
        let source: Box<dyn BufRead + Send> = match file {
            Some(path) => Box::new(BufReader::new(open(path)?)),
            None => Box::new(BufReader::new(io::stdin())),
        };
        let bytes_max = call.bytes_max(item);
        Ok(Self {
            schema: call.schema,
            item,
            number: 0,
            ty: item.result().cloned().unwrap_or(Type::Int),
            bytes_max,
            source,
            progress: Progress::new("sent", file.is_some() && bytes_max.is_some()),
        })
    }

    /// Hands all items over, to be sent at once: what comes from a pipe may be waited for.
    fn send_all(
        &mut self,
        mut send: impl FnMut(&Value) -> Result<(), CallError>,
    ) -> Result<(), StreamFailure> {
        while let Some(item) = self.next()? {
            match send(&item) {
                Ok(()) => {}
                // The reply says why.
                Err(CallError::StreamClosed) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.progress.end();
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Value>, CommandFailure> {
        match self.bytes_max {
            Some(max) => self.next_bytes(max),
            None => self.next_line(),
        }
    }

    fn next_bytes(&mut self, max: usize) -> Result<Option<Value>, CommandFailure> {
        let mut bytes = vec![0; max];
        let length = self.source.read(&mut bytes)?;
        bytes.truncate(length);
        self.progress.add(length);
        Ok((length > 0).then_some(Value::Opaque(bytes)))
    }

    /// Reads the next line that is not empty.
    fn next_line(&mut self) -> Result<Option<Value>, CommandFailure> {
        loop {
            let mut line = String::new();
            if self.source.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.trim().is_empty() {
                continue;
            }
            self.number += 1;
            let item =
                json::parse(&line).map_err(|error| self.misfit(format!("is not JSON: {error}")))?;
            let item = json::read(self.schema, &self.ty, &item)
                .map_err(|error| self.misfit(format!("does not fit: {error}")))?;
            return Ok(Some(item));
        }
    }

    /// Says which item is wrong, and how items are written.
    fn misfit(&self, what: String) -> CommandFailure {
        let example = self.item.example_result();
        let json = example.and_then(|example| self.item.write_result(&example).ok());
        CommandFailure::new(format!("item {} {what}", self.number)).hint(match json {
            Some(json) => format!("write an item of JSON on each line, such as {json}"),
            None => "write an item of JSON on each line".to_owned(),
        })
    }
}

fn open(path: &Path) -> Result<File, CommandFailure> {
    File::open(path)
        .map_err(|error| CommandFailure::new(format!("cannot read {}: {error}", path.display())))
}

// ---- Items that come ----

/// The destination of the items of a result.
struct ItemOutput<'a> {
    schema: &'a Schema,
    ty: Type,
    are_bytes: bool,
    sink: Box<dyn Write>,
    progress: Progress,
}

impl<'a> ItemOutput<'a> {
    fn open(call: &StreamedCall<'a>, item: Procedure<'a>) -> Result<Self, CommandFailure> {
        let file = call.args.output.as_deref();
        let sink: Box<dyn Write> = match file {
            Some(path) => Box::new(File::create(path).map_err(|error| {
                CommandFailure::new(format!("cannot write {}: {error}", path.display()))
            })?),
            None => Box::new(io::stdout().lock()),
        };
        let are_bytes = call.bytes_max(item).is_some();
        Ok(Self {
            schema: call.schema,
            ty: item.result().cloned().unwrap_or(Type::Int),
            are_bytes,
            sink,
            progress: Progress::new("received", file.is_some() && are_bytes),
        })
    }

    /// Writes an item; returns false if the reader of stdout has gone.
    fn write(&mut self, item: &Value) -> Result<bool, CommandFailure> {
        let written = match item {
            Value::Opaque(bytes) if self.are_bytes => {
                self.progress.add(bytes.len());
                self.sink.write_all(bytes)
            }
            item => {
                let json = json::write(self.schema, &self.ty, item).map_err(CommandFailure::new)?;
                let line = output::json_text(&json, true) + "\n";
                self.sink.write_all(line.as_bytes())
            }
        };
        // Each item is seen when it comes.
        match written.and_then(|()| self.sink.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(CommandFailure::new(format!(
                "cannot write an item: {error}"
            ))),
        }
    }

    fn finish(&mut self) -> Result<(), CommandFailure> {
        self.progress.end();
        Ok(self.sink.flush()?)
    }
}

// ---- Progress ----

/// Tells on a terminal how many bytes went through.
struct Progress {
    verb: &'static str,
    is_shown: bool,
    begun: Instant,
    shown: Instant,
    bytes: u64,
}

impl Progress {
    fn new(verb: &'static str, is_wanted: bool) -> Self {
        let now = Instant::now();
        Self {
            verb,
            is_shown: is_wanted && io::stderr().is_terminal(),
            begun: now,
            shown: now,
            bytes: 0,
        }
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.is_shown && self.shown.elapsed() >= PROGRESS_INTERVAL {
            self.shown = Instant::now();
            eprint!("\r{}", self.text());
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprintln!("\r{}", self.text());
        }
    }

    fn text(&self) -> String {
        let megabytes = self.bytes as f64 / 1e6;
        let rate = megabytes / self.begun.elapsed().as_secs_f64().max(1e-6);
        format!("{} {megabytes:.1} MB, {rate:.1} MB/s  ", self.verb)
    }
}

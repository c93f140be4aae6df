//! Answers of a program: it is told of each call by a line of JSON, and answers by one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value as Json, json};
use tenon_exec::Value;

use super::answer::{Answer, AnswerTypes};
use crate::failure::CommandFailure;

/// A running program that answers calls, one after the other.
pub struct Script(Mutex<ScriptPipes>);

struct ScriptPipes {
    process: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Script {
    /// Starts a command line.
    pub fn start(command: &str) -> Result<Self, CommandFailure> {
        let failed = |error| CommandFailure::new(format!("cannot start the script: {error}"));
        let (shell, option) = if cfg!(windows) {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        let mut process = Command::new(shell)
            .args([option, command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (calls, answers) = pipes.expect("both are pipes");
        Ok(Self(Mutex::new(ScriptPipes {
            process,
            calls,
            answers: BufReader::new(answers),
        })))
    }

    /// Asks the script for its answer to a call, with the items of the last argument if that is a stream.
    ///
    /// # Errors
    /// It has ended, or answers what it must not; the text says so.
    pub fn answer(
        &self,
        types: AnswerTypes<'_>,
        arguments: &Value,
        items: Option<Vec<Json>>,
    ) -> Result<Answer, String> {
        let procedure = types.procedure;
        let arguments = procedure.write_arguments(arguments);
        let mut question = json!({
            "program": procedure.program().name,
            "version": procedure.version().number,
            "procedure": procedure.name(),
            "arguments": arguments.map_err(|error| error.to_string())?,
        });
        if let Some(items) = items {
            question["items"] = Json::Array(items);
        }
        let line = {
            let mut pipes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            pipes.ask(&question)?
        };
        let shown = line.trim_end();
        let answered: Json = serde_json::from_str(&line)
            .map_err(|error| format!("the script answered what is not JSON: {error}: {shown}"))?;
        let members = answered.as_object();
        let members = members.ok_or_else(|| format!("the script answered no object: {shown}"))?;
        Answer::read(types, members)
            .map_err(|problem| format!("the script answered {shown}: {problem}"))
    }
}

impl ScriptPipes {
    fn ask(&mut self, question: &Json) -> Result<String, String> {
        let ended = || "the script has ended".to_owned();
        let sent = writeln!(self.calls, "{question}").and_then(|()| self.calls.flush());
        sent.map_err(|_| ended())?;
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(ended()),
            Ok(_) => Ok(line),
            Err(error) => Err(format!("the script's answer cannot be read: {error}")),
        }
    }
}

impl Drop for ScriptPipes {
    fn drop(&mut self) {
        // It may wait for something else than its input, which ends now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! The command `tenon`: the command line and what it prints. All work is done by the libraries.

mod args;
mod commands;
mod failure;
mod interface;
#[cfg_attr(windows, path = "interrupt_windows.rs")]
mod interrupt;
mod output;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{CliArgs, CliCommand};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(arguments) = rpcgen_arguments(&words) {
        return commands::rpcgen::run(arguments);
    }
    let outcome = match CliArgs::parse().command {
        CliCommand::Check(args) => commands::check::run(&args),
        CliCommand::Rpcgen { arguments } => return commands::rpcgen::run(&arguments),
        CliCommand::Gen(args) => commands::generate::run(&args),
        CliCommand::Descriptor(args) => commands::descriptor::run(&args),
        CliCommand::Explain(args) => commands::explain::run(&args),
        CliCommand::Call(args) => commands::call::run(&args),
        CliCommand::Account(args) => commands::account::run(&args),
        CliCommand::List(args) => commands::list::run(&args),
        CliCommand::Describe(args) => commands::describe::run(&args),
        CliCommand::Ping(args) => commands::ping::run(args),
        CliCommand::Health(args) => commands::health::run(args),
        CliCommand::Serve(args) => commands::serve::run(&args),
        CliCommand::Demo(args) => commands::demo::run(&args),
        CliCommand::Study(args) => commands::study::run(&args),
        CliCommand::Cost(args) => commands::cost::run(&args),
        CliCommand::Completions { shell } => commands::completions::run(shell),
        CliCommand::Man { folder } => commands::man::run(&folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Returns the arguments behind the name, if the program goes by the name of rpcgen.
fn rpcgen_arguments(words: &[OsString]) -> Option<&[OsString]> {
    let (name, arguments) = words.split_first()?;
    let is_rpcgen = Path::new(name).file_name()? == "rpcgen";
    is_rpcgen.then_some(arguments)
}

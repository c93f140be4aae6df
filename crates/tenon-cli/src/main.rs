//! The command `tenon`: the command line and what it prints. All work is done by the libraries.

mod args;
mod commands;
mod failure;
mod interface;
mod interrupt;
mod output;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(arguments) = rpcgen_arguments(&words) {
        return commands::rpcgen::run(arguments);
    }
    let outcome = match Cli::parse().command {
        Command::Check(args) => commands::check::run(&args),
        Command::Rpcgen { arguments } => return commands::rpcgen::run(&arguments),
        Command::Gen(args) => commands::generate::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Call(args) => commands::call::run(&args),
        Command::Account(args) => commands::account::run(&args),
        Command::Ping(args) => commands::ping::run(args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Study(args) => commands::study::run(&args),
        Command::Cost(args) => commands::cost::run(&args),
        Command::Completions { shell } => commands::completions::run(shell),
        Command::Man { folder } => commands::man::run(&folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// What stands behind the name, if the program goes by the name of rpcgen.
fn rpcgen_arguments(words: &[OsString]) -> Option<&[OsString]> {
    let (name, arguments) = words.split_first()?;
    let is_rpcgen = Path::new(name).file_name()? == "rpcgen";
    is_rpcgen.then_some(arguments)
}

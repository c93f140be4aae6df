//! Calls the three servers of the system from the command line.

mod jobs;
mod kv;
mod uploads;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tenon::ChannelOptions;
use tenon_example_system::exit_code;

/// Calls the servers of the system
#[derive(Parser)]
struct Options {
    /// Address of the server, such as lean+tcp://HOST:PORT; by default that of this service on this host
    #[arg(long)]
    at: Option<String>,

    /// Seconds that a call may take
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    timeout: Duration,

    /// Wait for a server that is not there, for as long as a call may take
    #[arg(long)]
    wait: bool,

    #[command(subcommand)]
    service: Service,
}

#[derive(Subcommand)]
enum Service {
    /// Keys and their values
    Kv {
        #[command(subcommand)]
        command: kv::Command,
    },
    /// Jobs and their workers
    Jobs {
        #[command(subcommand)]
        command: jobs::Command,
    },
    /// Files in chunks
    Uploads {
        #[command(subcommand)]
        command: uploads::Command,
    },
}

/// The server that a command calls, and how it does so.
struct Target {
    address: Option<String>,
    options: ChannelOptions,
    timeout: Duration,
}

impl Target {
    fn address<'a>(&'a self, default: &'a str) -> &'a str {
        self.address.as_deref().unwrap_or(default)
    }
}

fn seconds(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

fn main() -> ExitCode {
    exit_code(run(Options::parse()))
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let target = Target {
        address: options.at,
        options: ChannelOptions::default().wait_for_ready(options.wait),
        timeout: options.timeout,
    };
    match options.service {
        Service::Kv { command } => kv::run(&target, command),
        Service::Jobs { command } => jobs::run(&target, command),
        Service::Uploads { command } => uploads::run(&target, command),
    }
}

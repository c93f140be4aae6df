//! What the command takes that serves.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::InterfaceArgs;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The interface file; `-` reads it from stdin. All versions of all programs in it are served
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Listen at this address, tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH, shm:///PATH, xdp://HOST:PORT or
    /// onc+xdp://HOST:PORT; port 0 is any. May be said several times
    #[arg(long, value_name = "ADDRESS", default_value = "tcp://127.0.0.1:0")]
    pub listen: Vec<String>,

    /// Answer from this file of JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "script")]
    pub answers: Option<PathBuf>,

    /// Answer by a program that runs as long as the server: it reads and writes a line of JSON for each call
    #[arg(long, value_name = "COMMAND")]
    pub script: Option<String>,

    /// Register with the rpcbind of this host, so that clients find the port
    #[arg(long)]
    pub register: bool,

    /// Offer reflection: tell callers of the interface, so that `tenon list`, `tenon describe` and `tenon call` need no file
    #[arg(long)]
    pub reflection: bool,

    /// Do not log calls to stderr
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

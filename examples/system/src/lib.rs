//! A small system on Tenon: a key-value store, jobs and uploads. `kv-server` serves by threads, `jobs-server` by tasks,
//! with long polls, and `uploads-server` has methods that block, on tokio.

pub mod folder;
pub mod job_service;
pub mod journal;
pub mod queue;
pub mod server_options;
pub mod store;

use std::error::Error;
use std::process::ExitCode;

tenon::stubs!(
    /// The key-value store.
    pub mod kv;
);
tenon::stubs!(
    /// Jobs and their workers.
    pub mod jobs;
);
tenon::stubs!(
    /// Files in chunks.
    pub mod uploads;
);

/// Returns the exit code of a program that ends with `outcome`, and prints an error with its causes.
pub fn exit_code(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    eprint!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprint!(": {cause}");
        source = cause.source();
    }
    eprintln!();
    ExitCode::FAILURE
}

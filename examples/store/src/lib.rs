//! An object store on Tenon: objects are put, got and watched by calls with streams. `store-server` serves by threads,
//! `store-server-tokio` by tasks, both from the same [`ObjectStore`](objects::ObjectStore).

pub mod events;
pub mod objects;
pub mod server_options;
pub mod tasks;
pub mod threads;

use std::error::Error;
use std::process::ExitCode;

tenon::stubs!(
    /// The interface of the store.
    pub mod store;
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

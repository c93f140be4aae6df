//! Threads without the types of what they run: the standard library makes kilobytes of code for each type of a closure that
//! a thread begins with.

use std::{io, thread};

/// Starts a thread with this name.
///
/// # Errors
/// The system has no further thread.
pub(crate) fn spawn(name: &'static str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    spawn_erased(name, Box::new(run))
}

fn spawn_erased(name: &'static str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}

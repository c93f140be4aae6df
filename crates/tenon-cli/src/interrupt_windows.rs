//! Ctrl-C beside the work, which ends the process here as it does by default.

use std::io;

/// Runs `work` and returns its result.
///
/// # Errors
/// None on this system.
pub fn run_until_interrupted<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    Ok(Some(work()))
}

//! Futures and closures without their types: the run time and the compiler make kilobytes of code for each type that is
//! spawned or awaited, in this crate and in each program. That costs an allocation for each task.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

/// A future of which the type is not known.
pub(crate) type ErasedFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Spawns a task.
///
/// # Panics
/// Outside of a tokio run time.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_erased(Box::pin(future))
}

fn spawn_erased(future: ErasedFuture<'static, ()>) -> JoinHandle<()> {
    tokio::spawn(future)
}

/// Calls a function on a thread of the run time for what blocks.
///
/// # Panics
/// Outside of a tokio run time.
pub(crate) fn spawn_blocking(function: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    spawn_blocking_erased(Box::new(function))
}

fn spawn_blocking_erased(function: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    tokio::task::spawn_blocking(function)
}

/// Calls a function on a thread of the run time for what blocks, and returns its result.
///
/// # Errors
/// The function has panicked, or the run time ends.
pub(crate) async fn blocking<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let result = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&result);
    spawn_blocking(move || {
        let value = function();
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    })
    .await?;
    let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.ok_or_else(|| io::ErrorKind::Other.into())
}

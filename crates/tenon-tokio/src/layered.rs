//! Tasks that wait where a middleware holds a call back.

use std::ops::Deref;
use std::time::Instant;

use tenon_core::middleware::{CallRun, Middleware, Rejection, RunStep};
use tokio::time::{sleep_until, timeout_at};

/// Waits for as long as middleware holds a call back.
///
/// # Errors
/// The call is not to go on.
#[inline]
pub(crate) async fn wait_until_released<H>(run: &mut CallRun<'_, H>) -> Result<(), Rejection>
where
    H: Deref<Target: Middleware + Sized>,
{
    loop {
        match run.step()? {
            RunStep::Go => return Ok(()),
            RunStep::WaitUntil(at) => sleep_until(at.into()).await,
            RunStep::WaitFor(released) => {
                let deadline: Option<Instant> = run.scope().deadline();
                match deadline {
                    None => released.await,
                    // Whether it was released or is too late, the next step says.
                    Some(deadline) => drop(timeout_at(deadline.into(), released).await),
                }
            }
        }
    }
}

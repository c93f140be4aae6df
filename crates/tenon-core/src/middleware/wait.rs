//! Threads that wait where a middleware holds a call back.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use super::{CallRun, Middleware, Rejection, RunStep};

/// Wakes a thread that is parked.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread for as long as middleware holds a call back.
///
/// # Errors
/// The call is not to go on.
#[inline]
pub fn wait_until_released<H>(run: &mut CallRun<'_, H>) -> Result<(), Rejection>
where
    H: Deref<Target: Middleware + Sized>,
{
    loop {
        match run.step()? {
            RunStep::Go => return Ok(()),
            RunStep::WaitUntil(at) => sleep_until(at),
            RunStep::WaitFor(released) => block_on(released, run.scope().deadline()),
        }
    }
}

fn sleep_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}

/// Waits until a future is ready, but not beyond `deadline`.
#[cold]
fn block_on(mut future: Pin<Box<dyn Future<Output = ()> + Send>>, deadline: Option<Instant>) {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut cx = Context::from_waker(&waker);
    while future.as_mut().poll(&mut cx) == Poll::Pending {
        match deadline {
            None => thread::park(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return;
                }
                thread::park_timeout(left);
            }
        }
    }
}

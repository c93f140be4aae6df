//! The trait of what stands around calls.

use std::sync::Arc;
use std::time::Duration;

use super::{CallOutcome, CallScope, Rejection};

/// Something that stands around calls: of a client, of a service, of threads and of tasks alike.
/// [`Layered`](super::Layered) puts it there.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tenon::{CallOutcome, CallScope, Layered, Middleware, Rejection};
///
/// /// Counts the calls of each outcome.
/// #[derive(Default)]
/// struct Counting {
///     succeeded: AtomicU64,
///     failed: AtomicU64,
/// }
///
/// impl Middleware for Counting {
///     type State = ();
///
///     fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
///         Ok(())
///     }
///
///     fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
///         println!("{} took {:?}", call.procedure().name, call.started_at().elapsed());
///         let counter = if outcome.is_success() { &self.succeeded } else { &self.failed };
///         counter.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let counting = Arc::new(Counting::default());
/// let client = GreeterV1Client::connect(&address)?;
/// let greeter = GreeterV1Client(Layered::new(client.0, Arc::clone(&counting)));
/// greeter.greet(&Visitor::default())?;
/// assert_eq!(counting.succeeded.load(Ordering::Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// What is kept of a call from its begin to its end.
    type State: Send;

    /// Looks at a call that is to be made or carried out.
    ///
    /// # Errors
    /// The call is not to go on. What stands further out is told so.
    fn begin(&self, call: &mut CallScope<'_>) -> Result<Self::State, Rejection>;

    /// Returns after which pause a call is to be made again whose attempt ended by `outcome`; `None`, as by default,
    /// if it is over. All that stands further in ends before and begins again after the pause. A server carries a
    /// call out once, and a call that was [started](crate::MakeCalls::start) is made once: they do not ask.
    fn repeat_after(
        &self,
        _state: &mut Self::State,
        _call: &CallScope<'_>,
        _outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        None
    }

    /// Looks at the outcome of a call that is over. This is called once for each call that has begun, also if it panics
    /// or is given up.
    fn end(&self, _state: Self::State, _call: &CallScope<'_>, _outcome: &CallOutcome<'_>) {}

    /// Goes on with a call that was held back, or is made again, from where what stands further in has not begun yet.
    /// Only a middleware that consists of others has something to do.
    ///
    /// # Errors
    /// The call is not to go on.
    #[doc(hidden)]
    fn resume(&self, _state: &mut Self::State, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        Ok(())
    }
}

/// The same middleware around several clients or services.
impl<M: Middleware> Middleware for Arc<M> {
    type State = M::State;

    fn begin(&self, call: &mut CallScope<'_>) -> Result<Self::State, Rejection> {
        M::begin(self, call)
    }

    fn repeat_after(
        &self,
        state: &mut Self::State,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        M::repeat_after(self, state, call, outcome)
    }

    fn end(&self, state: Self::State, call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        M::end(self, state, call, outcome);
    }

    fn resume(&self, state: &mut Self::State, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        M::resume(self, state, call)
    }
}

/// A middleware that may be left out.
impl<M: Middleware> Middleware for Option<M> {
    type State = Option<M::State>;

    fn begin(&self, call: &mut CallScope<'_>) -> Result<Self::State, Rejection> {
        self.as_ref().map(|inner| inner.begin(call)).transpose()
    }

    fn repeat_after(
        &self,
        state: &mut Self::State,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        let (inner, state) = self.as_ref().zip(state.as_mut())?;
        inner.repeat_after(state, call, outcome)
    }

    fn end(&self, state: Self::State, call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        if let (Some(inner), Some(state)) = (self, state) {
            inner.end(state, call, outcome);
        }
    }

    fn resume(&self, state: &mut Self::State, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        match (self, state) {
            (Some(inner), Some(state)) => inner.resume(state, call),
            _ => Ok(()),
        }
    }
}

//! Context propagation: the calls that a handler makes have no more time than the call that it carries out, and belong
//! to the same trace.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::lean::{Metadata, MetadataError, MetadataView};

/// The part of a call that the calls of its handler carry on: its deadline and its metadata. While a handler runs, its
/// thread or task has the context of its call, and every client takes from it what its [`Propagation`] says.
///
/// A thread or a task that a handler starts has no context of its own accord. It gets one by [`enter`](Self::enter) or
/// [`scope`](Self::scope):
///
/// ```
/// use tenon_core::propagation::PropagatedContext;
///
/// // In a handler:
/// let context = PropagatedContext::current();
/// std::thread::spawn(move || {
///     let _entered = context.enter();
///     // Calls that are made here have the deadline and the trace of the handler's call.
/// });
/// ```
#[derive(Debug, Clone, Default)]
pub struct PropagatedContext {
    deadline: Option<Instant>,
    metadata: Option<Arc<Metadata>>,
}

thread_local! {
    /// True if there is a context: a look at it costs a call without one next to nothing.
    static IS_ACTIVE: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<PropagatedContext> = const { RefCell::new(PropagatedContext::NONE) };
}

impl PropagatedContext {
    /// Nothing to carry on.
    pub const NONE: Self = Self {
        deadline: None,
        metadata: None,
    };

    /// The context of a call.
    #[inline]
    pub(crate) fn of_call(deadline: Option<Instant>, metadata: MetadataView<'_>) -> Self {
        Self {
            deadline,
            metadata: match metadata.is_empty() {
                true => None,
                false => Some(Arc::new(metadata.to_owned())),
            },
        }
    }

    /// Returns the context of this thread, or of the task that it runs; [`NONE`](Self::NONE) outside of handlers.
    pub fn current() -> Self {
        match IS_ACTIVE.get() {
            true => CURRENT.with_borrow(Self::clone),
            false => Self::NONE,
        }
    }

    /// Returns whether there is nothing to carry on.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.deadline.is_none() && self.metadata.is_none()
    }

    /// Returns when calls are to be over, if that is limited.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the metadata of the call that a handler carries out.
    pub fn metadata(&self) -> MetadataView<'_> {
        self.metadata
            .as_ref()
            .map_or(MetadataView::NONE, |metadata| metadata.view())
    }

    /// Makes this the context of the calling thread until the guard is dropped, which brings the one before back.
    /// Guards are to be dropped in the reverse order of that in which they were made.
    pub fn enter(&self) -> EnteredContext {
        EnteredContext {
            before: Self::replace(self.clone()),
            stays_here: PhantomData,
        }
    }

    /// Makes this the context of a future whenever it is polled.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _entered = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }

    fn replace(context: Self) -> Self {
        IS_ACTIVE.set(!context.is_empty());
        CURRENT.replace(context)
    }
}

/// A guard of the context of a thread.
#[derive(Debug)]
#[must_use = "the context ends when this is dropped"]
pub struct EnteredContext {
    before: PropagatedContext,
    /// It belongs to the thread that has entered.
    stays_here: PhantomData<*const ()>,
}

impl Drop for EnteredContext {
    fn drop(&mut self) {
        PropagatedContext::replace(std::mem::take(&mut self.before));
    }
}

/// The part of the [context](PropagatedContext) of a handler that a client's calls carry on: the deadline and the
/// context of the trace (`traceparent` and `tracestate` of W3C Trace Context) by default. Tokens and all other metadata
/// of the handler's call are not carried on unless their keys are named.
///
/// ```
/// use tenon_core::propagation::Propagation;
///
/// let with_tenant = Propagation::default().key("tenant");
/// // For what goes on after the handler's caller has given up.
/// let independent = Propagation::none();
/// assert_ne!(with_tenant, independent);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Propagation {
    has_deadline: bool,
    keys: Vec<Box<str>>,
}

impl Default for Propagation {
    fn default() -> Self {
        Self {
            has_deadline: true,
            keys: Self::TRACE_KEYS.map(Box::from).to_vec(),
        }
    }
}

impl Propagation {
    const TRACE_KEYS: [&str; 2] = [Metadata::TRACEPARENT, Metadata::TRACESTATE];

    /// Nothing is carried on.
    pub const fn none() -> Self {
        Self {
            has_deadline: false,
            keys: Vec::new(),
        }
    }

    /// Sets whether calls have no more time than the handler's call.
    #[must_use]
    pub fn deadline(self, has_deadline: bool) -> Self {
        Self {
            has_deadline,
            ..self
        }
    }

    /// Carries on the metadata of this key, too.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.keys.push(key.into());
        self
    }
}

/// Returns whether the calling thread has a context.
#[inline]
pub(crate) fn is_active() -> bool {
    IS_ACTIVE.get()
}

/// Returns when calls are to be over that are made now, if the context of the calling thread limits that.
#[inline]
pub(crate) fn deadline() -> Option<Instant> {
    match is_active() {
        false => None,
        true => CURRENT.with_borrow(PropagatedContext::deadline),
    }
}

/// Returns how much time calls have that are made now, if the context of the calling thread limits it; `rules` are
/// those of the client, or the default.
#[cold]
pub(crate) fn time_left(rules: Option<&Propagation>) -> Option<Duration> {
    if rules.is_some_and(|rules| !rules.has_deadline) {
        return None;
    }
    Some(deadline()?.saturating_duration_since(Instant::now()))
}

/// Adds to `metadata` what the context of the calling thread has to carry on, unless there is a value of the same key.
///
/// # Errors
/// There would be too much.
#[cold]
pub(crate) fn carry_on(
    metadata: &mut Cow<'_, Metadata>,
    rules: Option<&Propagation>,
) -> Result<(), MetadataError> {
    let mut carried = Metadata::new();
    CURRENT.with_borrow(|context| {
        let is_named = |key: &str| match rules {
            Some(rules) => rules.keys.iter().any(|named| **named == *key),
            None => Propagation::TRACE_KEYS.contains(&key),
        };
        let mut pairs = context.metadata().iter();
        pairs.try_for_each(|(key, value)| match is_named(key) {
            true if metadata.get_bytes(key).is_none() => carried.append(key, value),
            _ => Ok(()),
        })
    })?;
    if !carried.is_empty() {
        metadata.to_mut().append_all(carried.view())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> PropagatedContext {
        let mut metadata = Metadata::new();
        let pairs = [
            ("traceparent", "00-1"),
            ("authorization", "Bearer a"),
            ("tenant", "t"),
        ];
        for (key, value) in pairs {
            metadata.append(key, value).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(3600);
        PropagatedContext::of_call(Some(deadline), metadata.view())
    }

    fn carried(rules: Option<&Propagation>) -> Vec<String> {
        let mut metadata = Cow::Owned(Metadata::new());
        carry_on(&mut metadata, rules).unwrap();
        metadata.iter().map(|(key, _)| key.to_owned()).collect()
    }

    #[test]
    fn contexts_nest_and_end() {
        assert!(!is_active());
        let outer = context();
        let entered = outer.enter();
        assert!(is_active());
        // A call of the same process is one of the handler's, too.
        let called = crate::service::CallInfo::in_process(1);
        assert_eq!(called.deadline(), outer.deadline());
        let inner = PropagatedContext::NONE.enter();
        assert!(!is_active() && time_left(None).is_none());
        drop(inner);
        assert_eq!(PropagatedContext::current().deadline(), outer.deadline());
        drop(entered);
        assert!(PropagatedContext::current().is_empty());
    }

    #[test]
    fn only_what_is_named_is_carried_on() {
        let context = context();
        let _entered = context.enter();
        assert_eq!(carried(None), ["traceparent"]);
        assert_eq!(carried(Some(&Propagation::default())), ["traceparent"]);
        let named = Propagation::default().key("tenant");
        assert_eq!(carried(Some(&named)), ["traceparent", "tenant"]);
        assert!(carried(Some(&Propagation::none())).is_empty());
        assert!(time_left(None).is_some());
        assert!(time_left(Some(&Propagation::none())).is_none());
        assert!(time_left(Some(&Propagation::none().deadline(true))).is_some());
    }

    #[test]
    fn a_value_of_the_call_itself_goes_before_that_of_the_context() {
        let _entered = context().enter();
        let mut metadata = Metadata::new();
        metadata.append("traceparent", "00-2").unwrap();
        let mut metadata = Cow::Borrowed(&metadata);
        carry_on(&mut metadata, None).unwrap();
        assert!(matches!(metadata, Cow::Borrowed(_)));
        assert_eq!(metadata.iter().count(), 1);
        assert_eq!(metadata.get("traceparent"), Some("00-2"));
    }

    #[test]
    fn a_future_has_its_context_whenever_it_is_polled() {
        use std::task::{Context, Poll, Waker};

        let mut polls = 0;
        let future = poll_fn(|_| {
            polls += 1;
            assert!(is_active());
            match polls {
                1 => Poll::Pending,
                _ => Poll::Ready(()),
            }
        });
        let mut scoped = pin!(context().scope(future));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(scoped.as_mut().poll(&mut cx).is_pending());
        assert!(!is_active());
        assert!(scoped.as_mut().poll(&mut cx).is_ready());
        assert!(!is_active());
    }
}

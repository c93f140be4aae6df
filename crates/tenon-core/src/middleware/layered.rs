//! A client or a service with middleware around it.

use std::fmt;
use std::sync::Arc;

use super::Middleware;

/// A client or a service with middleware around it. Around a client it makes calls as the client does
/// ([`MakeCalls`](crate::MakeCalls)), around a service it is a service, of threads or of tasks as that what it stands
/// around.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1Client, GreeterV1Service, Visitor}};
/// use tenon::{CallErrorKind, CallScope, Layered, Middleware, Rejection, Server};
///
/// /// Lets processes of one user in, as the kernel knows them.
/// struct OneUser(u32);
///
/// impl Middleware for OneUser {
///     type State = ();
///
///     fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
///         match call.peer().and_then(|peer| peer.user) {
///             Some(user) if user == self.0 => Ok(()),
///             _ => Err(Rejection::denied("this is another user's")),
///         }
///     }
/// }
///
/// let service = Layered::new(GreeterV1Service(Host), OneUser(4_294_967_294));
/// let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(service).start()?;
/// let greeter = GreeterV1Client::connect(&server.addresses()[0].to_string())?;
/// let error = greeter.greet(&Visitor::default()).unwrap_err();
/// assert_eq!(error.kind(), CallErrorKind::Denied);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Layered<T, M> {
    inner: T,
    /// Shared with the calls that have been started.
    middleware: Arc<M>,
}

/// Clones share the middleware.
impl<T: Clone, M> Clone for Layered<T, M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            middleware: Arc::clone(&self.middleware),
        }
    }
}

impl<T, M: Middleware> Layered<T, M> {
    /// Puts `middleware` around a client or a service.
    pub fn new(inner: T, middleware: M) -> Self {
        Self {
            inner,
            middleware: Arc::new(middleware),
        }
    }

    /// Puts another middleware in between: it sees a call after those that are there, and its outcome before them.
    #[must_use]
    pub fn with<N: Middleware>(self, inner: N) -> Layered<T, (Arc<M>, N)> {
        Layered {
            inner: self.inner,
            middleware: Arc::new((self.middleware, inner)),
        }
    }

    /// Returns the client or the service.
    #[inline]
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Returns the middleware.
    #[inline]
    pub fn middleware(&self) -> &Arc<M> {
        &self.middleware
    }
}

impl<T: fmt::Debug, M> fmt::Debug for Layered<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

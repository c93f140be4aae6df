//! The trait that generated clients for tasks call through, so that their methods are written once for a client, for a
//! client with options of some calls, and for what a program puts around a client.

use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{Ping, ProcedureCall, ProcedureError};
use tenon_core::{CallTarget, WithOptions};

use super::handle::Client;
use super::ticket::PendingCall;

/// Makes calls that return their results as futures: the [`MakeCalls`](tenon::MakeCalls) of tasks.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1AsyncClient, Visitor}, start_server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (server, address) = start_server().await;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tenon::{CallOptions, CallTarget, ProcedureCall, ProcedureError};
/// use tenon_tokio::{Client, MakeAsyncCalls, PendingCall};
///
/// /// Counts calls, and has a client make them. ([`Middleware`](tenon::Middleware) is less to write.)
/// struct Counting {
///     client: Client,
///     calls: AtomicU64,
/// }
///
/// impl MakeAsyncCalls for Counting {
///     type Pending<T, E: ProcedureError> = PendingCall<T, E>;
///
///     async fn call_with<P: ProcedureCall + Sync>(
///         &self,
///         call: &P,
///         options: CallOptions<'_>,
///     ) -> Result<P::Result, P::Error> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.call_with(call, options).await
///     }
///
///     fn start_with<P: ProcedureCall>(
///         &self,
///         call: &P,
///         options: CallOptions<'_>,
///     ) -> Result<PendingCall<P::Result, P::Error>, P::Error> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.start_with(call, options)
///     }
///
///     fn target(&self) -> CallTarget<'_> {
///         self.client.target()
///     }
/// }
///
/// let client = GreeterV1AsyncClient::connect(&address).await?.0;
/// let greeter = GreeterV1AsyncClient(Counting { client, calls: AtomicU64::new(0) });
/// greeter.greet(&Visitor::default()).await?;
/// assert_eq!(greeter.0.calls.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait MakeAsyncCalls: Sync {
    /// A call that has been started, a future of a `T`.
    type Pending<T, E: ProcedureError>: Future<Output = Result<T, E>>;

    /// Makes a call with `options` and returns its result. The call is started when the future is polled first, and
    /// given up when that is dropped.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn call_with<P: ProcedureCall + Sync>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<P::Result, P::Error>> + Send;

    /// Starts a call with `options` at once; its result is awaited later, in any order and by any task.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error>;

    /// Returns what the calls go to, and how much time they have.
    fn target(&self) -> CallTarget<'_>;

    /// Makes a call and returns its result, as [`call_with`](Self::call_with) does.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn call<P: ProcedureCall + Sync>(
        &self,
        call: &P,
    ) -> impl Future<Output = Result<P::Result, P::Error>> + Send {
        self.call_with(call, CallOptions::new())
    }

    /// Starts a call at once, as [`start_with`](Self::start_with) does.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    fn start<P: ProcedureCall>(
        &self,
        call: &P,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error> {
        self.start_with(call, CallOptions::new())
    }

    /// Calls procedure 0, which takes nothing, returns nothing, and shows that the server has the program.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn ping(&self) -> impl Future<Output = Result<(), CallError>> + Send {
        self.call(&Ping)
    }
}

impl MakeAsyncCalls for Client {
    type Pending<T, E: ProcedureError> = PendingCall<T, E>;

    #[inline]
    async fn call_with<P: ProcedureCall + Sync>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        self.with_options(options).call(call).await
    }

    #[inline]
    fn call<P: ProcedureCall + Sync>(
        &self,
        call: &P,
    ) -> impl Future<Output = Result<P::Result, P::Error>> + Send {
        Client::call(self, call)
    }

    #[inline]
    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<PendingCall<P::Result, P::Error>, P::Error> {
        self.with_options(options).start(call)
    }

    #[inline]
    fn target(&self) -> CallTarget<'_> {
        Client::target(self)
    }
}

impl<C: MakeAsyncCalls> MakeAsyncCalls for WithOptions<'_, C> {
    type Pending<T, E: ProcedureError> = C::Pending<T, E>;

    #[inline]
    async fn call_with<P: ProcedureCall + Sync>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        let options = self.options(options);
        self.client().call_with(call, options).await
    }

    #[inline]
    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error> {
        self.client().start_with(call, self.options(options))
    }

    #[inline]
    fn target(&self) -> CallTarget<'_> {
        self.client().target()
    }
}

//! The trait that generated clients call through, so that their methods are written once for a client, for a client
//! with options of some calls, and for what a program puts around a client.

use std::time::Duration;

use tenon_net::Address;

use crate::error::CallError;
use crate::options::CallOptions;
use crate::procedure::{Ping, ProcedureCall, ProcedureError};

/// Makes calls, and waits for their results on the caller's thread.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tenon::{CallOptions, CallTarget, Client, MakeCalls, PendingCall, ProcedureCall, ProcedureError};
///
/// /// Counts calls, and has a client make them. ([`Middleware`](crate::middleware::Middleware) is less to write.)
/// struct Counting {
///     client: Client,
///     calls: AtomicU64,
/// }
///
/// impl MakeCalls for Counting {
///     type Pending<T, E: ProcedureError> = PendingCall<T, E>;
///
///     fn call_with<P: ProcedureCall>(
///         &self,
///         call: &P,
///         options: CallOptions<'_>,
///     ) -> Result<P::Result, P::Error> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.call_with(call, options)
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
/// let client = GreeterV1Client::connect(&address)?.0;
/// let greeter = GreeterV1Client(Counting { client, calls: AtomicU64::new(0) });
/// greeter.greet(&Visitor::default())?;
/// greeter.start_greet(&Visitor::default())?.wait()?;
/// assert_eq!(greeter.0.calls.load(Ordering::Relaxed), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait MakeCalls {
    /// A call that has been started, and has a `T` as its result.
    type Pending<T, E: ProcedureError>: PendingReply<T, E>;

    /// Makes a call with `options` and waits for its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error>;

    /// Sends a call with `options` and returns at once, as far as there is room for it.
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

    /// Makes a call and waits for its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn call<P: ProcedureCall>(&self, call: &P) -> Result<P::Result, P::Error> {
        self.call_with(call, CallOptions::new())
    }

    /// Sends a call and returns at once, as far as there is room for it.
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
    fn ping(&self) -> Result<(), CallError> {
        self.call(&Ping)
    }
}

/// A call that has been started, as a thread waits for it.
pub trait PendingReply<T, E> {
    /// Waits for the reply until the call's deadline and returns its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn wait(self) -> Result<T, E>;

    /// Waits no longer than `limit`, and says whether [`wait`](Self::wait) would return at once.
    fn wait_for(&mut self, limit: Duration) -> bool;
}

/// What calls go to, and how much time they have.
#[derive(Debug, Clone, Copy)]
pub struct CallTarget<'a> {
    /// The address of the server.
    pub address: &'a Address,
    /// The program's number.
    pub program: u32,
    /// The version's number.
    pub version: u32,
    /// Time of a call whose [options](CallOptions::timeout) say nothing else.
    pub timeout: Duration,
    /// Time of such a call with streams; `None` if it has no end.
    pub stream_timeout: Option<Duration>,
}

/// A client as some calls use it, with options of their own. Generated clients make one of whatever they call through.
#[derive(Debug)]
pub struct WithOptions<'c, C> {
    client: &'c C,
    options: CallOptions<'c>,
}

impl<'c, C> WithOptions<'c, C> {
    /// Returns `client` with `options`, at no cost.
    #[inline]
    pub fn new(client: &'c C, options: CallOptions<'c>) -> Self {
        Self { client, options }
    }

    /// Returns the client.
    #[doc(hidden)]
    #[inline]
    pub fn client(&self) -> &'c C {
        self.client
    }

    /// Returns the options of a call that has some of its own, which go before.
    #[doc(hidden)]
    #[inline]
    pub fn options<'o>(&'o self, own: CallOptions<'o>) -> CallOptions<'o> {
        own.or(self.options)
    }
}

impl<C> Clone for WithOptions<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for WithOptions<'_, C> {}

impl<C: MakeCalls> MakeCalls for WithOptions<'_, C> {
    type Pending<T, E: ProcedureError> = C::Pending<T, E>;

    #[inline]
    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        self.client.call_with(call, options.or(self.options))
    }

    #[inline]
    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error> {
        self.client.start_with(call, options.or(self.options))
    }

    #[inline]
    fn target(&self) -> CallTarget<'_> {
        self.client.target()
    }

    #[inline]
    fn call<P: ProcedureCall>(&self, call: &P) -> Result<P::Result, P::Error> {
        self.client.call_with(call, self.options)
    }
}

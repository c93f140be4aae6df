//! The trait that generated clients call through, so that their methods are written once for a client, for a client
//! with options of some calls, and for what a program puts around a client.

use crate::error::CallError;
use crate::procedure::{Ping, ProcedureCall};

/// Makes calls, and waits for their results on the caller's thread.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tenon::{Client, MakeCalls, PendingCall, ProcedureCall, CallError};
///
/// /// Counts calls, and has a client make them.
/// struct Counting {
///     client: Client,
///     calls: AtomicU64,
/// }
///
/// impl MakeCalls for Counting {
///     type Pending<T, E: From<CallError>> = PendingCall<T, E>;
///
///     fn call<P: ProcedureCall>(&self, call: &P) -> Result<P::Result, P::Error> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.call(call)
///     }
///
///     fn start<P: ProcedureCall>(&self, call: &P) -> Result<PendingCall<P::Result, P::Error>, P::Error> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.client.start(call)
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
    type Pending<T, E: From<CallError>>;

    /// Makes a call and waits for its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn call<P: ProcedureCall>(&self, call: &P) -> Result<P::Result, P::Error>;

    /// Sends a call and returns at once, as far as there is room for it.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    fn start<P: ProcedureCall>(
        &self,
        call: &P,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error>;

    /// Calls procedure 0, which takes nothing, returns nothing, and shows that the server has the program.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    fn ping(&self) -> Result<(), CallError> {
        self.call(&Ping)
    }
}

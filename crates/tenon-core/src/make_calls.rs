//! What generated clients call through, so that their methods are written once for a client, for a client with options
//! of some calls, and for what a program puts around a client.

use crate::error::CallError;
use crate::procedure::{Ping, ProcedureCall};

/// Makes calls, and waits for their results on the caller's thread.
pub trait MakeCalls {
    /// A call that has been started, whose result is a `T`.
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

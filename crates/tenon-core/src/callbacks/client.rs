//! Calls of a server to one of its clients, over the connection that the client has opened.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::lean::{Interface, Metadata, MetadataError};

use super::channel::{CallbackChannel, StartedCallback};
use crate::caller::{Caller, DecodeBy, Decoding};
use crate::error::CallError;
use crate::make_calls::{CallTarget, MakeCalls, PendingReply};
use crate::options::CallOptions;
use crate::procedure::{ProcedureCall, ProcedureError};

/// Calls one version of a program that a client of this server [serves](super::Callbacks), by threads and, with
/// `tenon-tokio`, by tasks. Clones call the same client.
///
/// A handler makes one of [`CallInfo::callback_channel`](crate::service::CallInfo::callback_channel):
/// generated clients do so in `calling_back`. It may be kept. Calls wait as long as the client has as many as it takes; they
/// fail with [`CallError::NoCallbacks`] if it takes none, and with [`CallError::Disconnected`] once its connection has
/// ended.
#[derive(Debug, Clone)]
pub struct CallbackClient {
    channel: CallbackChannel,
    caller: Caller,
}

impl CallbackClient {
    /// A version of a program at the other end of `channel`. Calls have 25 seconds, unless the call that the handler
    /// carries out has less left.
    pub fn over(channel: CallbackChannel, program: u32, version: u32) -> Self {
        let caller = channel.caller(program, version);
        Self { channel, caller }
    }

    fn with(&self, change: impl FnOnce(&mut Caller)) -> Self {
        let mut client = self.clone();
        change(&mut client.caller);
        client
    }

    /// Returns the same client with `timeout` for every call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.with(|caller| caller.set_timeout(timeout))
    }

    /// Returns the same client, built from `interface`: the other end compares it with its own before it takes the first
    /// lean call. Otherwise nothing is compared.
    #[must_use]
    pub fn with_interface(&self, interface: Arc<Interface>) -> Self {
        self.with(|caller| caller.set_interface(interface))
    }

    /// Returns the same client with `metadata` on every call, beside that which is on its calls already. By ONC RPC a call
    /// cannot carry any, and fails with [`CallError::OncMetadata`].
    ///
    /// # Errors
    /// There would be more than [`Metadata::BYTES_MAX`] bytes.
    pub fn with_metadata(&self, metadata: &Metadata) -> Result<Self, MetadataError> {
        let mut client = self.clone();
        client.caller.add_metadata(metadata.view())?;
        Ok(client)
    }

    /// Returns the channel that the calls go over.
    pub fn channel(&self) -> &CallbackChannel {
        &self.channel
    }

    /// Returns the settings of the calls.
    #[doc(hidden)]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Starts a call, to be waited for by a thread or a task.
    ///
    /// # Errors
    /// It cannot be encoded, or carries what it must not.
    #[doc(hidden)]
    pub fn start_call<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<StartedCallback, CallError> {
        self.channel.start(&self.caller, call, &options)
    }
}

impl MakeCalls for CallbackClient {
    type Pending<T, E: ProcedureError> = PendingCallbackReply<T, E>;

    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        let results = self.start_call(call, options)?.wait()?;
        (self.caller).read::<P>(results.bytes.as_slice(), results.order)
    }

    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<PendingCallbackReply<P::Result, P::Error>, P::Error> {
        Ok(PendingCallbackReply {
            started: self.start_call(call, options)?,
            decoding: self.caller.decoding(),
            decode: self.caller.decode_by::<P>(),
            error: PhantomData,
        })
    }

    fn target(&self) -> CallTarget<'_> {
        self.caller.target(self.channel.address())
    }
}

/// A call of a [`CallbackClient`] that was started. It is given up when it is dropped.
#[must_use = "dropping a pending call gives it up"]
pub struct PendingCallbackReply<T, E = CallError> {
    started: StartedCallback,
    decoding: Decoding,
    decode: DecodeBy<T>,
    error: PhantomData<fn() -> E>,
}

impl<T, E: From<CallError>> PendingReply<T, E> for PendingCallbackReply<T, E> {
    fn wait(mut self) -> Result<T, E> {
        let results = self.started.wait()?;
        (self.decode).decode(results.bytes.as_slice(), results.order, self.decoding)
    }

    fn wait_for(&mut self, limit: Duration) -> bool {
        self.started.wait_for(Instant::now() + limit)
    }
}

impl<T, E> fmt::Debug for PendingCallbackReply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCallbackReply")
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

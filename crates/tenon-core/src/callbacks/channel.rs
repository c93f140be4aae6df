//! The channel from a server back to a client, and the calls over it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tenon_net::{Address, Host, Protocol, Transport};
use tenon_proto::connection::{CallDraft, UnsentCall};
use tenon_wire::Buffer;

use super::pending::PendingCallback;
use crate::caller::Caller;
use crate::client::{Results, seal};
use crate::error::CallError;
use crate::options::{CallOptions, ChannelOptions};
use crate::procedure::ProcedureCall;
use crate::reply_metadata::ReplyMetadata;
use crate::timer::CallTimer;

/// The connection of a client, as handlers that call back see it: the thread or task that serves the connection sends their
/// calls, and hands them the outcomes.
pub trait CallbackPort: Send + Sync {
    /// Has a call sent as soon as the client takes it.
    fn call(&self, call: UnsentCall, pending: Arc<PendingCallback>);

    /// Gives a call up that is not waited for any more.
    fn cancel(&self, pending: Arc<PendingCallback>);
}

/// Opens the channel from a handler back to its caller.
pub trait CallbackSource: fmt::Debug + Sync {
    /// Returns the channel back to the caller.
    ///
    /// # Errors
    /// [`CallError::NoCallbacks`]: the call came over something that carries no calls back, or its service cannot make any.
    fn channel(&self) -> Result<CallbackChannel, CallError>;
}

/// A channel from a server back to one of its clients, over the connection that the client has opened. Clones are the same
/// channel. Once the connection has ended, calls fail with [`CallError::Disconnected`].
///
/// A handler gets one from [`CallInfo::callback_channel`](crate::service::CallInfo::callback_channel). It may be kept, and
/// used when the handler has returned.
#[derive(Clone)]
pub struct CallbackChannel {
    port: Arc<dyn CallbackPort>,
    address: Address,
}

impl CallbackChannel {
    /// A channel over a connection to a `peer`.
    pub(crate) fn new(
        port: Arc<dyn CallbackPort>,
        protocol: Protocol,
        transport: Transport,
        peer: Option<SocketAddr>,
    ) -> Self {
        let address = address_of(transport, peer);
        let address = match protocol {
            Protocol::Onc => address,
            Protocol::Lean => address.over_lean(),
        };
        Self { port, address }
    }

    /// Returns the address of the client, as far as it has one.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the settings of calls of a version of a program over this channel.
    pub(super) fn caller(&self, program: u32, version: u32) -> Caller {
        Caller::new(&self.address, &ChannelOptions::default(), program, version)
    }

    /// Starts a call.
    ///
    /// # Errors
    /// It cannot be encoded, or carries what it must not.
    pub(super) fn start<C: ProcedureCall>(
        &self,
        caller: &Caller,
        call: &C,
        options: &CallOptions<'_>,
    ) -> Result<StartedCallback, CallError> {
        let timer = CallTimer::start(caller.limit(options));
        let mut message = Buffer::default();
        let (encoded, draft) = caller.write(&mut message, call, options, false)?;
        encoded?;
        let draft = match draft {
            CallDraft::Onc => CallDraft::Onc,
            CallDraft::Lean(mut call) => {
                call.draft = call.draft.with_reverse(&mut message);
                CallDraft::Lean(call)
            }
        };
        seal(
            &mut message,
            &draft,
            &self.address,
            &ChannelOptions::default(),
        )?;
        let call = UnsentCall::new(&draft, &mut message, timer.deadline());
        let pending = Arc::<PendingCallback>::default();
        self.port.call(call, Arc::clone(&pending));
        Ok(StartedCallback {
            port: Arc::clone(&self.port),
            pending,
            timer,
            reply_metadata: options.get_reply_metadata().cloned(),
            is_over: false,
        })
    }
}

/// Returns the address of the other end of a connection.
fn address_of(transport: Transport, peer: Option<SocketAddr>) -> Address {
    match (transport, peer) {
        (Transport::Shm, _) => Address::shm(""),
        (_, None) => Address::unnamed(),
        (_, Some(peer)) => Address::tcp(Host {
            name: peer.ip().to_string(),
            port: Some(peer.port()),
        }),
    }
}

impl fmt::Debug for CallbackChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackChannel")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A call back that was started. It is given up when it is dropped before it has ended.
#[doc(hidden)]
pub struct StartedCallback {
    port: Arc<dyn CallbackPort>,
    pending: Arc<PendingCallback>,
    timer: CallTimer,
    reply_metadata: Option<Arc<ReplyMetadata>>,
    is_over: bool,
}

impl StartedCallback {
    /// Waits for its results.
    ///
    /// # Errors
    /// Why it has none.
    pub fn wait(&mut self) -> Result<Results, CallError> {
        match self.pending.wait(self.timer.deadline()) {
            None => Err(self.timer.error(true)),
            Some(outcome) => {
                self.is_over = true;
                let results = outcome.into_results(&self.timer, || None);
                self.keep_metadata(&results);
                results
            }
        }
    }

    /// Waits until `until` at most; returns whether [`wait`](Self::wait) would return at once.
    pub fn wait_for(&self, until: Instant) -> bool {
        let until = until.min(self.timer.deadline());
        self.pending.wait_for_end(until) || self.timer.is_over()
    }

    /// Returns its results to a task, which is woken when they are there. At the [deadline](Self::deadline) the task has to
    /// look by itself, and to give the call up.
    ///
    /// # Errors
    /// Why it has none.
    pub fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<Results, CallError>> {
        self.pending.poll(cx).map(|outcome| {
            self.is_over = true;
            let results = outcome.into_results(&self.timer, || None);
            self.keep_metadata(&results);
            results
        })
    }

    /// Returns when its time is over.
    pub fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    /// Returns the error of a call whose time is over.
    pub fn timed_out(&self) -> CallError {
        self.timer.error(true)
    }

    fn keep_metadata(&self, results: &Result<Results, CallError>) {
        if let Some(place) = &self.reply_metadata {
            place.set_of(match results {
                Ok(results) => Ok(results.extensions.as_deref()),
                Err(error) => Err(error),
            });
        }
    }
}

impl Drop for StartedCallback {
    fn drop(&mut self) {
        if !self.is_over {
            self.port.cancel(Arc::clone(&self.pending));
        }
    }
}

impl fmt::Debug for StartedCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedCallback")
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

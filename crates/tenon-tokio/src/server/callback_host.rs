//! What a client of tasks serves of calls of its server, and how they are carried out: as those of a server are.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use tenon_core::callbacks::{Callbacks, ReceivedCallback};
use tenon_core::error::ConnectError;
use tenon_core::serve::{ProcedureTimes, ServerLimits, ServerShared, ServiceRegistry};
use tenon_core::service::{Origin, Service};
use tenon_core::wait::Waiting;
use tenon_net::Address;
use tenon_proto::connection::DeferredId;
use tenon_proto::lean::Status;
use tenon_proto::onc::record::FRAGMENT_MAX;
use tenon_wire::Buffer;

use super::call::{AsyncService, CallMessage};
use super::dispatch::OffloadedCall;
use super::mailbox::{ReplyMailbox, ReplyTarget};
use super::running::{BeginCall, CallHandler, ListedService};
use super::state::ServerState;

/// The services that a client offers to the server which it connects to: the [`Callbacks`](tenon::Callbacks) of tasks.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1AsyncClient, GreeterV1AsyncService}, start_server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (server, address) = start_server().await;
/// use tenon_tokio::{AsyncCallbacks, Channel, ChannelOptions};
///
/// let callbacks = AsyncCallbacks::new().service(GreeterV1AsyncService(Host)).calls_max(4);
/// let address = format!("lean+{address}").parse()?;
/// let channel = Channel::connect_serving(&address, ChannelOptions::default(), callbacks).await?;
/// GreeterV1AsyncClient::over(channel).ping().await?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncCallbacks {
    offered: Callbacks,
    /// By the numbers of the services.
    handlers: Vec<CallHandler>,
}

impl Default for AsyncCallbacks {
    fn default() -> Self {
        Self::new()
    }
}

impl AsyncCallbacks {
    /// Offers no services so far.
    pub fn new() -> Self {
        Self {
            offered: Callbacks::new(),
            handlers: Vec::new(),
        }
    }

    /// Offers a service, each call of which is carried out by a task. All have different programs or versions.
    #[must_use]
    pub fn service<S: AsyncService>(self, service: S) -> Self {
        let service = Arc::new(service);
        let handler: Arc<dyn BeginCall> = Arc::<S>::clone(&service);
        let listed = Box::new(ListedService(service));
        self.add(listed, CallHandler::Async(handler))
    }

    /// Offers a service of functions, which threads that may block call.
    #[must_use]
    pub fn sync_service(self, service: impl Service) -> Self {
        self.add(Box::new(service), CallHandler::Sync)
    }

    fn add(mut self, service: Box<dyn Service>, handler: CallHandler) -> Self {
        if self.offered.add(service) {
            self.handlers.push(handler);
        }
        self
    }

    /// Sets how many calls of the server are carried out at the same time, as [`Callbacks::calls_max`] does.
    #[must_use]
    pub fn calls_max(mut self, calls_max: usize) -> Self {
        self.offered = self.offered.calls_max(calls_max);
        self
    }
}

impl fmt::Debug for AsyncCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncCallbacks")
            .field("offered", &self.offered)
            .finish_non_exhaustive()
    }
}

/// The services of a channel, and the calls of its server that they carry out.
pub(crate) struct CallbackHost {
    state: Arc<ServerState>,
    /// The answers.
    mailbox: Arc<ReplyMailbox>,
    pub(crate) calls_max: usize,
}

impl CallbackHost {
    /// The host of these services, over connections to `address`.
    ///
    /// # Errors
    /// As those of [`Callbacks::into_parts`].
    pub(crate) fn new(callbacks: AsyncCallbacks, address: &Address) -> Result<Self, ConnectError> {
        let AsyncCallbacks { offered, handlers } = callbacks;
        let (registry, calls_max) = offered.into_parts(address)?;
        let limits = ServerLimits {
            calls: calls_max,
            connection_calls: calls_max,
            ..ServerLimits::default()
        };
        let mut shared = ServerShared::new(registry, limits, FRAGMENT_MAX);
        shared.times = ProcedureTimes::cautious(shared.registry.len());
        let state = Arc::new(ServerState::new(shared, handlers, Waiting::default()));
        let mailbox = state.new_mailbox(Origin {
            transport: address.transport(),
            peer: None,
            user: None,
        });
        Ok(Self {
            state,
            mailbox,
            calls_max,
        })
    }

    /// Returns the services.
    pub(crate) fn registry(&self) -> &ServiceRegistry {
        &self.state.shared.registry
    }

    /// Carries a call out by a task or a thread of its own.
    pub(crate) fn carry_out(&self, callback: ReceivedCallback) {
        let ReceivedCallback {
            call,
            received,
            id,
            cancelled,
        } = callback;
        let to = ReplyTarget::Stream(id);
        let counted = received.message.capacity();
        let Some(room) = self.state.room_now(counted) else {
            let mut reply = Buffer::default();
            let text = "the client has no memory for further calls";
            call.refuse(Status::OVERLOADED, text, &mut reply);
            return self.mailbox.leave(to, reply);
        };
        let (mailbox, origin) = (&self.mailbox, self.mailbox.origin);
        let call = OffloadedCall::new(&self.state, (mailbox, to), (call, origin), cancelled, room);
        call.carry_out(CallMessage::Stream(received));
    }

    /// Takes the answers that are there, and has `task` woken when there are others. It is always the same task.
    pub(crate) fn take_answers(&self, task: &Waker) -> Vec<(DeferredId, Buffer)> {
        let mut answers = Vec::new();
        self.mailbox.take_answers(task, &mut answers);
        let of_calls = answers.into_iter().filter_map(|(to, reply)| match to {
            ReplyTarget::Stream(id) => Some((id, reply)),
            _ => None,
        });
        of_calls.collect()
    }
}

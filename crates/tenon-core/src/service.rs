//! The interface of a server to what it serves: a program's version as a [`Service`], its callers, and how it refuses.
//! A service that is a [`LeanService`] beside is also served to lean clients, at the same port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::Transport;
use tenon_proto::connection::CallAttachments;
use tenon_proto::lean::{Interface, Metadata, MetadataError, MetadataView};
use tenon_proto::onc::auth::Credential;
use tenon_wire::{Decoder, Encoder, Lean};

use crate::callbacks::{CallbackChannel, CallbackSource};
use crate::error::CallError;
use crate::lean_input::LeanInput;
use crate::procedure::ProcedureInfo;
use crate::propagation::{self, PropagatedContext};
use crate::refusal::Refusal;
use crate::reply_metadata::ReplyMetadata;
use crate::streams::ServedStreams;

pub use tenon_sync::{CancelFlag, RunState};

/// One version of a program. Generated code implements it for every server trait.
///
/// ```
/// use tenon::wire::{Decoder, Encoder};
/// use tenon::{CallInfo, Client, Refusal, Server, Service};
///
/// /// A service without an interface: its one procedure doubles a number.
/// struct Doubling;
///
/// impl Service for Doubling {
///     fn program(&self) -> u32 {
///         0x2000_0001
///     }
///
///     fn version(&self) -> u32 {
///         1
///     }
///
///     fn call(
///         &self,
///         call: &CallInfo<'_>,
///         arguments: &mut Decoder<'_>,
///         result: &mut Encoder<'_>,
///     ) -> Result<(), Refusal> {
///         match call.procedure() {
///             1 => result.put(2 * arguments.get::<u32>()?),
///             _ => return Err(Refusal::ProcedureUnavailable),
///         }
///         Ok(())
///     }
/// }
///
/// let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(Doubling).start()?;
/// let client = Client::connect(&server.addresses()[0].to_string(), 0x2000_0001, 1)?;
/// let encode = |out: &mut Encoder<'_>| Ok(out.put(21_u32));
/// let doubled: u32 = client.onc().call(1, encode, |input| input.get())?;
/// assert_eq!(doubled, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Service: Send + Sync + 'static {
    /// Returns the program's number.
    fn program(&self) -> u32;

    /// Returns the version's number.
    fn version(&self) -> u32;

    /// Carries a call out: reads its arguments and appends its result. Procedure 0 never comes
    /// here, the server itself answers it. What was appended before a refusal is dropped.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal>;

    /// Returns what the interface says of a procedure, if the service knows: for logs, metrics and middleware.
    fn procedure(&self, _number: u32) -> Option<ProcedureInfo<'_>> {
        None
    }

    /// Returns whether the calls of one connection are to be carried out one after the other, in their order. By
    /// default a call of a procedure that takes long is handed to another thread, and those behind it go on.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Returns the same service for clients that speak the lean protocol. They are told that the program is
    /// not there if it is `None`.
    fn lean(&self) -> Option<&dyn LeanService> {
        None
    }
}

/// One version of a program, its values in the lean representation.
///
/// ```
/// use std::sync::Arc;
/// use tenon::lean::Interface;
/// use tenon::wire::{Decoder, Encoder, Lean};
/// use tenon::{CallInfo, Client, LeanInput, LeanService, Refusal, Server, Service};
///
/// /// A service without an interface, for lean clients alone: its one procedure doubles a number.
/// struct Doubling;
///
/// impl Service for Doubling {
///     fn program(&self) -> u32 {
///         0x2000_0001
///     }
///
///     fn version(&self) -> u32 {
///         1
///     }
///
///     fn call(&self, _: &CallInfo<'_>, _: &mut Decoder<'_>, _: &mut Encoder<'_>) -> Result<(), Refusal> {
///         Err(Refusal::ProcedureUnavailable)
///     }
///
///     fn lean(&self) -> Option<&dyn LeanService> {
///         Some(self)
///     }
/// }
///
/// impl LeanService for Doubling {
///     fn interface(&self) -> Arc<Interface> {
///         // Nothing is known of what it was built from, so nothing is compared.
///         Arc::new(Interface::unknown(0x2000_0001, 1))
///     }
///
///     fn call_lean(
///         &self,
///         call: &CallInfo<'_>,
///         arguments: LeanInput<'_>,
///         result: &mut Encoder<'_, Lean>,
///     ) -> Result<(), Refusal> {
///         if call.procedure() != 1 {
///             return Err(Refusal::ProcedureUnavailable);
///         }
///         let number: u32 = match arguments {
///             LeanInput::Native(mut input) => input.get()?,
///             LeanInput::Swapped(mut input) => input.get()?,
///         };
///         result.put(2 * number);
///         Ok(())
///     }
/// }
///
/// let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(Doubling).start()?;
/// let client = Client::connect(&format!("lean+{}", server.addresses()[0]), 0x2000_0001, 1)?;
/// let encode = |out: &mut Encoder<'_, Lean>| Ok(out.put(21_u32));
/// let doubled: u32 = client.lean().call(1, encode, |input| match input {
///     LeanInput::Native(input) => input.get(),
///     LeanInput::Swapped(input) => input.get(),
/// })?;
/// assert_eq!(doubled, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LeanService: Send + Sync {
    /// Returns the interface that the service was built from. Program and version are those of the [`Service`].
    fn interface(&self) -> Arc<Interface>;

    /// Carries a call out, as [`Service::call`] does.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal>;

    /// Carries out a call that has streams. Items of the result are sent while it runs; the result itself, which is
    /// nothing where it is a stream, follows them. By default no procedure has streams.
    ///
    /// # Errors
    /// Why the call is not carried out, or not to its end; the caller is told so behind the items.
    fn call_streaming(
        &self,
        _call: &CallInfo<'_>,
        _arguments: LeanInput<'_>,
        _streams: &ServedStreams,
        _result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(Refusal::InvalidArguments(
            "the procedure has no streams".to_owned(),
        ))
    }
}

/// Origin of a call: its transport, and what is known of its caller without its saying.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Transport that the call came over.
    pub transport: Transport,
    /// The address of the caller; `None` on a Unix socket and in shared memory.
    pub peer: Option<SocketAddr>,
    /// The user that the caller's process runs as; `None` over a network.
    pub user: Option<u32>,
}

/// The caller of a call, as far as it is known: what the network or the kernel says of it, and what it claims itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer<'a> {
    /// The address of the caller; `None` on a Unix socket, in shared memory, and in the same process.
    pub address: Option<SocketAddr>,
    /// The effective user of the caller's process when it connected, as the kernel says: it can be believed. `None`
    /// but on a Unix socket and in shared memory, and of a connection that the program has established itself.
    pub user: Option<u32>,
    /// The identity that the caller claims, by either protocol. Believe it only of a network that you trust.
    pub credential: Credential<'a>,
}

/// Source from which a handler learns whether the caller of its call has stopped waiting.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Cancellation<'a> {
    /// Nothing does: nothing is received over the connection of the call while its handler runs.
    None,
    /// A flag of the call, which is carried out elsewhere than where it was received.
    Flag(&'a CancelFlag),
    /// State of the thread that has received the call, and runs its handler.
    Run(&'a RunState),
}

impl Cancellation<'_> {
    fn is_cancelled(&self) -> bool {
        match self {
            Self::None => false,
            Self::Flag(flag) => flag.is_set(),
            Self::Run(runs) => runs.is_cancelled(),
        }
    }
}

/// A call that came in, beside its arguments.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1, Greeting, Visitor}};
/// use std::time::Instant;
/// use tenon::{CallInfo, Credential, Refusal, Transport};
///
/// struct Host;
///
/// impl GreeterV1 for Host {
///     fn greet(&self, call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
///         let left = call.deadline().map(|at| at.saturating_duration_since(Instant::now()));
///         println!("from {:?}, procedure {}, {left:?} left", call.peer(), call.procedure());
///         for _ in 0..visitor.visits {
///             if call.is_cancelled() {
///                 return Err(Refusal::SystemError("the caller waits no more".into()));
///             }
///             // A step of what takes long.
///         }
///         Ok(Greeting::Void)
///     }
/// }
///
/// // Handlers can be tested without a server.
/// let call = CallInfo::new(1, Credential::None, Transport::Tcp).from_address("192.0.2.7:700".parse()?);
/// assert_eq!(Host.greet(&call, Visitor::default()), Ok(Greeting::Void));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CallInfo<'a> {
    procedure: u32,
    peer: Peer<'a>,
    transport: Option<Transport>,
    deadline: Option<Instant>,
    cancellation: Cancellation<'a>,
    metadata: MetadataView<'a>,
    reply_metadata: Option<&'a ReplyMetadata>,
    callbacks: Option<&'a dyn CallbackSource>,
}

impl<'a> CallInfo<'a> {
    /// A call without a caller's address and without a deadline, for the tests of a service.
    #[inline]
    pub fn new(procedure: u32, credential: Credential<'a>, transport: Transport) -> Self {
        let mut call = Self::in_process(procedure);
        call.peer.credential = credential;
        call.transport = Some(transport);
        call.deadline = None;
        call
    }

    /// Returns a call of the same process, which came over no transport and has no credential. If a handler makes it, it
    /// has the deadline of that handler's call.
    #[inline]
    pub fn in_process(procedure: u32) -> Self {
        Self {
            procedure,
            peer: Peer {
                address: None,
                user: None,
                credential: Credential::None,
            },
            transport: None,
            deadline: propagation::deadline(),
            cancellation: Cancellation::None,
            metadata: MetadataView::NONE,
            reply_metadata: None,
            callbacks: None,
        }
    }

    /// A call that a server has received.
    #[doc(hidden)]
    #[inline]
    pub fn received(
        procedure: u32,
        attachments: CallAttachments<'a>,
        origin: Origin,
        deadline: Option<Instant>,
        cancellation: Cancellation<'a>,
        reply_metadata: &'a ReplyMetadata,
        callbacks: Option<&'a dyn CallbackSource>,
    ) -> Self {
        Self {
            procedure,
            peer: Peer {
                address: origin.peer,
                user: origin.user,
                credential: attachments.credential,
            },
            transport: Some(origin.transport),
            deadline,
            cancellation,
            metadata: attachments.metadata,
            reply_metadata: Some(reply_metadata),
            callbacks,
        }
    }

    /// Returns the same call from a caller at `address`.
    #[must_use]
    pub fn from_address(mut self, address: SocketAddr) -> Self {
        self.peer.address = Some(address);
        self
    }

    /// Returns the same call from a process of this user.
    #[must_use]
    pub fn from_user(mut self, user: u32) -> Self {
        self.peer.user = Some(user);
        self
    }

    /// Returns the same call of a caller that waits until `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// Returns the same call with metadata, and with a place for that of its reply.
    #[must_use]
    pub fn with_metadata(
        self,
        metadata: MetadataView<'a>,
        reply_metadata: &'a ReplyMetadata,
    ) -> Self {
        Self {
            metadata,
            reply_metadata: Some(reply_metadata),
            ..self
        }
    }

    /// Returns the same call with what a middleware has changed.
    #[doc(hidden)]
    #[must_use]
    pub fn changed(self, deadline: Option<Instant>, metadata: Option<&'a Metadata>) -> Self {
        Self {
            deadline: deadline.or(self.deadline),
            metadata: metadata.map_or(self.metadata, Metadata::view),
            ..self
        }
    }

    /// Returns the number of the procedure.
    #[inline]
    pub fn procedure(&self) -> u32 {
        self.procedure
    }

    /// Returns who calls, as far as that is known.
    #[inline]
    pub fn peer(&self) -> Peer<'a> {
        self.peer
    }

    /// Returns the transport that the call came over; `None` if the caller is [in the same process](Self::in_process).
    #[inline]
    pub fn transport(&self) -> Option<Transport> {
        self.transport
    }

    /// Returns the channel back to the caller: its procedures are called over the connection that it has opened, if it
    /// [serves some](crate::callbacks). It may be kept, and used when the handler has returned.
    ///
    /// # Errors
    /// [`CallError::NoCallbacks`]: the call came in a datagram or from the same process, or its service wants the calls of a
    /// connection one after the other. Whether the caller serves anything is known once it is called.
    pub fn callback_channel(&self) -> Result<CallbackChannel, CallError> {
        match self.callbacks {
            Some(source) => source.channel(),
            None => Err(CallError::NoCallbacks {
                reason: "the call did not come over a connection",
            }),
        }
    }

    /// Returns when the caller stops waiting, if it has said so. Clients of ONC RPC cannot.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the metadata of the call. Clients of ONC RPC send none. Nothing in it is verified but its form: a service
    /// that is sent tokens has to verify them.
    #[inline]
    pub fn metadata(&self) -> MetadataView<'a> {
        self.metadata
    }

    /// Adds a pair to the metadata of the reply, which is sent with the result or with the refusal. A client of ONC RPC
    /// is not told, and neither is a caller in the same process.
    ///
    /// # Errors
    /// The key or the value has a character that it may not have, or the reply would have more metadata than
    /// [`Metadata::ACCEPTED`](tenon_proto::lean::Metadata::ACCEPTED) bytes.
    pub fn append_reply_metadata(
        &self,
        key: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), MetadataError> {
        match self.reply_metadata {
            Some(metadata) => metadata.append(key, value),
            None => ReplyMetadata::new().append(key, value),
        }
    }

    /// Returns what the calls of the handler carry on, which its thread or task has as its context anyhow.
    pub fn context(&self) -> PropagatedContext {
        PropagatedContext::of_call(self.deadline, self.metadata)
    }

    /// The same if there is anything to carry on.
    #[doc(hidden)]
    #[inline]
    pub fn context_to_enter(&self) -> Option<PropagatedContext> {
        match self.deadline.is_none() && self.metadata.is_empty() {
            true => None,
            false => Some(self.context()),
        }
    }

    /// Returns whether the caller is known to have stopped waiting: it has cancelled the call, it is gone, or its time
    /// has run out. A handler that takes long may look now and then, and give up.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled() || self.deadline.is_some_and(|at| at <= Instant::now())
    }
}

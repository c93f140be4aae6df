//! Services with asynchronous procedures, which a server of tasks calls, and the calls that they are handed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::InOrder;
use tenon_core::LeanInput;
use tenon_core::Refusal;
use tenon_core::ReplyMetadata;
use tenon_core::callbacks::{CallbackChannel, CallbackSource};
use tenon_core::error::CallError;
use tenon_core::procedure::ProcedureInfo;
use tenon_core::profile;
use tenon_core::serve::{CallContext, CallToServe, HandlerFailure, ServerShared, refuse_by};
use tenon_core::service::{CallInfo, Cancellation, Origin};
use tenon_core::streams::ServedStreams;
use tenon_net::{Protocol, Transport};
use tenon_proto::connection::framing::Detached;
use tenon_proto::connection::{Caller, ReceivedCall, ReplyDraft};
use tenon_proto::lean::{CallStreams, Interface, Metadata};
use tenon_wire::{Buffer, DecodeError, Decoder, EncodeError, Encoder, Lean};

use super::mailbox::ReplyMailbox;
use super::mailbox_callbacks::MailboxCallbacks;

/// One version of a program with procedures that wait for something: timers, other servers, files. Of an interface the
/// generator makes one of a trait with an asynchronous method for each procedure; this is how to do without.
///
/// A call is carried out by the task of its connection as long as it does not wait, and by a task of its own from there
/// on. So calls of one connection may be carried out at the same time, and their replies may overtake each other, unless
/// the service [keeps order](Self::keeps_order).
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use tenon::Refusal;
/// use tenon::lean::Interface;
/// use tenon_tokio::{Answer, AsyncService, Call, Protocol};
///
/// /// Procedure 1 returns its argument after a while.
/// struct Late;
///
/// impl AsyncService for Late {
///     fn program(&self) -> u32 {
///         0x2000_0002
///     }
///
///     fn version(&self) -> u32 {
///         1
///     }
///
///     fn interface(&self) -> Option<Arc<Interface>> {
///         Some(Arc::new(Interface::unknown(0x2000_0002, 1)))
///     }
///
///     async fn call(&self, call: Call) -> Result<Answer, Refusal> {
///         if call.procedure() != 1 {
///             return Err(Refusal::ProcedureUnavailable);
///         }
///         match call.protocol() {
///             Protocol::Onc => {
///                 let number = call.decode(|arguments| arguments.get::<u32>())?;
///                 tokio::time::sleep(Duration::from_millis(number.into())).await;
///                 call.answer(|result| Ok(result.put(number)))
///             }
///             Protocol::Lean => call.answer_lean(|_result| Ok(())),
///         }
///     }
/// }
/// ```
pub trait AsyncService: Send + Sync + 'static {
    /// The program's number.
    fn program(&self) -> u32;

    /// The version's number.
    fn version(&self) -> u32;

    /// Returns the interface that the service was built from. Clients that speak the lean protocol are told that the
    /// program is not there if it is `None`.
    fn interface(&self) -> Option<Arc<Interface>> {
        None
    }

    /// Returns what the interface says of a procedure, if the service knows: for logs, metrics and middleware.
    fn procedure(&self, _number: u32) -> Option<ProcedureInfo<'_>> {
        None
    }

    /// Returns whether the calls of one connection are to be carried out one after the other, in their order. While one
    /// is carried out, no further request of its connection is looked at, a cancellation neither. Those with streams are
    /// not waited for.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Carries a call out. Procedure 0 never comes here. The future is dropped where it waits if the caller gives the
    /// call up and says so, or has said how much time there is and that has run out: which those that speak the lean
    /// protocol do.
    ///
    /// # Errors
    /// The reason why the call is not carried out; the caller is told so.
    fn call(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
}

impl<S: AsyncService> AsyncService for InOrder<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        self.0.interface()
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.0.procedure(number)
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send {
        self.0.call(call)
    }
}

/// A call that came in, and its answer to be.
pub struct Call {
    mailbox: Arc<ReplyMailbox>,
    origin: Origin,
    call: CallToServe,
    message: CallMessage,
    dispatched: u64,
    /// Metadata that its handler sees in place of that in the message, if a middleware has changed it.
    metadata: Option<Metadata>,
    reply_metadata: ReplyMetadata,
    /// The streams of the call, if it has some.
    streams: Option<Box<ServedStreams>>,
}

/// The message of a call, with its memory.
#[derive(Debug)]
pub(super) enum CallMessage {
    /// Of a stream.
    Stream(ReceivedCall),
    /// Of datagrams; the arguments are so many bytes at the end.
    Datagram(Buffer, usize),
}

impl CallMessage {
    /// Returns the encoded arguments.
    #[inline]
    pub(super) fn arguments(&self) -> &[u8] {
        match self {
            Self::Stream(received) => received.arguments(),
            Self::Datagram(message, arguments) => {
                let message = message.as_slice();
                &message[message.len() - arguments..]
            }
        }
    }

    /// Returns what a handler of `call` is told beside the arguments.
    pub(super) fn context<'m>(&'m self, call: &CallToServe, origin: Origin) -> CallContext<'m> {
        CallContext {
            attachments: match self {
                Self::Stream(received) => received.attachments(),
                Self::Datagram(message, arguments) => {
                    call.attachments_in(message.as_slice(), *arguments)
                }
            },
            origin,
            cancellation: Cancellation::None,
            streams: None,
            callbacks: None,
        }
    }

    /// Returns the memory that was received into, if it came over a stream.
    pub(super) fn into_detached(self) -> Option<Detached> {
        match self {
            Self::Stream(received) => Some(received.message),
            Self::Datagram(..) => None,
        }
    }
}

/// The answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// A reply that is sealed.
    pub(super) reply: Buffer,
    /// The message that the call came in; its memory is used again.
    pub(super) message: CallMessage,
    /// Why the call was refused, if it was.
    pub(super) refusal: Option<Refusal>,
}

impl Answer {
    /// Returns why the call was refused, if it was.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }
}

impl Call {
    pub(super) fn new(
        mailbox: &Arc<ReplyMailbox>,
        origin: Origin,
        call: CallToServe,
        message: CallMessage,
    ) -> Self {
        Self {
            mailbox: Arc::clone(mailbox),
            origin,
            call,
            message,
            dispatched: if call.found_at.is_some() {
                profile::now()
            } else {
                0
            },
            metadata: None,
            reply_metadata: ReplyMetadata::new(),
            streams: None,
        }
    }

    /// The same call, which has these streams.
    pub(super) fn with_streams(self, streams: ServedStreams) -> Self {
        Self {
            streams: Some(Box::new(streams)),
            ..self
        }
    }

    /// Changes what the handler sees.
    pub(super) fn change(&mut self, deadline: Option<Instant>, metadata: Option<Metadata>) {
        self.call.deadline = deadline.or(self.call.deadline);
        self.metadata = metadata;
    }

    /// Returns the number of the procedure.
    #[inline]
    pub fn procedure(&self) -> u32 {
        self.call.procedure
    }

    /// Returns the streams of the call, if it has some: of its argument an [`ItemStream`](crate::ItemStream), of its result
    /// an [`ItemSink`](crate::ItemSink). The answer follows the items.
    #[inline]
    pub fn streams(&self) -> Option<&ServedStreams> {
        self.streams.as_deref()
    }

    /// Returns the streams of a call of a procedure that declares some.
    ///
    /// # Errors
    /// The call has others, or none.
    pub fn declared_streams(&self, declared: CallStreams) -> Result<&ServedStreams, Refusal> {
        let streams = self.streams().ok_or_else(|| {
            Refusal::InvalidArguments("the procedure has streams, and the call none".to_owned())
        })?;
        streams.expect(declared)?;
        Ok(streams)
    }

    /// Checks that a call of a procedure that declares no streams has none.
    ///
    /// # Errors
    /// It has some.
    #[inline]
    pub fn expect_no_streams(&self) -> Result<(), Refusal> {
        match self.streams {
            None => Ok(()),
            Some(_) => Err(Refusal::InvalidArguments(
                "the procedure has no streams".to_owned(),
            )),
        }
    }

    /// Returns what the caller speaks, and so whether [`decode`](Self::decode) or [`decode_lean`](Self::decode_lean)
    /// reads the arguments.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self.call.caller {
            Caller::Onc { .. } => Protocol::Onc,
            Caller::Lean(_) => Protocol::Lean,
        }
    }

    /// Returns the address of the caller; `None` on a Unix socket and in shared memory.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.origin.peer
    }

    /// Returns what the call came over.
    pub fn transport(&self) -> Transport {
        self.origin.transport
    }

    /// Returns all that is known of the call beside its arguments, as the handlers of servers of threads are told.
    #[inline]
    pub fn info(&self) -> CallInfo<'_> {
        let CallContext {
            attachments,
            origin,
            cancellation,
            ..
        } = self.message.context(&self.call, self.origin);
        CallInfo::received(
            self.call.procedure,
            attachments,
            origin,
            self.call.deadline,
            cancellation,
            &self.reply_metadata,
            Some(self),
        )
        .changed(None, self.metadata.as_ref())
    }

    /// Reads the arguments of a call by ONC RPC, all of them.
    ///
    /// # Errors
    /// They cannot be decoded, or the call came by the lean protocol.
    pub fn decode<'a, T>(
        &'a self,
        decode: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, Refusal> {
        if self.protocol() != Protocol::Onc {
            return Err(other_protocol());
        }
        let registry = &self.mailbox.shared.registry;
        let mut input = registry.input(self.message.arguments());
        let arguments = decode(&mut input)?;
        input.finish()?;
        Ok(arguments)
    }

    /// Reads the arguments of a call by the lean protocol, all of them.
    ///
    /// # Errors
    /// They cannot be decoded, or the call came by ONC RPC.
    pub fn decode_lean<'a, T>(
        &'a self,
        decode: impl FnOnce(&mut LeanInput<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, Refusal> {
        if self.protocol() != Protocol::Lean {
            return Err(other_protocol());
        }
        let registry = &self.mailbox.shared.registry;
        let mut input = registry.lean_input(self.message.arguments(), self.call.order);
        let arguments = decode(&mut input)?;
        input.finish()?;
        Ok(arguments)
    }

    /// Answers a call by ONC RPC with a result.
    ///
    /// # Errors
    /// The result cannot be encoded, or the call came by the lean protocol.
    pub fn answer(
        self,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<Answer, Refusal> {
        if self.protocol() != Protocol::Onc {
            return Err(other_protocol());
        }
        self.reply_with(|reply| encode(&mut Encoder::new(reply)))
    }

    /// Answers a call by the lean protocol with a result.
    ///
    /// # Errors
    /// The result cannot be encoded, or the call came by ONC RPC.
    pub fn answer_lean(
        self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<Answer, Refusal> {
        if self.protocol() != Protocol::Lean {
            return Err(other_protocol());
        }
        self.reply_with(|reply| encode(&mut Encoder::over(reply)))
    }

    /// Begins a reply with a result in a spare buffer.
    #[inline]
    pub(super) fn begin_reply(&self) -> (Buffer, ReplyDraft) {
        let mut reply = tenon_core::client::buffers::take_spare().unwrap_or_default();
        let draft = self.call.begin_reply(&mut reply);
        (reply, draft)
    }

    #[inline]
    fn reply_with(
        self,
        encode: impl FnOnce(&mut Buffer) -> Result<(), EncodeError>,
    ) -> Result<Answer, Refusal> {
        let (mut reply, draft) = self.begin_reply();
        if let Err(error) = encode(&mut reply) {
            return Ok(self.refuse(error.into()));
        }
        Ok(self.seal(draft, reply))
    }

    /// Refuses the call, with the metadata that was [added](CallInfo::append_reply_metadata) to its reply. An error that
    /// [`AsyncService::call`] returns refuses a call, too, but without metadata.
    #[cold]
    #[must_use]
    pub fn refuse(self, refusal: Refusal) -> Answer {
        let ServerShared {
            registry, tally, ..
        } = &*self.mailbox.shared;
        let failure = HandlerFailure::Refused(refusal);
        let refusal = registry.note_failure(&self.call, failure, tally);
        let mut reply = Buffer::default();
        let draft = self.call.begin_reply(&mut reply);
        let draft = refuse_by(draft, &refusal, &mut reply);
        Answer {
            refusal: Some(refusal),
            ..self.seal(draft, reply)
        }
    }

    /// Makes an answer of a reply that was written.
    #[inline]
    pub(super) fn seal(self, draft: ReplyDraft, mut reply: Buffer) -> Answer {
        let draft = match self.reply_metadata.into_metadata() {
            None => draft,
            Some(metadata) => draft.with_metadata(&mut reply, &metadata),
        };
        self.call.seal_reply(draft, self.dispatched, &mut reply);
        Answer {
            reply,
            message: self.message,
            refusal: None,
        }
    }
}

#[cold]
fn other_protocol() -> Refusal {
    Refusal::SystemError("the call came by the other protocol; ask Call::protocol".to_owned())
}

impl CallbackSource for Call {
    fn channel(&self) -> Result<CallbackChannel, CallError> {
        let (mailbox, origin, call) = (&self.mailbox, &self.origin, &self.call);
        MailboxCallbacks {
            mailbox,
            origin,
            call,
        }
        .channel()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("origin", &self.origin)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

//! What a server of tasks calls beside services that answer at once: services whose procedures are
//! asynchronous.

use std::net::SocketAddr;
use std::sync::Arc;

use tenon::lean::Interface;
use tenon::lean::server::Reply as LeanReply;
use tenon::runtime::{LeanJob, Offer, Origin, Passed};
use tenon::wire::{Buffer, DecodeError, Decoder, EncodeError, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Protocol, Refusal, Service, Transport};
use tenon_proto::onc::server::Reply as OncReply;
use tokio::task::AbortHandle;

use super::line::Completion;

/// One version of a program whose procedures wait for something: timers, other servers, files. Each
/// call has a task of its own. Of an interface the generator makes one of a trait with an asynchronous
/// method for each procedure; this is how to do without.
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

    /// What the service was built from. Clients that speak the lean protocol are told that the program
    /// is not there if it is `None`.
    fn interface(&self) -> Option<Arc<Interface>> {
        None
    }

    /// Carries a call out. Procedure 0 never comes here. The future is dropped where it waits if the
    /// caller gives the call up and says so, or has said how much time there is and that has run out: which those
    /// that speak the lean protocol do.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn call(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
}

/// A call that came in, and its answer to be.
pub struct Call {
    offer: Arc<Offer>,
    origin: Origin,
    /// The message of an ONC call, the arguments of a lean one.
    received: Buffer,
    asked: Asked,
    reply: Buffer,
    /// When it passed the places before the service, if the client wants to know that.
    passed: Option<Passed>,
}

/// What is asked for, and by which protocol.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// The xid, and the procedure.
    Onc(u32, u32),
    Lean(LeanJob),
}

/// The answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// A reply that is sealed.
    reply: Buffer,
    received: Buffer,
}

impl Call {
    pub(super) fn new(
        offer: &Arc<Offer>,
        origin: Origin,
        asked: Asked,
        received: Buffer,
        reply: Buffer,
    ) -> Self {
        Self {
            offer: Arc::clone(offer),
            origin,
            received,
            asked,
            reply,
            passed: None,
        }
    }

    /// What was received, and the buffer of the reply.
    pub(super) fn into_buffers(self) -> (Buffer, Buffer) {
        (self.received, self.reply)
    }

    /// The service begins with it.
    fn dispatched(self) -> Self {
        let passed = match &self.asked {
            Asked::Onc(..) => None,
            Asked::Lean(job) => job.dispatch(),
        };
        Self { passed, ..self }
    }

    /// The procedure's number.
    pub fn procedure(&self) -> u32 {
        match self.asked {
            Asked::Onc(_, procedure) => procedure,
            Asked::Lean(job) => job.procedure.into(),
        }
    }

    /// What the caller speaks, and so whether [`decode`](Self::decode) or
    /// [`decode_lean`](Self::decode_lean) reads the arguments.
    pub fn protocol(&self) -> Protocol {
        match self.asked {
            Asked::Onc(..) => Protocol::Onc,
            Asked::Lean(_) => Protocol::Lean,
        }
    }

    /// Where the caller is; none on a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.origin.peer
    }

    /// What the call came over.
    pub fn transport(&self) -> Transport {
        self.origin.transport
    }

    /// All that is known of the call beside its arguments, as a synchronous service is told.
    pub fn info(&self) -> CallInfo<'_> {
        match self.asked {
            Asked::Lean(job) => self.origin.describe_lean(job.procedure),
            Asked::Onc(_, procedure) => {
                match self.offer.services.call_again(self.received.as_slice()) {
                    Some(call) => self.origin.describe(&call),
                    None => {
                        CallInfo::new(procedure, tenon::Credential::None, self.origin.transport)
                    }
                }
            }
        }
    }

    /// Reads the arguments of a call by ONC RPC, all of them.
    ///
    /// # Errors
    /// They cannot be decoded, or the call came by the lean protocol.
    pub fn decode<'a, T>(
        &'a self,
        decode: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, Refusal> {
        let services = &self.offer.services;
        let call = match self.asked {
            Asked::Onc(..) => services.call_again(self.received.as_slice()),
            Asked::Lean(_) => None,
        };
        let mut input = services.input(call.ok_or_else(other_protocol)?.arguments);
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
        let Asked::Lean(job) = self.asked else {
            return Err(other_protocol());
        };
        let received = self.received.as_slice();
        let mut input = self.offer.services.lean_input(received, job.order);
        let arguments = decode(&mut input)?;
        input.finish()?;
        Ok(arguments)
    }

    /// Answers a call by ONC RPC with a result.
    ///
    /// # Errors
    /// The result cannot be encoded, or the call came by the lean protocol.
    pub fn answer(
        mut self,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<Answer, Refusal> {
        let Asked::Onc(xid, _) = self.asked else {
            return Err(other_protocol());
        };
        let reply = OncReply::begin(&mut self.reply, xid);
        encode(&mut Encoder::new(&mut self.reply))?;
        let fragment_max = self.offer.fragment_max_over(self.origin.transport);
        reply.seal(&mut self.reply, fragment_max);
        Ok(self.answered())
    }

    /// Answers a call by the lean protocol with a result.
    ///
    /// # Errors
    /// The result cannot be encoded, or the call came by ONC RPC.
    pub fn answer_lean(
        mut self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<Answer, Refusal> {
        let Asked::Lean(job) = self.asked else {
            return Err(other_protocol());
        };
        let reply = match self.passed {
            None => LeanReply::begin(&mut self.reply, job.caller),
            Some(_) => LeanReply::begin_stamped(&mut self.reply, job.caller),
        };
        encode(&mut Encoder::over(&mut self.reply))?;
        match self.passed {
            None => reply.seal(&mut self.reply),
            Some(passed) => passed.seal(reply, &mut self.reply),
        }
        Ok(self.answered())
    }

    fn answered(self) -> Answer {
        Answer {
            reply: self.reply,
            received: self.received,
        }
    }
}

impl Answer {
    /// The reply, sealed, and a buffer to be used again.
    pub(super) fn into_parts(self) -> (Buffer, Buffer) {
        (self.reply, self.received)
    }
}

fn other_protocol() -> Refusal {
    Refusal::SystemError("the call came by the other protocol; ask Call::protocol".to_owned())
}

/// A service whose calls have tasks.
pub(super) trait Spawn: Send + Sync {
    /// Begins to carry a call out.
    fn spawn(self: Arc<Self>, call: Call, completion: Completion) -> AbortHandle;
}

impl<S: AsyncService> Spawn for S {
    fn spawn(self: Arc<Self>, call: Call, completion: Completion) -> AbortHandle {
        let task = tokio::spawn(async move {
            match completion.why_not() {
                None => completion.finish(self.call(call.dispatched()).await),
                Some(exception) => completion.refuse(&exception),
            }
        });
        task.abort_handle()
    }
}

/// A service of tasks as it stands in the list of services. It is not called there.
pub(super) struct Listed<S>(pub(super) Arc<S>);

impl<S: AsyncService> Service for Listed<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        _arguments: &mut Decoder<'_>,
        _result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(not_by_tasks())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.0.interface().is_some().then_some(self)
    }
}

impl<S: AsyncService> LeanService for Listed<S> {
    fn interface(&self) -> Arc<Interface> {
        let unknown = || Arc::new(Interface::unknown(self.0.program(), self.0.version()));
        self.0.interface().unwrap_or_else(unknown)
    }

    fn call_lean(
        &self,
        _call: &CallInfo<'_>,
        _arguments: LeanInput<'_>,
        _result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(not_by_tasks())
    }
}

fn not_by_tasks() -> Refusal {
    Refusal::SystemError("the service is one of tasks".to_owned())
}

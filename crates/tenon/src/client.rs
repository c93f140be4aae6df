//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::Protocol;
use tenon_proto::lean::{ByteOrder, Draft, Extras, Interface};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::{Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits};

use crate::channel::{Channel, Form, LeanForm, Locked, Ticket, Timer};
use crate::error::{CallError, ConnectError};
use crate::lean_input::LeanInput;
use crate::options::ChannelOptions;
use crate::pending::{DecodeBy, PendingCall};
use crate::procedure::{ProcedureCall, decode_in_order};
use crate::rpcbind;

/// Time that a call has if nothing else is said.
pub const TIMEOUT: Duration = Duration::from_secs(25);

/// Calls one version of a program. Clones and the copies that the `with_` methods make share the
/// channel; any number of threads may call at once. Generated clients wrap one of these.
///
/// ```no_run
/// use std::time::Duration;
/// use tenon::Client;
///
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3)?;
/// // Procedure 0 takes nothing, returns nothing, and shows that the server is there.
/// nfs.with_timeout(Duration::from_secs(2))
///     .call(0, |_arguments| Ok(()), |_result| Ok(()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    /// What the channel speaks.
    protocol: Protocol,
    program: u32,
    version: u32,
    template: Arc<CallTemplate>,
    interface: Arc<Interface>,
    timeout: Duration,
    /// Whether lean calls say how much time they have.
    tells_timeout: bool,
    decoding: Decoding,
}

/// How results are decoded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decoding {
    /// What is forgiven.
    pub mode: DecodeMode,
    /// What it may cost.
    pub limits: Limits,
}

impl Decoding {
    /// Decodes the results of a call by ONC RPC.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn decode<T>(
        self,
        results: &[u8],
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let mut input = Decoder::with(results, self.mode, self.limits);
        let value = decode(&mut input)?;
        input.finish()?;
        Ok(value)
    }

    /// Decodes the results of a call by the lean protocol.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn decode_lean<T>(
        self,
        results: &[u8],
        order: ByteOrder,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let mut input = LeanInput::over(results, order, self.mode, self.limits);
        let value = decode(&mut input)?;
        input.finish()?;
        Ok(value)
    }
}

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port` or
    /// `unix:///path` for calls by ONC RPC, `lean+tcp://host:port` or `lean+unix:///path` for calls
    /// by the lean protocol. Without a port the host's rpcbind is asked for it.
    ///
    /// # Errors
    /// The text is no address, the peer cannot be reached, or its rpcbind does not know the
    /// program.
    pub fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::connect_with(address, program, version, ChannelOptions::default())
    }

    /// Connects as [`connect`](Self::connect) does, within the limits of `options`; rpcbind has as
    /// much time as the peer.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        address: &str,
        program: u32,
        version: u32,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let address = rpcbind::locate(address.parse()?, program, version, &options)?;
        let channel = Channel::connect_with(&address, options)?;
        Ok(Self::over(channel, program, version))
    }

    /// A version of a program at the other end of `channel`. Calls are made with AUTH_NONE, have
    /// 25 seconds, and read results leniently.
    pub fn over(channel: Channel, program: u32, version: u32) -> Self {
        Self {
            protocol: channel.address().protocol(),
            channel,
            program,
            version,
            template: Arc::new(CallTemplate::new(program, version, &Credential::None)),
            interface: Arc::new(Interface::unknown(program, version)),
            timeout: TIMEOUT,
            tells_timeout: false,
            decoding: Decoding::default(),
        }
    }

    /// The same with `timeout` for every call, connecting again included. A lean call tells the
    /// server how much of it is left, which does not begin what nobody will wait for.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            tells_timeout: true,
            ..self.clone()
        }
    }

    /// The same, built from `interface`: lean calls are calls of its program and version, and the
    /// server compares it with its own before it takes the first. Otherwise nothing is compared.
    #[must_use]
    pub fn with_interface(&self, interface: Arc<Interface>) -> Self {
        Self {
            interface,
            ..self.clone()
        }
    }

    /// The same with `credential` on every call.
    #[must_use]
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        let template = CallTemplate::new(self.program, self.version, credential);
        Self {
            template: Arc::new(template),
            ..self.clone()
        }
    }

    /// The same, forgiving as much as `mode` says.
    #[must_use]
    pub fn with_decode_mode(&self, mode: DecodeMode) -> Self {
        let mut client = self.clone();
        client.decoding.mode = mode;
        client
    }

    /// The same with `limits` on what a result may cost.
    #[must_use]
    pub fn with_decode_limits(&self, limits: Limits) -> Self {
        let mut client = self.clone();
        client.decoding.limits = limits;
        client
    }

    /// The channel that the calls go over.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// What the channel speaks, and so whether [`call`](Self::call) or
    /// [`call_lean`](Self::call_lean) goes over it.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The program's number.
    pub fn program(&self) -> u32 {
        self.program
    }

    /// The version's number.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Calls a procedure and waits for its result, which `decode` reads where it was received:
    /// while it runs, other callers of the channel may have to wait.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let _span = tracing::trace_span!("call", self.program, self.version, procedure).entered();
        let (locked, ticket) = self.send(procedure, encode)?;
        let reply = ticket.wait_on(locked)?;
        self.decoding.decode(reply.results(), decode)
    }

    /// Sends a call and returns at once, as far as the transport has room for it. The reply is
    /// fetched by [`PendingCall::wait`], in any order and on any thread.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn start<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let (_, ticket) = self.send(procedure, encode)?;
        let decode = DecodeBy::Onc(decode);
        Ok(PendingCall::new(ticket, self.decoding, decode))
    }

    /// Calls a procedure by the lean protocol, over a channel that speaks it, as
    /// [`call`](Self::call) does by ONC RPC. Its number has 16 bits there.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call_lean<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let _span = tracing::trace_span!("call", self.program, self.version, procedure).entered();
        let (locked, ticket) = self.send_lean(procedure, encode)?;
        let reply = ticket.wait_on(locked)?;
        self.decoding
            .decode_lean(reply.results(), reply.order(), decode)
    }

    /// Sends a call by the lean protocol and returns at once, as [`start`](Self::start) does by ONC
    /// RPC. A server that has as many calls as it takes is waited for.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn start_lean<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: fn(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let (_, ticket) = self.send_lean(procedure, encode)?;
        let decode = DecodeBy::Lean(decode);
        Ok(PendingCall::new(ticket, self.decoding, decode))
    }

    /// Makes a call by the protocol that the channel speaks, and waits for its result, as
    /// [`call`](Self::call) does.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn invoke<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, CallError> {
        let procedure = C::PROCEDURE;
        let _span = tracing::trace_span!("call", self.program, self.version, procedure).entered();
        let (locked, ticket) = self.send_by_protocol(call)?;
        let reply = ticket.wait_on(locked)?;
        let (results, decoding) = (reply.results(), self.decoding);
        match self.protocol {
            Protocol::Onc => decoding.decode(results, C::decode),
            Protocol::Lean => decoding.decode_lean(results, reply.order(), decode_in_order::<C>),
        }
    }

    /// Sends a call by the protocol that the channel speaks, and returns at once, as
    /// [`start`](Self::start) does.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn submit<C: ProcedureCall>(&self, call: &C) -> Result<PendingCall<C::Result>, CallError> {
        let (_, ticket) = self.send_by_protocol(call)?;
        let decode = match self.protocol {
            Protocol::Onc => DecodeBy::Onc(C::decode),
            Protocol::Lean => DecodeBy::Lean(decode_in_order::<C>),
        };
        Ok(PendingCall::new(ticket, self.decoding, decode))
    }

    /// One timer, one buffer and one sending for both protocols: what is compiled for each procedure
    /// is small.
    #[inline]
    fn send_by_protocol<C: ProcedureCall>(
        &self,
        call: &C,
    ) -> Result<(Locked<'_>, Ticket), CallError> {
        let timer = Timer::start(self.timeout);
        let mut message = self.channel.buffer();
        let (encoded, form) = match self.protocol {
            Protocol::Onc => {
                self.template.begin(&mut message, C::PROCEDURE);
                (call.encode(&mut Encoder::new(&mut message)), Form::Onc)
            }
            Protocol::Lean => {
                let form = self.begin_lean(&mut message, C::PROCEDURE)?;
                let encoded = call.encode_lean(&mut Encoder::over(&mut message));
                (encoded, Form::Lean(form))
            }
        };
        self.send_encoded(message, encoded, &form, timer)
    }

    #[inline]
    fn send_lean(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<(Locked<'_>, Ticket), CallError> {
        let timer = Timer::start(self.timeout);
        let mut message = self.channel.buffer();
        let form = self.begin_lean(&mut message, procedure)?;
        let encoded = encode(&mut Encoder::over(&mut message));
        self.send_encoded(message, encoded, &Form::Lean(form), timer)
    }

    #[inline]
    fn send(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<(Locked<'_>, Ticket), CallError> {
        let timer = Timer::start(self.timeout);
        let mut message = self.channel.buffer();
        self.template.begin(&mut message, procedure);
        let encoded = encode(&mut Encoder::new(&mut message));
        self.send_encoded(message, encoded, &Form::Onc, timer)
    }

    /// Begins a lean call in an empty buffer.
    #[inline]
    fn begin_lean(&self, message: &mut Buffer, procedure: u32) -> Result<LeanForm<'_>, CallError> {
        let procedure =
            u16::try_from(procedure).map_err(|_| CallError::NoLeanNumber { procedure })?;
        let extras = Extras {
            time_left: self.tells_timeout.then_some(self.timeout),
            extensions: &[],
        };
        Ok(LeanForm {
            draft: Draft::call(message, ByteOrder::NATIVE, procedure, &extras),
            interface: &self.interface,
            procedure,
            tells_timeout: self.tells_timeout,
        })
    }

    #[inline]
    fn send_encoded(
        &self,
        message: Buffer,
        encoded: Result<(), EncodeError>,
        form: &Form<'_>,
        timer: Timer,
    ) -> Result<(Locked<'_>, Ticket), CallError> {
        match encoded {
            Ok(()) => self.channel.send(message, form, timer),
            Err(error) => {
                self.channel.recycle(message);
                Err(error.into())
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("channel", &self.channel)
            .field("program", &self.program)
            .field("version", &self.version)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

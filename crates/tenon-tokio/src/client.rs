//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon::lean::{ByteOrder, Draft, Extras, Interface};
use tenon::runtime::{Decoding, Results, TIMEOUT, Timer, decode_in_order};
use tenon::wire::{Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits};
use tenon::{
    CallError, ChannelOptions, ConnectError, Credential, LeanInput, ProcedureCall, Protocol,
};
use tenon_proto::onc::message::CallTemplate;

use crate::channel::{Channel, Kind, Ticket};

/// Calls one version of a program. Clones and the copies that the `with_` methods make share the
/// channel; any number of tasks may call at once.
///
/// A call does nothing before it is polled, and its time begins then. Dropping it gives the call up:
/// a lean server is told so, and whether it carries the call out is open.
///
/// ```no_run
/// use std::time::Duration;
/// use tenon_tokio::Client;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3).await?;
/// // Procedure 0 takes nothing, returns nothing, and shows that the server is there.
/// let nfs = nfs.with_timeout(Duration::from_secs(2));
/// nfs.call(0, |_arguments| Ok(()), |_result| Ok(())).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    program: u32,
    version: u32,
    template: Arc<CallTemplate>,
    interface: Arc<Interface>,
    timeout: Duration,
    /// Whether lean calls say how much time they have.
    tells_timeout: bool,
    decoding: Decoding,
}

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port` or
    /// `unix:///path` for calls by ONC RPC, `lean+tcp://host:port` or `lean+unix:///path` for calls
    /// by the lean protocol. Nobody is asked for a port.
    ///
    /// # Errors
    /// The text is no address, it lacks a port, or the peer cannot be reached.
    ///
    /// # Panics
    /// As [`Channel::connect`].
    pub async fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::connect_with(address, program, version, ChannelOptions::default()).await
    }

    /// Connects as [`connect`](Self::connect) does, within the limits of `options`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        address: &str,
        program: u32,
        version: u32,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let channel = Channel::connect_with(&address.parse()?, options).await?;
        Ok(Self::over(channel, program, version))
    }

    /// A version of a program at the other end of `channel`. Calls are made with AUTH_NONE, have
    /// 25 seconds, and read results leniently.
    pub fn over(channel: Channel, program: u32, version: u32) -> Self {
        Self {
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

    /// The program's number.
    pub fn program(&self) -> u32 {
        self.program
    }

    /// The version's number.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What the channel speaks, and so whether [`call`](Self::call) or
    /// [`call_lean`](Self::call_lean) goes over it.
    pub fn protocol(&self) -> Protocol {
        self.channel.address().protocol()
    }

    /// Calls a procedure by ONC RPC and returns its result as `decode` reads it.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub async fn call<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let timer = Timer::start(self.timeout);
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        self.template.begin(&mut message, procedure);
        let encoded = encode(&mut Encoder::new(&mut message));
        let results = self.exchange(message, encoded, Kind::Onc, timer).await?;
        self.read(results, |results, decoding| {
            decoding.decode(results.bytes.as_slice(), decode)
        })
    }

    /// Calls a procedure by the lean protocol, over a channel that speaks it, as
    /// [`call`](Self::call) does by ONC RPC. Its number has 16 bits there.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub async fn call_lean<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let timer = Timer::start(self.timeout);
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        let kind = self.begin_lean(&mut message, procedure)?;
        let encoded = encode(&mut Encoder::over(&mut message));
        let results = self.exchange(message, encoded, kind, timer).await?;
        self.read(results, |results, decoding| {
            decoding.decode_lean(results.bytes.as_slice(), results.order, decode)
        })
    }

    /// Makes a call by the protocol that the channel speaks, as [`call`](Self::call) does. Generated
    /// code has a [`ProcedureCall`] for every procedure.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub async fn invoke<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, CallError> {
        let timer = Timer::start(self.timeout);
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        let (encoded, kind) = match self.protocol() {
            Protocol::Onc => {
                self.template.begin(&mut message, C::PROCEDURE);
                (call.encode(&mut Encoder::new(&mut message)), Kind::Onc)
            }
            Protocol::Lean => {
                let kind = self.begin_lean(&mut message, C::PROCEDURE)?;
                let encoded = call.encode_lean(&mut Encoder::over(&mut message));
                (encoded, kind)
            }
        };
        let results = self.exchange(message, encoded, kind, timer).await?;
        self.read(results, |results, decoding| {
            let bytes = results.bytes.as_slice();
            match self.protocol() {
                Protocol::Onc => decoding.decode(bytes, C::decode),
                Protocol::Lean => decoding.decode_lean(bytes, results.order, decode_in_order::<C>),
            }
        })
    }

    /// Begins a lean call in an empty buffer.
    fn begin_lean(&self, message: &mut Buffer, procedure: u32) -> Result<Kind, CallError> {
        let procedure =
            u16::try_from(procedure).map_err(|_| CallError::NoLeanNumber { procedure })?;
        let extras = Extras {
            time_left: self.tells_timeout.then_some(self.timeout),
            extensions: &[],
        };
        Ok(Kind::Lean {
            draft: Draft::call(message, ByteOrder::NATIVE, procedure, &extras),
            interface: Arc::clone(&self.interface),
            procedure,
            tells_timeout: self.tells_timeout,
        })
    }

    /// Sends a call whose arguments stand in `message`, and waits for its results.
    async fn exchange(
        &self,
        message: Buffer,
        encoded: Result<(), EncodeError>,
        kind: Kind,
        timer: Timer,
    ) -> Result<Results, CallError> {
        if let Err(error) = encoded {
            self.channel.recycle(message);
            return Err(error.into());
        }
        let written = self.channel.written(message, kind)?;
        Ticket::new(&self.channel, written, timer).await
    }

    fn read<T>(
        &self,
        results: Results,
        read: impl FnOnce(&Results, Decoding) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let value = read(&results, self.decoding);
        self.channel.recycle(results.bytes);
        value
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

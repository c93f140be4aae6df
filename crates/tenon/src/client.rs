//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::{DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Limits};

use crate::channel::{Channel, Ticket, Timer};
use crate::error::{CallError, ConnectError};
use crate::options::ChannelOptions;
use crate::pending::PendingCall;
use crate::rpcbind;

/// Time that a call has if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(25);

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
    program: u32,
    version: u32,
    template: Arc<CallTemplate>,
    timeout: Duration,
    decoding: Decoding,
}

/// How results are decoded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Decoding {
    mode: DecodeMode,
    limits: Limits,
}

impl Decoding {
    pub(crate) fn decode<T>(
        self,
        results: &[u8],
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let mut input = Decoder::with(results, self.mode, self.limits);
        let value = decode(&mut input)?;
        input.finish()?;
        Ok(value)
    }
}

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port` or
    /// `unix:///path`. Without a port the host's rpcbind is asked for it.
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
            channel,
            program,
            version,
            template: Arc::new(CallTemplate::new(program, version, &Credential::None)),
            timeout: TIMEOUT,
            decoding: Decoding::default(),
        }
    }

    /// The same with `timeout` for every call, connecting again included.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
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
        let ticket = self.send(procedure, encode)?;
        let reply = ticket.wait()?;
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
        let ticket = self.send(procedure, encode)?;
        Ok(PendingCall::new(ticket, self.decoding, decode))
    }

    #[inline]
    fn send(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<Ticket, CallError> {
        let timer = Timer::start(self.timeout);
        let mut message = self.channel.buffer();
        self.template.begin(&mut message, procedure);
        if let Err(error) = encode(&mut Encoder::new(&mut message)) {
            self.channel.recycle(message);
            return Err(error.into());
        }
        self.channel.send(message, timer)
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

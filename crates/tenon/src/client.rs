//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::Protocol;
use tenon_proto::lean::{Extension, Interface, Stamps};
use tenon_proto::onc::auth::Credential;
use tenon_wire::{Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits};

use crate::account::{Account, AtEnd, Followed, Step, Watcher};
use crate::caller::Caller;
use crate::channel::{Channel, Form, Ticket};
use crate::error::{CallError, ConnectError};
use crate::lean_input::LeanInput;
use crate::options::ChannelOptions;
use crate::pending::{DecodeBy, PendingCall};
use crate::procedure::{ProcedureCall, decode_in_order};
use crate::rpcbind;

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
    caller: Caller,
    account: Option<Account>,
}

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port` or
    /// `unix:///path` for calls by ONC RPC, `lean+tcp://host:port`, `lean+udp://host:port` or
    /// `lean+unix:///path` for calls by the lean protocol. Without a port the host's rpcbind is asked for it.
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
        let caller = Caller::new(channel.address().protocol(), program, version);
        Self {
            channel,
            caller,
            account: None,
        }
    }

    fn with(&self, change: impl FnOnce(&mut Caller)) -> Self {
        let mut client = self.clone();
        change(&mut client.caller);
        client
    }

    /// The same with `timeout` for every call, connecting again included. Of a second or more it may be
    /// over some milliseconds late, but not early. A lean call tells the
    /// server how much of it is left, which does not begin what nobody will wait for.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.with(|caller| caller.set_timeout(timeout))
    }

    /// The same, built from `interface`: lean calls are calls of its program and version, and the
    /// server compares it with its own before it takes the first. Otherwise nothing is compared.
    #[must_use]
    pub fn with_interface(&self, interface: Arc<Interface>) -> Self {
        self.with(|caller| caller.set_interface(interface))
    }

    /// The same with `credential` on every call.
    #[must_use]
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        self.with(|caller| caller.set_credential(credential))
    }

    /// The same, forgiving as much as `mode` says.
    #[must_use]
    pub fn with_decode_mode(&self, mode: DecodeMode) -> Self {
        self.with(|caller| caller.set_decode_mode(mode))
    }

    /// The same with `limits` on what a result may cost.
    #[must_use]
    pub fn with_decode_limits(&self, limits: Limits) -> Self {
        self.with(|caller| caller.set_decode_limits(limits))
    }

    /// The same with an account of where the time of its calls goes. That of a [started](Self::start) one
    /// ends when it was waited for, and until then whatever its caller did is part of it.
    #[must_use]
    pub fn with_account(&self, account: &Account) -> Self {
        Self {
            account: Some(account.clone()),
            ..self.clone()
        }
    }

    /// The channel that the calls go over.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// What the channel speaks, and so whether [`call`](Self::call) or
    /// [`call_lean`](Self::call_lean) goes over it.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.caller.protocol()
    }

    /// The program's number.
    pub fn program(&self) -> u32 {
        self.caller.program()
    }

    /// The version's number.
    pub fn version(&self) -> u32 {
        self.caller.version()
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
        match self.due_account() {
            None => self.call_watched(procedure, encode, decode, ()),
            Some(account) => {
                account.follow(|steps| self.call_watched(procedure, encode, decode, steps))
            }
        }
    }

    #[inline]
    fn call_watched<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
        watcher: impl Watcher,
    ) -> Result<T, CallError> {
        let _span = self.span(procedure);
        let mut message = self.channel.buffer();
        let form = match self.write(&mut message, procedure, encode, watcher) {
            Ok(form) => form,
            Err(error) => return Err(self.not_written(message, error)),
        };
        let reply = self
            .channel
            .call(message, &form, self.caller.timeout(), watcher)?;
        let value = self.caller.decoding().decode(reply.results(), decode);
        watcher.at(Step::Decoded);
        value
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
        let decode = DecodeBy::Onc(decode);
        match self.follow() {
            None => {
                let ticket = self.send(procedure, encode, ())?;
                Ok(self.pending(ticket, decode))
            }
            Some(followed) => {
                let ticket = self.send(procedure, encode, followed.steps())?;
                Ok(self.pending(ticket, decode).followed_by(followed))
            }
        }
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
        match self.due_account() {
            None => self.call_lean_watched(procedure, encode, decode, ()),
            Some(account) => {
                account.follow(|steps| self.call_lean_watched(procedure, encode, decode, steps))
            }
        }
    }

    #[inline]
    fn call_lean_watched<T>(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
        watcher: impl Watcher,
    ) -> Result<T, CallError> {
        let _span = self.span(procedure);
        let mut message = self.channel.buffer();
        let form = match self.write_lean(&mut message, procedure, encode, watcher) {
            Ok(form) => form,
            Err(error) => return Err(self.not_written(message, error)),
        };
        let reply = self
            .channel
            .call(message, &form, self.caller.timeout(), watcher)?;
        let decoding = self.caller.decoding();
        let value = decoding.decode_lean(reply.results(), reply.order(), decode);
        watcher.at(Step::Decoded);
        value
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
        let decode = DecodeBy::Lean(decode);
        match self.follow() {
            None => {
                let ticket = self.send_lean(procedure, encode, ())?;
                Ok(self.pending(ticket, decode))
            }
            Some(followed) => {
                let ticket = self.send_lean(procedure, encode, followed.steps())?;
                Ok(self.pending(ticket, decode).followed_by(followed))
            }
        }
    }

    /// Makes a call by the protocol that the channel speaks, and waits for its result, as
    /// [`call`](Self::call) does.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn invoke<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, CallError> {
        match self.due_account() {
            None => self.invoke_watched(call, ()),
            Some(account) => account.follow(|steps| self.invoke_watched(call, steps)),
        }
    }

    #[inline]
    fn invoke_watched<C: ProcedureCall>(
        &self,
        call: &C,
        watcher: impl Watcher,
    ) -> Result<C::Result, CallError> {
        let procedure = C::PROCEDURE;
        let _span = self.span(procedure);
        let mut message = self.channel.buffer();
        let form = match self.write_by_protocol(&mut message, call, watcher) {
            Ok(form) => form,
            Err(error) => return Err(self.not_written(message, error)),
        };
        let reply = self
            .channel
            .call(message, &form, self.caller.timeout(), watcher)?;
        let _decoded = AtEnd(watcher, Step::Decoded);
        self.caller.read::<C>(reply.results(), reply.order())
    }

    /// The account that is to follow the call which begins now.
    #[inline]
    fn due_account(&self) -> Option<&Account> {
        match &self.account {
            None => None,
            Some(account) => account.is_due().then_some(account),
        }
    }

    /// What a call that is watched so asks the server for.
    #[inline]
    fn asked_of_server<W: Watcher>(&self, _watcher: W) -> &'static [Extension<'static>] {
        match W::ASKS && self.channel.gives_stamps() {
            true => &[Stamps::REQUEST],
            false => &[],
        }
    }

    /// Sends a call by the protocol that the channel speaks, and returns at once, as
    /// [`start`](Self::start) does.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn submit<C: ProcedureCall>(&self, call: &C) -> Result<PendingCall<C::Result>, CallError> {
        let decode = match self.caller.protocol() {
            Protocol::Onc => DecodeBy::Onc(C::decode),
            Protocol::Lean => DecodeBy::Lean(decode_in_order::<C>),
        };
        match self.follow() {
            None => {
                let ticket = self.send_by_protocol(call, ())?;
                Ok(self.pending(ticket, decode))
            }
            Some(followed) => {
                let ticket = self.send_by_protocol(call, followed.steps())?;
                Ok(self.pending(ticket, decode).followed_by(followed))
            }
        }
    }

    /// Follows the call that is started now, if it is to be followed.
    #[inline]
    fn follow(&self) -> Option<Box<Followed>> {
        match &self.account {
            None => None,
            Some(account) => account.begin().map(Box::new),
        }
    }

    #[inline]
    fn pending<T>(&self, ticket: Ticket, decode: DecodeBy<T>) -> PendingCall<T> {
        PendingCall::new(ticket, self.caller.decoding(), decode)
    }

    /// One timer, one buffer and one sending for both protocols: what is compiled for each procedure
    /// is small.
    fn send_by_protocol<C: ProcedureCall>(
        &self,
        call: &C,
        watcher: impl Watcher,
    ) -> Result<Ticket, CallError> {
        let timer = self.channel.timer(self.caller.timeout());
        let mut message = self.channel.buffer();
        match self.write_by_protocol(&mut message, call, watcher) {
            Ok(form) => self.channel.start(message, &form, timer, watcher),
            Err(error) => Err(self.not_written(message, error)),
        }
    }

    fn send_lean(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        watcher: impl Watcher,
    ) -> Result<Ticket, CallError> {
        let timer = self.channel.timer(self.caller.timeout());
        let mut message = self.channel.buffer();
        match self.write_lean(&mut message, procedure, encode, watcher) {
            Ok(form) => self.channel.start(message, &form, timer, watcher),
            Err(error) => Err(self.not_written(message, error)),
        }
    }

    fn send(
        &self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        watcher: impl Watcher,
    ) -> Result<Ticket, CallError> {
        let timer = self.channel.timer(self.caller.timeout());
        let mut message = self.channel.buffer();
        match self.write(&mut message, procedure, encode, watcher) {
            Ok(form) => self.channel.start(message, &form, timer, watcher),
            Err(error) => Err(self.not_written(message, error)),
        }
    }

    /// Writes a call by the protocol that the channel speaks.
    #[inline]
    fn write_by_protocol<C: ProcedureCall>(
        &self,
        message: &mut Buffer,
        call: &C,
        watcher: impl Watcher,
    ) -> Result<Form<'_>, CallError> {
        let extensions = self.asked_of_server(watcher);
        let (encoded, form) = self.caller.write(message, call, extensions)?;
        encoded?;
        watcher.at(Step::Encoded);
        Ok(form)
    }

    #[inline]
    fn write_lean(
        &self,
        message: &mut Buffer,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        watcher: impl Watcher,
    ) -> Result<Form<'_>, CallError> {
        let extensions = self.asked_of_server(watcher);
        let form = self.caller.begin_lean(message, procedure, extensions)?;
        encode(&mut Encoder::over(message))?;
        watcher.at(Step::Encoded);
        Ok(Form::Lean(form))
    }

    #[inline]
    fn write(
        &self,
        message: &mut Buffer,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        watcher: impl Watcher,
    ) -> Result<Form<'_>, CallError> {
        self.caller.begin(message, procedure);
        encode(&mut Encoder::new(message))?;
        watcher.at(Step::Encoded);
        Ok(Form::Onc)
    }

    /// Keeps the buffer of a call that is not sent.
    #[cold]
    fn not_written(&self, message: Buffer, error: CallError) -> CallError {
        self.channel.recycle(message);
        error
    }

    /// None if nobody wants to know.
    #[inline(always)]
    fn span(&self, procedure: u32) -> Option<tracing::span::EnteredSpan> {
        match tracing::level_filters::LevelFilter::current() >= tracing::Level::TRACE {
            true => Some(self.entered_span(procedure)),
            false => None,
        }
    }

    #[cold]
    fn entered_span(&self, procedure: u32) -> tracing::span::EnteredSpan {
        let (program, version) = (self.program(), self.version());
        tracing::trace_span!("call", program, version, procedure).entered()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("channel", &self.channel)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

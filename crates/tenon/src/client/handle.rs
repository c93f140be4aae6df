//! A client: one version of a program, at the other end of a channel.

mod lean_calls;
mod onc_calls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_core::caller::{Caller, DecodeBy};
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{Ping, ProcedureCall, ProcedureError};
use tenon_core::profile::{
    AtEnd, CallProfile, Followed, IfAccount, NoProbe, Probe, Step, if_account,
};
use tenon_core::propagation::Propagation;
use tenon_core::timer::CallLimit;
use tenon_core::{CallTarget, MakeCalls};
use tenon_net::Protocol;
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::{Interface, Metadata, MetadataError};
use tenon_proto::onc::auth::Credential;
use tenon_wire::{Buffer, DecodeMode, Limits};

pub use lean_calls::LeanCalls;
pub use onc_calls::OncCalls;

use super::call::{CallHandle, ReceivedReply, keep_metadata};
use super::channel::Channel;
use super::pending::PendingCall;

/// Calls one version of a program. Clones and the copies that the `with_` methods make share the channel; any number of
/// threads may call at once. Generated clients wrap one of these.
///
/// ```no_run
/// use std::time::Duration;
/// use tenon::{CallOptions, Client};
///
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3)?;
/// // Procedure 0 takes nothing, returns nothing, and shows that the server is there.
/// let hurried = CallOptions::new().timeout(Duration::from_secs(2));
/// nfs.with_options(hurried).onc().call(0, |_arguments| Ok(()), |_result| Ok(()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    caller: Caller,
    account: Option<CallProfile>,
}

/// A client as some calls use it, with options of their own.
#[derive(Debug, Clone, Copy)]
pub struct ClientView<'c> {
    client: &'c Client,
    options: CallOptions<'c>,
}

impl Client {
    /// A version of a program at the other end of `channel`. Calls are made with AUTH_NONE, have 25 seconds, and read
    /// results leniently.
    pub fn over(channel: Channel, program: u32, version: u32) -> Self {
        let caller = Caller::new(channel.address(), channel.options(), program, version);
        channel.lock().calls.ping_by(program, version);
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

    /// Returns the same client with `timeout` for every call, connecting again included. One of a second or more may be
    /// over some milliseconds late, but not early. A lean call tells the server how much of it is left, which does not
    /// begin what is not waited for any more.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.with(|caller| caller.set_timeout(timeout))
    }

    /// Returns the same client, built from `interface`: lean calls are calls of its program and version, and the server
    /// compares it with its own before it takes the first. Otherwise nothing is compared.
    #[must_use]
    pub fn with_interface(&self, interface: Arc<Interface>) -> Self {
        self.with(|caller| caller.set_interface(interface))
    }

    /// Returns the same client with `credential` on every call, by either protocol.
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
    /// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
    /// # let (server, address) = start_server();
    /// use tenon::{AuthSys, Credential};
    ///
    /// // User 1000 of group 100, as the server may believe.
    /// let user = AuthSys::new(b"workstation", 1000, 100, &[])?;
    /// let greeter = GreeterV1Client::connect(&address)?.with_credential(&Credential::Sys(user));
    /// greeter.greet(&Visitor::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        self.with(|caller| caller.set_credential(credential))
    }

    /// Returns the same client with `metadata` on every call, beside that which is on its calls already. By ONC RPC a
    /// call cannot carry any, and fails with [`CallError::OncMetadata`].
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
    /// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
    /// # let (server, address) = start_server();
    /// use tenon::Metadata;
    ///
    /// let mut metadata = Metadata::new();
    /// metadata.append("tenant", "blue")?;
    /// let greeter = GreeterV1Client::connect(&format!("lean+{address}"))?;
    /// let greeter = GreeterV1Client(greeter.0.with_metadata(&metadata)?);
    /// greeter.greet(&Visitor::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There would be more than [`Metadata::BYTES_MAX`] bytes.
    pub fn with_metadata(&self, metadata: &Metadata) -> Result<Self, MetadataError> {
        let mut client = self.clone();
        client.caller.add_metadata(metadata.view())?;
        Ok(client)
    }

    /// Returns the same client with `token` on every call, as the metadata `authorization: Bearer` and the token (RFC
    /// 6750), in place of the token that it has. Over a network without encryption a call fails with [`CallError::InsecureToken`], unless
    /// [`ChannelOptions::allow_insecure`](crate::ChannelOptions::allow_insecure) is set.
    ///
    /// # Errors
    /// The token is not printable ASCII, or too long.
    pub fn with_bearer_token(&self, token: &str) -> Result<Self, MetadataError> {
        let mut client = self.clone();
        client.caller.set_bearer_token(token)?;
        Ok(client)
    }

    /// Returns the same client with rules for what its calls carry on if they are made by a handler: of the call that it
    /// carries out the deadline and the context of the trace by default.
    #[must_use]
    pub fn with_propagation(&self, propagation: Propagation) -> Self {
        self.with(|caller| caller.set_propagation(propagation))
    }

    /// Returns the same client, forgiving as much as `mode` says.
    #[must_use]
    pub fn with_decode_mode(&self, mode: DecodeMode) -> Self {
        self.with(|caller| caller.set_decode_mode(mode))
    }

    /// Returns the same client with `limits` on what a result may cost.
    #[must_use]
    pub fn with_decode_limits(&self, limits: Limits) -> Self {
        self.with(|caller| caller.set_decode_limits(limits))
    }

    /// Returns the same client with an account of where the time of its calls goes. That of a [started](Self::start)
    /// one ends when it was waited for, and until then whatever its caller did is part of it.
    #[must_use]
    pub fn with_profile(&self, account: &CallProfile) -> Self {
        let mut client = Self {
            account: Some(account.clone()),
            ..self.clone()
        };
        if account.follows_packets() {
            client.caller.ask_packet_times();
        }
        client
    }

    /// Returns the channel that the calls go over.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns the protocol of the calls.
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

    /// Returns this client for calls with `options`, at no cost.
    #[inline]
    pub fn with_options<'c>(&'c self, options: CallOptions<'c>) -> ClientView<'c> {
        ClientView {
            client: self,
            options,
        }
    }

    /// Makes a call and waits for its result, which is decoded where it was received: other callers of the channel may
    /// have to wait meanwhile.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, C::Error> {
        self.with_options(CallOptions::new()).call(call)
    }

    /// Sends a call and returns at once, as far as the transport has room for it. The reply is fetched by
    /// [`PendingCall::wait`], in any order and on any thread. A lean server that has as many calls as it takes is
    /// waited for.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn start<C: ProcedureCall>(
        &self,
        call: &C,
    ) -> Result<PendingCall<C::Result, C::Error>, C::Error> {
        self.with_options(CallOptions::new()).start(call)
    }

    /// Calls procedure 0, which takes nothing, returns nothing, and shows that the server has the program.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub fn ping(&self) -> Result<(), CallError> {
        self.call(&Ping)
    }

    /// Returns whether a call with such a probe asks the server for its time stamps.
    #[inline]
    fn asks_stamps<P: Probe>(&self, _probe: P) -> bool {
        P::ASKS_SERVER && self.channel.gives_stamps()
    }

    /// A span of the call, unless no subscriber wants to know. In a box, there is nothing to drop mostly.
    #[inline(always)]
    fn span(&self, procedure: u32) -> Option<Box<tracing::span::EnteredSpan>> {
        if tracing::level_filters::LevelFilter::current() >= tracing::Level::TRACE {
            Some(self.entered_span(procedure))
        } else {
            None
        }
    }

    #[cold]
    fn entered_span(&self, procedure: u32) -> Box<tracing::span::EnteredSpan> {
        let (program, version) = (self.program(), self.version());
        Box::new(tracing::trace_span!("call", program, version, procedure).entered())
    }
}

#[cold]
#[inline(never)]
fn leave(span: Box<tracing::span::EnteredSpan>) {
    drop(span);
}

impl<'c> From<&'c Client> for ClientView<'c> {
    /// Returns the client for calls without options of their own.
    fn from(client: &'c Client) -> Self {
        client.with_options(CallOptions::new())
    }
}

impl<'c> ClientView<'c> {
    /// Returns the protocol of the calls.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.client.protocol()
    }

    /// As [`Client::call`].
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub fn call<C: ProcedureCall>(self, call: &C) -> Result<C::Result, C::Error> {
        match self.due_profile() {
            None => self.call_probed(call, NoProbe),
            Some(account) => account.follow(|steps| self.call_probed(call, steps)),
        }
    }

    /// Returns whether a call waits for its peer to be ready.
    #[inline]
    fn waits_for_ready(&self) -> bool {
        let options = self.client.channel.options();
        (self.options.get_wait_for_ready()).unwrap_or(options.wait_for_ready)
    }

    #[inline]
    fn call_probed<C: ProcedureCall>(
        &self,
        call: &C,
        probe: impl Probe,
    ) -> Result<C::Result, C::Error> {
        let write = |message: &mut Buffer| self.write(message, call, probe);
        let mut reply = self.call_written(C::PROCEDURE, write, probe)?;
        let _decoded = AtEnd(probe, Step::Decoded);
        let (results, order) = reply.results();
        self.client.caller.read::<C>(results, order)
    }

    /// As [`Client::start`].
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn start<C: ProcedureCall>(
        self,
        call: &C,
    ) -> Result<PendingCall<C::Result, C::Error>, C::Error> {
        let decode = self.client.caller.decode_by::<C>();
        match self.follow() {
            None => {
                let write = |message: &mut Buffer| self.write(message, call, NoProbe);
                Ok(self.pending(self.start_written(write, NoProbe)?, decode))
            }
            Some(followed) => {
                let steps = followed.steps();
                let write = |message: &mut Buffer| self.write(message, call, steps);
                let ticket = self.start_written(write, steps)?;
                Ok(self.pending(ticket, decode).followed_by(followed))
            }
        }
    }

    pub(super) fn client(&self) -> &'c Client {
        self.client
    }

    pub(super) fn caller(&self) -> &'c Caller {
        &self.client.caller
    }

    pub(super) fn options(&self) -> &CallOptions<'c> {
        &self.options
    }

    /// Writes a call by the protocol of the client.
    #[inline]
    fn write<C: ProcedureCall>(
        &self,
        message: &mut Buffer,
        call: &C,
        probe: impl Probe,
    ) -> Result<CallDraft<'c>, CallError> {
        let asks_stamps = self.client.asks_stamps(probe);
        let caller = &self.client.caller;
        let (encoded, draft) = caller.write(message, call, &self.options, asks_stamps)?;
        encoded?;
        probe.at(Step::Encoded);
        Ok(draft)
    }

    /// Makes the call that `write` writes.
    #[inline]
    fn call_written<P: Probe>(
        &self,
        procedure: u32,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
        probe: P,
    ) -> Result<ReceivedReply<'c>, CallError> {
        let span = self.client.span(procedure);
        let channel = &self.client.channel;
        let limit = self.client.caller.limit(&self.options);
        let mut message = channel.buffer();
        let draft = match write(&mut message) {
            Ok(draft) => draft,
            Err(error) => return Err(self.not_written(message, error)),
        };
        if self.waits_for_ready() {
            return self.call_when_ready(&message, &draft, limit, probe);
        }
        let mut replied = channel.call(message, &draft, limit, probe);
        if let Some(place) = self.options.get_reply_metadata() {
            keep_metadata(&mut replied, place);
        }
        // Dropped by what is not called for nothing.
        if let Some(span) = span {
            leave(span);
        }
        replied
    }

    /// Makes a call that was written until the peer is ready for it.
    #[cold]
    #[inline(never)]
    fn call_when_ready(
        &self,
        message: &Buffer,
        draft: &CallDraft<'_>,
        limit: CallLimit,
        probe: impl Probe,
    ) -> Result<ReceivedReply<'c>, CallError> {
        let channel = &self.client.channel;
        let mut replied = channel.call_when_ready(message, draft, limit, probe);
        if let Some(place) = self.options.get_reply_metadata() {
            keep_metadata(&mut replied, place);
        }
        replied
    }

    /// Sends the call that `write` writes.
    fn start_written(
        &self,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
        probe: impl Probe,
    ) -> Result<CallHandle, CallError> {
        let channel = &self.client.channel;
        let limit = self.client.caller.limit(&self.options);
        let mut message = channel.buffer();
        match write(&mut message) {
            Ok(draft) => {
                let mut call = channel.start(message, &draft, limit, probe)?;
                call.want_metadata(self.options.get_reply_metadata());
                Ok(call)
            }
            Err(error) => Err(self.not_written(message, error)),
        }
    }

    /// Keeps the buffer of a call that is not sent.
    #[cold]
    fn not_written(&self, message: Buffer, error: CallError) -> CallError {
        self.client.channel.recycle(message);
        error
    }

    /// The account that is to follow the call which begins now.
    #[inline]
    fn due_profile(&self) -> Option<IfAccount<&'c CallProfile>> {
        match &self.client.account {
            None => None,
            Some(account) => account.is_due().then(|| if_account(account)),
        }
    }

    /// Follows the call that is started now, if it is to be followed.
    #[inline]
    fn follow(&self) -> Option<Box<Followed>> {
        match &self.client.account {
            None => None,
            Some(account) => account.begin().map(Box::new),
        }
    }

    #[inline]
    fn pending<T, E: From<CallError>>(
        &self,
        ticket: CallHandle,
        decode: DecodeBy<T>,
    ) -> PendingCall<T, E> {
        PendingCall::new(ticket, self.client.caller.decoding(), decode)
    }
}

impl MakeCalls for Client {
    type Pending<T, E: ProcedureError> = PendingCall<T, E>;

    #[inline]
    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        self.with_options(options).call(call)
    }

    #[inline]
    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<PendingCall<P::Result, P::Error>, P::Error> {
        self.with_options(options).start(call)
    }

    #[inline]
    fn target(&self) -> CallTarget<'_> {
        self.caller.target(self.channel.address())
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

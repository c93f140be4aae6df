//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_core::caller::{Caller, DecodeBy};
use tenon_core::client::{ReadyPauses, Results, buffers, seal};
use tenon_core::error::{CallError, ConnectError};
use tenon_core::options::{CallOptions, ChannelOptions};
use tenon_core::procedure::{Ping, ProcedureCall};
use tenon_core::profile::{CallProfile, Followed, Step};
use tenon_core::propagation::Propagation;
use tenon_core::timer::CallTimer;
use tenon_core::{CallTarget, Destination, LeanInput};
use tenon_net::Protocol;
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::{ByteOrder, Interface, Metadata, MetadataError};
use tenon_proto::onc::auth::Credential;
use tenon_wire::{Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits};
use tokio::time::sleep;

use super::channel::Channel;
use super::ticket::{PendingCall, ReplyFuture, keep_metadata};
use crate::erased::ErasedFuture;

/// Calls one version of a program from tasks. Clones and the copies that the `with_` methods make share the channel;
/// any number of tasks may call at once. Generated clients wrap one of these.
///
/// ```no_run
/// use std::time::Duration;
/// use tenon_tokio::{CallOptions, Client};
///
/// # async fn ping() -> Result<(), Box<dyn std::error::Error>> {
/// let nfs = Client::connect("tcp://localhost:2049", 100_003, 3).await?;
/// // Procedure 0 takes nothing, returns nothing, and shows that the server is there.
/// let hurried = CallOptions::new().timeout(Duration::from_secs(2));
/// nfs.with_options(hurried).onc().call(0, |_arguments| Ok(()), |_result| Ok(())).await?;
/// # Ok(())
/// # }
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

/// Calls by ONC RPC with arguments and results that are moved by hand.
#[derive(Debug, Clone, Copy)]
pub struct OncCalls<'c>(ClientView<'c>);

/// Calls by the lean protocol with arguments and results that are moved by hand.
#[derive(Debug, Clone, Copy)]
pub struct LeanCalls<'c>(ClientView<'c>);

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port`, `unix:///path` or
    /// `onc+xdp://host:port` for calls by ONC RPC, `lean+tcp://host:port`, `lean+udp://host:port`, `lean+unix:///path`,
    /// `shm:///path` or `xdp://host:port` for calls by the lean protocol. Without a port a
    /// [resolver](ChannelOptions::resolver) is asked for it, but past the kernel, where the address has to have one.
    ///
    /// # Errors
    /// The text is no address, the peer cannot be reached, or the resolver does not know the program.
    ///
    /// # Panics
    /// Outside of a tokio run time with input, output and time.
    pub async fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::open(address, program, version, ChannelOptions::default()).await
    }

    /// Connects as [`connect`](Self::connect) does, within the limits of `options`; the resolver has as much time as
    /// the peer.
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
        Self::open(address, program, version, options).await
    }

    /// Connects by code that programs do not compile anew.
    fn open(
        address: &str,
        program: u32,
        version: u32,
        options: ChannelOptions,
    ) -> ErasedFuture<'_, Result<Self, ConnectError>> {
        Box::pin(async move {
            let resolver = (options.resolver.clone()).unwrap_or_else(tenon::default_resolver);
            let destination =
                Destination::of_program(address.parse()?, program, version, resolver)?;
            let channel = Channel::connect_by(destination, options, None).await?;
            Ok(Self::over(channel, program, version))
        })
    }

    /// A version of a program at the other end of `channel`. Calls are made with AUTH_NONE, have 25 seconds, and read
    /// results leniently.
    pub fn over(channel: Channel, program: u32, version: u32) -> Self {
        let caller = Caller::new(channel.address(), channel.options(), program, version);
        let mut state = channel.shared().lock();
        state.ping_by(program, version);
        channel.shared().wake(state);
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

    /// Returns the same client with `timeout` for every call, connecting again included. A lean call tells the server
    /// how much of it is left, which does not begin what is not waited for any more.
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
    #[must_use]
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        self.with(|caller| caller.set_credential(credential))
    }

    /// Returns the same client with `metadata` on every call, beside that which is on its calls already. By ONC RPC a
    /// call cannot carry any, and fails with [`CallError::OncMetadata`].
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
    /// [`ChannelOptions::allow_insecure`] is set.
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

    /// Returns the same client with an account of where the time of its calls goes.
    #[must_use]
    pub fn with_profile(&self, account: &CallProfile) -> Self {
        Self {
            account: Some(account.clone()),
            ..self.clone()
        }
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

    /// Returns what the calls go to.
    pub(super) fn target(&self) -> CallTarget<'_> {
        self.caller.target(self.channel.address())
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

    /// Makes a call and returns its result. The call is started when the future is polled first, and given up when that
    /// is dropped.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub async fn call<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, C::Error> {
        self.with_options(CallOptions::new()).call(call).await
    }

    /// Starts a call at once; its result is awaited later, in any order and by any task.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`]. As many calls are in flight as the channel allows.
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
    pub async fn ping(&self) -> Result<(), CallError> {
        self.call(&Ping).await
    }

    /// Returns the calls by ONC RPC with arguments and results that are moved by hand.
    #[inline]
    pub fn onc(&self) -> OncCalls<'_> {
        self.with_options(CallOptions::new()).onc()
    }

    /// Returns the calls by the lean protocol with arguments and results that are moved by hand.
    #[inline]
    pub fn lean(&self) -> LeanCalls<'_> {
        self.with_options(CallOptions::new()).lean()
    }

    /// Follows the call that begins now, if the account is to follow it.
    #[inline]
    fn follow(&self) -> Option<Arc<Followed>> {
        match &self.account {
            None => None,
            Some(account) => account.begin().map(Arc::new),
        }
    }

    /// Returns whether a call asks the server for its time stamps.
    #[inline]
    fn asks_stamps(&self, followed: Option<&Arc<Followed>>) -> bool {
        followed.is_some() && self.channel.gives_stamps()
    }
}

impl<'c> ClientView<'c> {
    /// As [`Client::call`].
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub async fn call<C: ProcedureCall>(self, call: &C) -> Result<C::Result, C::Error> {
        let caller = &self.client.caller;
        let write = |message: &mut Buffer, asks_stamps: bool| {
            let (encoded, draft) = caller.write(message, call, &self.options, asks_stamps)?;
            encoded?;
            Ok(draft)
        };
        self.run(write, |bytes, order| caller.read::<C>(bytes, order))
            .await
    }

    /// Returns whether a call waits for its peer to be ready.
    #[inline]
    fn waits_for_ready(&self) -> bool {
        let options = self.client.channel.options();
        (self.options.get_wait_for_ready()).unwrap_or(options.wait_for_ready)
    }

    /// Makes a call that was written until the peer is ready for it, by a future for which that of other calls has no
    /// room.
    fn replied_when_ready(
        self,
        written: (Buffer, CallDraft<'c>),
        timer: CallTimer,
        followed: Option<Arc<Followed>>,
    ) -> ErasedFuture<'c, Result<Results, CallError>> {
        Box::pin(self.repeat_until_ready(written, timer, followed))
    }

    async fn repeat_until_ready(
        self,
        (message, draft): (Buffer, CallDraft<'c>),
        timer: CallTimer,
        followed: Option<Arc<Followed>>,
    ) -> Result<Results, CallError> {
        let channel = &self.client.channel;
        let mut pauses = ReadyPauses::begin(self.client.caller.limit(&self.options));
        loop {
            let written = (message.clone(), draft);
            let ticket = ReplyFuture::new(channel, written, timer, followed.clone());
            match ticket.await {
                Err(error) => match pauses.after(&error) {
                    Some(pause) => sleep(pause).await,
                    None => return Err(error),
                },
                replied => return replied,
            }
        }
    }

    /// As [`Client::start`].
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn start<C: ProcedureCall>(
        self,
        call: &C,
    ) -> Result<PendingCall<C::Result, C::Error>, C::Error> {
        let caller = &self.client.caller;
        let write = |message: &mut Buffer| {
            let (encoded, draft) = caller.write(message, call, &self.options, false)?;
            encoded?;
            Ok(draft)
        };
        self.start_written(write, caller.decode_by::<C>())
            .map_err(C::Error::from)
    }

    /// Starts the call that `write` writes.
    fn start_written<T, E: From<CallError>>(
        self,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
        decode: DecodeBy<T>,
    ) -> Result<PendingCall<T, E>, CallError> {
        let caller = &self.client.caller;
        let channel = &self.client.channel;
        let timer = channel.shared().clock.start(caller.limit(&self.options));
        let written = self.written(write, None)?;
        channel.try_admit()?;
        let mut call = PendingCall::start(channel, written, timer, (caller.decoding(), decode))
            .inspect_err(|_| channel.release_room())?;
        call.want_metadata(self.options.get_reply_metadata());
        Ok(call)
    }

    /// As [`Client::onc`].
    #[inline]
    pub fn onc(self) -> OncCalls<'c> {
        OncCalls(self)
    }

    /// As [`Client::lean`].
    #[inline]
    pub fn lean(self) -> LeanCalls<'c> {
        LeanCalls(self)
    }

    /// Makes the call that `write` writes, and returns the result that `read` reads.
    #[inline]
    async fn run<T, E: From<CallError>>(
        self,
        write: impl FnOnce(&mut Buffer, bool) -> Result<CallDraft<'c>, CallError>,
        read: impl FnOnce(&[u8], ByteOrder) -> Result<T, E>,
    ) -> Result<T, E> {
        let client = self.client;
        let followed = client.follow();
        let limit = client.caller.limit(&self.options);
        let timer = client.channel.shared().clock.start(limit);
        let _room = client.channel.admit(&timer).await?;
        let asks_stamps = client.asks_stamps(followed.as_ref());
        let write = |message: &mut Buffer| write(message, asks_stamps);
        let written = self.written(write, followed.as_ref())?;
        let replied = match self.waits_for_ready() {
            false => ReplyFuture::new(&client.channel, written, timer, followed.clone()).await,
            true => (self.replied_when_ready(written, timer, followed.clone())).await,
        };
        if let Some(place) = self.options.get_reply_metadata() {
            keep_metadata(&replied, place);
        }
        let results = replied?;
        finish(&client.channel, results, followed, read)
    }

    pub(super) fn caller(&self) -> &'c Caller {
        &self.client.caller
    }

    pub(super) fn channel(&self) -> &'c Channel {
        &self.client.channel
    }

    pub(super) fn options(&self) -> &CallOptions<'c> {
        &self.options
    }

    /// Writes a call with streams and makes it whole.
    pub(super) fn written_with(
        &self,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
    ) -> Result<(Buffer, CallDraft<'c>), CallError> {
        self.written(write, None)
    }

    /// Writes a call and makes it whole.
    #[inline]
    fn written(
        &self,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
        followed: Option<&Arc<Followed>>,
    ) -> Result<(Buffer, CallDraft<'c>), CallError> {
        let channel = &self.client.channel;
        let mut message = buffers::take_spare().unwrap_or_default();
        let sealed = write(&mut message).and_then(|draft| {
            seal(&mut message, &draft, channel.address(), channel.options())?;
            Ok(draft)
        });
        if let Some(followed) = followed {
            followed.at(Step::Encoded);
        }
        match sealed {
            Ok(draft) => Ok((message, draft)),
            Err(error) => {
                buffers::keep_spare(message);
                Err(error)
            }
        }
    }
}

/// Reads results and gives their memory back.
#[inline]
fn finish<T, E>(
    channel: &Channel,
    results: Results,
    followed: Option<Arc<Followed>>,
    read: impl FnOnce(&[u8], ByteOrder) -> Result<T, E>,
) -> Result<T, E> {
    if let Some(followed) = &followed {
        followed.fetched(results.note.as_deref());
    }
    let value = read(results.bytes.as_slice(), results.order);
    if let Some(followed) = &followed {
        followed.at(Step::Decoded);
    }
    channel.recycle(results);
    if let (Some(followed), Ok(_)) = (&followed, &value) {
        followed.keep();
    }
    value
}

impl OncCalls<'_> {
    /// Calls a procedure and returns its result as `decode` reads it.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub async fn call<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let caller = &self.0.client.caller;
        let write = |message: &mut Buffer, _: bool| {
            caller.begin(message, procedure, &self.0.options)?;
            encode(&mut Encoder::new(message))?;
            Ok(CallDraft::Onc)
        };
        let read = |bytes: &[u8], _| caller.decoding().decode(bytes, decode);
        self.0.run(write, read).await
    }

    /// Starts a call at once, as [`Client::start`] does.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn start<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let caller = &self.0.client.caller;
        let write = |message: &mut Buffer| {
            caller.begin(message, procedure, &self.0.options)?;
            encode(&mut Encoder::new(message))?;
            Ok(CallDraft::Onc)
        };
        self.0.start_written(write, DecodeBy::Onc(decode))
    }
}

impl LeanCalls<'_> {
    /// Calls a procedure, which has a number of 16 bits, and returns its result as `decode` reads it.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    #[inline]
    pub async fn call<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let caller = &self.0.client.caller;
        let write = |message: &mut Buffer, asks_stamps: bool| {
            let call = caller.begin_lean(message, procedure, &self.0.options, asks_stamps)?;
            encode(&mut Encoder::over(message))?;
            Ok(CallDraft::Lean(call))
        };
        let read =
            |bytes: &[u8], order: ByteOrder| caller.decoding().decode_lean(bytes, order, decode);
        self.0.run(write, read).await
    }

    /// Starts a call at once, as [`Client::start`] does.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn start<T>(
        self,
        procedure: u32,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: fn(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<PendingCall<T>, CallError> {
        let caller = &self.0.client.caller;
        let write = |message: &mut Buffer| {
            let call = caller.begin_lean(message, procedure, &self.0.options, false)?;
            encode(&mut Encoder::over(message))?;
            Ok(CallDraft::Lean(call))
        };
        self.0.start_written(write, DecodeBy::Lean(decode))
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

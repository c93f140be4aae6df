//! A client: one version of a program, at the other end of a channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon::lean::{ByteOrder, Extension, Interface, Stamps};
use tenon::runtime::{Caller, Followed, Form, Results, Step};
use tenon::wire::{Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits};
use tenon::{
    Account, CallError, ChannelOptions, ConnectError, Credential, LeanInput, ProcedureCall,
    Protocol,
};

use crate::channel::{Channel, Ticket, Written};

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
    caller: Caller,
    account: Option<Account>,
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

    /// The same with `timeout` for every call, connecting again included. A lean call tells the
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

    /// The same with an account of where the time of its calls goes.
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

    /// The program's number.
    pub fn program(&self) -> u32 {
        self.caller.program()
    }

    /// The version's number.
    pub fn version(&self) -> u32 {
        self.caller.version()
    }

    /// What the channel speaks, and so whether [`call`](Self::call) or
    /// [`call_lean`](Self::call_lean) goes over it.
    pub fn protocol(&self) -> Protocol {
        self.caller.protocol()
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
        let followed = self.follow();
        let timer = self.caller.timer();
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        self.caller.begin(&mut message, procedure);
        let encoded = encode(&mut Encoder::new(&mut message));
        let written = self.written(message, encoded, &Form::Onc, followed.clone())?;
        let results = Ticket::new(&self.channel, written, timer).await?;
        self.read(results, followed, |bytes, _| {
            self.caller.decoding().decode(bytes, decode)
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
        let followed = self.follow();
        let timer = self.caller.timer();
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        let extensions = self.asked_of_server(followed.as_ref());
        let form = (self.caller).begin_lean(&mut message, procedure, extensions)?;
        let encoded = encode(&mut Encoder::over(&mut message));
        let written = self.written(message, encoded, &Form::Lean(form), followed.clone())?;
        let results = Ticket::new(&self.channel, written, timer).await?;
        self.read(results, followed, |bytes, order| {
            self.caller.decoding().decode_lean(bytes, order, decode)
        })
    }

    /// Makes a call by the protocol that the channel speaks, as [`call`](Self::call) does. Generated
    /// code has a [`ProcedureCall`] for every procedure.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub async fn invoke<C: ProcedureCall>(&self, call: &C) -> Result<C::Result, CallError> {
        let followed = self.follow();
        let timer = self.caller.timer();
        let _room = self.channel.admit(&timer).await?;
        let mut message = self.channel.buffer();
        let extensions = self.asked_of_server(followed.as_ref());
        let (encoded, form) = self.caller.write(&mut message, call, extensions)?;
        let written = self.written(message, encoded, &form, followed.clone())?;
        let results = Ticket::new(&self.channel, written, timer).await?;
        self.read(results, followed, |bytes, order| {
            self.caller.read::<C>(bytes, order)
        })
    }

    /// Follows the call that begins now, if the account is to follow it.
    fn follow(&self) -> Option<Arc<Followed>> {
        match &self.account {
            None => None,
            Some(account) => account.begin().map(Arc::new),
        }
    }

    /// What a call asks the server for beside.
    fn asked_of_server(&self, followed: Option<&Arc<Followed>>) -> &'static [Extension<'static>] {
        match followed.is_some() && self.channel.gives_stamps() {
            true => &[Stamps::REQUEST],
            false => &[],
        }
    }

    /// A call whose arguments stand in `message`, if they could be encoded.
    fn written(
        &self,
        message: Buffer,
        encoded: Result<(), EncodeError>,
        form: &Form<'_>,
        followed: Option<Arc<Followed>>,
    ) -> Result<Written, CallError> {
        if let Err(error) = encoded {
            self.channel.recycle(message);
            return Err(error.into());
        }
        if let Some(followed) = &followed {
            followed.at(Step::Encoded);
        }
        self.channel.written(message, form, followed)
    }

    /// Reads results and gives their buffer back.
    fn read<T>(
        &self,
        results: Results,
        followed: Option<Arc<Followed>>,
        read: impl FnOnce(&[u8], ByteOrder) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        if let Some(followed) = &followed {
            followed.fetched(results.note.as_deref());
        }
        let value = read(results.bytes.as_slice(), results.order);
        if let Some(followed) = &followed {
            followed.at(Step::Decoded);
        }
        self.channel.recycle(results.bytes);
        if let (Some(followed), Ok(_)) = (&followed, &value) {
            followed.keep();
        }
        value
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

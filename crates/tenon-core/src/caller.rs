//! The settings that all calls of a client have in common, whatever carries them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::{Address, Protocol};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, LeanCall};
use tenon_proto::lean::{
    ByteOrder, Extension, Extras, Interface, MessageDraft, Metadata, MetadataError, MetadataView,
    PacketTimes, Stamps,
};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits, Representation,
    Swapped, Xdr,
};

use crate::built::spoken;
use crate::error::CallError;
use crate::lean_input::LeanInput;
use crate::make_calls::CallTarget;
use crate::options::{CallOptions, ChannelOptions, FOR_EVER};
use crate::procedure::{CallCodec, ProcedureCall, decode_in_order};
use crate::propagation::{self, Propagation};
use crate::timer::CallLimit;

/// A version of a program that is called, and the settings that all calls of it have in common.
#[derive(Clone)]
pub struct Caller {
    /// Protocol of the channel.
    protocol: Protocol,
    program: u32,
    version: u32,
    template: Arc<CallTemplate>,
    interface: Arc<Interface>,
    timeout: Duration,
    /// True if lean calls say how much time they have.
    tells_timeout: bool,
    /// True if lean calls that ask for time stamps ask for the times of packets, too.
    asks_packet_times: bool,
    /// Attachments of every call, if any were set.
    attachments: Option<Arc<CallerAttachments>>,
    /// True if calls go over a network without encryption, and must not carry tokens there.
    is_exposed: bool,
    decoding: Decoding,
}

/// What all calls of a client carry beside their arguments.
#[derive(Debug, Clone, Default)]
struct CallerAttachments {
    metadata: Metadata,
    /// The body of an AUTH_SYS credential.
    credential: Option<Vec<u8>>,
    /// What is carried on of the call that a handler carries out.
    propagation: Propagation,
}

/// Bytes of a result from which every time that it is moved shows.
const LARGE: usize = 1024;

/// Settings of the decoding of results.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decoding {
    /// Decode mode: strict, or lenient.
    pub mode: DecodeMode,
    /// Limits of the cost.
    pub limits: Limits,
}

impl Decoding {
    /// Decodes the results of a call by ONC RPC.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn decode<T, E: From<CallError>>(
        self,
        results: &[u8],
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, E> {
        let mut input = Decoder::with(results, self.mode, self.limits);
        ended(decode(&mut input), input.finish())
    }

    /// Decodes the results of a call by the lean protocol.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn decode_lean<T, E: From<CallError>>(
        self,
        results: &[u8],
        order: ByteOrder,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, E> {
        let mut input = LeanInput::over(results, order, self.mode, self.limits);
        ended(decode(&mut input), input.finish())
    }
}

/// Decoder of the result of a started call, by the protocol of the call.
#[derive(Debug, Clone, Copy)]
pub enum DecodeBy<T> {
    /// By ONC RPC.
    Onc(fn(&mut Decoder<'_>) -> Result<T, DecodeError>),
    /// By the lean protocol.
    Lean(fn(&mut LeanInput<'_>) -> Result<T, DecodeError>),
}

impl<T> DecodeBy<T> {
    /// Decodes results.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn decode<E: From<CallError>>(
        &self,
        results: &[u8],
        order: ByteOrder,
        decoding: Decoding,
    ) -> Result<T, E> {
        match self {
            Self::Onc(decode) => decoding.decode(results, *decode),
            Self::Lean(decode) => decoding.decode_lean(results, order, *decode),
        }
    }
}

/// Returns the decoded value, if that was all there was.
#[inline(always)]
fn ended<T, E: From<CallError>>(
    decoded: Result<T, DecodeError>,
    finished: Result<(), DecodeError>,
) -> Result<T, E> {
    match const { size_of::<T>() < LARGE } {
        true => end(decoded, || finished),
        false => end_apart(decoded, finished),
    }
}

/// The same as a function of its own, as [`Caller::read_apart`] is one.
#[inline(never)]
fn end_apart<T, E: From<CallError>>(
    decoded: Result<T, DecodeError>,
    finished: Result<(), DecodeError>,
) -> Result<T, E> {
    end(decoded, || finished)
}

#[inline(always)]
fn end<T, E: From<CallError>>(
    decoded: Result<T, DecodeError>,
    finish: impl FnOnce() -> Result<(), DecodeError>,
) -> Result<T, E> {
    match decoded {
        Ok(value) => match finish() {
            Ok(()) => Ok(value),
            Err(error) => Err(CallError::from(error).into()),
        },
        Err(error) => Err(CallError::from(error).into()),
    }
}

/// Decodes results that are nothing else than what `decode` reads. What follows is looked for only where they are
/// right: so the compiler sees that they can be decoded where they are returned.
#[inline(never)]
fn decode_whole<'a, R: Representation, T, E: From<CallError>>(
    mut input: Decoder<'a, R>,
    decode: impl FnOnce(&mut Decoder<'a, R>) -> Result<T, DecodeError>,
) -> Result<T, E> {
    end(decode(&mut input), || input.finish())
}

/// Begins a lean call that says how much time it has, and nothing else.
#[inline(never)]
fn begin_with_time(message: &mut Buffer, procedure: u16, time_left: Duration) -> MessageDraft {
    let extras = Extras {
        time_left: Some(time_left),
        ..Extras::default()
    };
    MessageDraft::call(message, ByteOrder::NATIVE, procedure, &extras)
}

impl Caller {
    /// A caller over a channel to `address`: its calls are made with AUTH_NONE, have 25 seconds, and read results
    /// leniently.
    pub fn new(address: &Address, options: &ChannelOptions, program: u32, version: u32) -> Self {
        let stays_here = address.transport().stays_on_host();
        Self {
            protocol: address.protocol(),
            program,
            version,
            template: Arc::new(CallTemplate::new(program, version, &Credential::None)),
            interface: Arc::new(Interface::unknown(program, version)),
            timeout: ConnectionConfig::CALL_TIMEOUT,
            tells_timeout: false,
            asks_packet_times: false,
            attachments: None,
            is_exposed: !stays_here && !options.allow_insecure,
            decoding: Decoding::default(),
        }
    }

    /// Gives every call so much time, which lean calls tell.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
        self.tells_timeout = true;
    }

    /// Has lean calls that ask for time stamps ask when the server's kernel had their packets, too.
    pub fn ask_packet_times(&mut self) {
        self.asks_packet_times = true;
    }

    /// Has lean calls be calls of `interface`.
    pub fn set_interface(&mut self, interface: Arc<Interface>) {
        self.interface = interface;
    }

    fn attachments(&mut self) -> &mut CallerAttachments {
        Arc::make_mut(self.attachments.get_or_insert_default())
    }

    /// Puts `credential` on every call.
    pub fn set_credential(&mut self, credential: &Credential<'_>) {
        self.attachments().credential = credential.sys_body();
        self.template = Arc::new(CallTemplate::new(self.program, self.version, credential));
    }

    /// Puts `metadata` on every call, beside that which is on it already.
    ///
    /// # Errors
    /// There would be too much.
    pub fn add_metadata(&mut self, metadata: MetadataView<'_>) -> Result<(), MetadataError> {
        self.attachments().metadata.append_all(metadata)
    }

    /// Puts a bearer token on every call, in place of the one that is on it (RFC 6750 section 2.1).
    ///
    /// # Errors
    /// The token is not printable ASCII, or too long.
    pub fn set_bearer_token(&mut self, token: &str) -> Result<(), MetadataError> {
        let metadata = &mut self.attachments().metadata;
        metadata.set(Metadata::AUTHORIZATION, format!("Bearer {token}"))
    }

    /// Has calls carry on what `propagation` says of the call that a handler carries out.
    pub fn set_propagation(&mut self, propagation: Propagation) {
        self.attachments().propagation = propagation;
    }

    fn propagation(&self) -> Option<&Propagation> {
        self.attachments
            .as_deref()
            .map(|attachments| &attachments.propagation)
    }

    /// Forgives as much as `mode` says.
    pub fn set_decode_mode(&mut self, mode: DecodeMode) {
        self.decoding.mode = mode;
    }

    /// Bounds what a result may cost.
    pub fn set_decode_limits(&mut self, limits: Limits) {
        self.decoding.limits = limits;
    }

    /// Returns the protocol of the channel.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        spoken(self.protocol)
    }

    /// Returns the program's number.
    #[inline]
    pub fn program(&self) -> u32 {
        self.program
    }

    /// Returns the version's number.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns what the calls go to over a channel to `address`.
    #[inline]
    pub fn target<'a>(&self, address: &'a Address) -> CallTarget<'a> {
        let options = CallOptions::new();
        let stream_timeout = self.stream_limit(&options).timeout;
        CallTarget {
            address,
            program: self.program,
            version: self.version,
            timeout: self.limit(&options).timeout,
            stream_timeout: (stream_timeout < FOR_EVER).then_some(stream_timeout),
        }
    }

    /// Returns how results are decoded.
    #[inline]
    pub fn decoding(&self) -> Decoding {
        self.decoding
    }

    /// Returns the time that a call with these options has.
    #[inline]
    pub fn limit(&self, options: &CallOptions<'_>) -> CallLimit {
        let timeout = options.get_timeout().unwrap_or(self.timeout);
        CallLimit {
            timeout: match self.carried_time() {
                None => timeout,
                Some(left) => timeout.min(left),
            },
            wait_for_ready: options.get_wait_for_ready(),
        }
    }

    /// Returns the time that a call with streams has with these options: none unless the options or the client say so, or
    /// it is made by a handler whose call has an end.
    pub fn stream_limit(&self, options: &CallOptions<'_>) -> CallLimit {
        let told = self.told_time(options).unwrap_or(FOR_EVER);
        CallLimit {
            timeout: self.carried_time().map_or(told, |left| told.min(left)),
            wait_for_ready: options.get_wait_for_ready(),
        }
    }

    /// Returns the time that is left of the call that a handler carries out, if this is called by one, and its calls are
    /// to have no more.
    #[inline]
    fn carried_time(&self) -> Option<Duration> {
        match propagation::is_active() {
            false => None,
            true => propagation::time_left(self.propagation()),
        }
    }

    /// Begins a call by ONC RPC in an empty buffer.
    ///
    /// # Errors
    /// The call is to carry metadata.
    #[inline]
    pub fn begin(
        &self,
        message: &mut Buffer,
        procedure: u32,
        options: &CallOptions<'_>,
    ) -> Result<(), CallError> {
        let has_metadata = |attachments: &CallerAttachments| !attachments.metadata.is_empty();
        if self.attachments.as_deref().is_some_and(has_metadata)
            || options.get_metadata().is_some_and(|own| !own.is_empty())
        {
            return Err(CallError::OncMetadata);
        }
        self.template.begin(message, procedure);
        Ok(())
    }

    /// Begins a lean call in an empty buffer. It asks the server for its time stamps if `asks_stamps`.
    ///
    /// # Errors
    /// The lean protocol has no such numbers of procedures, or the call has metadata that cannot be sent.
    // A call with nothing in front of its arguments is some stores, which a function of its own would double.
    #[inline(always)]
    pub fn begin_lean(
        &self,
        message: &mut Buffer,
        procedure: u32,
        options: &CallOptions<'_>,
        asks_stamps: bool,
    ) -> Result<LeanCall<'_>, CallError> {
        let procedure =
            u16::try_from(procedure).map_err(|_| CallError::NoLeanNumber { procedure })?;
        let is_plain = self.attachments.is_none()
            && options.get_metadata().is_none()
            && !propagation::is_active()
            && !asks_stamps;
        let draft = match (is_plain, self.told_time(options)) {
            (true, None) => MessageDraft::plain_call(message, ByteOrder::NATIVE, procedure),
            (true, Some(time_left)) => begin_with_time(message, procedure, time_left),
            (false, _) => self.begin_with_attachments(message, procedure, options, asks_stamps)?,
        };
        Ok(LeanCall {
            draft,
            interface: &self.interface,
            procedure,
        })
    }

    /// Returns the time that a call says it has, if nothing is carried on.
    #[inline]
    fn told_time(&self, options: &CallOptions<'_>) -> Option<Duration> {
        options
            .get_timeout()
            .or(self.tells_timeout.then_some(self.timeout))
    }

    /// Begins a lean call that carries more than its arguments.
    #[inline(never)]
    fn begin_with_attachments(
        &self,
        message: &mut Buffer,
        procedure: u16,
        options: &CallOptions<'_>,
        asks_stamps: bool,
    ) -> Result<MessageDraft, CallError> {
        let metadata = self.metadata_of_call(options)?;
        let credential = self.attachments.as_deref();
        let credential = credential.and_then(|attachments| attachments.credential.as_deref());
        // Time stamps come first: the sender of a reply looks for them there.
        let all = [
            asks_stamps.then_some(Stamps::REQUEST),
            credential.map(|content| Extension {
                kind: Extension::CREDENTIAL,
                content,
            }),
            (!metadata.is_empty()).then(|| Extension::of_metadata(&metadata)),
            (asks_stamps && self.asks_packet_times).then_some(PacketTimes::REQUEST),
        ];
        let mut extensions = [Stamps::REQUEST; 4];
        let mut count = 0;
        for extension in all.into_iter().flatten() {
            extensions[count] = extension;
            count += 1;
        }
        let told = self.told_time(options);
        let extras = Extras {
            time_left: match self.carried_time() {
                None => told,
                Some(left) => Some(told.unwrap_or(self.timeout).min(left)),
            },
            extensions: &extensions[..count],
            ..Extras::default()
        };
        let order = ByteOrder::NATIVE;
        Ok(MessageDraft::call(message, order, procedure, &extras))
    }

    /// Returns the metadata of a call: its own, that of the client, and what is carried on. A reader who looks for a key
    /// finds the value of the call first.
    fn metadata_of_call<'m>(
        &'m self,
        options: &CallOptions<'m>,
    ) -> Result<Cow<'m, Metadata>, CallError> {
        const EMPTY: &Metadata = &Metadata::new();
        let mut all = Cow::Borrowed(EMPTY);
        let attachments = self.attachments.as_deref();
        let of_client = attachments.map(|attachments| &attachments.metadata);
        for metadata in [options.get_metadata(), of_client].into_iter().flatten() {
            if all.is_empty() {
                all = Cow::Borrowed(metadata);
            } else if !metadata.is_empty() {
                all.to_mut().append_all(metadata.view())?;
            }
        }
        if propagation::is_active() {
            propagation::carry_on(&mut all, self.propagation())?;
        }
        if self.is_exposed && all.get_bytes(Metadata::AUTHORIZATION).is_some() {
            return Err(CallError::InsecureToken);
        }
        Ok(all)
    }

    /// Writes a call in an empty buffer, by the protocol that the channel speaks; if it is the lean one, it asks for
    /// time stamps if `asks_stamps`.
    ///
    /// # Errors
    /// The channel speaks lean, and the procedure has no number there or no lean form; the call has metadata that cannot
    /// be sent. That the arguments cannot be encoded is told beside the draft.
    #[inline]
    pub fn write<C: ProcedureCall>(
        &self,
        message: &mut Buffer,
        call: &C,
        options: &CallOptions<'_>,
        asks_stamps: bool,
    ) -> Result<(Result<(), EncodeError>, CallDraft<'_>), CallError> {
        Ok(match self.protocol() {
            Protocol::Onc => {
                self.begin(message, C::PROCEDURE, options)?;
                let encoded = CallCodec::<Xdr>::encode(call, &mut Encoder::new(message));
                (encoded, CallDraft::Onc)
            }
            Protocol::Lean => {
                if const { !C::HAS_LEAN } {
                    let spoken = Protocol::Lean;
                    return Err(CallError::OtherProtocol { spoken });
                }
                let call_draft = self.begin_lean(message, C::PROCEDURE, options, asks_stamps)?;
                let encoded = CallCodec::<Lean>::encode(call, &mut Encoder::over(message));
                (encoded, CallDraft::Lean(call_draft))
            }
        })
    }

    /// Returns the decoder of the result of a started call, by the protocol that the channel speaks.
    #[inline]
    pub fn decode_by<C: ProcedureCall>(&self) -> DecodeBy<C::Result> {
        match self.protocol() {
            Protocol::Onc => DecodeBy::Onc(<C as CallCodec<Xdr>>::decode),
            Protocol::Lean => DecodeBy::Lean(decode_in_order::<C>),
        }
    }

    /// Reads the result of a call, by the protocol that the channel speaks.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn read<C: ProcedureCall>(
        &self,
        results: &[u8],
        order: ByteOrder,
    ) -> Result<C::Result, C::Error> {
        match const { size_of::<C::Result>() < LARGE } {
            true => self.read_here::<C>(results, order),
            false => self.read_apart::<C>(results, order),
        }
    }

    /// The same by [a function for each representation](decode_whole), which writes where the caller of the procedure
    /// wants it. As a part of what is around it, the compiler moves a large result from variable to variable.
    fn read_apart<C: ProcedureCall>(
        &self,
        results: &[u8],
        order: ByteOrder,
    ) -> Result<C::Result, C::Error> {
        let Decoding { mode, limits } = self.decoding;
        match (self.protocol(), order.is_swapped()) {
            (Protocol::Onc, _) => {
                let input = Decoder::with(results, mode, limits);
                decode_whole(input, <C as CallCodec<Xdr>>::decode)
            }
            (Protocol::Lean, false) => {
                let input = Decoder::over(results, mode, limits);
                decode_whole(input, <C as CallCodec<Lean>>::decode)
            }
            (Protocol::Lean, true) => {
                let input = Decoder::over(results, mode, limits);
                decode_whole(input, <C as CallCodec<Lean<Swapped>>>::decode)
            }
        }
    }

    #[inline(always)]
    fn read_here<C: ProcedureCall>(
        &self,
        results: &[u8],
        order: ByteOrder,
    ) -> Result<C::Result, C::Error> {
        let decoding = self.decoding;
        match self.protocol() {
            Protocol::Onc => decoding.decode(results, <C as CallCodec<Xdr>>::decode),
            Protocol::Lean => decoding.decode_lean(results, order, decode_in_order::<C>),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("program", &self.program)
            .field("version", &self.version)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

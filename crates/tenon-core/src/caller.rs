//! The settings that all calls of a client have in common, whatever carries them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::Protocol;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, LeanCall};
use tenon_proto::lean::{ByteOrder, Extension, Extras, Interface, MessageDraft};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::{
    Buffer, DecodeError, DecodeMode, Decoder, EncodeError, Encoder, Lean, Limits, Representation,
    Swapped, Xdr,
};

use crate::error::CallError;
use crate::lean_input::LeanInput;
use crate::options::CallOptions;
use crate::procedure::{CallCodec, ProcedureCall, decode_in_order};
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
    /// True if calls are to carry a credential, which the lean protocol cannot carry.
    has_credential: bool,
    decoding: Decoding,
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

impl Caller {
    /// A caller over a channel that speaks `protocol`: its calls are made with AUTH_NONE, have 25 seconds, and read
    /// results leniently.
    pub fn new(protocol: Protocol, program: u32, version: u32) -> Self {
        Self {
            protocol,
            program,
            version,
            template: Arc::new(CallTemplate::new(program, version, &Credential::None)),
            interface: Arc::new(Interface::unknown(program, version)),
            timeout: ConnectionConfig::CALL_TIMEOUT,
            tells_timeout: false,
            has_credential: false,
            decoding: Decoding::default(),
        }
    }

    /// Gives every call so much time, which lean calls tell.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
        self.tells_timeout = true;
    }

    /// Has lean calls be calls of `interface`.
    pub fn set_interface(&mut self, interface: Arc<Interface>) {
        self.interface = interface;
    }

    /// Puts `credential` on every call. The lean protocol carries none: its calls fail then, unless it is AUTH_NONE.
    pub fn set_credential(&mut self, credential: &Credential<'_>) {
        self.has_credential = !matches!(credential, Credential::None);
        self.template = Arc::new(CallTemplate::new(self.program, self.version, credential));
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
        self.protocol
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

    /// Returns how results are decoded.
    #[inline]
    pub fn decoding(&self) -> Decoding {
        self.decoding
    }

    /// Returns the time that a call with these options has.
    #[inline]
    pub fn limit(&self, options: &CallOptions) -> CallLimit {
        CallLimit {
            timeout: options.get_timeout().unwrap_or(self.timeout),
            wait_for_ready: options.get_wait_for_ready(),
        }
    }

    /// Begins a call by ONC RPC in an empty buffer.
    #[inline]
    pub fn begin(&self, message: &mut Buffer, procedure: u32) {
        self.template.begin(message, procedure);
    }

    /// Begins a lean call with `extensions` in an empty buffer.
    ///
    /// # Errors
    /// The lean protocol has no such numbers of procedures, or the call has a credential.
    #[inline]
    pub fn begin_lean(
        &self,
        message: &mut Buffer,
        procedure: u32,
        options: &CallOptions,
        extensions: &[Extension<'_>],
    ) -> Result<LeanCall<'_>, CallError> {
        let procedure =
            u16::try_from(procedure).map_err(|_| CallError::NoLeanNumber { procedure })?;
        if self.has_credential {
            return Err(CallError::LeanCredential);
        }
        let extras = Extras {
            time_left: options
                .get_timeout()
                .or(self.tells_timeout.then_some(self.timeout)),
            extensions,
            ..Extras::default()
        };
        Ok(LeanCall {
            draft: MessageDraft::call(message, ByteOrder::NATIVE, procedure, &extras),
            interface: &self.interface,
            procedure,
        })
    }

    /// Writes a call in an empty buffer, by the protocol that the channel speaks; if it is the lean one,
    /// with `extensions`.
    ///
    /// # Errors
    /// The channel speaks lean, and the procedure has no number there or no lean form. That the arguments cannot be
    /// encoded is told beside the draft.
    #[inline]
    pub fn write<C: ProcedureCall>(
        &self,
        message: &mut Buffer,
        call: &C,
        options: &CallOptions,
        extensions: &[Extension<'_>],
    ) -> Result<(Result<(), EncodeError>, CallDraft<'_>), CallError> {
        Ok(match self.protocol {
            Protocol::Onc => {
                self.begin(message, C::PROCEDURE);
                let encoded = CallCodec::<Xdr>::encode(call, &mut Encoder::new(message));
                (encoded, CallDraft::Onc)
            }
            Protocol::Lean => {
                if const { !C::HAS_LEAN } {
                    let spoken = Protocol::Lean;
                    return Err(CallError::OtherProtocol { spoken });
                }
                let call_draft = self.begin_lean(message, C::PROCEDURE, options, extensions)?;
                let encoded = CallCodec::<Lean>::encode(call, &mut Encoder::over(message));
                (encoded, CallDraft::Lean(call_draft))
            }
        })
    }

    /// Returns the decoder of the result of a started call, by the protocol that the channel speaks.
    #[inline]
    pub fn decode_by<C: ProcedureCall>(&self) -> DecodeBy<C::Result> {
        match self.protocol {
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
        match (self.protocol, order.is_swapped()) {
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
        match self.protocol {
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

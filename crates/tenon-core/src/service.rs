//! What a server calls: a program's version as a [`Service`], who calls it, and how it refuses.
//! A service that is a [`LeanService`] beside is also served to lean clients, at the same port.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tenon_net::Transport;
use tenon_proto::lean::Interface;
use tenon_proto::onc::auth::{AuthStat, Credential};
use tenon_wire::{Buffer, DecodeError, Decoder, EncodeError, Encoder, Lean, Marshal};

use crate::lean_input::LeanInput;

/// One version of a program. Generated code implements it for every server trait.
pub trait Service: Send + Sync + 'static {
    /// The program's number.
    fn program(&self) -> u32;

    /// The version's number.
    fn version(&self) -> u32;

    /// Carries a call out: reads its arguments and appends its result. Procedure 0 never comes
    /// here, the server itself answers it. What was appended before a refusal is dropped.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal>;

    /// The same service for clients that speak the lean protocol. They are told that the program is
    /// not there if it is `None`.
    fn lean(&self) -> Option<&dyn LeanService> {
        None
    }
}

/// One version of a program, its values in the lean representation.
pub trait LeanService: Send + Sync {
    /// What the service was built from. Program and version are those of the [`Service`].
    fn interface(&self) -> Arc<Interface>;

    /// Carries a call out, as [`Service::call`] does.
    ///
    /// # Errors
    /// Why the call is not carried out; the caller is told so.
    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal>;
}

/// A call that came in, beside its arguments.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallInfo<'a> {
    /// The procedure's number.
    pub procedure: u32,
    /// Who the caller says it is. AUTH_SYS is a claim: believe it only of a network you trust.
    pub credential: Credential<'a>,
    /// Where the caller is; none on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// What the call came over.
    pub transport: Transport,
}

impl<'a> CallInfo<'a> {
    /// A call without a caller's address, for the tests of a service.
    pub fn new(procedure: u32, credential: Credential<'a>, transport: Transport) -> Self {
        Self {
            procedure,
            credential,
            peer: None,
            transport,
        }
    }

    /// The same call from `peer`.
    #[must_use]
    pub fn from_peer(self, peer: SocketAddr) -> Self {
        let peer = Some(peer);
        Self { peer, ..self }
    }
}

/// Why a service does not carry a call out; the caller learns the status (RFC 5531 section 9), the
/// server's log the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// PROC_UNAVAIL: there is no such procedure.
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the arguments cannot be decoded.
    GarbageArguments(DecodeError),
    /// GARBAGE_ARGS: the arguments can be decoded, and are none that the procedure takes; this is why,
    /// which a lean client is told.
    UnfitArguments(String),
    /// SYSTEM_ERR: the service failed, and this is why.
    SystemError(String),
    /// AUTH_ERROR: the caller may not.
    Authentication(AuthStat),
    /// The procedure [raises](Self::raise) an exception. ONC RPC has none: there it is SYSTEM_ERR.
    Raised {
        /// What happened, in words.
        message: String,
        /// A value in the lean representation, in this machine's order of bytes.
        details: Vec<u8>,
    },
}

impl Refusal {
    /// Raises an exception: a lean client is told in words what happened, and in `details`, a value of
    /// the interface, what a program wants to know; it gets them by
    /// [`details_as`](crate::LeanException::details_as). Which type they have, the two ends have to agree on.
    /// A client of ONC RPC is told SYSTEM_ERR.
    pub fn raise(message: impl Into<String>, details: &impl Marshal<Lean>) -> Self {
        let mut buffer = Buffer::default();
        match details.encode(&mut Encoder::over(&mut buffer)) {
            Ok(()) => Self::Raised {
                message: message.into(),
                details: buffer.as_slice().to_vec(),
            },
            Err(error) => Self::SystemError(format!("the details cannot be sent: {error}")),
        }
    }
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::GarbageArguments(error)
    }
}

impl From<EncodeError> for Refusal {
    fn from(error: EncodeError) -> Self {
        Self::SystemError(format!("the result cannot be sent: {error}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProcedureUnavailable => f.write_str("the program has no such procedure"),
            Self::GarbageArguments(error) => {
                write!(f, "the arguments cannot be decoded: {error}")
            }
            Self::UnfitArguments(reason) => write!(f, "the arguments do not fit: {reason}"),
            Self::SystemError(reason) => write!(f, "the service failed: {reason}"),
            Self::Authentication(status) => write!(f, "the caller is rejected: {status}"),
            Self::Raised { message, .. } => write!(f, "the procedure raised: {message}"),
        }
    }
}

impl std::error::Error for Refusal {}

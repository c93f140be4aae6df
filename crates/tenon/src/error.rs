//! Errors by blame: the call was wrong, the peer refused, the peer broke the protocol, time ran
//! out, or the connection failed. Each knows whether the peer may have carried the call out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::{Address, AddressError};
use tenon_proto::onc::client::ReplyError;
use tenon_proto::onc::message::{Refused, Violation};
use tenon_proto::onc::record::RecordError;
use tenon_wire::{DecodeError, EncodeError};

use crate::rpcbind::RpcbindError;

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Your call was wrong: the arguments cannot be sent.
    #[error("the arguments cannot be sent: {0}")]
    Arguments(#[from] EncodeError),
    /// Your call was wrong: it is larger than the channel or its transport carries.
    #[error("a call of {size} bytes is over the limit of {limit}; {}", advice_on_size(*.datagram))]
    TooLarge {
        /// Bytes of the call, its header included.
        size: usize,
        /// Most bytes that may be sent.
        limit: usize,
        /// Whether it was to travel in one datagram.
        datagram: bool,
    },
    /// Your call was wrong: there are too many others that are not answered yet.
    #[error(
        "{limit} calls are in flight already; wait for some, or raise ChannelOptions::calls_max"
    )]
    TooManyCalls {
        /// Most calls that may be in flight.
        limit: usize,
    },
    /// The peer refused.
    #[error("the peer refused the call: {0}")]
    Refused(Refused),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Misbehaved(#[from] Misbehavior),
    /// Time ran out.
    #[error("no reply within {limit:?}; {}", fate(*.may_have_executed))]
    TimedOut {
        /// The time that the call had.
        limit: Duration,
        /// Whether the peer may have carried it out.
        may_have_executed: bool,
    },
    /// There is no connection to the peer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection broke while the call was in flight, or refused to take it until time ran out.
    #[error("{}: {cause}; {}", what_broke(.cause), fate(*.may_have_executed))]
    Disconnected {
        /// How it broke. Over UDP, `ConnectionRefused` says that nobody listens at the peer's port
        /// now. It does not say which datagram met the closed port: the peer may have carried this
        /// call out and gone before it answered, so that remains unknown.
        cause: Arc<io::Error>,
        /// Whether the peer may have carried the call out.
        may_have_executed: bool,
    },
}

/// How a peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehavior {
    /// Its message is no reply.
    #[error("{0}")]
    Message(Violation),
    /// Its stream makes no sense any more.
    #[error("{0}; if the peer is right, raise ChannelOptions::receive_max")]
    Record(RecordError),
    /// Its result is not what the interface says.
    #[error("the result cannot be decoded: {0}")]
    Result(DecodeError),
}

impl CallError {
    /// Whether the peer may have carried the call out. If not, it is safe to repeat any call.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Arguments(_)
            | Self::TooLarge { .. }
            | Self::TooManyCalls { .. }
            | Self::Connect(_) => false,
            Self::Refused(refused) => *refused == Refused::SystemError,
            Self::Misbehaved(_) => true,
            Self::TimedOut {
                may_have_executed, ..
            }
            | Self::Disconnected {
                may_have_executed, ..
            } => *may_have_executed,
        }
    }
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        Self::Misbehaved(Misbehavior::Result(error))
    }
}

impl From<ReplyError> for CallError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Refused(refused) => Self::Refused(refused),
            ReplyError::Violation(violation) => Self::Misbehaved(Misbehavior::Message(violation)),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is not an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address has no port, and nobody was asked for it.
    #[error("{0} has no port; write the port behind the host")]
    NoPort(Address),
    /// The address has no port, and the host's rpcbind cannot tell it.
    #[error("{address} has no port; {cause}")]
    Rpcbind {
        /// The address without a port.
        address: Address,
        /// Why rpcbind was of no use.
        cause: Arc<RpcbindError>,
    },
    /// The address has no port, and the host's rpcbind does not know the program.
    #[error(
        "{address} has no port, and version {version} of program {program} is not registered there"
    )]
    NotRegistered {
        /// The address without a port.
        address: Address,
        /// The program's number.
        program: u32,
        /// The version's number.
        version: u32,
    },
    /// The peer cannot be reached.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable {
        /// Where the peer was looked for.
        address: Address,
        /// What the last attempt reported.
        cause: Arc<io::Error>,
    },
}

impl ConnectError {
    pub(crate) fn unreachable(address: &Address, error: io::Error) -> Self {
        Self::Unreachable {
            address: address.clone(),
            cause: Arc::new(error),
        }
    }
}

fn advice_on_size(datagram: bool) -> &'static str {
    match datagram {
        true => "use a stream, tcp:// or unix://, for large calls",
        false => "raise ChannelOptions::send_max if the peer takes it",
    }
}

fn what_broke(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens at the peer's port",
        _ => "the connection broke",
    }
}

fn fate(may_have_executed: bool) -> &'static str {
    match may_have_executed {
        true => "it is unknown whether the peer carried the call out",
        false => "the peer did not carry the call out",
    }
}

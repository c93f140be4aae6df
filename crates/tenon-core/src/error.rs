//! Errors by blame: the call was wrong, the peer refused, the peer broke the protocol, time ran
//! out, or the connection failed. Each knows whether the peer may have carried the call out.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_net::{Address, AddressError, Protocol};
use tenon_proto::connection::framing::FramingError;
use tenon_proto::connection::{BindError, ConnectionError, PeerSilence, ReplyError};
use tenon_proto::lean::{self, MetadataError};
use tenon_proto::onc::message::{Refused, Violation};
use tenon_proto::onc::record::RecordError;
use tenon_proto::onc::reply::CLOSE_NOTICE_BEGIN;
use tenon_wire::{DecodeError, EncodeError};

pub use crate::error_kind::CallErrorKind;
pub use crate::lean_exception::LeanException;
use crate::middleware::Rejection;

/// Why a call has no result.
///
/// [`kind`](Self::kind) says what the call failed of, and [`may_have_executed`](Self::may_have_executed) whether it is
/// safe to repeat it.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Greeting, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use tenon::{CallError, CallErrorKind};
///
/// fn greet(greeter: &GreeterV1Client, visitor: &Visitor) -> Result<Greeting, CallError> {
///     match greeter.greet(visitor) {
///         // The connection is gone, and the peer did not carry the call out: to repeat it does no harm.
///         Err(error) if !error.may_have_executed() && error.kind() == CallErrorKind::Disconnected => {
///             greeter.greet(visitor)
///         }
///         other => other,
///     }
/// }
///
/// let greeter = GreeterV1Client::connect(&address)?;
/// let unbounded = Visitor { name: "A".repeat(65).into(), visits: 0 };
/// let error = greet(&greeter, &unbounded).unwrap_err();
/// assert_eq!(error.kind(), CallErrorKind::InvalidCall);
/// assert!(error.to_string().contains("name"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Your call was wrong: the arguments cannot be sent.
    #[error("the arguments cannot be sent: {0}")]
    Arguments(EncodeError),
    /// Your call was wrong: it is larger than the channel or its transport carries.
    #[error("a call of {size} bytes is over the limit of {limit}; {}", advice_on_size(*.datagram))]
    TooLarge {
        /// Bytes of the call, its header included.
        size: usize,
        /// Most bytes that may be sent.
        limit: usize,
        /// True if it was to travel in one datagram.
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
    /// Your call was wrong: the channel speaks the other protocol.
    #[error("the channel speaks {spoken}: {}", advice_on_protocol(*.spoken))]
    OtherProtocol {
        /// Protocol of the channel.
        spoken: Protocol,
    },
    /// Your call was wrong: the lean protocol numbers procedures by 16 bits.
    #[error(
        "procedure {procedure} cannot be called by the lean protocol, whose numbers end at 65535; {}",
        advice_on_protocol(Protocol::Lean)
    )]
    NoLeanNumber {
        /// The procedure's number.
        procedure: u32,
    },
    /// Your call was wrong: its metadata, with that of its client and that which is carried on, is too large.
    #[error("the metadata of the call: {0}")]
    Metadata(#[from] MetadataError),
    /// Your call was wrong: it was to carry metadata, which ONC RPC cannot carry.
    #[error(
        "a call by ONC RPC carries no metadata; connect to lean+tcp:// or another lean address, or leave the metadata out"
    )]
    OncMetadata,
    /// Your call was wrong: it was to carry a token over a network without encryption.
    #[error(
        "a call with a token does not go over a network without encryption; connect through a Unix socket or shared \
         memory, or say ChannelOptions::allow_insecure"
    )]
    InsecureToken,
    /// Your call was wrong: it has streams, which go over a connection by the lean protocol alone, to a peer that takes
    /// such calls.
    #[error("the call has streams, and {reason}")]
    NoStreams {
        /// Reason why it cannot be made.
        reason: &'static str,
    },
    /// Your call was wrong: a server calls back only over a connection, to a client that takes such calls.
    #[error("no call back can be made: {reason}")]
    NoCallbacks {
        /// Reason why not.
        reason: &'static str,
    },
    /// The other end takes no further items of the call: it has answered it, or one of both ends has given it up.
    #[error("the other end takes no further items of the call")]
    StreamClosed,
    /// The caller of a call with streams has given it up, or is gone; its handler learns it by the items.
    #[error("the caller has given the call up, or is gone")]
    CallerGone,
    /// An item that the other end has sent is larger than this one accepts.
    #[error("an item is over the limit of {limit} bytes")]
    ItemTooLarge {
        /// Most bytes of an item.
        limit: usize,
    },
    /// A [middleware](crate::middleware::Middleware) of the client did not let the call go on.
    #[error("the call was not made: {0}")]
    Rejected(Rejection),
    /// Your call was wrong: it is larger than the peer takes in, as it said when the connection
    /// opened. Lean calls only.
    #[error(
        "a call of {size} bytes is over the peer's limit of {limit} (of a server of Tenon, \
         ServerLimits::message_bytes){}", advice_on_own_limit(*.own_limit)
    )]
    TooLargeForPeer {
        /// Bytes of the call, its header included.
        size: usize,
        /// Most bytes that the peer takes in.
        limit: usize,
        /// Most bytes that this channel sends, if it has such a limit.
        own_limit: Option<usize>,
    },
    /// The connection broke while the call was being sent, and another one broke when it was sent once more. The peer
    /// did not carry it out.
    #[error(
        "the connection broke while a call of {size} bytes was being sent, and another one when it was sent again: \
         {cause}; the peer did not carry the call out, and {}", advice_on_cut_call(*.size, *.own_limit)
    )]
    CutOff {
        /// Bytes of the call, its header included.
        size: usize,
        /// Most bytes that this channel sends.
        own_limit: usize,
        /// Error by which the last connection broke.
        cause: Arc<io::Error>,
    },
    /// The peer refused.
    #[error("the peer refused the call: {refused}{advice}", refused = .0, advice = advice_on_refusal(.0))]
    Refused(Refused),
    /// The peer refused, or the service failed, and the peer says so by the lean protocol.
    #[error("the peer refused the call: {0}")]
    Exception(LeanException),
    /// The peer does not have the service, or was built from another interface.
    #[error("the service cannot be called: {0}")]
    Unbound(BindError),
    /// The peer refused the connection that the call was to go over, by the lean protocol.
    #[error("the peer refused the connection: {0}")]
    ConnectionRefused(lean::Refused),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Misbehaved(Misbehavior),
    /// Time ran out.
    #[error("no reply within {limit:?}; {}", fate_of_late(*.may_have_executed, *.calls_max))]
    TimedOut {
        /// The time that the call had.
        limit: Duration,
        /// True if the peer may have carried it out.
        may_have_executed: bool,
        /// Most calls that may be in flight, if the call waited for room among these all the time, and was not sent.
        calls_max: Option<usize>,
    },
    /// There is no connection to the peer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection broke while the call was in flight, or refused to take it until time ran out.
    #[error("{}: {cause}; {}", what_broke(.cause), fate(*.may_have_executed))]
    Disconnected {
        /// Error by which it broke. Over UDP, `ConnectionRefused` says that nothing listens at the peer's port
        /// now. It does not say which datagram met the closed port: the peer may have carried this
        /// call out and gone before it answered, so that remains unknown.
        cause: Arc<io::Error>,
        /// True if the peer may have carried the call out.
        may_have_executed: bool,
    },
}

/// Violation of the protocol by a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehavior {
    /// Its message is no reply.
    #[error("{0}")]
    Message(Violation),
    /// Its bytes are not the lean protocol.
    #[error("{violation}{}", advice_on_lean(.violation))]
    Lean {
        /// The violation, and its place.
        violation: lean::Violation,
    },
    /// Its bytes in the packet exchange are not the lean protocol.
    #[error("{violation}")]
    Exchange {
        /// The violation, and its place in the answer.
        violation: lean::Violation,
    },
    /// Its stream is malformed.
    #[error("{0}; if the peer is right, raise ChannelOptions::receive_max")]
    Record(RecordError),
    /// Its result is not what the interface says.
    #[error("the result cannot be decoded: {0}")]
    Result(DecodeError),
}

impl CallError {
    /// Returns the exception that the peer sent in place of a result, by the lean protocol.
    pub fn exception(&self) -> Option<&LeanException> {
        match self {
            Self::Exception(exception) => Some(exception),
            _ => None,
        }
    }

    /// Returns whether the peer may have carried the call out. If not, it is safe to repeat any call.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Arguments(_)
            | Self::TooLarge { .. }
            | Self::TooLargeForPeer { .. }
            | Self::CutOff { .. }
            | Self::TooManyCalls { .. }
            | Self::OtherProtocol { .. }
            | Self::NoLeanNumber { .. }
            | Self::Metadata(_)
            | Self::OncMetadata
            | Self::InsecureToken
            | Self::NoStreams { .. }
            | Self::NoCallbacks { .. }
            | Self::Rejected(_)
            | Self::Unbound(_)
            | Self::ConnectionRefused(_)
            | Self::Connect(_) => false,
            Self::Exception(exception) => exception.may_have_executed(),
            Self::Refused(refused) => *refused == Refused::SystemError,
            Self::Misbehaved(_)
            | Self::StreamClosed
            | Self::CallerGone
            | Self::ItemTooLarge { .. } => true,
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

impl From<EncodeError> for CallError {
    fn from(error: EncodeError) -> Self {
        Self::Arguments(error)
    }
}

impl From<BindError> for CallError {
    fn from(error: BindError) -> Self {
        Self::Unbound(error)
    }
}

impl From<Misbehavior> for CallError {
    fn from(misbehavior: Misbehavior) -> Self {
        Self::Misbehaved(misbehavior)
    }
}

impl From<ReplyError<'_>> for CallError {
    fn from(error: ReplyError<'_>) -> Self {
        match error {
            ReplyError::Refused(refused) => Self::Refused(refused),
            ReplyError::Violation(violation) => Self::Misbehaved(Misbehavior::Message(violation)),
            ReplyError::Exception(exception) => Self::Exception(exception.into()),
            ReplyError::Unbound(refusal) => Self::Unbound(BindError::Refused(refusal)),
        }
    }
}

/// Why a connection ended, for all calls that were in flight on it.
#[derive(Debug, Clone)]
pub enum ConnectionFailure {
    /// The socket failed, or the peer closed it.
    Io(Arc<io::Error>),
    /// The peer broke the protocol.
    Misbehaved(Misbehavior),
    /// The peer refused the connection, and so carried nothing out.
    Refused(lean::Refused),
}

impl ConnectionFailure {
    /// Returns the error of a call of so many bytes that was being sent when this connection ended, and another before
    /// it, over a channel that sends up to `own_limit` bytes.
    pub fn into_cut_off(self, size: usize, own_limit: usize) -> CallError {
        match self {
            Self::Io(cause) => CallError::CutOff {
                size,
                own_limit,
                cause,
            },
            other => other.into_error(false),
        }
    }

    /// Returns why a connection ended for a call of so many bytes, if it is a long one that was sent whole: the peer
    /// may have ended the connection because of it.
    #[must_use]
    pub fn of_long_call(self, size: Option<usize>, own_limit: usize) -> Self {
        match (self, size) {
            // A peer that has fallen silent has not refused anything.
            (Self::Io(cause), Some(size)) if cause.kind() != io::ErrorKind::TimedOut => {
                let kind = cause.kind();
                let lost = LostLongCall {
                    size,
                    own_limit,
                    cause,
                };
                io::Error::new(kind, lost).into()
            }
            (failure, _) => failure,
        }
    }

    /// Returns the error of a call that was in flight, and was sent whole or not.
    pub fn into_error(self, was_sent: bool) -> CallError {
        match self {
            Self::Io(cause) => CallError::Disconnected {
                cause,
                may_have_executed: was_sent,
            },
            Self::Misbehaved(misbehavior) => CallError::Misbehaved(misbehavior),
            Self::Refused(refused) => CallError::ConnectionRefused(refused),
        }
    }
}

/// Why nothing can be sent over a connection any more. What the peer has sent before, and what it still sends, is
/// received for a while: replies, and perhaps a message that says which calls it did not begin.
#[derive(Debug)]
pub struct SendFailure {
    failure: ConnectionFailure,
    until: Instant,
}

impl SendFailure {
    /// Time for which a peer that takes no calls may still answer. One that is gone ends the connection by itself.
    const DRAIN: Duration = Duration::from_secs(1);

    /// The failure of a send at `now`.
    pub fn new(failure: ConnectionFailure, now: Instant) -> Self {
        Self {
            failure,
            until: now + Self::DRAIN,
        }
    }

    /// Returns until when is received.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Returns why nothing can be sent.
    pub fn failure(&self) -> &ConnectionFailure {
        &self.failure
    }
}

impl ConnectionFailure {
    /// Returns why a connection has ended over which sending has failed with `self`, and then receiving, of what the
    /// peer had sent before, with `received`. A peer that is gone says more by what it sent last than that it is gone.
    #[must_use]
    pub fn after_receiving(self, received: Self) -> Self {
        match (&self, &received) {
            (Self::Io(sent), Self::Io(_)) if !is_peer_gone(sent) => self,
            _ => received,
        }
    }
}

/// Returns whether a failed send says only that the peer does not receive any more.
fn is_peer_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// The first bytes of a lean preamble, read as the mark of a record. A server sends that to a client of ONC RPC only to
/// say that it takes no connections of its user.
const LEAN_MARK: u64 = 0x7f74_656e;

/// Error by which a connection ended after a long call was sent over it.
#[derive(Debug, thiserror::Error)]
#[error("{cause}, behind a call of {size} bytes; the peer {}", advice_on_long_call(*.own_limit))]
struct LostLongCall {
    size: usize,
    own_limit: usize,
    #[source]
    cause: Arc<io::Error>,
}

/// The report that nothing listens at an address which datagrams were sent to.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {cause}")]
struct PortClosed {
    address: Address,
    #[source]
    cause: io::Error,
}

/// Returns the report that nothing listens at `address`, with that in its text.
#[cold]
pub fn port_closed(address: &Address, cause: io::Error) -> io::Error {
    let address = address.clone();
    io::Error::new(cause.kind(), PortClosed { address, cause })
}

/// Returns the error alone, for a report that names the address itself. Others may have the error, too.
fn without_address(error: io::Error) -> io::Error {
    let inner = error.get_ref().map(|inner| {
        let shared = inner.downcast_ref::<Arc<io::Error>>();
        shared.and_then(|shared| shared.get_ref()).unwrap_or(inner)
    });
    let closed = inner.and_then(|inner| inner.downcast_ref::<PortClosed>());
    match closed.map(|closed| (closed.cause.raw_os_error(), closed.cause.kind())) {
        Some((Some(code), _)) => io::Error::from_raw_os_error(code),
        Some((None, kind)) => kind.into(),
        None => error,
    }
}

impl From<io::Error> for ConnectionFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<PeerSilence> for ConnectionFailure {
    fn from(silence: PeerSilence) -> Self {
        io::Error::new(io::ErrorKind::TimedOut, silence).into()
    }
}

impl From<ConnectionError> for ConnectionFailure {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Refused(refused) => Self::Refused(refused),
            ConnectionError::Onc(violation) => Self::Misbehaved(Misbehavior::Message(violation)),
            // A server that stops, and does not know yet what its peer speaks, says so by ONC RPC.
            ConnectionError::Lean(lean::Violation {
                fault:
                    lean::Fault::NotLean {
                        got: CLOSE_NOTICE_BEGIN,
                        ..
                    },
                ..
            })
            | ConnectionError::Framing(FramingError::Lean(lean::Violation {
                fault:
                    lean::Fault::NotLean {
                        got: CLOSE_NOTICE_BEGIN,
                        ..
                    },
                ..
            })) => Self::Refused(lean::Refused {
                reason: lean::RefusalReason::STOPPING,
                theirs: lean::Versions::OURS,
                ours: lean::Versions::OURS,
            }),
            ConnectionError::Lean(violation)
            | ConnectionError::Framing(FramingError::Lean(violation)) => {
                Self::Misbehaved(Misbehavior::Lean { violation })
            }
            ConnectionError::Framing(FramingError::Record(RecordError::TooLong {
                length: LEAN_MARK,
                ..
            })) => Self::Refused(lean::Refused {
                reason: lean::RefusalReason::FORBIDDEN,
                theirs: lean::Versions::OURS,
                ours: lean::Versions::OURS,
            }),
            ConnectionError::Framing(FramingError::Record(error)) => {
                Self::Misbehaved(Misbehavior::Record(error))
            }
            other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()).into(),
        }
    }
}

/// Why there is no connection.
///
/// ```
/// use tenon::{Client, ConnectError};
///
/// // Nothing listens at port 1.
/// match Client::connect("tcp://127.0.0.1:1", 0x2000_0001, 1) {
///     Err(ConnectError::Unreachable { address, cause }) => {
///         assert_eq!(address.to_string(), "tcp://127.0.0.1:1");
///         assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionRefused);
///     }
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is not an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address has no port.
    #[error("{0} has no port; write the port behind the host")]
    NoPort(Address),
    /// The address has no port, and it cannot be found out.
    #[error("{address} has no port; {cause}")]
    Unresolved {
        /// The address without a port.
        address: Address,
        /// Why the resolver could not tell the port.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The address has no port, and the resolver does not know the program.
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
        /// Address at which the peer was looked for.
        address: Address,
        /// Error of the attempt. Of a name with several addresses its text has each of them with its cause.
        cause: Arc<io::Error>,
    },
    /// The channel cannot serve calls of its server.
    #[error("calls of the server cannot be served: {reason}")]
    Callbacks {
        /// Reason why not.
        reason: String,
    },
    /// The connection is lost, and cannot be made again, as the program has supplied it.
    #[error(
        "the connection is lost, and cannot be made again, as the program supplied it ({address}); \
         make a new channel over a new connection"
    )]
    NotReconnected {
        /// Address of its peer.
        address: Address,
    },
}

impl ConnectError {
    /// Returns the error of an address at which nothing answers.
    pub fn unreachable(address: &Address, error: io::Error) -> Self {
        Self::Unreachable {
            address: address.clone(),
            cause: Arc::new(without_address(error)),
        }
    }
}

fn advice_on_size(datagram: bool) -> &'static str {
    match datagram {
        true => "use a stream, tcp:// or unix://, for large calls",
        false => "raise ChannelOptions::send_max if the peer takes it",
    }
}

fn advice_on_long_call(own_limit: usize) -> String {
    format!(
        "may not take calls of this size (a server of Tenon takes ServerLimits::message_bytes, 4 MiB by default; this \
         channel sends up to {own_limit}, by ChannelOptions::send_max)"
    )
}

/// A peer that takes no calls as short as this takes none at all.
const SHORT: usize = 64 << 10;

fn advice_on_cut_call(size: usize, own_limit: usize) -> String {
    match size <= SHORT {
        true => "may take no connections now, as it has as many as it takes, or stops".to_owned(),
        false => advice_on_long_call(own_limit),
    }
}

fn advice_on_own_limit(limit: Option<usize>) -> String {
    match limit {
        Some(limit) => format!("; this channel sends up to {limit}, by ChannelOptions::send_max"),
        None => String::new(),
    }
}

fn advice_on_refusal(refused: &Refused) -> &'static str {
    match refused {
        Refused::SystemError => {
            "; why, its log may say. Over udp:// and onc+xdp://, one reason is a result that is larger than a datagram: connect to tcp://"
        }
        _ => "",
    }
}

fn advice_on_protocol(spoken: Protocol) -> &'static str {
    match spoken {
        Protocol::Onc => {
            "connect to lean+tcp://, lean+udp:// or lean+unix:// for calls by the lean protocol"
        }
        Protocol::Lean => "connect to tcp://, udp:// or unix:// for calls by ONC RPC",
    }
}

/// Returns the advice to connect otherwise, if the first bytes of the peer are no preamble: it may never have heard of
/// the protocol.
fn advice_on_lean(violation: &lean::Violation) -> &'static str {
    match violation.at {
        0..8 => "; if the peer speaks ONC RPC, connect to tcp:// or unix://",
        _ => "",
    }
}

fn what_broke(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens at the peer's port",
        _ => "the connection broke",
    }
}

fn fate_of_late(may_have_executed: bool, calls_max: Option<usize>) -> String {
    match calls_max {
        Some(limit) => {
            format!("it waited for room among the {limit} calls in flight, and was not sent")
        }
        None => fate(may_have_executed).to_owned(),
    }
}

fn fate(may_have_executed: bool) -> &'static str {
    match may_have_executed {
        true => "it is unknown whether the peer carried the call out",
        false => "the peer did not carry the call out",
    }
}

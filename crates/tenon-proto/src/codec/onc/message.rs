//! The messages of RPC version 2 (RFC 5531 section 9): calls, replies, and every way to refuse.

use tenon_wire::{Buffer, DecodeError, DecodeErrorKind, Decoder, Encoder};

use super::auth::{AuthStat, Credential, OpaqueAuth};
use super::record::{self, MARK};
use super::words::{get, put};

/// The version of the RPC protocol itself.
pub const RPC_VERSION: u32 = 2;

const CALL: u32 = 0;
const REPLY: u32 = 1;

const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;

const SUCCESS: u32 = 0;
const PROG_UNAVAIL: u32 = 1;
const PROG_MISMATCH: u32 = 2;
const PROC_UNAVAIL: u32 = 3;
const GARBAGE_ARGS: u32 = 4;
const SYSTEM_ERR: u32 = 5;

const RPC_MISMATCH: u32 = 0;
const AUTH_ERROR: u32 = 1;

/// Everything of a reply between its xid and its results when the call succeeded and the
/// verifier is AUTH_NONE: REPLY, MSG_ACCEPTED, flavor, length, SUCCESS.
const PLAIN_SUCCESS: [u8; 20] = {
    let mut words = [0; 20];
    words[3] = REPLY as u8;
    words
};

/// The reason for which a peer did not carry out a call: every status of a reply but SUCCESS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// RPC_MISMATCH: the peer speaks other versions of the RPC protocol.
    #[error("RPC_MISMATCH: the peer speaks RPC versions {low} to {high}")]
    RpcMismatch {
        /// Lowest version.
        low: u32,
        /// Highest version.
        high: u32,
    },
    /// AUTH_ERROR: the peer did not accept the credential or verifier of the call.
    #[error("AUTH_ERROR: {0}")]
    Authentication(AuthStat),
    /// PROG_UNAVAIL: the peer does not have the program.
    #[error("PROG_UNAVAIL: the peer does not have the program")]
    ProgramUnavailable,
    /// PROG_MISMATCH: the peer has other versions of the program.
    #[error("PROG_MISMATCH: the peer has versions {low} to {high} of the program")]
    ProgramMismatch {
        /// Lowest version.
        low: u32,
        /// Highest version.
        high: u32,
    },
    /// PROC_UNAVAIL: the program does not have the procedure.
    #[error("PROC_UNAVAIL: the program does not have the procedure")]
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the peer cannot decode the arguments, or they are none that the procedure takes. Why, ONC RPC has
    /// no room for.
    #[error("GARBAGE_ARGS: the peer cannot decode the arguments, or does not take them")]
    GarbageArguments,
    /// SYSTEM_ERR: the peer failed, by lack of memory for example.
    #[error("SYSTEM_ERR: the peer failed")]
    SystemError,
}

/// A breach of the protocol in a message: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The message ends inside its header.
    #[error("the message ends inside its header, at byte {0}")]
    Truncated(usize),
    /// A call was expected.
    #[error("message type {0} where a call was expected")]
    NotACall(u32),
    /// A reply was expected.
    #[error("message type {0} where a reply was expected")]
    NotAReply(u32),
    /// The reply is neither accepted nor denied.
    #[error("unknown reply_stat {0}")]
    UnknownReplyStat(u32),
    /// The reply is accepted for no known outcome.
    #[error("unknown accept_stat {0}")]
    UnknownAcceptStat(u32),
    /// The reply is denied for no known reason.
    #[error("unknown reject_stat {0}")]
    UnknownRejectStat(u32),
    /// A verifier is longer than RFC 5531 section 8.2 allows.
    #[error("a verifier of {0} bytes")]
    VerifierTooLong(u32),
}

impl From<DecodeError> for Violation {
    /// Headers are made of words and of verifiers, so there are two ways to fail.
    fn from(error: DecodeError) -> Self {
        match error.kind {
            DecodeErrorKind::TooLong { length, .. } => Self::VerifierTooLong(length),
            _ => Self::Truncated(error.offset),
        }
    }
}

/// The fields before the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeader<'a> {
    /// Matches the reply to the call.
    pub xid: u32,
    /// Program number.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// The identity of the caller.
    pub credential: OpaqueAuth<'a>,
    /// The proof of that identity.
    pub verifier: OpaqueAuth<'a>,
}

/// A call of the commonest form: of version 2, without credential and verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainCall {
    pub(crate) xid: u32,
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
}

impl PlainCall {
    /// Bytes of the header.
    pub(crate) const HEADER: usize = 40;

    /// The words behind the xid.
    const BEGIN: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 2];

    /// Reads the header in front of the arguments; `None` if the message is anything else, which [`CallHeader::decode`]
    /// knows.
    #[inline(always)]
    pub(crate) fn find(message: &[u8]) -> Option<Self> {
        let header: &[u8; Self::HEADER] = message.first_chunk()?;
        let word = |at: usize| {
            let [a, b, c, d] = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_be_bytes([a, b, c, d])
        };
        let is_plain = header[4..12] == Self::BEGIN && header[24..] == [0; 16];
        is_plain.then(|| Self {
            xid: word(0),
            program: word(12),
            version: word(16),
            procedure: word(20),
        })
    }
}

/// A message that a server does not carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadCall {
    /// It cannot be answered: it is no call, or too short to be one.
    Unanswerable(Violation),
    /// The call is answered with its refusal.
    Refuse {
        /// The xid of the call.
        xid: u32,
        /// The reason to answer with.
        refused: Refused,
    },
}

impl<'a> CallHeader<'a> {
    /// Reads the header; `input` is left at the arguments.
    ///
    /// # Errors
    /// A version of RPC other than 2 is refused with RPC_MISMATCH before anything behind it is
    /// looked at, as a later version may put other things there. A credential or verifier that is
    /// too long or cut short is refused with AUTH_BADCRED or AUTH_BADVERF, since the record still
    /// has its end and the connection its order. Whatever ends before is unanswerable.
    #[inline]
    pub fn decode(input: &mut Decoder<'a>) -> Result<Self, BadCall> {
        let unanswerable = |error: DecodeError| BadCall::Unanswerable(error.into());
        let xid = get(input).map_err(unanswerable)?;
        let message_type = get(input).map_err(unanswerable)?;
        if message_type != CALL {
            return Err(BadCall::Unanswerable(Violation::NotACall(message_type)));
        }
        let refuse = |refused| BadCall::Refuse { xid, refused };
        if get(input).map_err(unanswerable)? != RPC_VERSION {
            return Err(refuse(Refused::RpcMismatch {
                low: RPC_VERSION,
                high: RPC_VERSION,
            }));
        }
        let mut word = || get(input).map_err(unanswerable);
        let (program, version, procedure) = (word()?, word()?, word()?);
        let credential = OpaqueAuth::decode(input)
            .map_err(|_| refuse(Refused::Authentication(AuthStat::BAD_CRED)))?;
        let verifier = OpaqueAuth::decode(input)
            .map_err(|_| refuse(Refused::Authentication(AuthStat::BAD_VERF)))?;
        Ok(Self {
            xid,
            program,
            version,
            procedure,
            credential,
            verifier,
        })
    }

    /// Returns the caller's credential from an accepted call.
    pub fn credential_of(message: &'a [u8]) -> Credential<'a> {
        let header = Self::decode(&mut Decoder::new(message)).ok();
        let credential = header.map(|header| Credential::from_opaque(header.credential));
        credential.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns whether a message looks like a call of another procedure than 0.
    #[inline]
    pub(crate) fn may_be_service_call(message: &[u8]) -> bool {
        let word = |at: usize| message.get(at..at + 4);
        word(4) == Some(&CALL.to_be_bytes()) && word(20).is_some_and(|word| word != [0; 4])
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Encoder<'_>) {
        for word in [
            self.xid,
            CALL,
            RPC_VERSION,
            self.program,
            self.version,
            self.procedure,
        ] {
            put(out, word);
        }
        self.credential.encode(out);
        self.verifier.encode(out);
    }
}

/// The fields before the results of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader<'a> {
    /// The xid of the call.
    pub xid: u32,
    /// The outcome of the call.
    pub body: ReplyBody<'a>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyBody<'a> {
    /// It was carried out; the results follow. With the server's verifier.
    Success(OpaqueAuth<'a>),
    /// It was not. (A verifier that an accepted call may have is not kept.)
    Refused(Refused),
}

impl<'a> ReplyHeader<'a> {
    /// Reads the header; `input` is left at the results.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn decode(input: &mut Decoder<'a>) -> Result<Self, Violation> {
        let xid = get(input)?;
        if input.rest().starts_with(&PLAIN_SUCCESS) {
            input.block::<{ PLAIN_SUCCESS.len() }>()?;
            let body = ReplyBody::Success(OpaqueAuth::NONE);
            return Ok(Self { xid, body });
        }
        let body = ReplyBody::decode(input)?;
        Ok(Self { xid, body })
    }

    /// Returns the bytes of a record that answers a call successfully, without results.
    #[inline]
    pub(crate) fn empty_success(xid: u32) -> [u8; MARK + 4 + PLAIN_SUCCESS.len()] {
        const LENGTH: usize = 4 + PLAIN_SUCCESS.len();
        let mut record = [0; MARK + LENGTH];
        let mark = record::LAST_FRAGMENT | LENGTH as u32;
        record[..MARK].copy_from_slice(&mark.to_be_bytes());
        record[MARK..MARK + 4].copy_from_slice(&xid.to_be_bytes());
        record[MARK + 4..].copy_from_slice(&PLAIN_SUCCESS);
        record
    }

    /// The xid and the results of a reply of the commonest form: the call succeeded, and the verifier
    /// is AUTH_NONE. None of another, which [`decode`](Self::decode) knows.
    #[inline]
    pub fn split_plain_success(message: &[u8]) -> Option<(u32, &[u8])> {
        let (xid, rest) = message.split_first_chunk()?;
        let results = rest.strip_prefix(&PLAIN_SUCCESS)?;
        Some((u32::from_be_bytes(*xid), results))
    }

    /// Appends the header.
    #[inline]
    pub fn encode(&self, out: &mut Encoder<'_>) {
        put(out, self.xid);
        match self.body {
            ReplyBody::Success(OpaqueAuth::NONE) => {
                out.room(PLAIN_SUCCESS.len())
                    .copy_from_slice(&PLAIN_SUCCESS);
            }
            body => body.encode(out),
        }
    }
}

impl<'a> ReplyBody<'a> {
    #[cold]
    fn encode(&self, out: &mut Encoder<'_>) {
        put(out, REPLY);
        match self {
            Self::Success(verifier) => {
                put(out, MSG_ACCEPTED);
                verifier.encode(out);
                put(out, SUCCESS);
            }
            Self::Refused(refused) => refused.encode(out),
        }
    }

    #[cold]
    fn decode(input: &mut Decoder<'a>) -> Result<Self, Violation> {
        let message_type = get(input)?;
        if message_type != REPLY {
            return Err(Violation::NotAReply(message_type));
        }
        match get(input)? {
            MSG_ACCEPTED => Self::decode_accepted(input),
            MSG_DENIED => Refused::decode_denied(input).map(Self::Refused),
            other => Err(Violation::UnknownReplyStat(other)),
        }
    }

    fn decode_accepted(input: &mut Decoder<'a>) -> Result<Self, Violation> {
        let verifier = OpaqueAuth::decode(input)?;
        let refused = match get(input)? {
            SUCCESS => return Ok(Self::Success(verifier)),
            PROG_UNAVAIL => Refused::ProgramUnavailable,
            PROG_MISMATCH => Refused::ProgramMismatch {
                low: get(input)?,
                high: get(input)?,
            },
            PROC_UNAVAIL => Refused::ProcedureUnavailable,
            GARBAGE_ARGS => Refused::GarbageArguments,
            SYSTEM_ERR => Refused::SystemError,
            other => return Err(Violation::UnknownAcceptStat(other)),
        };
        Ok(Self::Refused(refused))
    }
}

impl Refused {
    fn decode_denied(input: &mut Decoder<'_>) -> Result<Self, Violation> {
        match get(input)? {
            RPC_MISMATCH => Ok(Self::RpcMismatch {
                low: get(input)?,
                high: get(input)?,
            }),
            AUTH_ERROR => Ok(Self::Authentication(AuthStat(get(input)?))),
            other => Err(Violation::UnknownRejectStat(other)),
        }
    }

    /// Appends what follows the message type.
    fn encode(&self, out: &mut Encoder<'_>) {
        match *self {
            Self::RpcMismatch { low, high } => denied(out, &[RPC_MISMATCH, low, high]),
            Self::Authentication(stat) => denied(out, &[AUTH_ERROR, stat.0]),
            Self::ProgramUnavailable => accepted(out, &[PROG_UNAVAIL]),
            Self::ProgramMismatch { low, high } => accepted(out, &[PROG_MISMATCH, low, high]),
            Self::ProcedureUnavailable => accepted(out, &[PROC_UNAVAIL]),
            Self::GarbageArguments => accepted(out, &[GARBAGE_ARGS]),
            Self::SystemError => accepted(out, &[SYSTEM_ERR]),
        }
    }
}

fn denied(out: &mut Encoder<'_>, words: &[u32]) {
    put(out, MSG_DENIED);
    words.iter().for_each(|&word| put(out, word));
}

fn accepted(out: &mut Encoder<'_>, words: &[u32]) {
    put(out, MSG_ACCEPTED);
    OpaqueAuth::NONE.encode(out);
    words.iter().for_each(|&word| put(out, word));
}

/// A call header that is filled in but for its xid and procedure, made once per program, version
/// and credential and copied for every call.
#[derive(Debug, Clone)]
pub struct CallTemplate {
    bytes: Buffer,
}

/// Offset of the xid behind room for the mark.
const XID_AT: usize = MARK;
/// Offset of the procedure behind room for the mark.
const PROCEDURE_AT: usize = MARK + 20;

impl CallTemplate {
    /// Fills in what calls have in common.
    pub fn new(program: u32, version: u32, credential: &Credential<'_>) -> Self {
        let mut bytes = Buffer::with_capacity(128);
        bytes.extend(&[0; MARK]);
        let mut out = Encoder::new(&mut bytes);
        for word in [0, CALL, RPC_VERSION, program, version, 0] {
            put(&mut out, word);
        }
        credential.encode(&mut out);
        OpaqueAuth::NONE.encode(&mut out);
        Self { bytes }
    }

    /// Makes `buffer` the beginning of a call: room for the mark and the header. The arguments are
    /// encoded right behind, and [`set_xid`] follows when the xid is known.
    #[inline]
    pub fn begin(&self, buffer: &mut Buffer, procedure: u32) {
        buffer.clear();
        buffer.extend(self.bytes.as_slice());
        buffer.as_mut_slice()[PROCEDURE_AT..PROCEDURE_AT + 4]
            .copy_from_slice(&procedure.to_be_bytes());
    }
}

/// Gives the call that [`CallTemplate::begin`] began in `buffer` its xid. If the call was cut into fragments its first
/// one has 4 bytes at least.
///
/// # Panics
/// No call was begun in `buffer`.
#[inline]
pub fn set_xid(buffer: &mut Buffer, xid: u32) {
    buffer.as_mut_slice()[XID_AT..XID_AT + 4].copy_from_slice(&xid.to_be_bytes());
}

//! What a connection receives: which protocol its peer speaks, which the first bytes tell, and the
//! reader of that protocol.

use tenon_proto::lean::Reason as Farewell;
use tenon_proto::lean::server::Common;
use tenon_proto::onc::record::RecordReader;
use tenon_proto::sniff::{Sniffed, sniff};
use tenon_wire::Buffer;

use super::counters::LineTally;
use super::lean::LeanReception;
use super::limits::ServerLimits;
use super::reason::Reason;

/// Bytes that are received at once while the protocol is not known: whichever it is, the first room of
/// its reader holds them.
pub const FIRST_MAX: usize = 8 << 10;

/// What a connection receives.
#[derive(Debug)]
pub enum Reception {
    /// Too little has come to know the protocol.
    Unknown(RecordReader),
    /// Records of ONC RPC.
    Onc(RecordReader),
    /// Messages of the lean protocol.
    Lean(Box<LeanReception>),
}

/// Does the same with whichever reader there is.
macro_rules! with_reader {
    ($reception:expr, $reader:ident => $do:expr) => {
        match $reception {
            Reception::Unknown($reader) | Reception::Onc($reader) => $do,
            Reception::Lean(lean) => {
                let $reader = &mut lean.reader;
                $do
            }
        }
    };
}

impl Reception {
    /// The reception of a connection that was just accepted, whose requests have at most
    /// `record_bytes`.
    pub fn new(record_bytes: usize) -> Self {
        Self::Unknown(RecordReader::new(record_bytes))
    }

    /// Where to put received bytes, if `may_have` agrees to the bytes of memory that the reader has then.
    #[inline]
    pub fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        match self {
            Self::Onc(reader) => reader.room_within(may_have),
            Self::Lean(lean) => lean.reader.room_within(may_have),
            Self::Unknown(reader) => {
                let room = reader.room_within(may_have)?;
                let most = room.len().min(FIRST_MAX);
                Some(&mut room[..most])
            }
        }
    }

    /// As [`LeanReception::next_common_call`].
    #[inline]
    pub(super) fn next_common_call(&mut self, tally: &LineTally) -> Option<(Common, &[u8])> {
        match self {
            Self::Lean(lean) => lean.next_common_call(tally),
            Self::Onc(_) | Self::Unknown(_) => None,
        }
    }

    /// Says that `bytes` have been received, and finds out what the peer speaks if it is not known.
    ///
    /// # Errors
    /// It speaks neither protocol.
    ///
    /// # Panics
    /// There was less room.
    pub fn filled(&mut self, bytes: usize, limits: &ServerLimits) -> Result<(), Reason> {
        with_reader!(self, reader => reader.filled(bytes));
        match self {
            Self::Unknown(_) => self.identify(limits),
            Self::Onc(_) | Self::Lean(_) => Ok(()),
        }
    }

    #[cold]
    fn identify(&mut self, limits: &ServerLimits) -> Result<(), Reason> {
        let Self::Unknown(reader) = self else {
            return Ok(());
        };
        let known = match sniff(reader.unread(), limits.record_bytes).map_err(Reason::Stranger)? {
            Sniffed::TooFew => return Ok(()),
            Sniffed::Onc => {
                let fresh = RecordReader::new(limits.record_bytes);
                Self::Onc(std::mem::replace(reader, fresh))
            }
            Sniffed::Lean => Self::Lean(Box::new(LeanReception::new(limits, reader.unread()))),
        };
        *self = known;
        Ok(())
    }

    /// Bytes received that are kept.
    pub fn kept(&mut self) -> usize {
        with_reader!(self, reader => reader.kept())
    }

    /// Bytes of memory that the reader has.
    pub fn capacity(&mut self) -> usize {
        with_reader!(self, reader => reader.capacity())
    }

    /// Gives memory back if nothing is in it and it has grown beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        with_reader!(self, reader => reader.shrink_to(bytes));
    }

    /// Whether the stream may end here.
    pub fn may_end(&self) -> bool {
        match self {
            Self::Unknown(reader) | Self::Onc(reader) => reader.is_between_records(),
            Self::Lean(lean) => lean.reader.is_between_messages(),
        }
    }

    /// Says to a peer that can be told that nothing further is accepted.
    pub fn goodbye(&mut self, reason: Farewell, replies: &mut Buffer) {
        match self {
            Self::Lean(lean) => lean.goodbye(reason, replies),
            Self::Onc(_) | Self::Unknown(_) => {}
        }
    }
}

//! Replies of ONC RPC, written behind a header that may still become a refusal.

use tenon_wire::{Buffer, Encoder};

use super::auth::OpaqueAuth;
use super::message::{Refused, ReplyBody, ReplyHeader};
use super::record::{self, MARK};

/// The close notice, the last reply of a server of Tenon on a stream: all calls are answered that it has carried out over
/// this connection, and it carries out no others. Other clients find no call of theirs for its number, and ignore it; one
/// that has made a call of this number takes it for the failure of a call that was not carried out, which is true. It is
/// recognised by all of it, the verifier above all.
pub const CLOSE_NOTICE: [u8; 32] = *b"tend\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x08closing\0\0\0\0\x05";

/// The first bytes of the record of a [`CLOSE_NOTICE`], as a client of the lean protocol gets it in the place of a
/// preamble, which its own has crossed.
pub const CLOSE_NOTICE_BEGIN: [u8; 8] = *b"\x80\0\0\x20tend";

/// A reply that is being written at the end of a buffer. For a stream it is
/// [sealed](Self::seal) in the end; the only reply in a buffer is also a datagram's
/// [message](record::message).
#[derive(Debug, Clone, Copy)]
pub struct OncReplyDraft {
    start: usize,
    xid: u32,
}

impl OncReplyDraft {
    /// Appends room for the mark and the header of a success. The results are encoded right behind.
    pub fn begin(buffer: &mut Buffer, xid: u32) -> Self {
        let start = buffer.len();
        let reply = Self { start, xid };
        reply.put_header(buffer, ReplyBody::Success(OpaqueAuth::NONE));
        reply
    }

    /// Drops whatever results were written and refuses the call instead.
    pub fn refuse(self, buffer: &mut Buffer, refused: Refused) -> Self {
        buffer.truncate(self.start);
        self.put_header(buffer, ReplyBody::Refused(refused));
        self
    }

    /// Makes the reply a record in fragments of at most `fragment_max` bytes, for a stream.
    ///
    /// # Panics
    /// As [`record::seal`].
    #[inline]
    pub fn seal(self, buffer: &mut Buffer, fragment_max: usize) {
        record::seal(buffer, self.start, fragment_max);
    }

    fn put_header(&self, buffer: &mut Buffer, body: ReplyBody<'_>) {
        buffer.room(MARK);
        let xid = self.xid;
        ReplyHeader { xid, body }.encode(&mut Encoder::new(buffer));
    }
}

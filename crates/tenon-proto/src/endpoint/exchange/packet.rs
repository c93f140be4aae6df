//! The header of every packet, and the check over all of it.

use crc32c::crc32c;
use tenon_wire::Buffer;

/// Bytes of the header of a packet.
pub const PACKET_HEADER: usize = 32;

/// Offset of the magic: where an ONC RPC message over UDP says 0, call, or 1, reply.
const MAGIC_AT: usize = 4;

/// The bytes behind the check of every packet of every version of this protocol.
pub const PACKET_MAGIC: [u8; 2] = *b"\x7fx";

/// The kinds of packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketKind {
    /// A client asks for a cookie.
    Hello = 1,
    /// The server gives it one, or refuses.
    Welcome = 2,
    /// A fragment of a request.
    Call = 3,
    /// A fragment of an answer.
    Reply = 4,
    /// Fragments that have come of the other end's message, and the state of the call.
    Ack = 5,
    /// A client asks what becomes of a call.
    Probe = 6,
    /// A client no longer waits for a call.
    Cancel = 7,
    /// The server does not know the conversation.
    Reset = 8,
    /// The server stops, and answers no more calls of the conversation; or the client makes none any more.
    Goodbye = 9,
    /// A fragment of a stream of bytes.
    Data = 10,
    /// The fragments of a stream of bytes that have come, and how many are taken.
    DataAck = 11,
    /// The sender does not know the stream of bytes, or no longer.
    DataEnd = 12,
}

impl PacketKind {
    const ALL: [Self; 12] = [
        Self::Hello,
        Self::Welcome,
        Self::Call,
        Self::Reply,
        Self::Ack,
        Self::Probe,
        Self::Cancel,
        Self::Reset,
        Self::Goodbye,
        Self::Data,
        Self::DataAck,
        Self::DataEnd,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    fn allowed_flags(self) -> u8 {
        match self {
            Self::Call | Self::Data => OPENS | ASKS,
            Self::Probe | Self::Cancel => OPENS,
            Self::Reply | Self::DataAck => ASKS,
            Self::Hello
            | Self::Welcome
            | Self::Ack
            | Self::Reset
            | Self::Goodbye
            | Self::DataEnd => 0,
        }
    }
}

/// Behind the header stands an opening: the server may not know the conversation yet.
pub(super) const OPENS: u8 = 1;
/// The receiver is to say at once what it has.
pub(super) const ASKS: u8 = 2;

/// A header. What the last three fields mean depends on the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketHeader {
    pub(super) kind: PacketKind,
    pub(super) flags: u8,
    pub(super) conversation: u64,
    pub(super) lane: u16,
    pub(super) detail: u16,
    pub(super) sequence: u32,
    pub(super) fragment: u32,
    pub(super) fragments: u32,
}

impl PacketHeader {
    /// A header of a call's that says no more than its kind.
    pub(super) fn plain(kind: PacketKind, conversation: u64, lane: u16, sequence: u32) -> Self {
        Self {
            kind,
            flags: 0,
            conversation,
            lane,
            detail: 0,
            sequence,
            fragment: 0,
            fragments: 0,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The reason for dropping a datagram. The sender is not told, as any host can send anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// It is no packet of this protocol.
    UnknownPeer,
    /// Its check does not fit the rest of it.
    Damaged,
    /// Its kind, its flags or its body is malformed.
    Malformed,
    /// The other end does not send such packets.
    WrongEnd,
    /// It belongs to a call or to a conversation that is over.
    Stale,
    /// It repeats what has come before.
    Repeated,
    /// It comes from another address than its conversation.
    OtherAddress,
    /// There is no room for what it begins.
    Full,
}

impl DropReason {
    const COUNT: usize = 8;
}

/// Numbers of datagrams that were dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounters([u64; DropReason::COUNT]);

impl DropCounters {
    /// Returns how many were dropped for this reason.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    pub(super) fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
}

/// Returns whether a datagram is a packet of this protocol, and not a message of ONC RPC, which has 0 or 1 where the
/// magic stands. Whether it is a sound one is not looked at.
#[inline]
pub fn is_packet(datagram: &[u8]) -> bool {
    let end = MAGIC_AT + PACKET_MAGIC.len();
    datagram.len() >= PACKET_HEADER && datagram[MAGIC_AT..end] == PACKET_MAGIC
}

/// Returns whether a packet of this protocol is likely to come with others right in front of it or behind it: it is a
/// fragment of several, or of one of several calls that are under way. Whether it is a sound one is not looked at.
#[inline]
pub fn is_one_of_many(packet: &[u8]) -> bool {
    let Some(header) = packet.first_chunk::<PACKET_HEADER>() else {
        return false;
    };
    let carries = header[6] == PacketKind::Call as u8 || header[6] == PacketKind::Reply as u8;
    let lane = u16::from_be_bytes([header[16], header[17]]);
    let is_of_several = carries && (lane != 0 || u32_at(header, 28) > 1);
    is_of_several || header[6] == PacketKind::Data as u8
}

/// Returns how many packets the request or the answer has that a datagram is a fragment of: 1 for every other packet, and
/// for a datagram of another protocol. Whether it is a sound one is not looked at.
#[inline]
pub fn packets_of_message(datagram: &[u8]) -> u32 {
    let Some(header) = datagram.first_chunk::<PACKET_HEADER>() else {
        return 1;
    };
    let carries = header[6] == PacketKind::Call as u8 || header[6] == PacketKind::Reply as u8;
    match carries && is_packet(datagram) {
        true => u32_at(header, 28).max(1),
        false => 1,
    }
}

/// Returns whether a datagram is a packet of a [stream of bytes](super::byte_stream). Whether it is a sound one is not
/// looked at.
#[inline]
pub fn is_of_byte_stream(datagram: &[u8]) -> bool {
    is_packet(datagram) && datagram[6] >= PacketKind::Data as u8
}

/// Takes a datagram apart: its header, and what stands behind it.
#[inline]
pub(super) fn decode(datagram: &[u8]) -> Result<(PacketHeader, &[u8]), DropReason> {
    let (header, body) = match datagram.split_first_chunk::<PACKET_HEADER>() {
        Some(parts) if is_packet(datagram) => parts,
        _ => return Err(DropReason::UnknownPeer),
    };
    if crc32c(&datagram[MAGIC_AT..]) != u32_at(header, 0) {
        return Err(DropReason::Damaged);
    }
    let kind = PacketKind::of(header[6]).ok_or(DropReason::Malformed)?;
    let header = PacketHeader {
        kind,
        flags: header[7],
        conversation: u64::from(u32_at(header, 8)) << 32 | u64::from(u32_at(header, 12)),
        lane: u16::from_be_bytes([header[16], header[17]]),
        detail: u16::from_be_bytes([header[18], header[19]]),
        sequence: u32_at(header, 20),
        fragment: u32_at(header, 24),
        fragments: u32_at(header, 28),
    };
    match header.flags & !kind.allowed_flags() {
        0 => Ok((header, body)),
        _ => Err(DropReason::Malformed),
    }
}

fn u32_at(bytes: &[u8; PACKET_HEADER], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The header of all packets of a conversation, made when it begins. What differs from packet to
/// packet is filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderTemplate([u8; PACKET_HEADER]);

impl HeaderTemplate {
    pub(super) fn new(conversation: u64) -> Self {
        let mut bytes = [0; PACKET_HEADER];
        bytes[MAGIC_AT..6].copy_from_slice(&PACKET_MAGIC);
        bytes[8..16].copy_from_slice(&conversation.to_be_bytes());
        Self(bytes)
    }

    /// Appends a packet: the header, and what `body` writes behind it. `header` is of the same
    /// conversation.
    #[inline]
    pub(super) fn put(
        &self,
        out: &mut Buffer,
        header: &PacketHeader,
        body: impl FnOnce(&mut Buffer),
    ) {
        let start = out.len();
        let bytes: &mut [u8; PACKET_HEADER] = out.chunk();
        *bytes = self.0;
        bytes[6] = header.kind as u8;
        bytes[7] = header.flags;
        bytes[16..18].copy_from_slice(&header.lane.to_be_bytes());
        bytes[18..20].copy_from_slice(&header.detail.to_be_bytes());
        bytes[20..24].copy_from_slice(&header.sequence.to_be_bytes());
        bytes[24..28].copy_from_slice(&header.fragment.to_be_bytes());
        bytes[28..].copy_from_slice(&header.fragments.to_be_bytes());
        body(out);
        let packet = &mut out.as_mut_slice()[start..];
        let check = crc32c(&packet[MAGIC_AT..]);
        packet[..MAGIC_AT].copy_from_slice(&check.to_be_bytes());
    }
}

//! Packets that go out or have come together.

/// Packets that go out together, to the same peer: one behind the other, each of `size` bytes but the last,
/// which has at most as many. A single packet is one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTrain<'p> {
    /// The packets.
    pub bytes: &'p [u8],
    /// Bytes of each but the last; not 0.
    pub size: usize,
    /// Packets of the longest message that one of them is a part of: 1 if each is a message. A carrier that has several
    /// ways sends all packets of a message the same one, so that they arrive in order.
    pub message_packets: u32,
}

impl<'p> PacketTrain<'p> {
    /// Returns a single packet.
    #[inline]
    pub fn one(packet: &'p [u8]) -> Self {
        Self {
            bytes: packet,
            size: packet.len().max(1),
            message_packets: 1,
        }
    }

    /// Returns whether it is a single packet, as most are.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.bytes.len() <= self.size
    }

    /// Its packets.
    pub fn packets(self) -> impl Iterator<Item = &'p [u8]> {
        self.bytes.chunks(self.size.max(1))
    }

    /// Returns what is left of it behind so many bytes, which are whole packets.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self {
            bytes: &self.bytes[bytes..],
            ..self
        }
    }
}

/// Packets that came together, from the same peer: they lie in the room that was given for them as those of a
/// [`PacketTrain`] do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedTrain {
    /// Bytes of all together.
    pub length: usize,
    /// Bytes of each but the last.
    pub size: usize,
}

impl ReceivedTrain {
    /// Returns a single packet, or bytes of a stream.
    #[inline]
    pub fn one(length: usize) -> Self {
        Self {
            length,
            size: length,
        }
    }

    /// Returns the packets that came into `room`, as far as it holds them. One without bytes is one, too.
    pub fn packets(self, room: &[u8]) -> impl Iterator<Item = &[u8]> {
        let bytes = &room[..self.length.min(room.len())];
        let (first, rest) = bytes.split_at(self.size.min(bytes.len()));
        std::iter::once(first).chain(rest.chunks(self.size.max(1)))
    }
}

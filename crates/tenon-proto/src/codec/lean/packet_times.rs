//! Times of packets: when the kernel of the callee had the packet of a call, and that of an earlier reply, which a
//! caller may ask for beside [time stamps](super::Stamps).

use super::extension::{Extension, Extensions};
use super::order::{ByteOrder, FieldReader};

/// Bytes of the times of a reply.
const LENGTH: usize = 40;

/// Times at which the callee's kernel passed packets, in ticks of the clock that the [time stamps](super::Stamps) of the
/// same reply name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTimes {
    /// The kernel received the last packet of the call from its network interface; 0 if that is not known.
    pub received: u64,
    /// The times of an earlier reply to the same caller: those of a reply are not known before it is sent.
    pub earlier: Option<SentReply>,
}

/// Times at which a reply was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentReply {
    /// The time of sending in the time stamps of the reply, by which the caller knows it again.
    pub sent: u64,
    /// The system call that sent its last packet began.
    pub began: u64,
    /// The kernel handed the packet to the queue of the network interface.
    pub scheduled: u64,
    /// The kernel handed the packet to the driver.
    pub transmitted: u64,
}

impl PacketTimes {
    /// Bytes of the extension of a reply.
    pub(super) const EXTENSION: usize = Extension::HEADER + LENGTH;

    /// The extension of a call that asks for the times of packets.
    pub const REQUEST: Extension<'static> = Extension {
        kind: Extension::PACKET_TIMES,
        content: &[],
    };

    /// Returns whether a call asks for the times of packets.
    pub fn are_asked_for(mut extensions: Extensions<'_>) -> bool {
        extensions.any(|extension| extension.kind == Extension::PACKET_TIMES)
    }

    /// Returns the times that a reply carries. Those that make no sense are none: nothing depends on them.
    pub fn find(mut extensions: Extensions<'_>) -> Option<Self> {
        let order = extensions.order();
        let found = extensions.find(|extension| extension.kind == Extension::PACKET_TIMES)?;
        if found.content.len() != LENGTH {
            return None;
        }
        let mut input = FieldReader::new(found.content, order);
        let mut next = || input.u64().ok();
        let received = next()?;
        let earlier = SentReply {
            sent: next()?,
            began: next()?,
            scheduled: next()?,
            transmitted: next()?,
        };
        Some(Self {
            received,
            earlier: earlier.makes_sense().then_some(earlier),
        })
    }

    /// Returns the bytes of the extension, its header included.
    pub(super) fn encode(&self, order: ByteOrder) -> [u8; Self::EXTENSION] {
        let earlier = self.earlier.map_or([0; 4], |earlier| {
            [
                earlier.sent,
                earlier.began,
                earlier.scheduled,
                earlier.transmitted,
            ]
        });
        let mut bytes = [0; Self::EXTENSION];
        let (front, content) = bytes.split_at_mut(Extension::HEADER);
        front[..2].copy_from_slice(&order.bytes_of_u16(Extension::PACKET_TIMES));
        front[4..].copy_from_slice(&order.bytes_of_u32(LENGTH as u32));
        let numbers = std::iter::once(self.received).chain(earlier);
        for (place, number) in content.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&order.bytes_of_u64(number));
        }
        bytes
    }
}

impl SentReply {
    fn makes_sense(&self) -> bool {
        let times = [self.sent, self.began, self.scheduled, self.transmitted];
        self.sent > 0 && times.is_sorted()
    }
}

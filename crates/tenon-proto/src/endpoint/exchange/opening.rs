//! The introduction of both ends before the first call: hello and welcome, and the opening that the first packets of a
//! conversation carry.

use tenon_wire::Buffer;

use super::cookie::COOKIE;
use super::packet::DropReason;
use crate::lean::{PREAMBLE, Preamble};

/// Bytes behind the header of a hello and of a welcome: neither is longer than the other, so that a server does not
/// send more to an unproven address than came from there.
pub(super) const GREETING: usize = 64;

/// Bytes of the opening behind the header of the first packets of a conversation.
pub(super) const OPENING: usize = 56;

/// Bytes of a datagram that every end takes in.
pub const DATAGRAM_MIN: usize = 1200;

/// The preamble of an end, and the largest datagram that it takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransportParameters {
    pub(super) preamble: Preamble,
    pub(super) datagram_max: u32,
}

/// A server's answer to a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WelcomePacket {
    pub(super) facts: TransportParameters,
    pub(super) incarnation: u32,
    pub(super) cookie: [u8; COOKIE],
    /// Milliseconds for which a conversation is known behind its last packet.
    pub(super) retention_ms: u32,
}

/// A client's introduction in its packets as long as the server may not know the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConversationOpening {
    pub(super) cookie: [u8; COOKIE],
    pub(super) facts: TransportParameters,
}

impl TransportParameters {
    fn put(&self, out: &mut Buffer) {
        out.extend(&self.preamble.encode());
        out.extend(&self.datagram_max.to_be_bytes());
    }

    fn get(body: &[u8]) -> Result<(Self, &[u8]), DropReason> {
        let (preamble, rest) = take::<PREAMBLE>(body)?;
        let (datagram_max, rest) = number(rest)?;
        let preamble = Preamble::decode(preamble).map_err(|_| DropReason::Malformed)?;
        match datagram_max as usize {
            DATAGRAM_MIN.. => Ok((
                Self {
                    preamble,
                    datagram_max,
                },
                rest,
            )),
            _ => Err(DropReason::Malformed),
        }
    }

    /// The body of a hello.
    pub(super) fn put_hello(&self, out: &mut Buffer) {
        self.put(out);
        out.extend(&[0; GREETING - PREAMBLE - 4]);
    }

    pub(super) fn of_hello(body: &[u8]) -> Result<Self, DropReason> {
        match body.len() {
            GREETING => Self::get(body).map(|(facts, _)| facts),
            _ => Err(DropReason::Malformed),
        }
    }
}

impl WelcomePacket {
    pub(super) fn put(&self, out: &mut Buffer) {
        self.facts.put(out);
        out.extend(&self.incarnation.to_be_bytes());
        out.extend(&self.cookie);
        out.extend(&self.retention_ms.to_be_bytes());
        out.extend(&[0; 4]);
    }

    pub(super) fn get(body: &[u8]) -> Result<Self, DropReason> {
        if body.len() != GREETING {
            return Err(DropReason::Malformed);
        }
        let (facts, rest) = TransportParameters::get(body)?;
        let (incarnation, rest) = number(rest)?;
        let (cookie, rest) = take(rest)?;
        let (retention_ms, _) = number(rest)?;
        Ok(Self {
            facts,
            incarnation,
            cookie: *cookie,
            retention_ms,
        })
    }
}

impl ConversationOpening {
    pub(super) fn put(&self, out: &mut Buffer) {
        out.extend(&self.cookie);
        self.facts.put(out);
        out.extend(&[0; 4]);
    }

    /// Reads one, and what stands behind it.
    pub(super) fn get(body: &[u8]) -> Result<(Self, &[u8]), DropReason> {
        let (cookie, rest) = take(body)?;
        let (facts, rest) = TransportParameters::get(rest)?;
        let (_, rest) = take::<4>(rest)?;
        let cookie = *cookie;
        Ok((Self { cookie, facts }, rest))
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), DropReason> {
    bytes.split_first_chunk().ok_or(DropReason::Malformed)
}

fn number(bytes: &[u8]) -> Result<(u32, &[u8]), DropReason> {
    let (bytes, rest) = take(bytes)?;
    Ok((u32::from_be_bytes(*bytes), rest))
}

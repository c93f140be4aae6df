//! Keys that tell calls in datagrams apart.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;

use crate::connection::IncomingCall;

/// Bytes at the front of the arguments that tell calls apart, beside their length. Clients count xids upwards: the sum
/// is there for a client that restarted with the same ones. It need not withstand an attacker: calls of its own would
/// be taken for each other, and no others.
const SUMMED_BYTES: usize = 256;

/// The identity of a call: the address of the caller, and what is in the message. Two calls with equal keys are the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateKey<P> {
    pub(super) peer: P,
    pub(super) message: MessageKey,
}

/// The identity of a call among those of one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    sum: u64,
    xid: u32,
    service: u32,
    procedure: u32,
    length: u32,
}

impl<P> DuplicateKey<P> {
    /// The key of a call from `peer`, its address.
    pub fn new(peer: P, call: &IncomingCall<'_>) -> Self {
        let summed = call.arguments.len().min(SUMMED_BYTES);
        // Neither services nor bytes of a datagram are so many that they do not fit.
        let message = MessageKey {
            sum: FixedState::default().hash_one(&call.arguments[..summed]),
            xid: call.caller.number(),
            service: call.service as u32,
            procedure: call.procedure,
            length: call.arguments.len() as u32,
        };
        Self { peer, message }
    }
}

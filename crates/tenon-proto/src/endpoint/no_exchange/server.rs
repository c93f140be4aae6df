//! The server's side, which finds no packets.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Instant;

use tenon_wire::Buffer;

use super::ReassembledMessage;
use crate::connection::{IncomingCall, ServiceTable};
use crate::lean::Preamble;

/// The address of a peer.
pub trait PeerAddress: Copy + Eq + Hash + Debug {}

impl PeerAddress for SocketAddr {}

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerLimits {
    /// Bytes of the largest datagram for clients of this machine.
    pub datagram_max_here: usize,
    /// Conversations that are known at once.
    pub conversations: usize,
    /// Conversations of one host.
    pub conversations_of_host: usize,
    /// Bytes of memory of one conversation.
    pub bytes_of_conversation: usize,
    /// The same of all conversations of one host.
    pub bytes_of_host: usize,
    /// The same of all conversations.
    pub bytes: usize,
    /// Bytes of metadata that are accepted with a call.
    pub metadata_max: usize,
}

/// Values that must be unpredictable, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ServerSecrets {
    /// The key of the cookies.
    pub key: [u8; 16],
    /// Tells this run of the server from others.
    pub incarnation: u32,
    /// For what is done by chance.
    pub seed: u64,
}

/// The identity of a call, of which there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKey {}

/// A call for a service.
#[derive(Debug)]
pub struct ExchangeRequest<'m> {
    /// The key by which it is answered.
    pub key: CallKey,
    /// The call.
    pub call: IncomingCall<'m>,
}

/// An event of a call that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// Its client no longer waits for it.
    Cancelled(CallKey),
}

/// The clients that are told that a server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseRecipients {
    /// Clients without a call that is carried out, or answered in several packets.
    ToIdle,
    /// All of them: no call will be answered any more.
    ToAll,
}

/// Counters of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExchangeServerCounters {
    /// Calls handed to a service.
    pub calls: u64,
    /// Calls of procedure 0.
    pub pings: u64,
    /// Calls refused before a service saw them.
    pub refusals: u64,
}

/// The conversations of a socket: none.
#[derive(Debug)]
pub struct ServerEngine<A>(PhantomData<A>);

impl<A> ServerEngine<A> {
    /// Returns one without conversations.
    pub fn new(_: Preamble, _: ServerLimits, _: ServerSecrets, _: Instant) -> Self {
        Self(PhantomData)
    }

    /// Finds no call.
    pub fn handle_datagram_into<'d>(
        &mut self,
        _: Instant,
        _: A,
        _: &'d [u8],
        _: &ServiceTable,
        _: &'d mut ReassembledMessage,
    ) -> Option<ExchangeRequest<'d>> {
        None
    }

    /// Is never called.
    pub fn reply(&mut self, key: CallKey, _: &mut Buffer) -> bool {
        match key {}
    }

    /// Has nothing to send.
    pub fn poll_transmit(&mut self, _: Instant, _: &mut Buffer) -> Option<A> {
        None
    }

    /// Returns false.
    pub fn has_transmit(&self) -> bool {
        false
    }

    /// Returns none.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        None
    }

    /// Returns none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns none.
    pub fn next_repeat(&self) -> Option<Instant> {
        None
    }

    /// Changes nothing.
    pub fn handle_timeout(&mut self, _: Instant) {}

    /// Does nothing: there is no peer to be told.
    pub fn send_close(&mut self, _: CloseRecipients) {}

    /// Returns false.
    pub fn has_unarrived(&self) -> bool {
        false
    }

    /// Returns zeros.
    pub fn counters(&self) -> ExchangeServerCounters {
        ExchangeServerCounters::default()
    }
}

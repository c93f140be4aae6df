//! The client's side, which does not exist.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tenon_wire::Buffer;

use super::{DropCounters, Failure, ReassembledMessage};
use crate::connection::{BindError, ReplyError, StartError};
use crate::lean::{ByteOrder, Extensions, Interface, Preamble};

/// Limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientLimits(());

/// Values that must be unpredictable, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ClientSecrets {
    /// The key that the names of conversations are made from.
    pub key: [u8; 16],
    /// For what is done by chance.
    pub seed: u64,
}

/// A call, of which there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallId {}

/// A call that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// Number of its service.
    pub service: u16,
    /// Procedure number.
    pub procedure: u16,
    /// The time at which it is given up.
    pub deadline: Instant,
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct ExchangeAnswer<'m, W> {
    /// The waiter that was handed in with the call.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// The extensions of the answer.
    pub extensions: Extensions<'m>,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// An event other than an answer.
#[derive(Debug)]
pub enum ClientEvent<W> {
    /// A call came to nothing.
    #[non_exhaustive]
    Failed {
        /// The waiter that was handed in with the call.
        waiter: W,
        /// The reason.
        failure: Failure,
    },
}

/// Counters of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExchangeClientCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls answered with exceptions.
    pub exceptions: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Datagrams that were dropped.
    pub ignored: DropCounters,
}

/// The conversation with one server, of which there are none.
#[derive(Debug)]
pub struct ClientEngine<W> {
    never: Infallible,
    of: PhantomData<W>,
}

/// Methods of a type without values: none is ever called.
macro_rules! absent {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(missing_docs, reason = "the real type has the same, with words")]
        impl<W> ClientEngine<W> {
            $(pub fn $name(&self, $(_: $argument),*) $(-> $result)? { match self.never {} })*
        }
    };
}

absent! {
    fn peer() -> Option<&Preamble>;
    fn bind(&Arc<Interface>, u16) -> Result<u16, BindError>;
    fn set_datagram_max(usize);
    fn send_close(&mut Buffer) -> bool;
    fn greet(Instant);
    fn is_greeting() -> bool;
    fn start(Instant, &Outgoing, &mut Buffer, W) -> Result<CallId, StartError>;
    fn take_common(Instant, &[u8], CallId) -> Option<Range<usize>>;
    fn poll_transmit(Instant, &mut Buffer) -> bool;
    fn has_transmit() -> bool;
    fn poll_event() -> Option<ClientEvent<W>>;
    fn poll_timeout() -> Option<Instant>;
    fn next_timeout(CallId) -> Option<Instant>;
    fn handle_timeout(Instant);
    fn handle_refusal(Instant);
    fn break_off() -> Vec<W>;
    fn cancel(CallId) -> Option<W>;
    fn in_flight() -> usize;
    fn full_at() -> Option<usize>;
    fn counters() -> ExchangeClientCounters;
}

impl<W> ClientEngine<W> {
    /// Panics.
    ///
    /// # Panics
    /// Always: addresses of the exchange are refused.
    #[cold]
    pub fn new(_: Preamble, _: ClientLimits, _: ClientSecrets) -> Self {
        unreachable!("addresses of the exchange were refused")
    }

    /// Is never called.
    pub fn handle_datagram_into<'d>(
        &mut self,
        _: Instant,
        _: &'d [u8],
        _: &'d mut ReassembledMessage,
    ) -> Option<ExchangeAnswer<'d, W>> {
        match self.never {}
    }
}

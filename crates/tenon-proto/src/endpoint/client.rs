//! The client's end of a socket for datagrams: its calls, by ONC RPC or in the packet exchange.

use std::ops::Range;
use std::time::Instant;

use tenon_wire::Buffer;

use super::call_failure::{CallFailure, FailedCall};
use super::exchange::DropReason;
use super::exchange::ReassembledMessage;
use super::exchange::client::{self as exchange, ClientEvent, ClientLimits, ClientSecrets};
use super::onc_client::{OncDatagramCalls, Retransmission};
use crate::codec::lean::{Features, Preamble};
use crate::codec::onc::message::ReplyHeader;
use crate::config::{ConnectionConfig, Role};
use crate::connection::{Answer, CallDraft, OutgoingCounters, StartError};
use crate::left_out::{IfExchange, IfOnc, if_exchange, if_onc};

/// The client's end of a socket for datagrams. `W` is what its owner needs to find the waiter of a call.
#[derive(Debug)]
pub struct ClientEndpoint<W>(ClientProtocol<W>);

#[derive(Debug)]
enum ClientProtocol<W> {
    Onc(IfOnc<Box<OncDatagramCalls<W>>>),
    Exchange(IfExchange<Box<ExchangeCalls<W>>>),
}

#[derive(Debug)]
struct ExchangeCalls<W> {
    engine: exchange::ClientEngine<W>,
    timeouts: u64,
    violations: u64,
}

/// Names a call in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramCallId {
    /// Its xid.
    Onc(u32),
    /// Its lane and serial number.
    Exchange(exchange::CallId),
}

impl<W> ClientEndpoint<W> {
    /// Calls of ONC RPC, the first of which has the number `seed`.
    pub fn onc(seed: u32, retransmission: Retransmission) -> Self {
        let calls = OncDatagramCalls::new(seed, retransmission);
        Self(ClientProtocol::Onc(if_onc(Box::new(calls))))
    }

    /// Lean calls in the packet exchange.
    pub fn exchange(
        config: &ConnectionConfig,
        limits: ClientLimits,
        secrets: ClientSecrets,
    ) -> Self {
        let preamble = config.preamble(Role::Client);
        let calls = ExchangeCalls {
            engine: exchange::ClientEngine::new(preamble, limits, secrets),
            timeouts: 0,
            violations: 0,
        };
        Self(ClientProtocol::Exchange(if_exchange(Box::new(calls))))
    }

    /// Puts a call in flight; its message is taken in exchange for an empty buffer.
    ///
    /// # Errors
    /// It cannot be started now, and why; the message stays where it is.
    #[inline]
    pub fn start_call(
        &mut self,
        now: Instant,
        draft: &CallDraft<'_>,
        message: &mut Buffer,
        deadline: Instant,
        waiter: W,
    ) -> Result<DatagramCallId, StartError> {
        match (&mut self.0, draft) {
            (ClientProtocol::Onc(calls), CallDraft::Onc) => {
                let number = calls.start(now, deadline, message, waiter)?;
                Ok(DatagramCallId::Onc(number))
            }
            (ClientProtocol::Exchange(calls), CallDraft::Lean(call)) => {
                let service = calls.engine.bind(call.interface, call.procedure)?;
                let outgoing = exchange::Outgoing {
                    service,
                    procedure: call.procedure,
                    deadline,
                };
                let id = calls.engine.start(now, &outgoing, message, waiter)?;
                Ok(DatagramCallId::Exchange(id))
            }
            _ => Err(StartError::OtherProtocol),
        }
    }

    /// Takes in a datagram; the answer, if that makes one whole. One that came in several packets is left in `whole`.
    #[inline]
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        whole: &'d mut ReassembledMessage,
    ) -> Option<Answer<'d, W>> {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.handle_datagram(datagram),
            ClientProtocol::Exchange(calls) => {
                let answer = calls.engine.handle_datagram_into(now, datagram, whole)?;
                Some(Answer {
                    // Calls of the exchange are told apart by more than a number.
                    number: 0,
                    waiter: answer.waiter,
                    order: answer.order,
                    extensions: answer.extensions,
                    outcome: answer.outcome,
                })
            }
        }
    }

    /// Ends the call `id` if `datagram` is its answer and of the commonest form, and returns where in the datagram
    /// the results are. `None` says nothing: [`handle_datagram`](Self::handle_datagram) finds out what it is.
    #[inline]
    pub fn take_common(
        &mut self,
        now: Instant,
        datagram: &[u8],
        id: DatagramCallId,
    ) -> Option<Range<usize>> {
        match (&mut self.0, id) {
            (ClientProtocol::Onc(calls), DatagramCallId::Onc(xid)) => {
                let (replied, results) = ReplyHeader::split_plain_success(datagram)?;
                let length = results.len();
                if replied != xid {
                    return None;
                }
                calls.handle_datagram(datagram)?;
                Some(datagram.len() - length..datagram.len())
            }
            (ClientProtocol::Exchange(calls), DatagramCallId::Exchange(id)) => {
                let place = calls.engine.take_common(now, datagram, id)?;
                let header = super::exchange::PACKET_HEADER;
                Some(place.start + header..place.end + header)
            }
            _ => None,
        }
    }

    /// Returns whether there may be something to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        match &self.0 {
            ClientProtocol::Onc(calls) => calls.has_transmit(),
            ClientProtocol::Exchange(calls) => calls.engine.has_transmit(),
        }
    }

    /// Appends the next datagram that is to be sent; false if there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.poll_transmit(out),
            ClientProtocol::Exchange(calls) => calls.engine.poll_transmit(now, out),
        }
    }

    /// Returns a call that ended without an answer.
    #[inline]
    pub fn poll_failure(&mut self) -> Option<FailedCall<W>> {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.poll_failure(),
            ClientProtocol::Exchange(calls) => calls.poll_failure(),
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.0 {
            ClientProtocol::Onc(calls) => calls.poll_timeout(),
            ClientProtocol::Exchange(calls) => calls.engine.poll_timeout(),
        }
    }

    /// Returns when there is something to do for a call; `None` if it is not in flight.
    #[inline]
    pub fn call_timeout(&self, id: DatagramCallId) -> Option<Instant> {
        match (&self.0, id) {
            (ClientProtocol::Onc(calls), DatagramCallId::Onc(number)) => calls.call_timeout(number),
            (ClientProtocol::Exchange(calls), DatagramCallId::Exchange(id)) => {
                calls.engine.next_timeout(id)
            }
            _ => None,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.handle_timeout(now),
            ClientProtocol::Exchange(calls) => calls.engine.handle_timeout(now),
        }
    }

    /// Gives a call up. `None` if it is not in flight.
    pub fn cancel(&mut self, id: DatagramCallId) -> Option<W> {
        match (&mut self.0, id) {
            (ClientProtocol::Onc(calls), DatagramCallId::Onc(number)) => calls.cancel(number),
            (ClientProtocol::Exchange(calls), DatagramCallId::Exchange(id)) => {
                calls.engine.cancel(id)
            }
            _ => None,
        }
    }

    /// Gives all calls up, of which the server is not told; returns their waiters.
    pub fn cancel_all(&mut self) -> Vec<W> {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.cancel_all(),
            ClientProtocol::Exchange(calls) => calls.engine.break_off(),
        }
    }

    /// The system says that nothing listens where the server should be: conversations of the exchange end with their
    /// calls. Calls of ONC RPC are for the owner to [give up](Self::cancel_all).
    pub fn handle_refusal(&mut self, now: Instant) {
        if let ClientProtocol::Exchange(calls) = &mut self.0 {
            calls.engine.handle_refusal(now);
        }
    }

    /// Returns whether calls go by the packet exchange.
    #[inline]
    pub fn is_exchange(&self) -> bool {
        matches!(self.0, ClientProtocol::Exchange(_))
    }

    /// Returns the conversation of the packet exchange, for what it has seen and what memory it has.
    pub fn conversation(&self) -> Option<&exchange::ClientEngine<W>> {
        match &self.0 {
            ClientProtocol::Onc(_) => None,
            ClientProtocol::Exchange(calls) => Some(&calls.engine),
        }
    }

    /// Ends the conversation of the packet exchange; appends the datagram that tells the server. False if there is
    /// none.
    pub fn send_close(&mut self, out: &mut Buffer) -> bool {
        match &mut self.0 {
            ClientProtocol::Onc(_) => false,
            ClientProtocol::Exchange(calls) => calls.engine.send_close(out),
        }
    }

    /// Asks for a conversation before there is a call, unless there is one.
    pub fn greet(&mut self, now: Instant) {
        if let ClientProtocol::Exchange(calls) = &mut self.0 {
            calls.engine.greet(now);
        }
    }

    /// Returns whether a conversation is asked for and not begun.
    pub fn is_greeting(&self) -> bool {
        match &self.0 {
            ClientProtocol::Onc(_) => false,
            ClientProtocol::Exchange(calls) => calls.engine.is_greeting(),
        }
    }

    /// Sets how large datagrams may be: those of calls by ONC RPC from the next call on, up to
    /// [`DATAGRAM_SIZE_MAX`](super::DATAGRAM_SIZE_MAX), packets of the exchange from the next conversation on.
    pub fn set_datagram_max(&mut self, bytes: usize) {
        match &mut self.0 {
            ClientProtocol::Onc(calls) => calls.set_datagram_max(bytes),
            ClientProtocol::Exchange(calls) => calls.engine.set_datagram_max(bytes),
        }
    }

    /// Returns how many calls a lean server takes, if it has so many of them that further ones wait.
    pub fn full_at(&self) -> Option<usize> {
        match &self.0 {
            ClientProtocol::Onc(_) => None,
            ClientProtocol::Exchange(calls) => calls.engine.full_at(),
        }
    }

    /// Returns the preamble of a lean server.
    pub fn peer(&self) -> Option<&Preamble> {
        match &self.0 {
            ClientProtocol::Onc(_) => None,
            ClientProtocol::Exchange(calls) => calls.engine.peer(),
        }
    }

    /// Returns the optional capabilities of the server.
    pub fn features(&self) -> Features {
        self.peer()
            .map_or(Features::default(), |peer| peer.features)
    }

    /// Calls in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        match &self.0 {
            ClientProtocol::Onc(calls) => calls.in_flight(),
            ClientProtocol::Exchange(calls) => calls.engine.in_flight(),
        }
    }

    /// Returns the outcomes of the calls.
    pub fn counters(&self) -> OutgoingCounters {
        match &self.0 {
            ClientProtocol::Onc(calls) => calls.counters(),
            ClientProtocol::Exchange(calls) => calls.counters(),
        }
    }
}

impl<W> ExchangeCalls<W> {
    fn poll_failure(&mut self) -> Option<FailedCall<W>> {
        let ClientEvent::Failed {
            waiter, failure, ..
        } = self.engine.poll_event()?;
        match failure.reason {
            super::exchange::Reason::Expired => self.timeouts += 1,
            super::exchange::Reason::Violation(_) => self.violations += 1,
            _ => {}
        }
        let failure = CallFailure::Exchange(failure);
        Some(FailedCall { waiter, failure })
    }

    fn counters(&self) -> OutgoingCounters {
        let counters = self.engine.counters();
        OutgoingCounters {
            calls: counters.calls,
            successes: counters.successes,
            refusals: counters.exceptions,
            timeouts: self.timeouts,
            cancellations: counters.cancellations,
            retransmissions: counters.repeated,
            unmatched: counters.ignored.of(DropReason::Stale),
            violations: self.violations,
        }
    }
}

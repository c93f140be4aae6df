//! What comes: which answer is whose, and what else the server says.

use std::sync::Arc;

use super::starting::{Binding, BindingState};
use super::{ClientEngine, OWED_MAX, Pending};
use crate::lean::close::Close as Goodbye;
use crate::lean::exception::Exception;
use crate::lean::extension::Extensions;
use crate::lean::fault::{Fault, Violation};
use crate::lean::header::Kind;
use crate::lean::interface::BindRefusal;
use crate::lean::message::{Message, Parts};
use crate::lean::order::ByteOrder;

/// Why a call was answered without results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyError<'m> {
    /// The peer says why.
    Exception(Exception<'m>),
    /// The peer did not bind the service, and so did not carry the call out.
    Unbound(Arc<BindRefusal>),
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct Answer<'m, W> {
    /// The call.
    pub id: u32,
    /// What was handed in for whoever waits.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// What the answer carries beside.
    pub extensions: Extensions<'m>,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// What a message meant.
#[derive(Debug)]
pub enum Event<'m, W> {
    /// A call is answered.
    Answer(Answer<'m, W>),
    /// A service is bound.
    Bound(u16),
    /// A service is not bound. [`bind`](ClientEngine::bind) says so from now on, and calls that
    /// were sent behind are answered so.
    Unbound(u16, Arc<BindRefusal>),
    /// The peer is there.
    Pong(u32),
    /// The server accepts no calls any more. Ask for those that it did not begin:
    /// [`take_unbegun`](ClientEngine::take_unbegun).
    Goodbye(Goodbye<'m>),
    /// Nothing for the owner: an answer that nobody waits for any more, a ping.
    Handled,
}

impl<W> ClientEngine<W> {
    /// Takes in a message.
    ///
    /// # Errors
    /// The peer broke the protocol: close the connection.
    #[inline]
    pub fn handle_message<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        match message.header.kind {
            Kind::Reply => {
                let parts = message.understood()?;
                self.answer(message, parts, |parts| Ok(parts.body))
            }
            _ => self.handle_rare(message),
        }
    }

    /// Ends a call whose owner has found a [common](crate::lean::CommonHeader) reply
    /// [to it](crate::lean::CommonHeader::is_reply_to) itself, if it is the one of `is_own`; says whether.
    #[inline]
    pub fn handle_success(&mut self, id: u32, is_own: impl FnOnce(&W) -> bool) -> bool {
        let is_meant = |call: &Pending<W>| is_own(&call.waiter);
        let is_answered = self.calls.take_if(id, is_meant).is_some();
        self.counters.successes += u64::from(is_answered);
        is_answered
    }

    #[cold]
    fn handle_rare<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        match header.kind {
            Kind::Reply | Kind::Exception => self.handle_exception(message),
            Kind::Bound => {
                message.read(|input| input.u64())?;
                self.asked(message)?.state = BindingState::Bound;
                Ok(Event::Bound(header.service))
            }
            Kind::Unbound => {
                let binding = self.asked(message)?;
                let refusal = Arc::new(BindRefusal::decode(message, &binding.interface)?);
                binding.state = BindingState::Refused(Arc::clone(&refusal));
                Ok(Event::Unbound(header.service, refusal))
            }
            Kind::Ping => {
                message.read(|_| Ok(()))?;
                if self.owed.len() > OWED_MAX {
                    return Err(message.header_violation(Fault::Flood, 0));
                }
                self.owe(Kind::Pong, header.id);
                Ok(Event::Handled)
            }
            Kind::Pong => message.read(|_| Ok(Event::Pong(header.id))),
            Kind::Close => {
                let goodbye = Goodbye::decode(message)?;
                self.last_accepted = Some(goodbye.last_call);
                Ok(Event::Goodbye(goodbye))
            }
            kind @ (Kind::Call | Kind::Cancel | Kind::Bind | Kind::Piece) => {
                Err(message.header_violation(Fault::WrongEnd(kind), 0))
            }
        }
    }

    fn handle_exception<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let exception = message.read(Exception::decode)?;
        let binding = self.bindings.get(usize::from(message.header.service));
        let error = match binding.map(|binding| &binding.state) {
            Some(BindingState::Refused(refusal)) => ReplyError::Unbound(Arc::clone(refusal)),
            _ => ReplyError::Exception(exception),
        };
        let parts = message.parts()?;
        self.answer(message, parts, |_| Err(error))
    }

    /// Ends the call that a message answers.
    #[inline]
    fn answer<'m>(
        &mut self,
        message: &Message<'m>,
        parts: Parts<'m>,
        outcome: impl FnOnce(&Parts<'m>) -> Result<&'m [u8], ReplyError<'m>>,
    ) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        let id = header.id;
        let got = (header.service, header.procedure);
        let is_meant = |call: &Pending<W>| got == (call.service, call.procedure);
        let Some(call) = self.calls.take_if(id, is_meant) else {
            return self.unmatched(message);
        };
        let outcome = outcome(&parts);
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(_) => self.counters.exceptions += 1,
        }
        Ok(Event::Answer(Answer {
            id,
            waiter: call.waiter,
            order: message.order,
            extensions: parts.extensions,
            outcome,
        }))
    }

    /// What an answer means that is to no call in flight.
    #[cold]
    fn unmatched<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        if let Some(call) = self.calls.get(header.id) {
            let fault = Fault::OtherProcedure {
                id: header.id,
                expected: (call.service, call.procedure),
                got: (header.service, header.procedure),
            };
            return Err(message.header_violation(fault, 8));
        }
        self.counters.unmatched += 1;
        self.given_up = self.given_up.saturating_sub(1);
        Ok(Event::Handled)
    }

    /// The binding that a message answers.
    fn asked(&mut self, message: &Message<'_>) -> Result<&mut Binding, Violation> {
        let number = message.header.service;
        match self.bindings.get_mut(usize::from(number)) {
            Some(binding) if matches!(binding.state, BindingState::Asked) => Ok(binding),
            _ => Err(message.header_violation(Fault::StrayService(number), 8)),
        }
    }
}

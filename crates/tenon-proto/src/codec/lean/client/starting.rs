//! Starting calls: which services are bound, and whether the server takes one more.

use std::sync::Arc;
use std::time::Instant;

use super::{ClientEngine, Pending};
use crate::lean::interface::{Bind, BindRefusal, Interface};
use crate::lean::preamble::{CALLS_MIN, MESSAGE_MIN};

/// A call that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// The number that [`bind`](ClientEngine::bind) gave to its service.
    pub service: u16,
    /// Procedure number.
    pub procedure: u16,
    /// Bytes of the message, as [`seal`](crate::lean::Draft::seal) returned them.
    pub size: usize,
    /// When it is given up.
    pub deadline: Instant,
}

/// Why a call cannot be started now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// It is larger than the server takes in; never will it do.
    #[error("a call of {size} bytes is over the server's limit of {limit}")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that the server takes in.
        limit: usize,
    },
    /// It is larger than every server takes in. What this one takes, its preamble will say.
    #[error("the server has not said yet whether it takes in a call of {size} bytes")]
    AwaitsPreamble {
        /// Bytes of the message.
        size: usize,
    },
    /// The server has as many calls as it takes. Wait for some to be answered.
    #[error("the server takes {limit} calls in flight and has them")]
    TooManyCalls {
        /// Most calls.
        limit: usize,
    },
    /// The connection takes no calls any more. Make another.
    #[error("the connection takes no calls any more")]
    Closed,
}

/// Why a service cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The server does not bind it.
    #[error(transparent)]
    Refused(Arc<BindRefusal>),
    /// The connection has no numbers left. Make another.
    #[error("65,536 services have been bound over this connection")]
    NoNumbers,
}

#[derive(Debug)]
pub(super) struct Binding {
    pub(super) interface: Arc<Interface>,
    pub(super) state: BindingState,
}

#[derive(Debug)]
pub(super) enum BindingState {
    Asked,
    Bound,
    Refused(Arc<BindRefusal>),
}

impl Binding {
    #[inline]
    fn is_of(&self, interface: &Arc<Interface>) -> bool {
        Arc::ptr_eq(&self.interface, interface) || *self.interface == **interface
    }
}

impl<W> ClientEngine<W> {
    /// The number of the service that is `interface` at the server. If it has none yet it gets one,
    /// and the binding is owed to the server: calls may follow right behind.
    ///
    /// # Errors
    /// The server refused it already, or there are no numbers left.
    #[inline(always)]
    pub fn bind(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let mut bindings = self.bindings.iter();
        let known = bindings.position(|binding| binding.is_of(interface));
        match known {
            Some(number) => match &self.bindings[number].state {
                BindingState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal))),
                BindingState::Asked | BindingState::Bound => Ok(number as u16),
            },
            None => self.bind_anew(interface),
        }
    }

    #[cold]
    fn bind_anew(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let number = u16::try_from(self.bindings.len()).map_err(|_| BindError::NoNumbers)?;
        Bind::of(interface).encode(&mut self.owed, self.own.order, number, false);
        self.bindings.push(Binding {
            interface: Arc::clone(interface),
            state: BindingState::Asked,
        });
        Ok(number)
    }

    /// Puts a call in flight and gives it its number, which is [stamped](crate::lean::Draft::stamp) on it.
    /// Calls are sent in the order in which they were started.
    ///
    /// # Errors
    /// It cannot be started now, and why.
    #[inline(always)]
    pub fn start(&mut self, call: &Outgoing, waiter: W) -> Result<u32, NotStarted> {
        self.check(call)?;
        let id = self.calls.insert(Pending {
            deadline: call.deadline,
            service: call.service,
            procedure: call.procedure,
            waiter,
        });
        self.counters.calls += 1;
        Ok(id)
    }

    /// The number that a call of `size` bytes gets if it is [started](Self::start_alone) next and is the only one in
    /// flight then. None if it would not be, or may not be started.
    #[inline(always)]
    pub fn next_alone(&self, size: usize) -> Option<u32> {
        let message_max = match &self.peer {
            Some(peer) => peer.message_max,
            None => MESSAGE_MIN,
        };
        // Every server takes one call.
        let is_alone = self.calls.len() + self.given_up == 0;
        let is_open = !self.is_closed && self.last_accepted.is_none();
        let may = is_alone && is_open && size as u64 <= u64::from(message_max);
        may.then(|| self.calls.next_of_none())
    }

    /// Puts the call in flight that [`next_alone`](Self::next_alone) gave its number.
    #[inline(always)]
    pub fn start_alone(&mut self, service: u16, procedure: u16, deadline: Instant, waiter: W) {
        self.calls.insert(Pending {
            deadline,
            service,
            procedure,
            waiter,
        });
        self.counters.calls += 1;
    }

    #[inline(always)]
    fn check(&self, call: &Outgoing) -> Result<(), NotStarted> {
        let (message_max, calls_max) = match &self.peer {
            Some(peer) => (peer.message_max, peer.calls_max),
            None => (MESSAGE_MIN, CALLS_MIN),
        };
        let size = call.size;
        if size as u64 > u64::from(message_max) {
            return Err(match self.peer {
                None => NotStarted::AwaitsPreamble { size },
                Some(_) => NotStarted::TooLarge {
                    size,
                    limit: message_max as usize,
                },
            });
        }
        if self.is_closed || self.last_accepted.is_some() {
            return Err(NotStarted::Closed);
        }
        let limit = calls_max as usize;
        match self.calls.len() + self.given_up >= limit {
            true => Err(NotStarted::TooManyCalls { limit }),
            false => Ok(()),
        }
    }
}

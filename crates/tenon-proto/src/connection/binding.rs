//! The services of a connection: those that this end has asked its peer for, and those that the peer has asked for.

use std::sync::Arc;

use tenon_wire::Buffer;

use super::service_table::ServiceTable;
use crate::codec::lean::{
    BindAnswer, BindRefusal, BindRequest, ByteOrder, Fault, Interface, Message, UnboundReason,
    Violation, put_bound,
};
use crate::sorted::sort_numbers;

/// Services that a peer may ask for over one connection.
pub const SERVICES_MAX: usize = 1024;

/// The reason for which a service cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The peer does not bind it.
    #[error(transparent)]
    Refused(Arc<BindRefusal>),
    /// The connection has no numbers left. Make another.
    #[error("65,536 services have been bound over this connection")]
    NoNumbers,
}

/// Bytes of calls of one service that are kept until the peer has said whether it binds it. Further calls wait.
const KEPT_MAX: usize = 4 << 20;

/// The reason for which a service has no number for a call.
#[derive(Debug)]
pub(super) enum NotBound {
    /// It cannot be called.
    Error(BindError),
    /// The call is to wait until the peer has answered.
    Awaited,
}

impl From<BindError> for NotBound {
    fn from(error: BindError) -> Self {
        Self::Error(error)
    }
}

/// The services that this end has asked for, by the numbers that it gave them.
#[derive(Debug, Default)]
pub(super) struct RequestedServices {
    services: Vec<RequestedService>,
    /// Requests with calls that are kept, as they may have to be sent again.
    keeping: usize,
}

#[derive(Debug)]
struct RequestedService {
    interface: Arc<Interface>,
    state: BindState,
    /// Messages of calls that were begun before the peer had answered the request, by their numbers.
    kept: Vec<(u32, Buffer)>,
    /// It was asked for again, for the procedures that agree.
    is_narrowed: bool,
}

#[derive(Debug)]
enum BindState {
    Requested,
    Bound,
    Refused(Arc<BindRefusal>),
    /// Some of its procedures are the same at the peer.
    Narrowed(NarrowedService),
}

/// A version that the peer has in another form, of which some procedures agree.
#[derive(Debug)]
struct NarrowedService {
    refusal: BindRefusal,
    agreed: Vec<u16>,
    /// The number by which those are called.
    number: u16,
}

impl NarrowedService {
    fn has(&self, procedure: u16) -> bool {
        procedure == 0 || self.agreed.binary_search(&procedure).is_ok()
    }
}

impl RequestedService {
    #[inline]
    fn is_of(&self, interface: &Arc<Interface>) -> bool {
        Arc::ptr_eq(&self.interface, interface) || *self.interface == **interface
    }

    /// Returns whether its calls are to be kept until the peer has answered.
    fn keeps_calls(&self) -> bool {
        let is_open = matches!(self.state, BindState::Requested) && !self.is_narrowed;
        is_open && self.interface.has_procedures()
    }

    /// Returns whether a call of so many bytes waits for the answer to the request.
    fn delays(&self, size: usize) -> bool {
        if !self.keeps_calls() {
            return false;
        }
        let kept: usize = self.kept.iter().map(|(_, message)| message.len()).sum();
        kept + size > KEPT_MAX
    }
}

impl RequestedServices {
    /// Returns the number of the service for calls of `procedure` of `interface` that have `size` bytes. If it was not
    /// asked for yet the request is appended to `out`, and calls may follow right behind.
    ///
    /// # Errors
    /// The peer refused it already, there are no numbers left, or the call is to wait: until it is bound, if it
    /// `must_be_bound`.
    #[cold]
    pub(super) fn bind(
        &mut self,
        (interface, procedure, size): (&Arc<Interface>, u16, usize),
        must_be_bound: bool,
        reverse: bool,
        order: ByteOrder,
        out: &mut Buffer,
    ) -> Result<u16, NotBound> {
        let known = self.services.iter().position(|it| it.is_of(interface));
        let number = match known {
            Some(number) => number,
            None => {
                let number = self.push(interface, false)?;
                BindRequest::of(interface).encode(out, order, number, reverse);
                self.keeping += usize::from(self.services[usize::from(number)].keeps_calls());
                usize::from(number)
            }
        };
        let service = &self.services[number];
        match &service.state {
            BindState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal)).into()),
            BindState::Requested if must_be_bound || service.delays(size) => Err(NotBound::Awaited),
            BindState::Requested | BindState::Bound => Ok(number as u16),
            BindState::Narrowed(narrowed) if narrowed.has(procedure) => {
                match self.refusal(narrowed.number, procedure) {
                    Some(refusal) => Err(BindError::Refused(refusal).into()),
                    None if must_be_bound && !self.is_bound(narrowed.number) => {
                        Err(NotBound::Awaited)
                    }
                    None => Ok(narrowed.number),
                }
            }
            BindState::Narrowed(narrowed) => {
                let refusal = narrowed.refusal.of_procedure(interface, procedure);
                Err(BindError::Refused(Arc::new(refusal)).into())
            }
        }
    }

    fn is_bound(&self, number: u16) -> bool {
        let service = self.services.get(usize::from(number));
        service.is_some_and(|service| matches!(service.state, BindState::Bound))
    }

    /// Returns the number of a service that is bound as a whole.
    #[inline(always)]
    pub(super) fn find(&self, interface: &Arc<Interface>) -> Option<u16> {
        let mut services = self.services.iter();
        let same = services.position(|service| Arc::ptr_eq(&service.interface, interface));
        let number = same.or_else(|| self.find_equal(interface))?;
        let is_bound = matches!(self.services[number].state, BindState::Bound);
        is_bound.then_some(number as u16)
    }

    /// Returns the number of a service that was asked for by another copy of its interface.
    #[cold]
    fn find_equal(&self, interface: &Interface) -> Option<usize> {
        let mut services = self.services.iter();
        services.position(|service| *service.interface == *interface)
    }

    fn push(&mut self, interface: &Arc<Interface>, is_narrowed: bool) -> Result<u16, BindError> {
        let number = u16::try_from(self.services.len()).map_err(|_| BindError::NoNumbers)?;
        self.services.push(RequestedService {
            interface: Arc::clone(interface),
            state: BindState::Requested,
            kept: Vec::new(),
            is_narrowed,
        });
        Ok(number)
    }

    // ---- Calls that may have to be sent again ----

    /// Returns whether calls of any service are to be [kept](Self::keep).
    #[inline(always)]
    pub(super) fn is_keeping(&self) -> bool {
        self.keeping > 0
    }

    /// Keeps the message of a call until the peer has said whether it binds the service.
    #[cold]
    pub(super) fn keep(&mut self, service: u16, number: u32, message: &Buffer) {
        if let Some(service) = self.services.get_mut(usize::from(service))
            && service.keeps_calls()
        {
            let mut copy = Buffer::default();
            copy.extend(message.as_slice());
            service.kept.push((number, copy));
        }
    }

    /// Takes the message of a call out that the peer did not begin, if it is to be sent again by the procedure's own
    /// fingerprint.
    #[cold]
    pub(super) fn take_kept(
        &mut self,
        service: u16,
        number: u32,
        procedure: u16,
    ) -> Option<Buffer> {
        let service = self.services.get_mut(usize::from(service))?;
        let BindState::Narrowed(narrowed) = &service.state else {
            return None;
        };
        let index = service.kept.iter().position(|(kept, _)| *kept == number)?;
        let (_, message) = service.kept.swap_remove(index);
        narrowed.has(procedure).then_some(message)
    }

    // ---- Answers ----

    /// Takes in that a service is bound.
    pub(super) fn handle_bound(&mut self, message: &Message<'_>) -> Result<u16, Violation> {
        message.read(|input| input.u64())?;
        let service = self.requested(message)?;
        let kept_calls = service.keeps_calls();
        service.state = BindState::Bound;
        service.kept = Vec::new();
        self.keeping -= usize::from(kept_calls);
        Ok(message.header.service)
    }

    /// Takes in that a service is not bound, and why. If procedures of it agree, a request for those is appended to
    /// `out`.
    pub(super) fn handle_unbound(
        &mut self,
        message: &Message<'_>,
        reverse: bool,
        order: ByteOrder,
        out: &mut Buffer,
    ) -> Result<(), Violation> {
        let service = self.requested(message)?;
        let kept_calls = service.keeps_calls();
        let interface = Arc::clone(&service.interface);
        let BindAnswer { refusal, agreed } = BindAnswer::decode(message, &interface)?;
        let may_narrow = !service.is_narrowed && !agreed.is_empty();
        self.keeping -= usize::from(kept_calls);
        let narrowed = if may_narrow {
            self.push(&interface, true).ok()
        } else {
            None
        };
        let state = match narrowed {
            Some(number) => {
                BindRequest::of_procedures(&interface, &agreed).encode(out, order, number, reverse);
                BindState::Narrowed(NarrowedService {
                    refusal,
                    agreed,
                    number,
                })
            }
            None => BindState::Refused(Arc::new(refusal)),
        };
        let service = self.requested(message)?;
        if let BindState::Refused(_) = state {
            service.kept = Vec::new();
        }
        service.state = state;
        Ok(())
    }

    /// Returns why the peer does not bind the service of a number for calls of a procedure, if it does not.
    pub(super) fn refusal(&self, number: u16, procedure: u16) -> Option<Arc<BindRefusal>> {
        let service = self.services.get(usize::from(number))?;
        match &service.state {
            BindState::Refused(refusal) => Some(Arc::clone(refusal)),
            BindState::Narrowed(narrowed) => {
                let refusal = narrowed.refusal.of_procedure(&service.interface, procedure);
                Some(Arc::new(refusal))
            }
            BindState::Requested | BindState::Bound => None,
        }
    }

    /// Returns what the service of a number was asked for as.
    pub(super) fn interface(&self, number: u16) -> Option<Arc<Interface>> {
        let service = self.services.get(usize::from(number))?;
        Some(Arc::clone(&service.interface))
    }

    /// Returns the service with the request that a message answers.
    fn requested(&mut self, message: &Message<'_>) -> Result<&mut RequestedService, Violation> {
        let number = message.header.service;
        match self.services.get_mut(usize::from(number)) {
            Some(service) if matches!(service.state, BindState::Requested) => Ok(service),
            _ => Err(message.header_violation(Fault::StrayService(number), 8)),
        }
    }

    pub(super) fn clear(&mut self) {
        self.services.clear();
        self.keeping = 0;
    }
}

/// The services that the peer has asked for, by its numbers.
#[derive(Debug, Default)]
pub(super) struct BoundServices {
    /// Indices in the [`ServiceTable`]; `None` where the request was refused, or named procedures.
    bound: Vec<Option<usize>>,
    /// Services that were requested for named procedures.
    narrowed: Vec<BoundProcedures>,
    /// Services that the peer has asked for.
    requests: u32,
}

/// Procedures of a service that a peer may call.
#[derive(Debug)]
struct BoundProcedures {
    number: u16,
    /// The index in the [`ServiceTable`].
    service: usize,
    /// In ascending order.
    procedures: Vec<u32>,
}

impl BoundServices {
    /// Returns the index of the service of a number, if it is bound for a procedure.
    #[inline]
    pub(super) fn find(&self, number: u16, procedure: u16) -> Option<usize> {
        self.get(number)
            .or_else(|| self.find_narrowed(number, procedure))
    }

    #[cold]
    fn find_narrowed(&self, number: u16, procedure: u16) -> Option<usize> {
        let mut narrowed = self.narrowed.iter();
        let found = narrowed.find(|narrowed| narrowed.number == number)?;
        let has = found.procedures.binary_search(&procedure.into()).is_ok();
        (has || procedure == 0).then_some(found.service)
    }

    /// Returns the index of the service of a number, if it is bound for all procedures.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<usize> {
        self.bound.get(usize::from(number)).copied().flatten()
    }

    /// Answers a request in `out`; returns whether the service is bound.
    pub(super) fn handle_bind(
        &mut self,
        table: &ServiceTable,
        message: &Message<'_>,
        reverse: bool,
        order: ByteOrder,
        out: &mut Buffer,
    ) -> Result<bool, Violation> {
        let (got, expected) = (message.header.service, self.requests);
        if u32::from(got) != expected {
            return Err(message.header_violation(Fault::ServiceNumber { expected, got }, 8));
        }
        let bind = BindRequest::decode(message)?;
        self.requests += 1;
        let found = if self.bound.len() < SERVICES_MAX {
            let found = table.bind(&bind);
            let service = found.ok().map(|(service, _)| service);
            if bind.procedures.is_empty() {
                self.bound.push(service);
            } else {
                self.bound.push(None);
                self.narrow(got, service, &bind);
            }
            found
        } else {
            Err(UnboundReason::TooMany)
        };
        match found {
            Ok((_, interface)) => put_bound(out, order, got, interface.fingerprint, reverse),
            Err(unbound) => unbound.encode(out, order, got, reverse),
        }
        Ok(found.is_ok())
    }

    /// Notes which procedures a peer has asked for.
    fn narrow(&mut self, number: u16, service: Option<usize>, bind: &BindRequest) {
        let Some(service) = service else {
            return;
        };
        let asked = bind.procedures.iter();
        let mut procedures: Vec<u32> = asked.map(|procedure| procedure.number).collect();
        sort_numbers(&mut procedures);
        // The peer may repeat a number as often as it likes.
        procedures.dedup();
        self.narrowed.push(BoundProcedures {
            number,
            service,
            procedures,
        });
    }

    pub(super) fn clear(&mut self) {
        self.bound.clear();
        self.narrowed.clear();
        self.requests = 0;
    }
}

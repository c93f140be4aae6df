//! The services of a connection: those that this end has asked its peer for, and those that the peer has asked for.

use std::sync::Arc;

use tenon_wire::Buffer;

use super::service_table::ServiceTable;
use crate::codec::lean::{
    Bind, BindRefusal, ByteOrder, Fault, Interface, Message, Unbound, Violation, put_bound,
};

/// Services that a peer may ask for over one connection.
pub const SERVICES_MAX: usize = 1024;

/// Why a service cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The peer does not bind it.
    #[error(transparent)]
    Refused(Arc<BindRefusal>),
    /// The connection has no numbers left. Make another.
    #[error("65,536 services have been bound over this connection")]
    NoNumbers,
}

/// The services that this end has asked for, by the numbers that it gave them.
#[derive(Debug, Default)]
pub(super) struct RequestedServices {
    services: Vec<RequestedService>,
}

#[derive(Debug)]
struct RequestedService {
    interface: Arc<Interface>,
    state: BindState,
}

#[derive(Debug)]
enum BindState {
    Requested,
    Bound,
    Refused(Arc<BindRefusal>),
}

impl RequestedService {
    #[inline]
    fn is_of(&self, interface: &Arc<Interface>) -> bool {
        Arc::ptr_eq(&self.interface, interface) || *self.interface == **interface
    }
}

impl RequestedServices {
    /// Returns the number of the service that is `interface` at the peer, and whether it is asked for only now: the
    /// request has been appended to `out` then, and calls may follow right behind.
    ///
    /// # Errors
    /// The peer refused it already, or there are no numbers left.
    #[inline(always)]
    pub(super) fn bind(
        &mut self,
        interface: &Arc<Interface>,
        reverse: bool,
        order: ByteOrder,
        out: &mut Buffer,
    ) -> Result<u16, BindError> {
        let mut services = self.services.iter();
        match services.position(|service| service.is_of(interface)) {
            Some(number) => match &self.services[number].state {
                BindState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal))),
                BindState::Requested | BindState::Bound => Ok(number as u16),
            },
            None => self.request(interface, reverse, order, out),
        }
    }

    /// Returns the number of a service that was asked for and not refused.
    #[inline(always)]
    pub(super) fn find(&self, interface: &Arc<Interface>) -> Option<u16> {
        let mut services = self.services.iter();
        let same = services.position(|service| Arc::ptr_eq(&service.interface, interface));
        let number = same.or_else(|| self.find_equal(interface))?;
        let is_refused = matches!(self.services[number].state, BindState::Refused(_));
        (!is_refused).then_some(number as u16)
    }

    /// Returns the number of a service that was asked for by another copy of its interface.
    #[cold]
    fn find_equal(&self, interface: &Interface) -> Option<usize> {
        let mut services = self.services.iter();
        services.position(|service| *service.interface == *interface)
    }

    #[cold]
    fn request(
        &mut self,
        interface: &Arc<Interface>,
        reverse: bool,
        order: ByteOrder,
        out: &mut Buffer,
    ) -> Result<u16, BindError> {
        let number = u16::try_from(self.services.len()).map_err(|_| BindError::NoNumbers)?;
        Bind::of(interface).encode(out, order, number, reverse);
        self.services.push(RequestedService {
            interface: Arc::clone(interface),
            state: BindState::Requested,
        });
        Ok(number)
    }

    /// Takes in that a service is bound.
    pub(super) fn handle_bound(&mut self, message: &Message<'_>) -> Result<u16, Violation> {
        message.read(|input| input.u64())?;
        self.requested(message)?.state = BindState::Bound;
        Ok(message.header.service)
    }

    /// Takes in that a service is not bound, and why.
    pub(super) fn handle_unbound(&mut self, message: &Message<'_>) -> Result<u16, Violation> {
        let service = self.requested(message)?;
        let refusal = BindRefusal::decode(message, &service.interface)?;
        service.state = BindState::Refused(Arc::new(refusal));
        Ok(message.header.service)
    }

    /// Returns why the peer does not bind the service of a number, if it does not.
    pub(super) fn refusal(&self, number: u16) -> Option<Arc<BindRefusal>> {
        match &self.services.get(usize::from(number))?.state {
            BindState::Refused(refusal) => Some(Arc::clone(refusal)),
            BindState::Requested | BindState::Bound => None,
        }
    }

    /// Returns what the service of a number was asked for as.
    pub(super) fn interface(&self, number: u16) -> Option<Arc<Interface>> {
        let service = self.services.get(usize::from(number))?;
        Some(Arc::clone(&service.interface))
    }

    /// The service whose request a message answers.
    fn requested(&mut self, message: &Message<'_>) -> Result<&mut RequestedService, Violation> {
        let number = message.header.service;
        match self.services.get_mut(usize::from(number)) {
            Some(service) if matches!(service.state, BindState::Requested) => Ok(service),
            _ => Err(message.header_violation(Fault::StrayService(number), 8)),
        }
    }

    pub(super) fn clear(&mut self) {
        self.services.clear();
    }
}

/// The services that the peer has asked for, by its numbers.
#[derive(Debug, Default)]
pub(super) struct BoundServices {
    /// Indices in the [`ServiceTable`]; `None` where the request was refused.
    bound: Vec<Option<usize>>,
    /// Services that the peer has asked for.
    requests: u32,
}

impl BoundServices {
    /// Returns the index of the service of a number, if it is bound.
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
        let bind = Bind::decode(message)?;
        self.requests += 1;
        let found = if self.bound.len() < SERVICES_MAX {
            let found = table.bind(&bind);
            self.bound.push(found.ok().map(|(service, _)| service));
            found
        } else {
            Err(Unbound::TooMany)
        };
        match found {
            Ok((_, interface)) => put_bound(out, order, got, interface.fingerprint, reverse),
            Err(unbound) => unbound.encode(out, order, got, reverse),
        }
        Ok(found.is_ok())
    }

    pub(super) fn clear(&mut self) {
        self.bound.clear();
        self.requests = 0;
    }
}

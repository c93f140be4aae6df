//! The content of packets: messages of the lean protocol. A request is a call, in front of which a service may be
//! bound; an answer is a reply or an exception, in front of which stands what became of the binding.

use crate::lean::{
    BindRequest, ByteOrder, CallRefusal, Extensions, Fault, Kind, Message, Parts, Stamps,
    Violation, refusal,
};

/// The procedure that every program answers without arguments and results.
const NULL_PROCEDURE: u16 = 0;

/// A request.
#[derive(Debug)]
pub(super) struct RequestContent<'m> {
    pub(super) bind: Option<BindRequest>,
    pub(super) call: Message<'m>,
    parts: Parts<'m>,
}

/// The action for a request.
pub(super) enum RequestAction<'m> {
    Call { service: usize, parts: Parts<'m> },
    Ping,
    Refused(CallRefusal),
}

impl<'m> RequestContent<'m> {
    /// Reads the request of the `sequence`th call of its lane.
    #[inline]
    pub(super) fn read(
        bytes: &'m [u8],
        order: ByteOrder,
        sequence: u32,
    ) -> Result<Self, Violation> {
        let (first, rest) = Message::split(bytes, 0, order)?;
        let (bind, call, rest) = match first.header.kind {
            Kind::Bind => {
                let at = (bytes.len() - rest.len()) as u64;
                let (call, rest) = Message::split(rest, at, order)?;
                if call.header.service != first.header.service {
                    let got = call.header.service;
                    return Err(call.header_violation(Fault::StrayService(got), 8));
                }
                (Some(BindRequest::decode(&first)?), call, rest)
            }
            _ => (None, first, rest),
        };
        expect(&call, &[Kind::Call], sequence)?;
        expect_end(&call, rest)?;
        let parts = call.parts()?;
        Ok(Self { bind, call, parts })
    }

    /// Returns whether the client asks when the call passed which place.
    #[inline]
    pub(super) fn asks_for_stamps(&self) -> bool {
        let extensions = self.extensions();
        !extensions.is_empty() && Stamps::are_asked_for(extensions)
    }

    /// Returns the extensions of the call.
    pub(super) fn extensions(&self) -> Extensions<'m> {
        self.parts.extensions
    }

    /// Returns what to do with the call of a service, if it is bound.
    #[inline]
    pub(super) fn judge(
        &self,
        service: Option<usize>,
        is_closed: bool,
        metadata_max: usize,
    ) -> RequestAction<'m> {
        let refused = match is_closed {
            true => Some(CallRefusal::Stopping),
            false => refusal(service, &self.parts, metadata_max),
        };
        match (refused, service) {
            (Some(refused), _) => RequestAction::Refused(refused),
            (None, Some(service)) if self.call.header.procedure != NULL_PROCEDURE => {
                RequestAction::Call {
                    service,
                    parts: self.parts,
                }
            }
            (None, _) => RequestAction::Ping,
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct AnswerContent<'m> {
    /// The answer to the bind: bound or unbound.
    pub(super) binding: Option<Message<'m>>,
    /// A reply or an exception.
    pub(super) answer: Message<'m>,
}

impl<'m> AnswerContent<'m> {
    /// Reads the answer to a call: the `sequence`th of its lane, of a service and a procedure.
    pub(super) fn read(
        bytes: &'m [u8],
        order: ByteOrder,
        sequence: u32,
        called: (u16, u16),
    ) -> Result<Self, Violation> {
        let (first, rest) = Message::split(bytes, 0, order)?;
        let (binding, answer, rest) = match first.header.kind {
            Kind::Bound | Kind::Unbound => {
                let at = (bytes.len() - rest.len()) as u64;
                let (answer, rest) = Message::split(rest, at, order)?;
                if first.header.service != called.0 {
                    let got = first.header.service;
                    return Err(first.header_violation(Fault::StrayService(got), 8));
                }
                (Some(first), answer, rest)
            }
            _ => (None, first, rest),
        };
        expect(&answer, &[Kind::Reply, Kind::Exception], sequence)?;
        let got = (answer.header.service, answer.header.procedure);
        if got != called {
            let (id, expected) = (sequence, called);
            let fault = Fault::OtherProcedure { id, expected, got };
            return Err(answer.header_violation(fault, 8));
        }
        expect_end(&answer, rest)?;
        Ok(Self { binding, answer })
    }
}

#[inline]
fn expect(message: &Message<'_>, kinds: &[Kind], sequence: u32) -> Result<(), Violation> {
    let header = message.header;
    if !kinds.contains(&header.kind) {
        return Err(message.header_violation(Fault::WrongEnd(header.kind), 0));
    }
    if header.id != sequence {
        let fault = Fault::OtherNumber {
            expected: sequence,
            got: header.id,
        };
        return Err(message.header_violation(fault, 4));
    }
    Ok(())
}

#[inline]
fn expect_end(message: &Message<'_>, rest: &[u8]) -> Result<(), Violation> {
    match rest.len() {
        0 => Ok(()),
        more => Err(message.header_violation(Fault::Long(more as u64), 0)),
    }
}

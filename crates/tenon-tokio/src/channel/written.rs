//! A call that is written and may have to wait before it is sent.

use std::sync::Arc;

use tenon::lean::{Draft, Interface};
use tenon::runtime::{
    ExchangeEngine, Followed, Form, LeanForm, SlotId, Started, Timer, Unstarted, packet,
};
use tenon::wire::Buffer;
use tenon::{Address, CallError, ChannelOptions, Protocol};

/// A call that is written but for what is known of it only when it is its turn.
#[derive(Debug)]
pub(crate) struct Written {
    message: Buffer,
    kind: Kind,
    size: usize,
    /// The account that follows it.
    pub(super) followed: Option<Arc<Followed>>,
}

/// By which protocol a call is written: what a [`Form`] says, without borrowing from its caller.
#[derive(Debug)]
enum Kind {
    Onc,
    Lean {
        draft: Draft,
        interface: Arc<Interface>,
        procedure: u16,
        tells_timeout: bool,
    },
}

impl From<&Form<'_>> for Kind {
    fn from(form: &Form<'_>) -> Self {
        match form {
            Form::Onc => Self::Onc,
            Form::Lean(form) => Self::Lean {
                draft: form.draft,
                interface: Arc::clone(form.interface),
                procedure: form.procedure,
                tells_timeout: form.tells_timeout,
            },
        }
    }
}

impl Kind {
    fn form(&self) -> Form<'_> {
        match self {
            Self::Onc => Form::Onc,
            Self::Lean {
                draft,
                interface,
                procedure,
                tells_timeout,
            } => Form::Lean(LeanForm {
                draft: *draft,
                interface,
                procedure: *procedure,
                tells_timeout: *tells_timeout,
            }),
        }
    }
}

impl Written {
    /// A call to `address` whose arguments stand in `message`.
    pub(crate) fn new(
        mut message: Buffer,
        form: &Form<'_>,
        address: &Address,
        options: &ChannelOptions,
    ) -> Result<Self, CallError> {
        let size = form.prepare(&mut message, address, options)?;
        let kind = Kind::from(form);
        Ok(Self {
            message,
            kind,
            size,
            followed: None,
        })
    }

    pub(super) fn form(&self) -> Form<'_> {
        self.kind.form()
    }

    /// Bytes of the call.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Writes what is known now that it is its turn.
    pub(super) fn stamp(&mut self, started: Started, timer: &Timer) {
        self.kind.form().stamp(&mut self.message, started, timer);
    }

    /// Puts the call in flight by the packet exchange, which takes the message.
    pub(super) fn start_packets(
        &mut self,
        engine: &mut ExchangeEngine,
        timer: &Timer,
        slot: SlotId,
    ) -> Result<(), Unstarted> {
        match self.kind.form() {
            Form::Lean(form) => {
                form.tell_time(&mut self.message, timer);
                engine.start(&form, &mut self.message, timer, slot)
            }
            Form::Onc => {
                let spoken = Protocol::Lean;
                Err(CallError::OtherProtocol { spoken }.into())
            }
        }
    }

    /// What the socket is given.
    pub(super) fn packet(&self, address: &Address) -> &[u8] {
        packet(address, &self.message)
    }

    /// Gives the buffer back.
    pub(super) fn into_message(self) -> Buffer {
        self.message
    }
}

//! A call that is written and may have to wait before it is sent.

use std::sync::Arc;

use tenon::lean::{Draft, Interface};
use tenon::runtime::{Form, LeanForm, Started, Timer, packet};
use tenon::wire::Buffer;
use tenon::{Address, CallError, ChannelOptions};

/// A call that is written but for what is known of it only when it is its turn.
#[derive(Debug)]
pub(crate) struct Written {
    message: Buffer,
    kind: Kind,
    size: usize,
}

/// By which protocol a call is written.
#[derive(Debug)]
pub(crate) enum Kind {
    Onc,
    Lean {
        draft: Draft,
        interface: Arc<Interface>,
        procedure: u16,
        tells_timeout: bool,
    },
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
        kind: Kind,
        address: &Address,
        options: &ChannelOptions,
    ) -> Result<Self, CallError> {
        let size = kind.form().prepare(&mut message, address, options)?;
        Ok(Self {
            message,
            kind,
            size,
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

    /// What the socket is given.
    pub(super) fn packet(&self, address: &Address) -> &[u8] {
        packet(address, &self.message)
    }

    /// Gives the buffer back.
    pub(super) fn into_message(self) -> Buffer {
        self.message
    }
}

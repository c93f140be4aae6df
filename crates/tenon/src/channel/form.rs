//! What a call looks like, and what is written into it before it is sent.

use std::sync::Arc;

use tenon_net::{Address, Datagram};
use tenon_proto::lean::{Draft, Interface};
use tenon_proto::onc::message::set_xid;
use tenon_proto::onc::record::{self, MARK};
use tenon_wire::Buffer;

use super::timer::Timer;
use crate::error::CallError;
use crate::options::ChannelOptions;

/// What a call looks like, beside its bytes.
#[derive(Debug)]
pub enum Form<'c> {
    /// One that [`begin`](tenon_proto::onc::message::CallTemplate::begin) began.
    Onc,
    /// One of the lean protocol.
    Lean(LeanForm<'c>),
}

/// A lean call that is written but for what its draft still lacks.
#[derive(Debug)]
pub struct LeanForm<'c> {
    /// Where in the buffer it is.
    pub draft: Draft,
    /// What it is a call of.
    pub interface: &'c Arc<Interface>,
    /// Procedure number.
    pub procedure: u16,
    /// Whether the peer is told how much time is left.
    pub tells_timeout: bool,
}

impl Form<'_> {
    /// Makes a call whose arguments are written ready to be sent to `address`, but for what is
    /// [stamped](Self::stamp) on it, and returns its bytes.
    ///
    /// # Errors
    /// It is too large.
    #[inline]
    pub fn prepare(
        &self,
        message: &mut Buffer,
        address: &Address,
        options: &ChannelOptions,
    ) -> Result<usize, CallError> {
        let datagram = is_datagram(address);
        let size = self.seal(message);
        let limit = match datagram {
            true => options.send_max.min(Datagram::SIZE_MAX),
            false => options.send_max,
        };
        if size > limit {
            return Err(CallError::TooLarge {
                size,
                limit,
                datagram,
            });
        }
        match self {
            Self::Onc if !datagram => record::seal(message, 0, options.fragment_max),
            Self::Onc | Self::Lean(_) => {}
        }
        Ok(size)
    }

    /// Bytes of the call.
    #[inline]
    fn seal(&self, message: &mut Buffer) -> usize {
        match self {
            Self::Onc => message.len() - MARK,
            Self::Lean(form) => form.draft.seal(message),
        }
    }

    /// Writes what is known of the call only when it is its turn.
    #[inline]
    pub fn stamp(&self, message: &mut Buffer, started: Started, timer: &Timer) {
        match self {
            Self::Onc => set_xid(message, started.id),
            Self::Lean(form) => {
                form.draft.stamp(message, started.id, started.service);
                form.tell_time(message, timer);
            }
        }
    }
}

impl LeanForm<'_> {
    /// Writes how much time is left, if that is to be told.
    #[inline]
    pub fn tell_time(&self, message: &mut Buffer, timer: &Timer) {
        if self.tells_timeout {
            self.draft.set_time_left(message, timer.left());
        }
    }
}

/// What a call that was started has to carry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Started {
    /// Its number.
    pub id: u32,
    /// The service's number on this connection, in the lean protocol.
    pub service: u16,
    /// The procedure's number, in the lean protocol.
    pub procedure: u16,
}

/// What the socket is given of a call to `address`.
#[inline]
pub fn packet<'m>(address: &Address, message: &'m Buffer) -> &'m [u8] {
    match is_datagram(address) {
        true => record::message(message),
        false => message.as_slice(),
    }
}

/// Whether a call to `address` is one datagram.
#[inline]
pub(super) fn is_datagram(address: &Address) -> bool {
    match address {
        Address::Udp(_) => true,
        Address::Tcp(_)
        | Address::Unix(_)
        | Address::LeanTcp(_)
        | Address::LeanUdp(_)
        | Address::LeanUnix(_)
        | Address::Shm(_)
        | Address::Xdp(_) => false,
    }
}

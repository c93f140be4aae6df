//! Handing over memory where there is none.

use std::io;

use super::{ShmStream, lacking};
use crate::Address;
use crate::fd::{BorrowedFd, OwnedFd};

/// Sizes of rings, of which there are none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RingSizes(());

/// Why a client is refused.
#[derive(Debug)]
pub(crate) enum JoinRefusal {
    Busy,
    User,
}

impl ShmStream {
    pub(crate) fn invite(_: OwnedFd, _: RingSizes) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl RingSizes {
    pub(crate) const USUAL: usize = 0;

    pub(crate) fn near(_: usize) -> Self {
        Self(())
    }
}

/// Fails, as nothing can be handed over here.
pub(crate) fn check_can_invite(address: &Address) -> io::Result<()> {
    Err(lacking("shm", address))
}

pub(crate) fn refuse(_: BorrowedFd<'_>, _: JoinRefusal) {}

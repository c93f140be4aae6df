//! Shared memory where there is none.

#[cfg(all(target_os = "linux", not(tenon_portable)))]
mod inviting;

use std::io::{self, IoSlice};
use std::path::Path;
use std::time::{Duration, Instant};

use super::lacking;
use crate::fd::OwnedFd;
use crate::socket::Ready;
use crate::system::User;

#[cfg(all(target_os = "linux", not(tenon_portable)))]
pub(crate) use inviting::{JoinRefusal, RingSizes, check_can_invite, refuse};

/// A connection in shared memory, of which there are none.
#[derive(Debug)]
pub(crate) enum ShmStream {}

/// A connection in the place where its owner has it.
pub(crate) type ShmConnection = ShmStream;

absent!(ShmStream {
    pub(crate) fn user() -> User;
    pub(crate) fn try_send(&[u8]) -> io::Result<usize>;
    pub(crate) fn try_send_pieces(&[IoSlice<'_>]) -> io::Result<usize>;
    pub(crate) fn try_recv(&mut [u8]) -> io::Result<usize>;
    pub(crate) fn look(u32);
    pub(crate) fn recv_until(&mut [u8], Instant) -> io::Result<usize>;
    pub(crate) fn recv_within(&mut [u8], Duration) -> io::Result<usize>;
    pub(crate) fn wait(Ready, Instant) -> io::Result<Ready>;
    pub(crate) fn park() -> bool;
    pub(crate) fn park_sender() -> bool;
    pub(crate) fn room_notifier() -> io::Result<OwnedFd>;
    pub(crate) fn take_in_room();
    pub(crate) fn refresh();
    pub(crate) fn shutdown_send();
    pub(crate) fn shutdown_recv() -> io::Result<()>;
    pub(crate) fn shutdown() -> io::Result<()>;
});

impl ShmStream {
    pub(crate) fn connect(path: &Path, _: Instant) -> io::Result<Self> {
        Err(lacking("shm", &path.display()))
    }
}

impl_as_fd!(ShmStream, self => match *self {});

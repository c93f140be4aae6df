//! The process at the other end of a Unix socket.

use std::io;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::fd::BorrowedFd;

/// The process and the user of a peer when it connected, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The number of the process; it may be another's by now. 0 if it is in another namespace of processes, and has
    /// no number in this one's.
    pub process: i32,
    /// The effective user.
    pub user: u32,
    /// The effective group.
    pub group: u32,
}

impl User {
    /// Returns the user of the process that connected to, or listened at, the other end of `socket`.
    ///
    /// # Errors
    /// It is no connected Unix socket.
    pub fn at(socket: BorrowedFd<'_>) -> io::Result<Self> {
        // Not by rustix: its numbers of processes are never 0, and those of containers beside this one are.
        let peer = getsockopt(&socket, PeerCredentials)?;
        Ok(Self {
            process: peer.pid(),
            user: peer.uid(),
            group: peer.gid(),
        })
    }
}

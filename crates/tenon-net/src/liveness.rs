//! How a peer that is gone without a word is found out: over TCP the kernel asks it, and gives it up.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;

use crate::fd::BorrowedFd;

/// When the kernel asks a silent peer whether it is there, and when it gives the connection up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    /// Silence after which an idle peer is asked, and a third of it between two questions; in whole seconds, at least
    /// one. It is never asked if this is not set.
    pub keep_alive: Option<Duration>,
    /// Time for which a peer may acknowledge nothing of what it was sent, or take nothing, before the connection ends
    /// with `ETIMEDOUT`. If it is not set the kernel decides, after a quarter of an hour mostly; systems other than
    /// Linux always decide themselves.
    pub peer_timeout: Option<Duration>,
}

impl Default for Liveness {
    fn default() -> Self {
        Self {
            keep_alive: Some(Duration::from_secs(30)),
            peer_timeout: Some(Duration::from_secs(60)),
        }
    }
}

impl Liveness {
    /// Questions without an answer after which a peer is given up that nothing is sent to.
    const PROBES: u32 = 3;

    /// Sets a TCP socket up.
    pub(crate) fn apply(self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(idle) = self.keep_alive {
            let second = Duration::from_secs(1);
            // The kernel takes no more.
            let idle = idle.clamp(second, Duration::from_secs(32_767));
            sockopt::set_tcp_keepidle(socket, idle)?;
            sockopt::set_tcp_keepintvl(socket, (idle / 3).max(second))?;
            sockopt::set_tcp_keepcnt(socket, Self::PROBES)?;
            sockopt::set_socket_keepalive(socket, true)?;
        }
        #[cfg(target_os = "linux")]
        if let Some(timeout) = self.peer_timeout {
            // Zero means that the kernel decides.
            let millis = timeout.as_millis().clamp(1, i32::MAX as u128) as u32;
            sockopt::set_tcp_user_timeout(socket, millis)?;
        }
        Ok(())
    }
}

//! How the connections of a server that stops end, so that replies arrive: a socket of TCP that is closed while something
//! in it was not read, or before the peer has stopped to send, is reset, and what was sent before may be lost.

use std::io;
use std::time::{Duration, Instant};

use tenon_net::Stream;

/// Silence after which a peer that has not ended its side of a connection is not waited for.
const SILENCE_MAX: Duration = Duration::from_millis(200);

/// Time after which a peer that sends on and on is not waited for.
pub(super) const HALF_CLOSE_MAX: Duration = Duration::from_secs(2);

/// Age of a call up to which its reply may still be on its way.
pub(super) const LATELY: Duration = Duration::from_secs(1);

/// Receives behind the begin of a stop. By ONC RPC no message says which calls were not begun: so those are still carried
/// out that have arrived, up to this.
pub(super) const LAST_RECEIVES: u8 = 16;

/// Receives that are thrown away at a time.
const DISCARDED_AT_A_TIME: usize = 16;

/// A connection of which the server has closed its own side, and over which calls came lately.
#[derive(Debug)]
pub struct HalfClose {
    until: Instant,
    silent_until: Instant,
}

/// Outcome of discarding what a peer had sent over such a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// All that was there is thrown away.
    All,
    /// There may be more.
    Part,
    /// The peer has ended its side, or the connection is broken.
    Over,
}

impl HalfClose {
    /// A connection that is half-closed `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            until: now + HALF_CLOSE_MAX,
            silent_until: now + SILENCE_MAX,
        }
    }

    /// Returns when the peer is not waited for any more, unless it sends something.
    pub fn deadline(&self) -> Instant {
        self.until.min(self.silent_until)
    }

    /// Throws away what the peer has sent by `now`, up to a limit.
    pub fn discard_received(&mut self, stream: &Stream, now: Instant) -> Discarded {
        let mut room = [0; 16 << 10];
        for _ in 0..DISCARDED_AT_A_TIME {
            match stream.try_recv(&mut room) {
                Ok(0) => return Discarded::Over,
                Ok(_) => self.silent_until = now + SILENCE_MAX,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Discarded::All,
                Err(_) => return Discarded::Over,
            }
        }
        Discarded::Part
    }
}

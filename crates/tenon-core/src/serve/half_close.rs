//! How the connections of a server that stops end, so that replies arrive: a socket of TCP that is closed while something
//! in it was not read, or before the peer has stopped to send, is reset, and what was sent before may be lost.

use std::time::Duration;

use tenon_net::Stream;

/// Time that peers have at most to end their side of connections over which calls came lately.
pub const HALF_CLOSE_MAX: Duration = Duration::from_millis(200);

/// What was called so long ago at most was called lately: the reply may still be on its way.
pub(super) const LATELY: Duration = Duration::from_secs(1);

/// Receives behind the begin of a stop. By ONC RPC no message says which calls were not begun: so those are still carried
/// out that have arrived, up to this.
pub(super) const LAST_RECEIVES: u8 = 16;

/// Receives that are thrown away at a time.
const DISCARDED_AT_A_TIME: usize = 16;

/// Throws away what a peer has sent over a connection whose other side is closed; returns whether it is over.
pub fn discard_received(stream: &Stream) -> bool {
    let mut room = [0; 16 << 10];
    for _ in 0..DISCARDED_AT_A_TIME {
        match stream.try_recv(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
    false
}

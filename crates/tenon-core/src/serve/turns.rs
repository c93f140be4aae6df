//! Bounds of the work that a server does at a time before others have their turn, and of its waits for what does not
//! depend on calls: for threads and tasks alike.

use std::time::Duration;

/// Connections that are accepted at a time: a flood of new ones must not keep others from being heard.
pub const ACCEPTS_PER_TURN: usize = 32;

/// Time that a server waits after a failure to accept, for want of descriptors for example, before the next attempt.
/// The connections wait in the kernel.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Calls of a connection that are carried out before others have their turn.
pub const CALLS_PER_TURN: usize = 64;

/// Receives of a port for datagrams before others have their turn.
pub const PORT_RECEIVES_PER_TURN: usize = 32;

/// Time for which replies in datagrams wait for room in the socket before they are dropped; their peers repeat the
/// calls.
pub const DATAGRAM_SEND_PATIENCE: Duration = Duration::from_millis(100);

/// Time for which calls may still run when a server is dropped.
pub const DRAIN_ON_DROP: Duration = Duration::from_secs(1);

/// Time that connections, ports and threads have to end when no call is waited for any more.
pub const DEPARTURE: Duration = Duration::from_millis(500);

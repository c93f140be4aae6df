//! The server: TCP, UDP and Unix sockets at once, any number of programs and versions on each. Over a
//! stream a peer speaks ONC RPC or the lean protocol; its first bytes tell which.
//!
//! # How it serves
//!
//! A connection is either *parked* or *attended*. Parked, it costs a registration with the system's
//! poller and no thread, so there may be thousands of them. When its bytes come, a thread of a
//! small elastic [pool] attends it: it receives, executes the calls, sends their replies and
//! receives again, waiting for up to the linger time as [`Waiting`](crate::Waiting) says. A peer that
//! calls again within that time is answered with two system calls per call, one to receive and one to
//! send, beside those that look in vain, and without the poller, another thread or the allocator. When
//! the peer is silent for the linger time, or others wait for a thread and there is none, the
//! connection is parked again; what has come of a request stays with it. UDP ports are attended and
//! parked in the same way.
//!
//! So a thread is bound by a peer that does nothing for no longer than the linger time, and by a
//! peer that reads less than 64 KiB of its replies for no longer than [`ServerLimits::send`], and by one that
//! reads nothing for a tenth of a second while others wait for a thread.
//!
//! The handlers of a service run on the attending thread, or on [workers] if they wait or take
//! long: [`ServerBuilder::service`] and [`ServerBuilder::service_on_workers`].
//!
//! # Who owns what
//!
//! The receiving side of a connection, its buffers included, moves between parking, pool and the
//! attending thread; no two of them have it. The sending side, the [line], is shared with the
//! workers under a lock, and the socket closes when the last of them lets go. So a peer that has
//! closed its own sending side still gets all its replies.
//!
//! There is no signal handling here: a program decides itself when to call [`Server::shutdown`].

mod arrival;
mod builder;
mod connection;
mod core;
mod counters;
mod datagrams;
mod exchange;
mod grace;
mod hearing_out;
mod lean;
mod limits;
mod line;
mod memory;
mod offer;
mod parking;
mod pool;
mod port;
mod reason;
mod reception;
mod request;
mod running;
mod services;
mod watcher;
mod workers;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use arrival::Arrival;
pub use builder::{Places, Prepared, ServerBuilder, StartError};
pub use counters::ServerCounters;
pub use datagrams::{Duplicates, SEND_PATIENCE, Wanted, note};
pub use exchange::Exchange;
pub use grace::Grace;
pub use lean::{
    LeanJob, Passed, execute_inline, execute_known, preamble, refuse_for_number, stamp_replies,
};
pub use limits::ServerLimits;
pub use memory::Share;
pub use offer::Offer;
pub use reason::Reason;
pub use reception::Reception;
pub use request::Request;
pub use running::Server;
pub use services::{Execution, Origin, Services, note_panic, note_refusal, refuse_lean, status};

/// How long a thread stays with a peer that is silent. Long enough for a client that computes
/// between calls, short enough for a hundred silent clients. Not shorter: a core that goes idle
/// sets its timer for a limit that is near, at 20 ms for 4 us of every call.
const LINGER: Duration = Duration::from_millis(100);

/// Locks; a thread that panicked while it held the lock has left what it guards in order, as every
/// change here is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The server of threads: TCP, UDP and Unix sockets and shared memory at once, any number of programs and versions on
//! each. Over a stream a peer speaks ONC RPC or the lean protocol; its first bytes tell which.
//!
//! # How it serves
//!
//! A connection that has nothing to say costs a registration with the system's poller and no thread, so there may be
//! thousands of them. One thread at a time [polls](poll), and serves those that it finds one after the other, a
//! bounded number of calls [a turn](turn) each: it receives, carries the calls out, and sends their replies together.
//! A connection that is the only one which says something keeps its thread, which waits for it as
//! [`Waiting`](crate::Waiting) says: a call costs two system calls then. The [scheduler] says which thread does what.
//!
//! A handler runs on the thread that received its call. The [watchdog] notices one that takes long; another thread
//! takes its connection over then, and the calls behind it. A procedure that was slow twice is
//! [handed over](jobs) at once.
//!
//! # Ownership
//!
//! What a connection has received and what it is to send belong to one thread at a time, which
//! [claims](slot::SocketSlot::claim) them; nothing of it is locked. A thread that runs a handler gives it away meanwhile.
//! What other threads have for a connection they leave in its [slot]. A peer that has closed its own sending side still
//! gets all its replies.
//!
//! A [stepped] server has no threads: the program's own event loop does what they would do, and handlers keep their
//! connections.
//!
//! Signals are handled by `Server::serve_until_signal` alone: a program decides itself when to call
//! [`Server::shutdown`].

mod activity;
mod builder;
mod call_room;
mod hand_over;
mod handle;
mod item_look;
mod job_execution;
mod jobs;
mod late_answers;
mod poll;
mod poll_duty;
mod port;
mod port_host;
mod port_state;
mod scheduler;
mod slot;
mod slot_callbacks;
mod slot_port;
mod slot_table;
mod state;
mod stepped;
mod stream;
mod stream_state;
mod tasks;
mod thread;
mod turn;
mod turn_end;
mod watchdog;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use builder::ServerBuilder;
pub use handle::Server;
pub use stepped::SteppedServer;

/// Locks; a thread that panicked while it held the lock has left what it guards in order, as every
/// change here is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

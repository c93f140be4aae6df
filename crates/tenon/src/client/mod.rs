//! The client of threads: the calls of any number of threads over one connection, without a thread of its own.
//!
//! A call goes from its [client](handle) into the [channel]. If no other call is in flight it takes the
//! [fast path](fast_path). Otherwise it is [started](start), [sent](send) by the caller that sends for all, and
//! [waited](wait) for: of the callers that wait, one is the [reader], which takes in what has come for all of them and
//! wakes each once. When the [connection](link) is lost, calls that were not sent go over the [next one](reconnect).
//!
//! One lock guards [what callers share](state). It is never held over a system call, nor over code of the user.

mod batch;
mod call;
mod callback_pool;
mod callback_threads;
mod channel;
mod connect;
mod fast_path;
mod handle;
mod layered_streams;
mod link;
mod open;
mod pending;
mod reader;
mod reconnect;
mod send;
mod start;
mod state;
mod stepper;
mod streaming;
mod untyped;
mod wait;
mod wait_handle;
mod waiters;

pub use batch::Batch;
pub use channel::Channel;
pub use handle::{Client, ClientView, LeanCalls, OncCalls};
pub use pending::PendingCall;
pub use stepper::ChannelStepper;
pub use untyped::{UntypedCall, UntypedStreams};

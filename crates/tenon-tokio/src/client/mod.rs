//! The client of tasks: the calls of any number of tasks over one connection.
//!
//! A call goes from its [client](handle) into the [channel]. The future that is polled [starts](start) it: if no other
//! call is in flight it [sends](send) it and [looks](look) a moment for the reply, all within one poll. What others are
//! in flight with it is left to the [driver], the one task of a channel, which sends what waits together, receives for
//! all, minds the time and connects again.
//!
//! Why futures do not receive for each other, as the callers of a channel of threads do: a future that is not polled,
//! one that lost a `select!` for example, cannot be made to do anything. So a future has the role of the reader or of
//! the sender only within a poll.
//!
//! The items of a [call with streams](streaming) are left to the driver, too: what it has received of them lies in a pipe
//! of the call, and what is sent of them waits in the connection.
//!
//! One lock guards [what they share](state). It is never held over a system call, nor over code of the user.

mod callback;
mod channel;
mod connect;
mod driver;
mod handle;
mod layered;
mod layered_streams;
mod look;
mod make_calls;
mod open;
mod open_streams;
mod receive;
mod send;
mod serve_callbacks;
mod start;
mod state;
mod streaming;
mod ticket;
mod waiters;

pub use callback::CallbackFuture;
pub use channel::Channel;
pub use handle::{Client, ClientView, LeanCalls, OncCalls};
pub use layered::LayeredCall;
pub use make_calls::MakeAsyncCalls;
pub use ticket::PendingCall;

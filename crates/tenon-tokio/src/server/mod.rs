//! The server of tasks: TCP, Unix and UDP sockets and shared memory at once, any number of services.
//!
//! Each connection has a [task](connection) that receives, carries calls out and sends, and so has each [port] for
//! datagrams. A call is [tried](dispatch) within that task. What is known to take long is carried out elsewhere: the
//! calls of a [`Service`](tenon_core::service::Service) by the threads that the run time has for what blocks, those of
//! an [`AsyncService`] by tasks of their own. They leave their answers in the [mailbox] of the connection or port, and
//! its task sends them together.
//!
//! A call with streams is always carried out elsewhere: by a task, or by a thread of its own. Its handler finds the items
//! that were received in a pipe, and leaves those that it sends in the mailbox.

mod accept;
mod builder;
mod call;
mod call_room;
mod call_target;
mod callback_host;
mod connection;
mod dispatch;
mod handle;
mod layered;
mod mailbox;
mod mailbox_callbacks;
mod port;
mod port_host;
mod request;
mod reserved_reply;
mod running;
mod state;

pub use builder::ServerBuilder;
pub use call::{Answer, AsyncService, Call};
pub use callback_host::AsyncCallbacks;
pub(crate) use callback_host::CallbackHost;
pub use handle::Server;
pub use request::{Request, RequestCodec, RequestedProcedure};
pub use reserved_reply::ReservedReply;

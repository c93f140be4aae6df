//! Calls back: those that a server makes of its client, over the connection that the client has opened.

mod channel;
mod client;
mod pending;
mod running;
mod services;

pub use channel::{CallbackChannel, CallbackPort, CallbackSource, StartedCallback};
pub use client::{CallbackClient, PendingCallbackReply};
pub use pending::PendingCallback;
pub use running::{ReceivedCallback, RunningCallbacks};
pub use services::Callbacks;

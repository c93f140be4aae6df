//! Decisions of a server that are alike for all drivers: which service is meant, what peers are granted, how long they
//! may take, and what is counted.

mod admission;
mod age;
mod counters;
mod deferred_calls;
mod end_reason;
#[cfg_attr(
    not(all(feature = "udp", feature = "exchange", feature = "account")),
    path = "no_followed_packets.rs"
)]
mod followed_packets;
mod half_close;
mod half_received;
mod hosts;
mod limits;
mod log_limit;
mod memory;
mod port;
mod procedure_times;
pub(crate) mod random;
mod registry;
mod running_handlers;
mod settings;
mod shared;
#[cfg(all(feature = "signal", unix))]
mod signals;
mod slow_reader;
mod slow_sender;
mod stream;
mod turns;

pub use age::AgeStep;
pub use counters::{CallTally, RelaxedCounter, ServerCounters, ServerTally};
pub use deferred_calls::{CallProgress, DeferredCall, DeferredCalls, ExpiredCalls, LOOK_INTERVAL};
pub use end_reason::EndReason;
pub use followed_packets::PacketFollower;
pub use half_close::{Discarded, HalfClose};
pub use hosts::{HostShare, HostTable};
pub use limits::{EndOfStream, PROGRESS_BYTES, ServerLimits, too_many_connections};
pub use log_limit::LogLimit;
pub use memory::{CallMemory, MemoryBudget, MemoryShare};
pub use port::{FoundCall, ServedPort};
pub use procedure_times::{ProcedureTimes, QUICK};
pub use registry::{
    CallContext, CallToServe, HandlerFailure, ServiceRegistry, panic_text, refuse_by,
};
pub(crate) use registry::{lean_status, onc_status};
pub use running_handlers::RunningHandlers;
pub use settings::{ListenSockets, ServerSettings, StartError};
pub use shared::ServerShared;
#[cfg(all(feature = "signal", unix))]
pub use signals::{EndSignals, EndSignalsHandle, SecondSignal};
pub use slow_reader::SlowReader;
pub use slow_sender::SlowSender;
pub use stream::{AwaitedWriters, Sending, ServedStream, lost_callback};
pub use turns::{
    ACCEPT_AGAIN, ACCEPTS_PER_TURN, CALLS_PER_TURN, DATAGRAM_SEND_PATIENCE, DEPARTURE,
    DRAIN_ON_DROP, PORT_RECEIVES_PER_TURN,
};

//! What a server decides whichever driver runs it: which service is meant, what peers are granted, how long they may
//! take, and what is counted.

mod counters;
mod end_reason;
mod limits;
mod memory;
mod port;
mod procedure_times;
mod random;
mod registry;
mod running_handlers;
mod settings;
mod slow_reader;
mod slow_sender;
mod stream;

pub use counters::{CallTally, Counter, ServerCounters, ServerTally};
pub use end_reason::EndReason;
pub use limits::{EndOfStream, PROGRESS_BYTES, ServerLimits};
pub use memory::{CallMemory, MemoryBudget, MemoryShare};
pub use port::{FoundCall, ServedPort};
pub use procedure_times::{ProcedureTimes, QUICK};
pub use registry::{
    CallContext, CallToServe, HandlerFailure, ServiceRegistry, panic_text, refuse_by,
};
pub(crate) use registry::{lean_status, onc_status};
pub use running_handlers::RunningHandlers;
pub use settings::{ListenSockets, ServerSettings, StartError};
pub use slow_reader::SlowReader;
pub use slow_sender::SlowSender;
pub use stream::{Sending, ServedStream, ServerShared};

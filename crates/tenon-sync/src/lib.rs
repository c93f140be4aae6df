//! What threads of one process share without a lock that guards all of it: small objects, each of which is one rule
//! about the order in which threads see each other's writes. They know nothing of sockets, calls and servers, so that
//! loom can try every order (`tests/loom`, `./test orders`).
#![allow(
    unexpected_cfgs,
    reason = "`--cfg loom` is how the tests of orders are compiled, and is nobody's feature"
)]

mod baton;
mod budget;
mod cancel_flag;
mod done_flag;
mod futex;
mod run_state;
mod sleep_flag;
mod sync;
mod wake_flag;

pub use baton::Baton;
pub use budget::Budget;
pub use cancel_flag::CancelFlag;
pub use done_flag::DoneFlag;
pub use run_state::RunState;
pub use sleep_flag::SleepFlag;
pub use wake_flag::{WakeFlag, WakeFlags, WakeHandle};

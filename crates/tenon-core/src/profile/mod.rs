//! The account of calls: where the time of each went, step by step, at the client and, as far as it
//! says so, at the server.
//!
//! A call of which no account is kept pays one branch for that.

mod account;
mod clock;
mod followed;
mod steps;
mod summary;
mod trace;

pub use account::Account;
pub use clock::{clock, now};
pub use followed::Followed;
pub use steps::{AtEnd, NoProbe, Note, Probe, Step, StepRecorder};
pub use summary::{Figures, PartFigures, Summary};
pub use trace::{Owner, Part, Trace, Way};

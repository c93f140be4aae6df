//! The account of calls: where the time of each went, step by step, at the client and, as far as it
//! says so, at the server.
//!
//! A call of which no account is kept pays one branch for that.

#![cfg_attr(
    not(feature = "account"),
    allow(dead_code, reason = "without accounts no call has a trace")
)]

mod call_profile;
mod clock;
#[cfg_attr(not(feature = "account"), path = "no_counter.rs")]
mod counter;
mod followed;
mod packet_way;
mod packets;
mod part;
#[cfg(feature = "account")]
mod results;
mod steps;
mod summary;
mod trace;

pub use call_profile::CallProfile;
pub use clock::{WallClock, clock, now};
pub use followed::Followed;
pub use packets::{Leg, PacketCoverage, PacketStep, PacketTicks};
pub use part::{Owner, Part, Way};
pub use steps::{AtEnd, NoProbe, Note, Probe, Step, StepRecorder};
pub use summary::{PartStats, ProfileStats, Summary};
pub use trace::Trace;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

tenon_proto::part!("account", IfAccount, if_account);

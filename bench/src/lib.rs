//! What the sections share: statistics and the files of results; and what Tenon's contestants of the
//! section `rpc` share, the stubs above all.

use rustix::process::{Signal, set_parent_process_death_signal};

pub mod contestant;
pub mod machine;
pub mod memory;
pub mod operations;
pub mod results;
pub mod spinning;
pub mod stats;

/// Has this process killed when its parent ends, even while it is stopped: what spins is, between its
/// turns, and would never end if the benchmark is interrupted.
///
/// # Errors
/// The kernel refuses.
pub fn end_with_parent() -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// The stubs of the section `rpc`.
#[allow(missing_docs)]
pub mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

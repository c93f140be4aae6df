//! How a thread waits for its peer: asleep, awake, or awake for a while and then asleep.
//!
//! One [`Waiter`] belongs to the receiving end of a connection. It repeats an attempt that does not
//! block for as long as the [policy](Waiting) says; what it has learned there says how long that is
//! if the policy leaves it open. [`Spinners`] bounds how many do that at the same time.

mod context;
mod counters;
mod learned;
mod spinners;
mod waiter;
mod yielding_look;

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::OnceLock;
use std::thread;

pub use context::WaitContext;
pub use counters::WaitCounters;
pub use counters::WaitTally;
pub use spinners::{LOOKS, Looking, Spinners};
pub use waiter::{Polled, Spun, Waiter};
pub use yielding_look::YieldingLook;

/// Wait policy of the threads that receive from a peer. Said of a channel by
/// [`ChannelOptions::waiting`](crate::options::ChannelOptions::waiting) and of a server by
/// `ServerBuilder::waiting`.
///
/// Waking a thread that sleeps takes the system several times as long as carrying a short message to a
/// thread that is awake and looks. A thread that looks takes a processor from everybody else.
///
/// ```
/// use tenon::{Address, Channel, ChannelOptions, ConnectError, Waiting};
///
/// fn connect_in_a_hurry(address: &Address) -> Result<Channel, ConnectError> {
///     let options = ChannelOptions::default().waiting(Waiting::Spin);
///     Channel::connect_with(address, options)
/// }
/// assert_eq!("spin".parse(), Ok(Waiting::Spin));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Waiting {
    /// Sleep in the system until something comes: two system calls a call.
    Block,
    /// Look again and again until something comes or time runs out. Only when both ends have
    /// processors to spare. A server looks at a connection for a tenth of a second of silence; then the
    /// connection costs nothing until its client calls again.
    Spin,
    /// Look for about as long as waking up would take, then sleep; and learn on each connection
    /// whether looking pays. What is idle costs nothing.
    #[default]
    Adaptive,
}

impl Waiting {
    /// All there are, with their names.
    pub const ALL: [(&'static str, Self); 3] = [
        ("block", Self::Block),
        ("spin", Self::Spin),
        ("adaptive", Self::Adaptive),
    ];
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Block => "block",
            Self::Spin => "spin",
            Self::Adaptive => "adaptive",
        })
    }
}

/// A text that is not the name of a way to wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown wait policy {0:?}: write block, spin or adaptive")]
pub struct WaitingError(String);

impl FromStr for Waiting {
    type Err = WaitingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, waiting)| *waiting)
            .ok_or_else(|| WaitingError(text.to_owned()))
    }
}

/// Returns the number of processors that this process may use, as of the first call.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_wait_has_a_name_that_leads_back() {
        for (name, waiting) in Waiting::ALL {
            assert_eq!(waiting.to_string(), name);
            assert_eq!(name.parse(), Ok(waiting));
        }
        let error = "Spin".parse::<Waiting>().unwrap_err().to_string();
        assert_eq!(
            error,
            r#"unknown wait policy "Spin": write block, spin or adaptive"#
        );
    }
}

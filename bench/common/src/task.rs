//! What a client is told to do.

use crate::address::Address;
use crate::operation::Operation;

/// The arguments of every client: `PROCEDURE N CALLS_IN_FLIGHT ADDRESS...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What to call.
    pub operation: Operation,
    /// How many calls to have in flight.
    pub in_flight: usize,
    /// Where the server listens.
    pub address: Address,
}

impl Task {
    /// From a client's arguments.
    ///
    /// # Errors
    /// They name no task.
    pub fn from_arguments(arguments: &[String]) -> Result<Task, String> {
        let [procedure, count, in_flight, address @ ..] = arguments else {
            return Err("usage: CLIENT PROCEDURE N CALLS_IN_FLIGHT ADDRESS...".to_owned());
        };
        Ok(Task {
            operation: Operation::from_arguments(procedure, count)?,
            in_flight: in_flight.parse().map_err(|_| "no number of calls")?,
            address: Address::from_arguments(address)?,
        })
    }
}

/// Says that an answer is wrong if it is.
///
/// # Errors
/// It is.
pub fn check(is_right: bool) -> Result<(), WrongAnswer> {
    match is_right {
        true => Ok(()),
        false => Err(WrongAnswer),
    }
}

/// A peer answered wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongAnswer;

impl std::fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a wrong answer")
    }
}

impl std::error::Error for WrongAnswer {}

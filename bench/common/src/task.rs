//! What a client is told to do.

use crate::address::Address;
use crate::operation::Operation;

/// The arguments of every client: `PROCEDURE N CALLS_IN_FLIGHT[xCONNECTIONS] ADDRESS...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What to call.
    pub operation: Operation,
    /// How many calls to have in flight on a connection.
    pub in_flight: usize,
    /// How many connections to have.
    pub connections: usize,
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
            let usage = "usage: CLIENT PROCEDURE N CALLS_IN_FLIGHT[xCONNECTIONS] ADDRESS...";
            return Err(usage.to_owned());
        };
        let (in_flight, connections) = in_flight.split_once('x').unwrap_or((in_flight, "1"));
        Ok(Task {
            operation: Operation::from_arguments(procedure, count)?,
            in_flight: positive(in_flight)?,
            connections: positive(connections)?,
            address: Address::from_arguments(address)?,
        })
    }

    /// Checks that a client with one connection can do it.
    ///
    /// # Errors
    /// It is for several connections.
    pub fn over_one_connection(self) -> Result<Task, String> {
        if self.connections == 1 {
            Ok(self)
        } else {
            Err(format!(
                "this client has one connection, not {}",
                self.connections
            ))
        }
    }
}

fn positive(number: &str) -> Result<usize, String> {
    match number.parse() {
        Ok(0) | Err(_) => Err(format!("{number} is no number of calls or connections")),
        Ok(number) => Ok(number),
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

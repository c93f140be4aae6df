//! Bytes on the wire: those that pass between client and server over TCP, in both directions, for
//! one call, all headers of the protocols but not those of TCP included.

use std::error::Error;
use std::time::Duration;

use tenon_bench_common::address::Transport;
use tenon_bench_common::operation::Operation;

use super::choice::Choice;
use super::mode::Mode;
use super::relay::Relay;
use super::row::Row;
use super::system::System;
use crate::report::bytes::Counted;
use tenon_bench::contestant::Contestant;

/// How long each client calls. What passes beside the calls, such as pings, is hardly anything then.
const LENGTH: Duration = Duration::from_millis(100);

/// The operations whose bytes are counted.
const OPERATIONS: [Operation; 6] = [
    Operation::Null,
    Operation::SayHello,
    Operation::MaxResult,
    Operation::GetRandNums(10_000),
    Operation::Large(1024),
    Operation::Large(8192),
];

/// Counts the bytes of all that are chosen.
///
/// # Errors
/// A contestant fails or gives a wrong answer.
pub fn count(choice: &Choice) -> Result<Vec<Counted>, Box<dyn Error>> {
    let name = |operation: &Operation| format!("bytes.{operation}");
    let chosen = OPERATIONS
        .into_iter()
        .filter(|operation| choice.has(&name(operation)));
    chosen
        .map(|operation| count_operation(operation, choice))
        .collect()
}

fn count_operation(operation: Operation, choice: &Choice) -> Result<Counted, Box<dyn Error>> {
    let row = Row {
        transport: Transport::Tcp,
        mode: Mode::Block,
        operation,
    };
    let mut bytes = Vec::new();
    for system in System::beside(&choice.peers) {
        if system.has_bytes_of_its_own() && system.left_out(&row).is_none() {
            let counted = count_of(&row, system)
                .map_err(|error| format!("bytes of {}: {error}", system.name()))?;
            bytes.push((system.name(), counted));
        }
    }
    Ok(Counted {
        operation: operation.to_string(),
        bytes,
    })
}

/// Bytes of one call, rounded: those of a round in which all else has passed already.
fn count_of(row: &Row, system: System) -> Result<u64, Box<dyn Error>> {
    let mut relay = None;
    let mut contestant = Contestant::start(&row.plan(system), |address| {
        let started = relay.insert(Relay::to(&address)?);
        Ok(started.address.clone())
    })?;
    let relay = relay.ok_or("no relay")?;
    contestant.round(LENGTH)?;
    let before = relay.passed();
    let calls = contestant.round(LENGTH)?.calls;
    Ok((relay.passed() - before + calls / 2) / calls)
}

//! Where the time of a call that brings nothing goes: over TCP by both protocols, and through shared memory.

use tenon::{Address, Protocol, Transport, Waiting};

use super::{Interfaces, client};
use crate::commands::account::{self, Finding, Place};
use crate::failure::Failure;

/// What is called: a call that brings nothing costs what every call costs.
const PROCEDURE: &str = "DEMO_NULL";

/// The account of `calls` calls at each of those of `addresses` where it is of interest.
pub fn take(
    interfaces: &Interfaces,
    addresses: &[Address],
    calls: u32,
    waiting: Waiting,
) -> Result<Vec<Finding>, Failure> {
    let addresses = addresses.iter().filter(|address| {
        let transport = address.transport();
        [Transport::Tcp, Transport::Shm].contains(&transport)
    });
    let mut findings = Vec::new();
    // One after the other: an end that others keep from looking would have to be woken at each of its turns.
    for address in addresses {
        let interface = interfaces.of(address.protocol());
        let procedure = interface.procedure(PROCEDURE, None);
        let procedure = procedure.map_err(Failure::new)?;
        let subject = account::null(procedure.program(), procedure.version());
        let client = client::client(interface, procedure, address, waiting)?;
        let place = Place {
            subject: &subject,
            client: &client,
            address,
        };
        findings.extend(account::measure([place], calls)?);
    }
    Ok(findings)
}

/// As tables: a column for each address, under its protocol and transport.
pub fn as_tables(findings: &[Finding]) -> String {
    let name = |finding: &Finding| {
        let protocol = match finding.address.protocol() {
            Protocol::Onc => "ONC",
            Protocol::Lean => "lean",
        };
        format!("{protocol}, {}", finding.address.transport())
    };
    let calls = findings.iter().map(|finding| finding.summary.calls);
    format!(
        "where the time of {PROCEDURE}() goes, typical of {} calls, in us\n\n{}\n\
         ONC RPC has no room for the server's time stamps; `tenon account` shows any call, and says more\n",
        calls.max().unwrap_or(0),
        account::side_by_side(findings, name)
    )
}

//! Where the time of a call that brings nothing goes: over TCP by both protocols, and through shared memory.

use tenon::{Address, Protocol, Transport, Waiting};
use tenon_dynamic::DynamicInterface;

use super::client;
use crate::commands::account::{self, ProfileFinding, ProfiledCall};
use crate::failure::CommandFailure;

/// The procedure that is called: a call that brings nothing costs what every call costs.
const PROCEDURE: &str = "DEMO_NULL";

/// Takes the account of `calls` calls at each of those of `addresses` where it is of interest.
pub fn take(
    interface: &DynamicInterface,
    addresses: &[Address],
    calls: u32,
    waiting: Waiting,
) -> Result<Vec<ProfileFinding>, CommandFailure> {
    let addresses = addresses.iter().filter(|address| {
        let transport = address.transport();
        [Transport::Tcp, Transport::Shm].contains(&transport)
    });
    let mut findings = Vec::new();
    // One after the other: an end that others keep from looking would have to be woken at each of its turns.
    for address in addresses {
        let interface = interface.of(address.protocol());
        let procedure = interface.procedure(PROCEDURE, None);
        let procedure = procedure.map_err(CommandFailure::new)?;
        let subject = account::null(procedure.program(), procedure.version());
        let client = client::client(interface, procedure, address, waiting)?;
        let place = ProfiledCall {
            subject: &subject,
            client: &client,
            address,
            packets: false,
        };
        findings.extend(account::measure([place], calls)?);
    }
    Ok(findings)
}

/// Returns tables with a column for each address, under its protocol and transport.
pub fn as_tables(findings: &[ProfileFinding]) -> String {
    let name = |finding: &ProfileFinding| {
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

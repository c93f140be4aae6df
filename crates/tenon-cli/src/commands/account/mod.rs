//! `tenon account`: where the time of a call goes.

mod report;
mod timeline;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tenon::{Account, Address, Summary};
use tenon_exec::Procedure;

use crate::args::AccountArgs;
use crate::commands::{call, connect, dynamic};
use crate::failure::Failure;
use crate::output;

/// Calls before those that count: connections, caches and branch predictors are warm then, and it is
/// known what the server can say.
const WARM_UP: u32 = 100;

/// What was found out.
pub struct Finding<'a> {
    /// What was called.
    pub address: &'a Address,
    /// The procedure's name.
    pub procedure: &'a str,
    /// The account.
    pub summary: Summary,
    /// What the calls took by a clock around them, sorted.
    pub measured: Vec<Duration>,
}

pub fn run(args: &AccountArgs) -> Result<(), Failure> {
    let address = connect::address(&args.address)?;
    let representation = dynamic::representation(address.protocol());
    let interface = args.interface.interface_in(&args.file, representation)?;
    interface.compile();
    let procedure = interface
        .procedure(&args.procedure, args.version)
        .map_err(Failure::new)?;
    let arguments = call::arguments(args.arguments.as_deref(), &args.file, procedure)?;
    let (program, version) = (procedure.program(), procedure.version());
    let client = connect::client(&address, &args.options, program.number, version.number)?;
    let made_from = dynamic::made_from(interface.schema(), program, version);
    let client = client.with_interface(made_from);
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    let account = Account::with(1, args.calls as usize);
    let make = |client: &tenon::Client| one_call(client, &address, procedure, &arguments);
    let accounted = client.with_account(&account);
    for _ in 0..WARM_UP {
        make(&accounted)?;
    }
    account.clear();
    let mut measured = Vec::with_capacity(args.calls as usize);
    for _ in 0..args.calls {
        measured.push(make(&accounted)?);
    }
    measured.sort_unstable();
    let summary = account.summary().ok_or_else(Failure::explained)?;
    let finding = Finding {
        address: &address,
        procedure: procedure.name(),
        summary,
        measured,
    };
    if let Some(file) = &args.svg {
        write(file, &timeline::svg(&finding))?;
    }
    match args.json {
        true => output::print_json(&report::as_json(&finding), false),
        false => output::print(&report::as_tables(&finding)),
    }
}

/// What one call took.
fn one_call(
    client: &tenon::Client,
    address: &Address,
    procedure: Procedure<'_>,
    arguments: &tenon_exec::Value,
) -> Result<Duration, Failure> {
    let begin = Instant::now();
    let result = dynamic::call(client, procedure, arguments);
    let took = begin.elapsed();
    result.map_err(|error| connect::failure(address, &error))?;
    Ok(took)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}

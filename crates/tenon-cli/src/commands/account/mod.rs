//! `tenon account`: where the time of a call goes.

mod columns;
mod difference;
mod measuring;
mod packets;
mod report;
mod subject;
mod timeline;
mod what_if;

use std::fs;
use std::path::Path;

use crate::args::AccountArgs;
use crate::commands::connect;
use crate::failure::CommandFailure;
use crate::output;

pub use columns::side_by_side;
pub use measuring::{ProfileFinding, ProfiledCall, measure};
pub use report::as_json;
pub use subject::null;
use what_if::Projection;

pub fn run(args: &AccountArgs) -> Result<(), CommandFailure> {
    let address = connect::address(&args.address)?;
    if args.packets {
        packets::check(&address)?;
    }
    let representation = tenon_dynamic::representation(address.protocol());
    let interface = args.interface.interface_in(&args.file, representation)?;
    interface.compile();
    let subjects = subject::find(args, &interface, representation)?;
    let (program, version) = subject::common(&subjects)?;
    let client = connect::client(&address, &args.options, program.number, version.number)?;
    let made_from = tenon_dynamic::lean_interface(interface.schema(), program, version);
    let client = client.with_interface(made_from);
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    let places = subjects.iter().map(|subject| ProfiledCall {
        subject,
        client: &client,
        address: &address,
        packets: args.packets,
    });
    let findings = measure(places, args.calls)?;
    show(args, &findings)
}

fn show(args: &AccountArgs, findings: &[ProfileFinding]) -> Result<(), CommandFailure> {
    if let Some(file) = &args.svg {
        write(file, &timeline::svg(findings))?;
    }
    let projections = findings
        .iter()
        .map(|it| what_if::project(it, &args.what_if));
    let projections = projections.collect::<Result<Vec<_>, _>>()?;
    let projections = match args.what_if.is_empty() {
        true => &[][..],
        false => &projections,
    };
    if args.json {
        return show_json(findings, projections);
    }
    let mut text = match findings {
        [small, large] => difference::as_tables(small, large),
        findings => findings.iter().map(report::as_tables).collect(),
    };
    for projection in projections {
        text += "\n";
        text += &projection.as_table();
    }
    output::print(&text)
}

fn show_json(
    findings: &[ProfileFinding],
    projections: &[Projection],
) -> Result<(), CommandFailure> {
    let mut accounts: Vec<_> = findings.iter().map(report::as_json).collect();
    for (account, projection) in accounts.iter_mut().zip(projections) {
        account["what_if"] = projection.as_json();
    }
    match (findings, &mut accounts[..]) {
        ([small, large], [small_account, large_account]) => {
            let accounts = [small_account.take(), large_account.take()];
            output::print_json(&difference::as_json(small, large, accounts), false)
        }
        (_, accounts) => accounts
            .iter()
            .try_for_each(|account| output::print_json(account, false)),
    }
}

fn write(file: &Path, text: &str) -> Result<(), CommandFailure> {
    fs::write(file, text).map_err(|error| {
        CommandFailure::new(format!("cannot write {}: {error}", file.display()))
    })?;
    eprintln!("wrote {}", file.display());
    Ok(())
}

//! `tenon account`: where the time of a call goes.

mod columns;
mod difference;
mod measuring;
mod report;
mod subject;
mod timeline;

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

pub fn run(args: &AccountArgs) -> Result<(), CommandFailure> {
    let address = connect::address(&args.address)?;
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
    });
    let findings = measure(places, args.calls)?;
    show(args, &findings)
}

fn show(args: &AccountArgs, findings: &[ProfileFinding]) -> Result<(), CommandFailure> {
    if let Some(file) = &args.svg {
        write(file, &timeline::svg(findings))?;
    }
    match (findings, args.json) {
        ([small, large], true) => output::print_json(&difference::as_json(small, large), false),
        ([small, large], false) => output::print(&difference::as_tables(small, large)),
        (findings, true) => findings
            .iter()
            .try_for_each(|finding| output::print_json(&report::as_json(finding), false)),
        (findings, false) => findings
            .iter()
            .try_for_each(|finding| output::print(&report::as_tables(finding))),
    }
}

fn write(file: &Path, text: &str) -> Result<(), CommandFailure> {
    fs::write(file, text).map_err(|error| {
        CommandFailure::new(format!("cannot write {}: {error}", file.display()))
    })?;
    eprintln!("wrote {}", file.display());
    Ok(())
}

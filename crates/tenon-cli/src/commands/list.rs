//! `tenon list`: the programs that a server has.

use serde_json::json;
use tenon_reflection::ReflectedVersion;

use crate::args::ListArgs;
use crate::commands::connect;
use crate::commands::reflected::ReflectedServer;
use crate::failure::CommandFailure;
use crate::output;

pub fn run(args: &ListArgs) -> Result<(), CommandFailure> {
    let address = connect::address(&args.address)?;
    let versions = ReflectedServer::connect(&address, &args.options)?.versions()?;
    if args.json {
        let versions = versions.iter().map(|it| {
            json!({
                "program": it.program,
                "version": it.version,
                "programName": it.program_name,
                "versionName": it.version_name,
                "descriptor": it.identity.to_string(),
            })
        });
        return output::print_json(&versions.collect(), false);
    }
    let name = |it: &ReflectedVersion| {
        let (program, version) = (&it.program_name, &it.version_name);
        output::one_line(&format!("{program}.{version}"))
    };
    let width = versions.iter().map(|it| name(it).chars().count()).max();
    let width = width.unwrap_or_default();
    for it in &versions {
        let (name, program, version) = (name(it), it.program, it.version);
        output::print(&format!("{name:width$}  {program:#010x}.{version}\n"))?;
    }
    Ok(())
}

//! `tenon describe`: an interface as text, of a server or of a descriptor.

use std::path::Path;

use tenon_idl::{write_definitions, write_interface};
use tenon_schema::Schema;

use crate::args::DescribeArgs;
use crate::commands::connect;
use crate::commands::reflected::ReflectedServer;
use crate::failure::CommandFailure;
use crate::output;

pub fn run(args: &DescribeArgs) -> Result<(), CommandFailure> {
    let schemas = schemas(args)?;
    let texts = schemas.iter().map(|schema| match &args.name {
        Some(name) => write_definitions(schema, name),
        None => write_interface(schema),
    });
    let mut texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    // Several interfaces may have the same type.
    texts.dedup();
    match &args.name {
        Some(name) if texts.is_empty() => Err(CommandFailure::new(format!(
            "nothing is called {name}"
        ))
        .hint(format!(
            "`tenon describe {}` shows all that there is",
            args.source
        ))),
        _ => output::print(&texts.join("\n")),
    }
}

fn schemas(args: &DescribeArgs) -> Result<Vec<Schema>, CommandFailure> {
    if !args.source.contains("://") {
        let file = Path::new(&args.source);
        return Ok(vec![args.interface.schema(file)?]);
    }
    let address = connect::address(&args.source)?;
    let descriptors = ReflectedServer::connect(&address, &args.options)?.descriptors()?;
    Ok(descriptors
        .into_iter()
        .map(|descriptor| descriptor.into_schema())
        .collect())
}

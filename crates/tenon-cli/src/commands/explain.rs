//! `tenon explain`.

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let interface = args.interface.interface(&args.file)?;
    let name = args.name.as_deref();
    let text = tenon_plan::explain(interface.schema(), interface.plans(), name)
        .map_err(|error| Failure::new(error).hint("leave the name out to see all of them"))?;
    output::print(&text)
}

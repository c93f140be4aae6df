//! `tenon explain`.

use tenon_plan::{ExplainError, Pass, Representation, explain, explain_passes};

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let interface = args.interface.interface(&args.file)?;
    let (schema, name) = (interface.schema(), args.name.as_deref());
    let text = match args.passes {
        true => explain_passes(schema, Representation::XDR, Pass::ALL, name),
        false => explain(schema, interface.plans(), name).map_err(ExplainError::from),
    };
    output::print(&text.map_err(failure)?)
}

fn failure(error: ExplainError) -> Failure {
    let is_name = matches!(error, ExplainError::UnknownName(_));
    let failure = Failure::new(error);
    match is_name {
        true => failure.hint("leave the name out to see all of them"),
        false => failure,
    }
}

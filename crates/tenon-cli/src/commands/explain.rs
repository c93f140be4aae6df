//! `tenon explain`.

use tenon_plan::{ExplainError, Pass, Plans, Representation, explain, explain_passes};
use tenon_schema::Schema;

use crate::args::ExplainArgs;
use crate::failure::CommandFailure;
use crate::output;

pub fn run(args: &ExplainArgs) -> Result<(), CommandFailure> {
    let interface = args.interface.interface(&args.file)?;
    let (schema, name) = (interface.schema(), args.name.as_deref());
    let representation = args.representation.plan();
    let text = match args.passes {
        true => explain_passes(schema, representation, Pass::ALL, name),
        false => explain_plans(schema, representation, name),
    };
    output::print(&text.map_err(failure)?)
}

fn explain_plans(
    schema: &Schema,
    representation: Representation,
    name: Option<&str>,
) -> Result<String, ExplainError> {
    let plans = Plans::new(schema, representation, Pass::ALL)?;
    Ok(explain(schema, &plans, name)?)
}

fn failure(error: ExplainError) -> CommandFailure {
    let is_name = matches!(error, ExplainError::UnknownName(_));
    let failure = CommandFailure::new(error);
    match is_name {
        true => failure.hint("leave the name out to see all of them"),
        false => failure,
    }
}

//! `tenon cost`.

use std::io::{self, IsTerminal};

use tenon_plan::Representation;
use tenon_plan::cost::{Assumptions, Engine};
use tenon_schema::Schema;
use tenon_study::cost::{
    Calibration, CostError, EFFORT, Report, Store, calibrate, check, estimate, left_out,
    verify_names,
};
use tenon_study::measure::Effort;

use crate::args::{self, CostArgs};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &CostArgs) -> Result<(), Failure> {
    let schema = args.interface.schema(&args.file)?;
    if !args.check {
        verify(args, &schema)?;
    }
    let (calibrations, processor) = calibrations(args)?;
    let report = Report {
        processor: &processor,
        calibrations: &calibrations,
    };
    match args.check {
        true => run_check(args, &schema, report),
        false => run_estimate(args, &schema, report),
    }
}

/// Refuses names that the interface does not have, before this machine is measured for seconds.
fn verify(args: &CostArgs, schema: &Schema) -> Result<(), Failure> {
    let (representation, name) = (args.representation.plan(), args.name.as_deref());
    let assumptions = assumptions(args);
    verify_names(schema, representation, engine(args), &assumptions, name).map_err(failure)
}

fn assumptions(args: &CostArgs) -> Assumptions {
    Assumptions {
        length: args.length,
        lengths: args.lengths.clone(),
        arms: args.arms.clone(),
    }
}

fn engine(args: &CostArgs) -> Engine {
    match args.engine {
        args::Engine::Compiled => Engine::Compiled,
        args::Engine::Machine => Engine::Machine,
        args::Engine::Interp => Engine::Interpreter,
    }
}

fn run_estimate(args: &CostArgs, schema: &Schema, report: Report<'_>) -> Result<(), Failure> {
    let assumptions = assumptions(args);
    let representation = args.representation.plan();
    let name = args.name.as_deref();
    let calibrations = report.calibrations;
    let estimates = estimate(schema, representation, calibrations, &assumptions, name);
    let estimates = estimates.map_err(failure)?;
    match (args.json, name) {
        (true, _) => output::print_json(&report.json(&estimates), false),
        (false, Some(_)) => output::print(&report.equations(&estimates)),
        (false, None) => output::print(&report.table(&estimates)),
    }
}

fn run_check(args: &CostArgs, schema: &Schema, report: Report<'_>) -> Result<(), Failure> {
    for (message, unknown) in left_out(schema) {
        eprintln!("`{message}` is left out: nobody knows the values of `{unknown}` in it");
    }
    let mut progress = Progress::new("measuring the messages".to_owned());
    let representation = args.representation.plan();
    let checked = check(
        schema,
        representation,
        report.calibrations,
        effort(args),
        |part| progress.show(part),
    );
    let checked = checked.map_err(failure)?;
    if checked.is_empty() {
        eprintln!("nothing is measured: no struct or union is a message as a whole, and known");
    }
    match args.json {
        true => output::print_json(&report.checked_json(&checked), false),
        false => output::print(&report.checked(&checked)),
    }
}

fn failure(error: CostError) -> Failure {
    let hint = match &error {
        CostError::UnknownName(_) => Some("leave the name out to see all of them"),
        CostError::UnknownPart(_) | CostError::UnknownLabel(_) => {
            Some("`tenon cost FILE NAME` shows what equations name")
        }
        CostError::NotCompiled(_) => {
            Some("measure machine code: --engine machine, or the interpreter: --engine interp")
        }
        _ => None,
    };
    let failure = Failure::new(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn effort(args: &CostArgs) -> Effort {
    match args.quick {
        true => Effort::QUICK,
        false => EFFORT,
    }
}

/// The parameters of this machine, and what its processor is called.
fn calibrations(args: &CostArgs) -> Result<([Calibration; 2], String), Failure> {
    let engine = engine(args);
    let mut store = Store::open();
    let processor = store.processor().to_owned();
    let representation = args.representation.plan();
    let calibrations = match (args.quick, args.calibrate) {
        (true, _) => measured(&store, engine, representation, Effort::QUICK),
        (false, true) => kept(&mut store, engine, representation),
        (false, false) => known(&mut store, engine, representation),
    };
    Ok((calibrations?, processor))
}

/// What is known of an engine on this machine, measured and kept if it is not.
pub fn known(
    store: &mut Store,
    engine: Engine,
    representation: Representation,
) -> Result<[Calibration; 2], Failure> {
    match store.find(engine, representation.name) {
        Some(known) => Ok(known),
        None => kept(store, engine, representation),
    }
}

fn kept(
    store: &mut Store,
    engine: Engine,
    representation: Representation,
) -> Result<[Calibration; 2], Failure> {
    let new = measured(store, engine, representation, EFFORT)?;
    // What was asked for is there all the same.
    match store.keep(&new) {
        Ok(file) => eprintln!("kept in {}", file.display()),
        Err(error) => eprintln!("tenon: not kept, so this is measured again next time: {error}"),
    }
    Ok(new)
}

fn measured(
    store: &Store,
    engine: Engine,
    representation: Representation,
    effort: Effort,
) -> Result<[Calibration; 2], Failure> {
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    let doing = format!(
        "measuring {}, {engine}, {}",
        store.processor(),
        representation.name
    );
    let mut progress = Progress::new(doing);
    let new = calibrate(engine, representation, effort, |part| progress.show(part));
    new.map_err(failure)
}

/// What is being done, on stderr: one line that is written over where somebody watches.
struct Progress {
    doing: String,
    is_watched: bool,
    percent: Option<u32>,
}

impl Progress {
    fn new(doing: String) -> Self {
        Self {
            doing,
            is_watched: io::stderr().is_terminal(),
            percent: None,
        }
    }

    fn show(&mut self, part: f64) {
        let percent = (part * 100.0) as u32;
        match self.is_watched {
            false if self.percent.is_none() => eprintln!("{}", self.doing),
            true if self.percent != Some(percent) => {
                eprint!("\r{}, {percent:>3} %", self.doing);
                if percent >= 100 {
                    eprintln!();
                }
            }
            _ => {}
        }
        self.percent = Some(percent);
    }
}

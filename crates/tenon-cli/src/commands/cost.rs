//! `tenon cost`.

use std::io::{self, IsTerminal};
use std::path::Path;

use tenon_plan::Representation;
use tenon_plan::cost::{Assumptions, Engine};
use tenon_schema::Schema;
use tenon_study::cost::{
    CalibrationStore, CostError, CostReport, EFFORT, EngineCalibration, calibrate, check, estimate,
    left_out, verify_names,
};
use tenon_study::measure::MeasurementEffort;

use crate::args::{self, CostArgs};
use crate::failure::CommandFailure;
use crate::output;

pub fn run(args: &CostArgs) -> Result<(), CommandFailure> {
    let Some(file) = &args.file else {
        return calibrations(args).map(drop);
    };
    let schema = args.interface.schema(file)?;
    if !args.check {
        verify(args, &schema)?;
    }
    let (calibrations, processor) = calibrations(args)?;
    let report = CostReport {
        processor: &processor,
        calibrations: &calibrations,
    };
    match args.check {
        true => run_check(args, &schema, report),
        false => run_estimate(args, &schema, report),
    }
}

/// Refuses names that the interface does not have, before this machine is measured for seconds.
fn verify(args: &CostArgs, schema: &Schema) -> Result<(), CommandFailure> {
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
        args::EngineArg::Compiled => Engine::Compiled,
        args::EngineArg::Machine => Engine::Machine,
        args::EngineArg::Interp => Engine::Interpreter,
    }
}

fn run_estimate(
    args: &CostArgs,
    schema: &Schema,
    report: CostReport<'_>,
) -> Result<(), CommandFailure> {
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

fn run_check(
    args: &CostArgs,
    schema: &Schema,
    report: CostReport<'_>,
) -> Result<(), CommandFailure> {
    for (message, unknown) in left_out(schema) {
        eprintln!("`{message}` is left out: nobody knows the values of `{unknown}` in it");
    }
    let mut progress = CalibrationProgress::new("measuring the messages".to_owned());
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

fn failure(error: CostError) -> CommandFailure {
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
    let failure = CommandFailure::new(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn effort(args: &CostArgs) -> MeasurementEffort {
    match args.quick {
        true => MeasurementEffort::QUICK,
        false => FULL_EFFORT,
    }
}

/// The effort where nobody asked for less. Figures of code that is not optimised are not worth a minute.
const FULL_EFFORT: MeasurementEffort = match cfg!(debug_assertions) {
    true => MeasurementEffort::QUICK,
    false => EFFORT,
};

/// Returns the parameters of a machine, and what its processor is called.
fn calibrations(args: &CostArgs) -> Result<([EngineCalibration; 2], String), CommandFailure> {
    let engine = engine(args);
    if let Some(file) = &args.machine {
        return imported(file, engine, args.representation.plan());
    }
    let mut store = CalibrationStore::open();
    let processor = store.processor().to_owned();
    let representation = args.representation.plan();
    let calibrations = match (args.quick, args.calibrate) {
        (true, _) => measured(&store, engine, representation, MeasurementEffort::QUICK),
        (false, true) => kept(&mut store, engine, representation),
        (false, false) => known(&mut store, engine, representation),
    };
    let calibrations = calibrations?;
    if let Some(file) = &args.export {
        store.export(file).map_err(CommandFailure::new)?;
    }
    Ok((calibrations, processor))
}

/// Returns the parameters of another machine.
fn imported(
    file: &Path,
    engine: Engine,
    representation: Representation,
) -> Result<([EngineCalibration; 2], String), CommandFailure> {
    let store = CalibrationStore::import(file).map_err(CommandFailure::new)?;
    let found = store.find(engine, representation.name).ok_or_else(|| {
        let (engine, name) = (engine.name(), representation.name);
        let message = format!(
            "{} has no parameters of the engine `{engine}` with `{name}`",
            file.display()
        );
        let hint = format!(
            "write them there: tenon cost --engine {engine} --representation {name} --export FILE"
        );
        CommandFailure::new(message).hint(hint)
    });
    Ok((found?, store.processor().to_owned()))
}

/// Returns the calibrations of an engine on this machine, measured and kept if there are none.
pub fn known(
    store: &mut CalibrationStore,
    engine: Engine,
    representation: Representation,
) -> Result<[EngineCalibration; 2], CommandFailure> {
    match store.find(engine, representation.name) {
        Some(known) => Ok(known),
        None => kept(store, engine, representation),
    }
}

fn kept(
    store: &mut CalibrationStore,
    engine: Engine,
    representation: Representation,
) -> Result<[EngineCalibration; 2], CommandFailure> {
    let new = measured(store, engine, representation, FULL_EFFORT)?;
    // What was asked for is there all the same.
    match store.keep(&new) {
        Ok(file) => eprintln!("kept in {}", file.display()),
        Err(error) => eprintln!("tenon: not kept, so this is measured again next time: {error}"),
    }
    Ok(new)
}

/// Measures an engine on this machine.
pub fn measured(
    store: &CalibrationStore,
    engine: Engine,
    representation: Representation,
    effort: MeasurementEffort,
) -> Result<[EngineCalibration; 2], CommandFailure> {
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    let doing = format!(
        "measuring {}, {engine}, {}",
        store.processor(),
        representation.name
    );
    let mut progress = CalibrationProgress::new(doing);
    let new = calibrate(engine, representation, effort, |part| progress.show(part));
    new.map_err(failure)
}

/// The progress line on stderr: one line that is written over if stderr is a terminal.
struct CalibrationProgress {
    doing: String,
    is_watched: bool,
    percent: Option<u32>,
}

impl CalibrationProgress {
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

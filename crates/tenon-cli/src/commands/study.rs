//! `tenon study`.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::Path;

use tenon_plan::cost::Engine;
use tenon_study::cost::CalibrationStore;
use tenon_study::measure::MeasurementEffort;
use tenon_study::{StudyOptions, StudyResults, WireFormat, study};

use crate::args::{RepresentationArg, StudyArgs};
use crate::commands::cost;
use crate::failure::CommandFailure;
use crate::output;

pub fn run(args: &StudyArgs) -> Result<(), CommandFailure> {
    let effort = match args.quick {
        true => MeasurementEffort::QUICK,
        false => MeasurementEffort::FULL,
    };
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    if let Some(folder) = &args.svg {
        // Before the time that measuring takes.
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    if let Some(file) = args.json.as_deref().filter(|file| *file != Path::new("-")) {
        try_to_write(file).map_err(|error| cannot_write(file, &error))?;
    }
    let options = StudyOptions {
        wire: match args.representation {
            RepresentationArg::Xdr => WireFormat::Xdr,
            RepresentationArg::Lean => WireFormat::Lean,
        },
        effort,
    };
    let store = CalibrationStore::open();
    let mut progress = StudyProgress::new();
    let done = study(options, |doing, part| progress.show(doing, part));
    let mut study = done.map_err(CommandFailure::new)?;
    predict(&mut study, store, args)?;
    if let Some(folder) = &args.svg {
        draw(&study, folder)?;
    }
    match args.json.as_deref() {
        Some(file) if file == Path::new("-") => output::print_json(&study.json(), false),
        Some(file) => {
            write(file, &format!("{:#}\n", study.json()))?;
            output::print(&study.tables())
        }
        None => output::print(&study.tables()),
    }
}

/// Has the cost model say what it thinks, which measures this machine if that was never done; for a moment, if the study
/// was quick.
fn predict(
    study: &mut StudyResults,
    mut store: CalibrationStore,
    args: &StudyArgs,
) -> Result<(), CommandFailure> {
    let representation = args.representation.plan();
    let of = |engine| match args.quick {
        true => cost::measured(&store, engine, representation, MeasurementEffort::QUICK),
        false => cost::known(&mut store, engine, representation),
    };
    let calibrations = Engine::ALL.map(of);
    let [compiled, machine, interpreter] = calibrations;
    let calibrations = [compiled?, machine?, interpreter?];
    tenon_study::cost::predict(study, &calibrations).map_err(CommandFailure::new)
}

/// Checks that `file` can be written. Its content stays, and where there is none, there is none after.
fn try_to_write(file: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => fs::remove_file(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(file).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn draw(study: &StudyResults, folder: &Path) -> Result<(), CommandFailure> {
    let draw_one = |plot: tenon_study::SvgChart| write(&folder.join(plot.name + ".svg"), &plot.svg);
    study.charts().into_iter().try_for_each(draw_one)
}

fn write(file: &Path, text: &str) -> Result<(), CommandFailure> {
    fs::write(file, text).map_err(|error| cannot_write(file, &error))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::new(format!("cannot write {}: {error}", path.display()))
}

/// The progress line on stderr: one line that is written over if stderr is a terminal.
struct StudyProgress {
    is_watched: bool,
    percent: u32,
}

impl StudyProgress {
    fn new() -> Self {
        Self {
            is_watched: io::stderr().is_terminal(),
            percent: 0,
        }
    }

    fn show(&mut self, doing: &str, part: f64) {
        let percent = (part * 100.0) as u32;
        let began = part == 0.0;
        match self.is_watched {
            false if began => eprintln!("{doing}: all take turns"),
            true if began || percent != self.percent => {
                eprint!("\r{doing}: all take turns, {percent:>3} %");
                if percent == 100 {
                    eprintln!();
                }
            }
            _ => {}
        }
        self.percent = percent;
    }
}

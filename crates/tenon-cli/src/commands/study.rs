//! `tenon study`.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::Path;

use tenon_plan::cost::Engine;
use tenon_study::cost::Store;
use tenon_study::measure::Effort;
use tenon_study::{DESIGNS, Options, Study, Wire, study};

use crate::args::{Representation, StudyArgs};
use crate::commands::cost;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    let effort = match args.quick {
        true => Effort::QUICK,
        false => Effort::FULL,
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
    let options = Options {
        wire: match args.representation {
            Representation::Xdr => Wire::Xdr,
            Representation::Lean => Wire::Lean,
        },
        effort,
    };
    let store = (!args.quick).then(Store::open);
    let mut progress = Progress::new();
    let done = study(options, |doing, part| progress.show(doing, part));
    let mut study = done.map_err(Failure::new)?;
    if let Some(store) = store {
        predict(&mut study, store, args.representation)?;
    }
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

/// Has the cost model say what it thinks, which measures this machine if that was never done.
fn predict(
    study: &mut Study,
    mut store: Store,
    representation: Representation,
) -> Result<(), Failure> {
    let of = |engine| cost::known(&mut store, engine, representation.plan());
    let calibrations = Engine::ALL.map(of);
    let [compiled, machine, interpreter] = calibrations;
    let calibrations = [compiled?, machine?, interpreter?];
    tenon_study::cost::predict(study, &calibrations).map_err(Failure::new)
}

/// Whether `file` can be written. What is in it stays, and where there is none, there is none after.
fn try_to_write(file: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => fs::remove_file(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(file).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn draw(study: &Study, folder: &Path) -> Result<(), Failure> {
    let draw_one = |plot: tenon_study::Plot| write(&folder.join(plot.name + ".svg"), &plot.svg);
    study.charts().into_iter().try_for_each(draw_one)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| cannot_write(file, &error))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// What is being done, on stderr: one line that is written over where somebody watches.
struct Progress {
    is_watched: bool,
    percent: u32,
}

impl Progress {
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
            false if began => eprintln!("{doing}: {} designs take turns", DESIGNS.len()),
            true if began || percent != self.percent => {
                eprint!(
                    "\r{doing}: {} designs take turns, {percent:>3} %",
                    DESIGNS.len()
                );
                if percent == 100 {
                    eprintln!();
                }
            }
            _ => {}
        }
        self.percent = percent;
    }
}

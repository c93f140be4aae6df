//! Makes the stubs of all designs that are compiled, from one interface, each with plans of its own.

#[path = "build/cost.rs"]
mod cost;
#[path = "src/design.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod design;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use design::{DESIGNS, StubEngine};
use tenon_gen::rust::{self, Form, Marker};
use tenon_idl::Style;
use tenon_plan::{Moves, Representation};

const INTERFACE: &str = "study.x";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={INTERFACE}");
    let parsed = tenon_idl::parse_file(INTERFACE.as_ref(), &tenon_idl::Options::default());
    let said = parsed.render(Style::Plain);
    let schema = parsed.schema.ok_or(said)?;
    let options = rust::Options {
        source: INTERFACE.to_owned(),
        tenon: "crate::engine::run_time".to_owned(),
        for_include: true,
        ..rust::Options::default()
    };
    let (mut modules, mut names) = (String::new(), String::new());
    for design in DESIGNS {
        if design.engine != StubEngine::Compiled {
            continue;
        }
        let plans = [
            design.plans(&schema, Representation::XDR)?,
            design.plans(&schema, Representation::LEAN)?,
        ];
        let name = design.word();
        let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
        fs::write(
            out(&format!("{name}.rs"))?,
            rust::generate(&schema, &forms, &options)?,
        )?;
        let way = way(design.movement.moves());
        writeln!(modules, "stubs!({name}, \"/{name}.rs\", {way});")?;
        write!(names, "{name} ")?;
    }
    writeln!(modules, "entrances! {{ {names}}}")?;
    fs::write(out("modules.rs")?, modules)?;
    cost::generate(&out("")?)
}

/// The type by which stubs move numbers in the representation `R`.
fn way(moves: Moves) -> String {
    let any = Marker {
        path: "R".to_owned(),
        ..Marker::xdr()
    };
    any.moved(moves).path
}

fn out(name: &str) -> Result<PathBuf, env::VarError> {
    Ok(PathBuf::from(env::var("OUT_DIR")?).join(name))
}

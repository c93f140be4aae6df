//! Makes the stubs of all designs that are compiled, from one interface, each with plans of its own.

#[path = "build/cost.rs"]
mod cost;
#[path = "src/design.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod design;
#[path = "build/unrolling.rs"]
mod unrolling;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use design::{DESIGNS, StubEngine};
use tenon_gen::rust::{self, Form, Marker};
use tenon_idl::Style;
use tenon_plan::cost::{Mover, Moves, Unit};
use tenon_plan::{Plans, Representation};

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
        let moves = design.movement.moves();
        let forms: Vec<_> = plans
            .iter()
            .filter_map(|plans| form(plans, moves))
            .collect();
        fs::write(
            out(&format!("{name}.rs"))?,
            rust::generate(&schema, &forms, &options)?,
        )?;
        let way = way(moves);
        writeln!(modules, "stubs!({name}, \"/{name}.rs\", {way});")?;
        write!(names, "{name} ")?;
    }
    writeln!(modules, "entrances! {{ {names}}}")?;
    fs::write(out("modules.rs")?, modules)?;
    unrolling::generate(&out("")?)?;
    cost::generate(&out("")?)
}

/// The type by which stubs move numbers in the representation `R`.
fn way(moves: Moves) -> String {
    let any = Marker {
        path: "R".to_owned(),
        ..Marker::xdr()
    };
    moved(any, moves).path
}

/// Returns the form of stubs that move single numbers in some way.
fn form(plans: &Plans, moves: Moves) -> Option<Form<'_>> {
    let marker = moved(Marker::of(&plans.representation)?, moves);
    Some(Form { plans, marker })
}

/// Returns the representation with single numbers moved in some way: types of `src/moving.rs`.
fn moved(mut marker: Marker, moves: Moves) -> Marker {
    let ways = [
        (moves.unit == Unit::Byte, "Bytewise", "wire::Bytewise"),
        (moves.by == Mover::Procedure, "Called", "wire::Called"),
    ];
    for (_, name, import) in ways.into_iter().filter(|(is_so, ..)| *is_so) {
        marker.path = format!("{name}<{}>", marker.path);
        marker.imports.push(import);
        marker.suffix = format!("{}_{}", marker.suffix, name.to_lowercase());
    }
    marker
}

fn out(name: &str) -> Result<PathBuf, env::VarError> {
    Ok(PathBuf::from(env::var("OUT_DIR")?).join(name))
}

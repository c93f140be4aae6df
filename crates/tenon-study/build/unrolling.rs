//! Stubs of arrays of many lengths: as loops, and unrolled to a statement for each number.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tenon_gen::rust;
use tenon_idl::Style;
use tenon_plan::cost::Moves;
use tenon_plan::{Pass, PlanError, Representation, lower, specialize};

use crate::design::PROCEDURAL_ITEM;

/// Numbers of an array.
const LENGTHS: [usize; 4] = [250, 500, 1000, 2000];

/// A form of the code: its name, whether each number is a field of its own, how one is moved, and the passes that make
/// its plans.
type CodeForm = (&'static str, bool, Moves, &'static [Pass]);

/// Writes the stubs, each form in a module of its own, and `unrolling.rs` with the modules.
pub fn generate(folder: &Path) -> Result<(), Box<dyn Error>> {
    let calls = PROCEDURAL_ITEM.moves();
    let whole = Moves::default();
    let forms: [CodeForm; 4] = [
        ("generic", false, calls, &[]),
        (
            "unrolled",
            true,
            whole,
            &[Pass::FoldAligns, Pass::MergeChecks],
        ),
        (
            "looped",
            false,
            whole,
            &[Pass::FoldAligns, Pass::HoistChecks],
        ),
        ("every_pass", false, whole, Pass::ALL),
    ];
    let mut modules = format!(
        "/// Numbers of an array.\npub const LENGTHS: [usize; {}] = {LENGTHS:?};\n",
        LENGTHS.len()
    );
    for (name, is_unrolled, moves, passes) in forms {
        let parsed = tenon_idl::parse_text(
            "unrolling.x",
            &interface(is_unrolled),
            &tenon_idl::Options::default(),
        );
        let said = parsed.render(Style::Plain);
        let schema = parsed.schema.ok_or(said)?;
        let plans = |representation| -> Result<_, PlanError> {
            let mut plans = lower(&schema, representation)?;
            specialize(&schema, &mut plans, passes)?;
            Ok(plans)
        };
        let plans = [plans(Representation::XDR)?, plans(Representation::LEAN)?];
        let forms = plans.iter().filter_map(|plans| crate::form(plans, moves));
        let forms: Vec<_> = forms.collect();
        let options = rust::Options {
            source: "unrolling.x".to_owned(),
            tenon: "crate::engine::run_time".to_owned(),
            for_include: true,
            ..rust::Options::default()
        };
        let text = rust::generate(&schema, &forms, &options)?;
        fs::write(
            folder.join(format!("unrolling_{name}.rs")),
            without_derives(&text),
        )?;
        let way = crate::way(moves);
        writeln!(modules, "stubs!({name}, \"/unrolling_{name}.rs\", {way});")?;
    }
    Ok(fs::write(folder.join("unrolling.rs"), modules)?)
}

/// Returns the types of all lengths: an array of numbers, or as many fields.
fn interface(is_unrolled: bool) -> String {
    let mut text = String::new();
    for length in LENGTHS {
        let fields = match is_unrolled {
            true => (0..length)
                .map(|number| format!("int n{number};"))
                .collect(),
            false => format!("int values[{length}];"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "struct Numbers{length} {{ {fields} }};");
    }
    text
}

/// Returns generated types of which nothing is derived but `Default`: nothing compares, prints or copies them, and with
/// 2000 fields that would take long to compile.
fn without_derives(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let is_derived = line.starts_with("#[derive(");
        match (is_derived, line.contains("Default")) {
            (true, true) => "#[derive(Default)]\n".to_owned(),
            (true, false) => String::new(),
            (false, _) => format!("{line}\n"),
        }
    });
    lines.collect()
}

//! The compiled stubs that the cost model is calibrated with and checked by, and the table in which
//! they are found by name.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tenon_gen::rust::names::Names;
use tenon_gen::rust::{self, Form};
use tenon_idl::Style;
use tenon_plan::Representation;
use tenon_plan::links::is_link;
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use crate::design::{DESIGNS, DataMovement, StubDesign, StubEngine};

/// The interfaces: what the table calls them, and their files.
const INTERFACES: [(&str, &str); 3] = [
    ("corpus", "src/cost/corpus.x"),
    ("moves", "src/cost/moves.x"),
    ("nfs3", "../../interfaces/nfs3.x"),
];

/// Writes the stubs, each in a module of its own, and `cost.rs` with the table.
pub fn generate(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (mut modules, mut rows) = (String::new(), String::new());
    for (name, file) in INTERFACES {
        println!("cargo::rerun-if-changed={file}");
        let parsed = tenon_idl::parse_file(file.as_ref(), &tenon_idl::Options::default());
        let said = parsed.render(Style::Plain);
        let mut schema = parsed.schema.ok_or(said)?;
        let wanted = messages(&schema);
        // Only what is moved, no clients and no servers.
        schema.programs.clear();
        for design in DESIGNS.iter().filter(|design| is_wanted(design, name)) {
            let module = format!("{name}_{}", design.word());
            let all = [Representation::XDR, Representation::LEAN];
            let [xdr, lean] = all.map(|representation| design.plans(&schema, representation));
            let (xdr, lean) = (xdr?, lean?);
            let moves = design.movement.moves();
            let way = crate::way(moves);
            let forms = [&xdr, &lean].map(|plans| crate::form(plans, moves));
            let forms: Vec<Form<'_>> = forms.into_iter().flatten().collect();
            let options = rust::Options {
                source: file.to_owned(),
                tenon: "crate::cost::run_time".to_owned(),
                for_include: true,
                ..rust::Options::default()
            };
            let text = rust::generate(&schema, &forms, &options)?;
            fs::write(folder.join(format!("cost_{module}.rs")), text)?;
            writeln!(modules, "stubs!({module}, \"/cost_{module}.rs\", {way});")?;
            write_rows(
                &mut rows,
                &schema,
                &wanted,
                [name, design.movement.name(), &module],
            )?;
        }
    }
    let text = format!("{modules}table! {{\n{rows}}}\n");
    Ok(fs::write(folder.join("cost.rs"), text)?)
}

/// All passes for all, and what is about loops by every design.
fn is_wanted(design: &StubDesign, interface: &str) -> bool {
    let is_all = design.movement == DataMovement::EveryPass;
    design.engine == StubEngine::Compiled && (is_all != (interface == "moves"))
}

/// The types that stand for messages: what procedures take and give or, without procedures, all.
fn messages(schema: &Schema) -> Vec<TypeId> {
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let procedures = versions.flat_map(|version| &version.procedures);
    let used = procedures.flat_map(|procedure| {
        let arguments = procedure.arguments.iter().map(|field| &field.ty);
        arguments.chain(&procedure.result)
    });
    let named = used.filter_map(|ty| match ty {
        Type::Named(id) => Some(*id),
        _ => None,
    });
    let mut ids: Vec<TypeId> = named.collect();
    if ids.is_empty() {
        ids = (0..schema.types.len() as u32).map(TypeId).collect();
    }
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| match schema.type_def(*id).kind {
        TypeKind::Struct(_) => !is_link(schema, *id),
        TypeKind::Union(_) => true,
        TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => false,
    });
    ids
}

/// One row for each of `types`; `of` names the interface, the movement and the module.
fn write_rows(
    rows: &mut String,
    schema: &Schema,
    types: &[TypeId],
    of: [&str; 3],
) -> Result<(), Box<dyn Error>> {
    let names = Names::of(schema, &[]);
    let [interface, movement, module] = of;
    for id in types {
        let (known, name) = (&schema.type_def(*id).name, &names.of_type(*id).name);
        writeln!(
            rows,
            "    ({interface:?}, {movement:?}, {known:?}) => {module}::{name}, {module}::Way;"
        )?;
    }
    Ok(())
}

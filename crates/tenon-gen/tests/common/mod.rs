//! The interfaces that the tests generate stubs from.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use tenon_gen::rust::{self, Form, Marker, Options};
use tenon_plan::{Lists, Order, Pass, Plans, Representation};
use tenon_schema::Schema;

/// The interface in the file `path`.
pub fn schema(path: &Path) -> Schema {
    let parsed = tenon_idl::parse_file(path, &tenon_idl::Options::default());
    let problems = parsed.render(tenon_idl::Style::Plain);
    parsed.schema.unwrap_or_else(|| panic!("{problems}"))
}

/// A representation that neither the run time nor the generator knows: little-endian, every number
/// as wide as it is, nothing aligned. `tests/stubs.rs` has the type for it.
pub const PACKED: Representation = Representation {
    name: "packed",
    order: Order::Little,
    words: false,
    aligned: false,
    padding: 1,
    lists: Lists::Counted,
};

/// The specialised plans of `schema`.
pub fn plans(schema: &Schema, representation: Representation) -> Plans {
    let mut plans =
        tenon_plan::lower(schema, representation).expect("every corpus interface has plans");
    tenon_plan::specialize(schema, &mut plans, Pass::ALL).expect("the passes keep plans sound");
    plans
}

/// The stubs for the interface in the file `path`: XDR, and of a few interfaces others, too.
pub fn stubs(path: &Path) -> String {
    let lean = [Representation::XDR, Representation::LEAN];
    let views = Options {
        views: true,
        ..Options::default()
    };
    let tasks = Options {
        tokio: Some("::tenon_tokio".to_owned()),
        ..Options::default()
    };
    let reserved = Options {
        reserved: true,
        ..Options::default()
    };
    let reserved_tasks = Options {
        reserved: true,
        ..tasks.clone()
    };
    let utf8 = Options {
        utf8_strings: true,
        ..views.clone()
    };
    match file_name(path).as_str() {
        "representations.x" => stubs_with(path, &[lean[0], lean[1], PACKED], views),
        "arguments.x" | "borrowed.x" | "namespaces.x" | "raises_views.x" | "sensitive.x" => {
            stubs_with(path, &lean, views)
        }
        "raises.x" | "reserved_async.x" => stubs_with(path, &lean, reserved_tasks),
        "reserved.x" => stubs_with(path, &lean, reserved),
        "utf8.x" => stubs_with(path, &lean, utf8),
        "callbacks_async.x" | "idempotent.x" | "streams_async.x" | "tasks.x" => {
            stubs_with(path, &lean, tasks)
        }
        "tasks_onc.x" => stubs_with(path, &lean[..1], reserved_tasks),
        "callbacks.x" | "calls.x" | "demo.x" | "deprecated.x" | "directions.x" | "hprpc.x"
        | "names.x" | "results.x" | "service.x" | "streams.x" => stubs_in(path, &lean),
        _ => stubs_in(path, &lean[..1]),
    }
}

/// The stubs for the interface in the file `path`, with the default choices.
pub fn stubs_in(path: &Path, representations: &[Representation]) -> String {
    stubs_with(path, representations, Options::default())
}

/// The same with these choices.
pub fn stubs_with(path: &Path, representations: &[Representation], options: Options) -> String {
    let schema = schema(path);
    let plans = representations.iter().map(|of| plans(&schema, *of));
    let plans: Vec<_> = plans.collect();
    let forms: Vec<_> = plans.iter().map(form).collect();
    let options = Options {
        source: file_name(path),
        ..options
    };
    rust::generate(&schema, &forms, &options).expect("values that fit on a stack")
}

fn form(plans: &Plans) -> Form<'_> {
    Form::of(plans).unwrap_or_else(|| Form {
        plans,
        marker: Marker {
            path: "super::Packed".to_owned(),
            parameters: String::new(),
            imports: Vec::new(),
            suffix: "_packed".to_owned(),
        },
    })
}

/// The interfaces that the stubs in `tests/golden` are made from. Those of `health.x` and `rpcbind.x` stand in the run
/// time, which holds them to the generator itself.
pub fn corpus() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = interfaces(&here.join("tests/corpus"));
    files.extend(interfaces(&here.join("../../interfaces")));
    files.retain(|file| !file.ends_with("health.x") && !file.ends_with("rpcbind.x"));
    files
}

/// The `.x` files of a folder, sorted; none if it does not exist.
pub fn interfaces(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "x"));
    files.sort();
    files
}

/// The interface that torments marshalling code.
pub fn torture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interfaces/torture.x")
}

/// Holds a text to the golden file at `path`, or writes it there if `UPDATE_EXPECT` is set.
///
/// # Panics
/// If they differ.
pub fn expect_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, text).expect("the golden file can be written");
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == text,
        "{} differs from what is generated now; see it with UPDATE_EXPECT=1 and git diff",
        path.display()
    );
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

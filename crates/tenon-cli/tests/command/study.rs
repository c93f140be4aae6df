//! `tenon study`: all designs take part, and what is written can be read. No test looks at a time.

use std::fs;

use crate::common::tenon;
use roxmltree::Document;
use serde_json::Value as Json;

const WORKS: [&str; 3] = ["(I)", "(A[256] I)", "(Structure)"];

/// The paper's ten designs, and ours.
const DESIGNS: [&str; 13] = [
    "interpreted, inline, byte copy",
    "interpreted, inline, item copy",
    "interpreted, procedural, byte copy",
    "interpreted, procedural, item copy",
    "interpreted, block copy",
    "compiled, inline, byte copy",
    "compiled, inline, item copy",
    "compiled, procedural, byte copy",
    "compiled, procedural, item copy",
    "compiled, block copy",
    "interpreted, every pass",
    "compiled, every pass",
    "machine code, every pass",
];

#[test]
fn every_design_does_every_work_both_ways() {
    let text = tenon(&["study", "--quick", "--json", "-"]).ok();
    let study: Json = serde_json::from_str(&text).expect("what is printed is JSON");
    let cells = study["cells"].as_array().expect("a list of cells");
    assert_eq!(cells.len(), DESIGNS.len() * WORKS.len() * 2);
    for design in DESIGNS {
        for work in WORKS {
            for direction in ["encode", "decode"] {
                let is_it = |cell: &&Json| {
                    (&cell["design"], &cell["work"], &cell["direction"])
                        == (&design.into(), &work.into(), &direction.into())
                };
                let cell = cells.iter().find(is_it);
                let cell = cell.unwrap_or_else(|| panic!("{design}: {direction} {work}"));
                assert!(cell["ns"]["median"].as_f64() > Some(0.0), "{cell}");
                assert!(
                    cell["over_baseline"]["here"]["median"].is_number(),
                    "{cell}"
                );
            }
        }
    }
}

#[test]
fn tables_are_printed_in_the_form_of_the_paper_and_json_goes_to_a_file() {
    let file = std::env::temp_dir().join(format!("tenon-study-{}.json", std::process::id()));
    let name = file.to_str().expect("the path is UTF-8");
    let text = tenon(&["study", "--quick", "--json", name]).ok();
    let written = fs::read_to_string(&file).expect("the file is written");
    fs::remove_file(&file).expect("the file is ours");
    let study: Json = serde_json::from_str(&written).expect("what is written is JSON");
    assert_eq!(study["representation"], "xdr");
    for direction in ["encode", "decode"] {
        let tables = [
            format!("### Table 1, {direction}: (I) by compiled stubs"),
            format!("### Table 2, {direction}: ns"),
            format!("### Table 2, {direction}: multiples"),
            format!("### Table 3, {direction}: per cent due to interpretation"),
            format!("### Table 4, {direction}: per cent due to procedure calls"),
        ];
        for table in tables {
            let (_, table) = text.split_once(&table).expect("a table");
            let rows = table
                .lines()
                .skip(2)
                .take_while(|line| line.starts_with('|'));
            let rows: Vec<_> = rows.collect();
            assert!(rows.len() > 3, "{text}");
            let is_whole = |row: &&str| row.matches('|').count() == 2 + WORKS.len();
            assert!(rows.iter().all(is_whole), "{text}");
        }
        equations_are_there(&text, direction);
        unrolled_code_is_there(&text, &study, direction);
    }
    let (_, parameters) = text.split_once("### Table 6").expect("a table");
    for (parameter, in_paper) in [("`L_b`", "15000"), ("`p`", "25000"), ("`i`", "-")] {
        let mut rows = parameters.lines();
        let row = rows.find(|row| row.contains(parameter)).expect(parameter);
        assert!(row.contains(&format!(" {in_paper} |")), "{row}");
    }
}

/// Each design has its equation, with what it takes beside what was predicted.
fn equations_are_there(text: &str, direction: &str) {
    let title = format!("### Table 5, {direction}: equations of (A[256] I)");
    let (_, table) = text.split_once(&title).expect("a table");
    for design in DESIGNS {
        let mut rows = table.lines();
        let row = rows.find(|row| row.starts_with(&format!("| {design}")));
        let row = row.unwrap_or_else(|| panic!("{design}: {table}"));
        assert!(row.contains(" + ") || row.contains("w"), "{row}");
        assert!(row.contains(" (") && row.contains(" ["), "{row}");
    }
}

/// Each form of code has a time for each length, and beside it what was published of encoding.
fn unrolled_code_is_there(text: &str, study: &Json, direction: &str) {
    let title = format!("### Unrolled code, {direction}: ns");
    let (_, table) = text.split_once(&title).expect("a table");
    for (form, published) in [
        ("generic", None),
        (
            "unrolled",
            Some([" / 3.5)", " / 3.5)", " / 3.0)", " / 2.3)"]),
        ),
        ("loop", Some([" / 3.4)", " / 3.5)", " / 3.0)", " / 2.9)"])),
        ("every pass", Some([" / -)"; 4])),
    ] {
        let mut rows = table.lines();
        let row = rows.find(|row| row.starts_with(&format!("| {form}")));
        let row = row.unwrap_or_else(|| panic!("{form}: {table}"));
        let cells: Vec<&str> = row.split('|').skip(2).take(4).map(str::trim).collect();
        for (index, cell) in cells.iter().enumerate() {
            match (published, direction) {
                (None, _) => assert!(cell.parse::<f64>().is_ok(), "{row}"),
                (Some(cells), "encode") => assert!(cell.ends_with(cells[index]), "{row}"),
                (Some(_), _) => assert!(cell.ends_with(" / -)"), "{row}"),
            }
        }
    }
    let cells = study["unrolling"].as_array().expect("a list of cells");
    let of_direction = cells.iter().filter(|cell| cell["direction"] == direction);
    let mut count = 0;
    for cell in of_direction {
        assert!(cell["ns"]["median"].as_f64() > Some(0.0), "{cell}");
        count += 1;
    }
    assert_eq!(count, 16);
}

#[test]
fn plots_are_well_formed_and_show_every_design() {
    let folder = std::env::temp_dir().join(format!("tenon-study-{}", std::process::id()));
    let name = folder.to_str().expect("the path is UTF-8");
    tenon(&["study", "--quick", "--svg", name]).ok();
    let read = |plot: &str| fs::read_to_string(folder.join(plot)).expect("the plot is written");
    let plots = [
        "table2-encode.svg",
        "table2-decode.svg",
        "table3-encode.svg",
    ]
    .map(read);
    fs::remove_dir_all(&folder).expect("the folder is ours");
    for svg in &plots {
        let document = Document::parse(svg).expect("a plot is XML");
        assert!(document.root_element().has_tag_name("svg"), "{svg}");
    }
    let document = Document::parse(&plots[0]).expect("a plot is XML");
    let texts = document.descendants().filter_map(|node| node.text());
    let texts: Vec<&str> = texts.collect();
    for shown in DESIGNS.iter().chain(&WORKS) {
        assert!(texts.contains(shown), "{shown}: {texts:?}");
    }
}

#[test]
fn a_representation_is_chosen() {
    let arguments = [
        "study",
        "--quick",
        "--representation",
        "lean",
        "--json",
        "-",
    ];
    let study: Json = serde_json::from_str(&tenon(&arguments).ok()).expect("JSON");
    assert_eq!(study["representation"], "lean");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let stderr = tenon(&["study", "--quick", "--json", "/nowhere/study.json"]).fails_with(1);
    assert!(stderr.contains("/nowhere/study.json"), "{stderr}");
    assert!(!stderr.contains("take turns"), "it is said first: {stderr}");
}

#[test]
fn a_study_that_fails_leaves_files_as_they_were() {
    let folder = std::env::temp_dir().join(format!("tenon-failing-study-{}", std::process::id()));
    // Plots are drawn when all has been measured, and this one cannot be.
    fs::create_dir_all(folder.join("table2-encode.svg")).expect("a folder");
    let (new, old) = (folder.join("new.json"), folder.join("old.json"));
    fs::write(&old, "{}").expect("a file");
    for file in [&new, &old] {
        let [svg, json] = [&folder, file].map(|path| path.to_str().expect("the path is UTF-8"));
        let arguments = ["study", "--quick", "--svg", svg, "--json", json];
        let stderr = tenon(&arguments).fails_with(1);
        assert!(stderr.contains("table2-encode.svg"), "{stderr}");
    }
    assert!(!new.exists(), "nothing was found out");
    assert_eq!(fs::read_to_string(&old).expect("it is there"), "{}");
    fs::remove_dir_all(&folder).expect("the folder is ours");
}

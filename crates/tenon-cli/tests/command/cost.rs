//! `tenon cost`: equations, what they come to, and what is said of a wrong command line. No test
//! looks at a time.

use std::fs;
use std::path::PathBuf;

use crate::common;
use crate::common::tenon_with;
use serde_json::Value as Json;

/// A folder for what is kept, gone with this value.
struct Cache(PathBuf);

impl Cache {
    fn new(name: &str) -> Self {
        let name = format!("tenon-cli-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn cost(&self, arguments: &[&str]) -> common::Run {
        let arguments = [&["cost"], arguments].concat();
        let folder = self.0.to_str().expect("the path is UTF-8");
        tenon_with(&arguments, &[("XDG_CACHE_HOME", folder)])
    }

    fn json(&self, arguments: &[&str]) -> Json {
        let text = self
            .cost(&[arguments, &["--quick", "--json"]].concat())
            .ok();
        serde_json::from_str(&text).expect("what is printed is JSON")
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(messages: &Json) -> Vec<(&str, &str)> {
    let messages = messages.as_array().expect("a list").iter();
    messages
        .map(|message| {
            let text = |key: &str| message[key].as_str().expect("text");
            (text("name"), text("role"))
        })
        .collect()
}

#[test]
fn every_procedure_has_a_price() {
    let cost = Cache::new("procedures").json(&["interfaces/demo.x"]);
    let names = names(&cost["messages"]);
    assert_eq!(names.len(), 2 * 5);
    assert!(names.contains(&("AVERAGE", "arguments")) && names.contains(&("LOOK_UP", "result")));
    for message in cost["messages"].as_array().expect("a list") {
        for way in message["ways"].as_array().expect("both ways") {
            assert!(way["ns"].as_f64() >= Some(0.0), "{message}");
        }
    }
}

#[test]
fn lengths_and_arms_are_taken_from_the_command_line() {
    let cache = Cache::new("lengths");
    let read = ["interfaces/nfs3.x", "NFSPROC3_READ"];
    let lengths = ["--lengths", "data=8192", "--arm", "post_op_attr=FALSE"];
    let cost = cache.json(&[&read[..], &lengths].concat());
    let result = &cost["messages"][1];
    assert_eq!(result["bytes"], 4 + 4 + 8 + 4 + 8192);
    assert_eq!(result["ways"][1]["allocations"], 1);
    assert_eq!(result["ways"][1]["allocated_bytes"], 8192);
    let unknown = [&read[..], &["--lengths", "dta=1", "--quick"]].concat();
    let said = cache.cost(&unknown).fails_with(1);
    assert!(said.contains("`dta`"), "{said}");
    let unknown = [&read[..], &["--arm", "post_op_attr=MAYBE", "--quick"]].concat();
    let said = cache.cost(&unknown).fails_with(1);
    assert!(said.contains("`MAYBE`"), "{said}");
}

/// Without --quick this machine would be measured for seconds first.
#[test]
fn names_are_looked_up_before_anything_is_measured() {
    let cache = Cache::new("before");
    for (wrong, named) in [
        (&["NFSPROC3_READ", "--lengths", "dta=1"][..], "`dta`"),
        (&["--arm", "post_op_attr=MAYBE"], "`MAYBE`"),
        (&["NFSPROC3_REED"], "`NFSPROC3_REED`"),
        // A file handle of NFS has at most 64 bytes.
        (&["--lengths", "nfs_fh3.data=65"], "its bound is 64"),
    ] {
        let arguments = [&["interfaces/nfs3.x", "--calibrate"], wrong].concat();
        let said = cache.cost(&arguments).fails_with(1);
        assert!(said.contains(named), "{said}");
        assert!(!said.contains("measuring"), "{said}");
    }
    assert!(!cache.0.exists(), "nothing is kept");
}

/// Each label of an arm names it, and so does one that selects the default arm.
#[test]
fn arms_are_named_by_each_of_their_labels() {
    let cache = Cache::new("labels");
    let text = "enum kind { A, B, C, D };\n\
        union some switch (kind k) { case A: void; case B: case C: int x[9]; default: hyper y; };\n";
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("labels.x");
    fs::write(&file, text).expect("the interface can be written");
    let file = file.to_str().expect("the path is UTF-8");
    for (label, bytes) in [("A", 4), ("B", 40), ("C", 40), ("D", 12), ("default", 12)] {
        let cost = cache.json(&[file, "some", "--arm", &format!("some={label}")]);
        assert_eq!(cost["messages"][0]["bytes"], bytes, "{label}");
    }
}

#[test]
fn equations_are_shown_with_what_dominates_them() {
    let cache = Cache::new("equations");
    let text = cache
        .cost(&["interfaces/demo.x", "AVERAGE", "--quick"])
        .ok();
    for part in [
        "the arguments of AVERAGE: 68 bytes",
        "AVERAGE = B + c + L_i + n + a(4 |arg1|) + s(4 |arg1|)",
        "dominated by",
        "1 allocation of 64 bytes",
        "begin and end a message",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!cache.0.exists(), "what is quick is not kept");
}

#[test]
fn what_is_quick_needs_no_place_to_be_kept_in() {
    let nowhere = [("XDG_CACHE_HOME", ""), ("HOME", "")];
    let arguments = ["cost", "interfaces/demo.x", "AVERAGE", "--quick"];
    let text = tenon_with(&arguments, &nowhere).ok();
    assert!(text.contains("the arguments of AVERAGE"), "{text}");
}

#[test]
fn what_cannot_be_kept_is_shown_all_the_same_and_can_be_exported() {
    let nowhere = [("XDG_CACHE_HOME", "/dev/null"), ("HOME", "")];
    let arguments = ["cost", "interfaces/demo.x", "AVERAGE", "--engine", "interp"];
    let folder = Cache::new("export");
    let file = folder.0.join("machine.json");
    let file = file.to_str().expect("the path is UTF-8");
    let run = tenon_with(&[&arguments[..], &["--export", file]].concat(), &nowhere);
    assert!(
        run.stderr.contains("/dev/null/tenon/cost.json"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("measured again next time"),
        "{}",
        run.stderr
    );
    let here = run.ok();
    assert!(here.contains("the arguments of AVERAGE"));
    predict_for_another_machine(file, &here);
}

/// The parameters in `file` say what they said `here`, under the name of their machine.
fn predict_for_another_machine(file: &str, here: &str) {
    let text = fs::read_to_string(file).expect("it was exported");
    let mut json: Json = serde_json::from_str(&text).expect("what is exported is JSON");
    let this = json["processor"].as_str().expect("a name").to_owned();
    json["processor"] = "Another 9000".into();
    fs::write(file, json.to_string()).expect("the folder is there");
    let arguments = ["interfaces/demo.x", "AVERAGE", "--machine", file];
    let there = Cache::new("another").cost(&[&arguments[..], &["--engine", "interp"]].concat());
    assert_eq!(there.ok(), here.replace(&this, "Another 9000"));
    let said = Cache::new("another").cost(&arguments).fails_with(1);
    assert!(
        said.contains("no parameters of the engine `compiled` with `xdr`"),
        "{said}"
    );
    assert!(said.contains("--export FILE"), "{said}");
    fs::write(file, "{}").expect("the folder is there");
    let said = Cache::new("another").cost(&arguments).fails_with(1);
    assert!(said.contains("has no parameters of a machine"), "{said}");
}

#[test]
fn an_export_needs_no_interface_and_everything_else_does() {
    let said = Cache::new("without").cost(&["--quick"]).fails_with(2);
    assert!(said.contains("<FILE"), "{said}");
    let both = [
        "interfaces/demo.x",
        "--machine",
        "there.json",
        "--calibrate",
    ];
    let said = Cache::new("without").cost(&both).fails_with(2);
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn predictions_are_held_against_measurements() {
    let cache = Cache::new("check");
    for engine in ["compiled", "machine", "interp"] {
        let cost = cache.json(&["interfaces/nfs3.x", "--check", "--engine", engine]);
        assert_eq!(cost["engine"], engine);
        let messages = cost["messages"].as_array().expect("a list");
        // Three values of what each of 21 procedures takes and gives, both ways.
        assert_eq!(messages.len(), 2 * 3 * 42);
        for message in messages {
            assert!(message["measured_ns"].as_f64() > Some(0.0), "{message}");
            assert!(message["predicted_ns"].as_f64() >= Some(0.0), "{message}");
        }
        assert_eq!(cost["summary"][0]["messages"], 3 * 42);
    }
}

#[test]
fn what_is_not_compiled_in_cannot_be_timed() {
    let cache = Cache::new("compiled");
    let said = cache.cost(&["interfaces/mount3.x", "--check", "--quick"]);
    let said = said.fails_with(1);
    assert!(said.contains("--engine machine"), "{said}");
}

#[test]
fn messages_of_undeclared_types_are_left_out() {
    let cache = Cache::new("undeclared");
    let holding = "struct deep { elsewhere x; int y; };\ntypedef deep many<>;\n\
        union far switch (bool known) { case TRUE: many all; case FALSE: void; };\n";
    let near = "struct near { int x; };\n";
    for (text, timed) in [(format!("{holding}{near}"), 2 * 3), (holding.to_owned(), 0)] {
        let name = format!("undeclared_{timed}.x");
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&file, text).expect("the interface can be written");
        let file = file.to_str().expect("the path is UTF-8");
        let arguments = [file, "--check", "--engine", "interp", "--quick", "--json"];
        let run = cache.cost(&[&arguments[..], &["--allow-undefined"]].concat());
        for name in ["deep", "far"] {
            let said =
                format!("`{name}` is left out: nobody knows the values of `elsewhere` in it");
            assert!(run.stderr.contains(&said), "{}", run.stderr);
        }
        let says_so = run.stderr.contains("nothing is measured");
        assert_eq!(says_so, timed == 0, "{}", run.stderr);
        let cost: Json = serde_json::from_str(&run.ok()).expect("what is printed is JSON");
        let messages = cost["messages"].as_array().expect("a list");
        assert!(messages.iter().all(|message| message["name"] == "near"));
        assert_eq!(messages.len(), timed);
    }
}

#[test]
fn a_name_that_nothing_has_is_refused() {
    let said = Cache::new("unknown").cost(&["interfaces/demo.x", "NOTHING", "--quick"]);
    let said = said.fails_with(1);
    assert!(said.contains("`NOTHING`"), "{said}");
}

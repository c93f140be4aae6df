//! `tenon check`, `gen` and `explain`: what a user sees of interface files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common;
use crate::common::{tenon, tenon_reading};

const BROKEN: &str = "struct point {\n    int x\n    int y;\n};\nstruct point { int z; };\n";

/// A file that goes away with this value.
struct Temporary(PathBuf);

impl Temporary {
    fn file(name: &str, text: &str) -> Self {
        let name = format!("tenon-cli-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is UTF-8")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_good_file_is_summed_up() {
    let summary = tenon(&["check", "interfaces/demo.x"]).ok();
    assert_eq!(
        summary,
        "interfaces/demo.x: ok, 5 types, 1 constant, 1 program, 1 version, 5 procedures\n"
    );
}

#[test]
fn an_interface_comes_from_stdin() {
    let demo = fs::read(common::root().join("interfaces/demo.x")).expect("the interface is there");
    let summary = tenon_reading(&["check", "-"], &demo).ok();
    assert!(summary.starts_with("<stdin>: ok, 5 types"), "{summary}");
    let same = |arguments: &[&str], file: &str| {
        let of_file = tenon(&[arguments, &[file]].concat()).ok();
        let of_stdin = tenon_reading(&[arguments, &["-"]].concat(), &demo).ok();
        assert_eq!(of_stdin.replace("<stdin>", "demo.x"), of_file);
    };
    same(&["gen", "--lang", "rust"], "interfaces/demo.x");
    same(&["explain"], "interfaces/demo.x");

    let broken = tenon_reading(&["check", "-"], BROKEN).fails_with(1);
    assert!(broken.contains("<stdin>:2:10"), "{broken}");
    let broken = tenon_reading(&["check", "--json", "-"], BROKEN);
    assert!(broken.stdout.contains(r#""file":"<stdin>""#), "{broken:?}");
    // What it includes is looked for in the working directory, the repository's root here.
    let including = "#include \"interfaces/demo.x\"\n";
    let summary = tenon_reading(&["check", "-"], including).ok();
    assert!(summary.contains("5 types"), "{summary}");
    let endless = vec![b' '; (16 << 20) + 1];
    let endless = tenon_reading(&["check", "-"], endless).fails_with(1);
    assert!(endless.contains("`<stdin>` is too long"), "{endless}");

    for wrong in [
        &["check", "-", "-"][..],
        &["gen", "--lang", "c", "-", "-o", "/nowhere"],
        &["gen", "--lang", "rust", "-", "-o", "/nowhere"],
    ] {
        let said = tenon_reading(wrong, &demo).fails_with(2);
        assert!(said.contains("stdin"), "{said}");
    }
}

#[test]
fn errors_name_file_line_column_and_show_the_line() {
    let file = Temporary::file("broken.x", BROKEN);
    let stderr = tenon(&["check", file.path()]).fails_with(1);
    assert!(
        stderr.contains(&format!("{}:2:10", file.path())),
        "{stderr}"
    );
    assert!(stderr.contains("2 |     int x"), "{stderr}");
    assert!(
        stderr.matches("error: ").count() >= 2,
        "several errors in one run: {stderr}"
    );
    assert!(stderr.contains("1 of 1 files failed"), "{stderr}");
}

#[test]
fn diagnostics_are_json_when_asked_for() {
    let file = Temporary::file("broken-json.x", BROKEN);
    let run = tenon(&["check", "--json", file.path()]);
    assert_eq!(run.status, Some(1));
    for line in run.stdout.lines() {
        let report: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(report["file"], file.path());
        assert!(report["line"].as_u64() > Some(0) && report["message"].is_string());
    }
    assert!(run.stdout.lines().count() >= 2);
    let absent = tenon(&["check", "--json", "no/such.x"]);
    assert_eq!(absent.status, Some(1));
    let report: serde_json::Value = serde_json::from_str(&absent.stdout).expect("it is JSON");
    assert_eq!(report["file"], "no/such.x");
}

#[test]
fn a_legal_interface_that_nothing_can_carry_is_refused_with_its_place() {
    let mut text = String::from("struct s0 { int x; };\n");
    for depth in 1..100 {
        text += &format!("struct s{depth} {{ s{} inner; }};\n", depth - 1);
    }
    let file = Temporary::file("deep.x", &text);
    let stderr = tenon(&["check", file.path()]).fails_with(1);
    assert!(stderr.contains("more than 64 deep"), "{stderr}");
    assert!(
        stderr.contains(&format!("--> {}:65", file.path())),
        "{stderr}"
    );
}

#[test]
fn items_that_messages_do_not_pay_for_are_warned_of() {
    let file = Temporary::file(
        "amplifying.x",
        "union u switch (int k) {\ncase 0: opaque x[4096];\ndefault: void;\n};\ntypedef u us<>;\n",
    );
    let run = tenon(&["check", file.path()]);
    assert_eq!(run.status, Some(0), "it is a warning");
    assert!(
        run.stderr
            .contains("warning: us: an item may take 3844 bytes"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(&format!("--> {}:5", file.path())));
    let json = tenon(&["check", "--json", file.path()]).ok();
    let report: serde_json::Value = serde_json::from_str(json.trim()).expect("one line");
    assert_eq!(
        (&report["severity"], &report["line"]),
        (&"warning".into(), &5.into())
    );
}

#[test]
fn every_file_of_rpcsvc_passes() {
    let mut files = 0;
    for entry in fs::read_dir("/usr/include/rpcsvc").expect("libnsl-dev and rpcsvc-proto are there")
    {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "x") {
            tenon(&["check", path.to_str().expect("the path is UTF-8")]).ok();
            files += 1;
        }
    }
    assert!(files >= 15, "only {files} interface files");
}

#[test]
fn strict_reading_refuses_what_rpcgen_refuses() {
    let file = Temporary::file(
        "dialect.x",
        "struct s { int x; }; // a comment of C++\nenum e { A, };\n",
    );
    tenon(&["check", file.path()]).ok();
    tenon(&["check", "--strict-rpcgen", file.path()]).fails_with(1);
}

#[test]
fn definitions_and_include_folders_reach_the_preprocessor() {
    let file = Temporary::file(
        "conditional.x",
        "#ifdef WIDE\ntypedef hyper word;\n#else\ntypedef int word;\n#endif\n",
    );
    let explain =
        |arguments: &[&str]| tenon(&[&["explain", file.path(), "word"], arguments].concat()).ok();
    assert!(explain(&[]).contains("i32"));
    assert!(explain(&["-D", "WIDE"]).contains("i64"));
}

#[test]
fn annotations_are_explained_and_wrong_ones_are_errors() {
    let text = "struct lost { string key<8>; /*@ sensitive */\n};\n\
                program P { version V {\n/*@ idempotent; raises lost */\nint GET(int) = 1; } = 1; } = 1;\n";
    let file = Temporary::file("annotated.x", text);
    let explained = tenon(&["explain", file.path()]).ok();
    for line in ["  key: sensitive", "  idempotent; raises lost"] {
        assert!(explained.lines().any(|it| it == line), "{explained}");
    }
    let wrong = Temporary::file("wrong.x", &text.replace("idempotent", "idempotant"));
    let said = tenon(&["check", wrong.path()]).fails_with(1);
    assert!(
        said.contains("there is no annotation called `idempotant`"),
        "{said}"
    );
    assert!(said.contains("did you mean `idempotent`?"), "{said}");
}

#[test]
fn explain_shows_the_plan_of_a_type_and_of_a_procedure() {
    let entry = tenon(&["explain", "interfaces/demo.x", "entry"]).ok();
    assert!(entry.starts_with("union entry: 8 to 12 bytes"), "{entry}");
    let procedure = tenon(&["explain", "interfaces/demo.x", "LOOK_UP"]).ok();
    assert!(
        procedure.contains("arguments:") && procedure.contains("result:"),
        "{procedure}"
    );
    let stderr = tenon(&["explain", "interfaces/demo.x", "nothing"]).fails_with(1);
    assert!(stderr.contains("`nothing`"), "{stderr}");
}

#[test]
fn explain_shows_what_passes_make_and_which_blocks_are_broken() {
    let text = tenon(&["explain", "--passes", "interfaces/nfs3.x", "wcc_attr"]).ok();
    let headings: Vec<_> = text.lines().filter(|line| line.starts_with("==")).collect();
    let expected = [
        "== as lowered",
        "== fold_aligns changes nothing",
        "== merge_arrays changes nothing",
        "== after merge_blocks",
        "== inline changes nothing",
        "== merge_checks changes nothing",
        "== hoist_checks changes nothing",
        "== blocks of wcc_attr",
    ];
    assert_eq!(headings, expected, "{text}");
    assert!(text.contains("size: a block of 1 x 8 bytes\n"), "{text}");
    assert!(text.contains("broken off by an order"), "{text}");
    let stderr = tenon(&["explain", "--passes", "interfaces/demo.x", "nothing"]).fails_with(1);
    assert!(stderr.contains("`nothing`"), "{stderr}");
}

#[test]
fn explain_shows_the_lean_representation() {
    let arguments = ["explain", "--representation", "lean"];
    let plan = |file: &str, name: &str| tenon(&[&arguments[..], &[file, name]].concat()).ok();
    let text = plan("interfaces/nfs3.x", "post_op_attr");
    assert!(text.contains("switch it: bool"), "{text}");
    let attributes = plan("interfaces/nfs3.x", "fattr3");
    assert!(
        attributes.starts_with("struct fattr3: 88 bytes"),
        "{attributes}"
    );
}

#[test]
fn stubs_go_to_stdout_or_into_a_folder() {
    let printed = tenon(&["gen", "--lang", "rust", "interfaces/demo.x"]).ok();
    assert!(printed.contains("pub struct DemoV1Client"), "{printed}");
    let folder = std::env::temp_dir().join(format!("tenon-cli-gen-{}", std::process::id()));
    let folder_name = folder.to_str().expect("the path is UTF-8");
    tenon(&[
        "gen",
        "--lang",
        "rust",
        "interfaces/demo.x",
        "-o",
        folder_name,
    ])
    .ok();
    let written = fs::read_to_string(folder.join("demo.rs")).expect("demo.rs is written");
    fs::remove_dir_all(&folder).expect("the folder is ours");
    assert_eq!(printed, written);
}

#[test]
fn c_stubs_are_two_files() {
    let generate = ["gen", "--lang", "c", "interfaces/demo.x"];
    let nowhere = tenon(&generate).fails_with(2);
    assert!(nowhere.contains("-o DIR"), "{nowhere}");
    let folder = std::env::temp_dir().join(format!("tenon-cli-c-{}", std::process::id()));
    let into = ["-o", folder.to_str().expect("the path is UTF-8")];
    for option in [
        "--views",
        "--reserved",
        "--tokio",
        "--utf8-strings",
        "--derive=serde::Serialize",
        "--representation=lean",
    ] {
        let arguments = [&generate[..], &into, &[option]].concat();
        let refused = tenon(&arguments).fails_with(2);
        assert!(refused.contains("is for --lang rust"), "{refused}");
    }
    tenon(&[&generate[..], &into].concat()).ok();
    let [header, source] =
        ["demo.h", "demo.c"].map(|name| fs::read_to_string(folder.join(name)).expect("a file"));
    fs::remove_dir_all(&folder).expect("the folder is ours");
    assert!(header.contains("bool say_hello_1 (tenon_channel *channel, const char *arg1, char **result, tenon_error *error);"), "{header}");
    assert!(source.contains("#include \"demo.h\""), "{source}");
}

#[test]
fn strings_and_derived_traits_are_chosen() {
    let generate = ["gen", "--lang", "rust", "interfaces/demo.x"];
    let usual = tenon(&generate).ok();
    assert!(usual.contains("pub type Name = BString;"), "{usual}");
    assert!(!usual.contains("serde"), "{usual}");
    let derived = ["--derive", "serde::Serialize", "--derive", "Ord"];
    let chosen = tenon(&[&generate[..], &["--utf8-strings"], &derived].concat()).ok();
    assert!(chosen.contains("pub type Name = String;"), "{chosen}");
    assert!(
        chosen.contains("Default, serde::Serialize, Ord)]"),
        "{chosen}"
    );
}

#[test]
fn stubs_are_made_for_the_representations_that_are_named() {
    let generate = ["gen", "--lang", "rust", "interfaces/demo.x"];
    let with = |names: &str| tenon(&[&generate[..], &["--representation", names]].concat()).ok();
    let lean_impl = "impl<O: Order> Marshal<Lean<O>> for Entry {";
    let both = with("xdr,lean");
    assert!(!both.contains("EntryView"));
    assert!(both.contains(lean_impl) && both.contains("impl Marshal<Xdr> for Entry {"));
    let lean = with("lean");
    assert!(lean.contains(lean_impl) && !lean.contains("Marshal<Xdr>"));
    assert!(!lean.contains("Client"), "clients speak XDR: {lean}");
    tenon(&[&generate[..], &["--representation", "json"]].concat()).fails_with(2);
}

#[test]
fn servers_write_results_in_place_if_they_are_asked_to() {
    let generate = ["gen", "--lang", "rust", "interfaces/hprpc.x"];
    let in_place = "fn max_result(&self, call: &CallInfo<'_>, reply: &mut Packet)";
    assert!(!tenon(&generate).ok().contains(in_place));
    let reserved = tenon(&[&generate[..], &["--reserved"]].concat()).ok();
    assert!(reserved.contains(in_place), "{reserved}");
}

#[test]
fn a_wrong_command_line_ends_with_status_2() {
    for arguments in [
        &["gen", "interfaces/demo.x"][..],
        &["nonsense"],
        &["ping", "tcp://h", "x"],
    ] {
        tenon(arguments).fails_with(2);
    }
}

#[test]
fn help_teaches_by_example() {
    let listed = tenon(&["help"]).ok();
    let listed = listed.lines().skip_while(|line| *line != "Commands:");
    let listed = listed.skip(1).take_while(|line| !line.is_empty());
    // What is longer than a line goes on further to the right.
    let named = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = named.filter(|name| !["", "help"].contains(name)).collect();
    assert_eq!(commands.len(), 17, "{commands:?}");
    for command in commands {
        // `tenon rpcgen --help` is rpcgen's.
        let help = tenon(&["help", command]).ok();
        assert!(help.contains("Examples:\n  tenon "), "{command}: {help}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = tenon(&["completions", shell]).ok();
        assert!(
            script.contains("explain") && script.contains("strict-rpcgen"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    // What an earlier version has written there.
    let _ = fs::remove_dir_all(&folder);
    tenon(&["man", &folder.display().to_string()]).ok();
    let help = tenon(&["--help"]).ok();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut pages = 0;
    for name in names.filter(|name| !["", "help"].contains(name)) {
        let page = folder.join(format!("tenon-{name}.1"));
        let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        pages += 1;
    }
    assert_eq!(pages, 17);
    let all = fs::read_to_string(folder.join("tenon.1")).expect("a page of all");
    assert!(all.contains("tenon\\-call(1)"), "{all}");
    let said = tenon(&["man", "/dev/null/nowhere"]).fails_with(1);
    assert!(said.contains("/dev/null/nowhere"), "{said}");
}

/// What a group of options has in common stands behind what only this command has: clap puts
/// whatever follows a group under its heading.
#[test]
fn help_lists_a_commands_own_options_first() {
    for (command, own) in [
        ("check", &["--json"][..]),
        ("gen", &["--lang", "--out"]),
        ("explain", &["--passes"]),
        ("call", &["--compact", "--version"]),
        ("ping", &["--json", "--count"]),
        ("account", &["--json", "--svg", "--calls"]),
        ("cost", &["--json", "--check"]),
    ] {
        let help = tenon(&["help", command]).ok();
        let options = help.split("\nOptions:\n").nth(1).expect("options");
        let headings = ["\nCalling:\n", "\nReading the interface:\n"];
        let groups = headings.iter().filter_map(|heading| options.find(heading));
        let own_end = groups.min().expect("a group of options");
        for option in own {
            let place = options.find(option).expect(option);
            assert!(place < own_end, "{command} {option}: {help}");
        }
    }
}

/// A reader of the output may stop reading; a file that keeps it has to have room for it.
#[test]
fn output_that_nobody_takes_is_told_from_output_that_is_lost() {
    let explain = |stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(["explain", "interfaces/nfs3.x"]);
        let command = command.current_dir(common::root()).stdout(stdout);
        let output = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let output = output.wait_with_output().expect("it ends");
        let stderr = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), stderr)
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(explain(writer.into()), (Some(0), String::new()));
    let full = fs::File::options().write(true).open("/dev/full");
    let (status, stderr) = explain(full.expect("Linux has it").into());
    assert_eq!(status, Some(1));
    assert!(
        stderr.contains("cannot write to stdout: No space"),
        "{stderr}"
    );
}

#[test]
fn a_union_may_contain_itself_where_another_arm_ends_it() {
    let text = "union u switch (int k) { case 0: void; case 1: w n; };\nstruct w { u v; };\n";
    let file = Temporary::file("within.x", text);
    assert!(tenon(&["check", file.path()]).ok().contains("ok, 2 types"));
    let stubs = tenon(&["gen", "--lang", "rust", file.path()]).ok();
    assert!(stubs.contains("Box<W>"), "{stubs}");
    let costs = tenon(&["explain", file.path(), "u"]).ok();
    assert!(costs.contains("recursive"), "{costs}");
    let stderr = tenon(&["rpcgen", "-h", file.path()]).fails_with(1);
    assert!(stderr.contains("`u` contains itself in place"), "{stderr}");
    assert!(stderr.contains("tenon gen --lang c"), "{stderr}");
}

#[test]
fn a_foreign_discriminant_is_told_with_its_place() {
    let text = "%#include \"status.h\"\nunion u switch (status k) { case 0: int x; };\n";
    let file = Temporary::file("foreign.x", text);
    let run = tenon(&["check", file.path()]);
    assert!(
        run.stderr.contains("switched by `status`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("foreign.x:2:17"), "{}", run.stderr);
    assert!(!run.stderr.contains("no end"), "{}", run.stderr);
    run.ok();
    let stderr = tenon(&["gen", "--lang", "rust", file.path()]).fails_with(1);
    assert!(stderr.contains("its values are not known"), "{stderr}");
}

#[test]
fn an_undefined_type_is_an_error_unless_it_is_allowed() {
    let text = "struct pair { other_t a; int b; };\n";
    let file = Temporary::file("undefined.x", text);
    let stderr = tenon(&["check", file.path()]).fails_with(1);
    assert!(
        stderr.contains("error: the type `other_t` is not defined"),
        "{stderr}"
    );
    assert!(stderr.contains("undefined.x:1:15"), "{stderr}");
    assert!(stderr.contains("--allow-undefined"), "{stderr}");
    tenon(&["gen", "--lang", "rust", file.path()]).fails_with(1);
    let allowed = tenon(&["check", "--allow-undefined", file.path()]);
    assert!(
        allowed.stderr.contains("warning: the type `other_t`"),
        "{}",
        allowed.stderr
    );
    allowed.ok();
    let stubs = tenon(&["gen", "--lang", "rust", "--allow-undefined", file.path()]).ok();
    assert!(stubs.contains("pub use super::OtherT;"), "{stubs}");
    let with_lines = Temporary::file("lines.x", &format!("%#include \"other.h\"\n{text}"));
    tenon(&["check", with_lines.path()]).ok();
}

#[test]
fn warnings_are_errors_on_request() {
    let warned = Temporary::file("warned.x", "struct s { int nothing[0]; };\n");
    tenon(&["check", warned.path()]).ok();
    let run = tenon(&[
        "check",
        "--deny-warnings",
        warned.path(),
        "interfaces/demo.x",
    ]);
    assert!(
        run.stdout.contains("interfaces/demo.x: ok"),
        "{}",
        run.stdout
    );
    let stderr = run.fails_with(1);
    assert!(
        stderr.contains("1 of 2 files failed the check, warnings counted"),
        "{stderr}"
    );
    // What the parser does not know counts, too.
    let text = "union block switch (int kind) { case 0: opaque data[4096]; default: void; };\n\
                struct blocks { block all<>; };\n";
    let amplifying = Temporary::file("amplifying.x", text);
    tenon(&["check", amplifying.path()]).ok();
    tenon(&["check", "--deny-warnings", amplifying.path()]).fails_with(1);
    let json = tenon(&["check", "--deny-warnings", "--json", amplifying.path()]);
    assert_eq!(json.status, Some(1));
    assert!(json.stdout.contains("\"warning\""), "{}", json.stdout);
}

#[test]
fn names_that_c_has_are_changed_and_the_rest_is_told_with_its_place() {
    let text = "typedef int int32_t;\nconst x = 5;\nstruct errno { int32_t size; };\n";
    let file = Temporary::file("names.x", text);
    let folder = std::env::temp_dir().join(format!("tenon-cli-{}-names", std::process::id()));
    let out = folder.to_str().expect("UTF-8");
    tenon(&["gen", "--lang", "c", file.path(), "-o", out]).ok();
    let name = PathBuf::from(file.path()).with_extension("h");
    let header = folder.join(name.file_name().expect("a name"));
    let header = fs::read_to_string(header).expect("the header");
    assert!(
        header.contains("struct errno_ {\n\tint32_t size;\n};"),
        "{header}"
    );
    let _ = fs::remove_dir_all(&folder);

    let clash = Temporary::file("clash.x", &format!("{text}struct s {{\n    int x;\n}};\n"));
    let stderr = tenon(&["gen", "--lang", "c", clash.path(), "-o", out]).fails_with(1);
    assert!(
        stderr.contains("clash.x:4: `x` would be a number"),
        "{stderr}"
    );
    assert!(stderr.contains("hint: rename it"), "{stderr}");
}

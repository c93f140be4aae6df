//! Names of types, of members, of fields and of parameters in stubs for Tenon's own run time, which C may have for
//! something else: a name gets a `_` behind it or is refused, or the compiler takes the stubs. The library is not
//! needed for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tenon_gen::c::stubs::{self, Refusal, Stubs};
use tenon_interop::{root, run};

/// The headers that stubs include, as a translation unit.
const HEADERS: &str = "#include <stdlib.h>\n#include <string.h>\n#include <tenon.h>\n";

/// The ways in which programs are compiled: by the standard alone, as gcc does by itself, which lets its headers declare
/// what POSIX has, and with all that glibc has.
const DIALECTS: [&[&str]; 3] = [
    &["-std=c11"],
    &["-std=gnu17"],
    &["-std=gnu17", "-D_GNU_SOURCE"],
];

/// What stands beside a name that is tried: parts of every kind, and a procedure of several parameters.
const INTERFACE: &str = "
enum hue { RED = 1, BLUE = 2 };
union choice switch (hue chosen) { case RED: int digit; case BLUE: string words_of_it<20>; default: void; };
struct link { opaque ring<>; link *following; };
";

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with(|char: char| char.is_ascii_alphabetic()))
}

fn folder() -> PathBuf {
    let folder = root().join("target/peers-c/type_names");
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// What the preprocessor makes of the headers, or which macros they have.
fn preprocessed(flags: &[&str]) -> String {
    let folder = folder();
    fs::write(folder.join("headers.c"), HEADERS).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.current_dir(&folder).arg("-E");
    let include = root().join("crates/tenon-c/include");
    compiler.arg(format!("-I{}", include.display()));
    let output = compiler.args(flags).arg("headers.c").output();
    let output = output.expect("./test setup installs the compiler");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

/// One way to use a name, with a number that no other name has.
type Use = fn(&str, usize) -> String;

/// The stubs of an interface in which `names` are used so; `None` if it is no interface.
fn stubs_of<'a>(
    names: impl IntoIterator<Item = &'a str>,
    using: Use,
) -> Option<Result<Stubs, Refusal>> {
    let uses = names.into_iter().zip(1..).map(|(name, at)| using(name, at));
    let text = INTERFACE.to_owned() + &uses.collect::<String>();
    let parsed = tenon_idl::parse_text("it.x", &text, &tenon_idl::Options::default());
    let (schema, written) = parsed.schema.zip(parsed.written)?;
    Some(stubs::generate(&schema, &written, "it.x"))
}

/// The words of the library's headers.
fn of_the_library() -> String {
    let texts = DIALECTS.iter().map(|dialect| {
        let declared = preprocessed(&[dialect, &["-P"][..]].concat());
        declared + &preprocessed(&[dialect, &["-dM"][..]].concat())
    });
    texts.collect()
}

/// The words of the library's macros.
fn macros_of_the_library() -> String {
    let texts = DIALECTS.iter();
    let texts = texts.map(|dialect| preprocessed(&[dialect, &["-dM"][..]].concat()));
    texts.collect()
}

/// The words of stubs and of what they share.
fn of_stubs(using: Use) -> String {
    let shared = fs::read_to_string(root().join("crates/tenon-gen/src/c/stubs/runtime.c"));
    let plain = stubs_of(["tried"], using)
        .expect("an interface")
        .expect("stubs");
    shared.expect("a source") + &plain.header + &plain.source
}

/// What becomes of some names.
struct Expected {
    /// They have a `_` behind them.
    renamed: &'static [&'static str],
    refused: &'static [&'static str],
    /// They are in C what they are in the interface.
    kept: &'static [&'static str],
}

/// Tries every word of a text: the compiler takes all that are not refused, and what is listed is as expected.
fn refused_or_harmless(kind: &str, text: &str, using: Use, expected: &Expected) {
    let tried: BTreeSet<&str> = words(text).collect();
    // The names that are made here for each use are not names that somebody tries, nor are those that stubs make.
    let tried = tried
        .into_iter()
        .filter(|word| !word.contains("own_") && !word.ends_with("_message"));
    let taken = |name: &&str| matches!(stubs_of([*name], using), Some(Ok(_)));
    let taken: BTreeSet<&str> = tried.filter(taken).collect();
    for name in expected.refused {
        assert!(!taken.contains(name), "{kind} {name}");
        let error = stubs_of([*name], using)
            .expect("an interface")
            .expect_err("it is refused");
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
    for name in expected.renamed.iter().chain(expected.kept) {
        let stubs = stubs_of([*name], using).expect("an interface");
        let header = stubs.expect("stubs").header;
        let renamed = format!("{name}_");
        let is_renamed = words(&header).any(|word| word == renamed);
        assert_eq!(is_renamed, expected.renamed.contains(name), "{kind} {name}");
    }
    let stubs = stubs_of(taken.iter().copied(), using)
        .expect("an interface")
        .expect("stubs");
    let folder = folder().join(kind);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("it.h"), stubs.header).expect("a file");
    fs::write(folder.join("it.c"), stubs.source).expect("a file");
    for dialect in DIALECTS {
        let mut compiler = Command::new("gcc");
        compiler.current_dir(&folder).args(dialect);
        let include = root().join("crates/tenon-c/include");
        compiler.arg(format!("-I{}", include.display()));
        compiler.args([
            "-Wall",
            "-Wextra",
            // It reads the source from its beginning for each `if`, which takes a minute in files as long as these, and
            // is about no name.
            "-Wno-misleading-indentation",
            "-Werror",
            "-fsyntax-only",
            "it.c",
        ]);
        run(compiler);
    }
}

#[test]
fn types_of_the_library() {
    let using: Use = |name, _| format!("struct {name} {{ int only; }};");
    let expected = Expected {
        renamed: &[
            "malloc", "size_t", "memcpy", "FILE", "div_t", "qsort", "mode_t", "timeval", "index",
            "basename", "unix",
        ],
        refused: &["RED"],
        kept: &["size"],
    };
    refused_or_harmless("library_type", &of_the_library(), using, &expected);
}

/// A typedef that glibc has with the same meaning keeps its name, and one with another gets another.
#[test]
fn typedefs_of_the_library() {
    let using: Use = |name, _| format!("typedef unsigned int {name};");
    let expected = Expected {
        renamed: &["size_t", "off_t", "pid_t"],
        refused: &[],
        kept: &["u_int", "uid_t", "mode_t", "u_int32_t"],
    };
    refused_or_harmless("library_typedef", &of_the_library(), using, &expected);
}

#[test]
fn members_of_the_library() {
    let using: Use = |name, at| format!("enum own_kind{at} {{ {name} = {at} }};");
    let expected = Expected {
        renamed: &["free", "EOF", "memset"],
        refused: &["hue"],
        kept: &["size"],
    };
    refused_or_harmless("library_member", &of_the_library(), using, &expected);
}

#[test]
fn types_of_stubs() {
    let using: Use = |name, at| {
        format!(
            "struct {name} {{ int only; string more<>; hue shade; }};
             struct own_user{at} {{ {name} a; {name} b<>; {name} *c; {name} d[3]; hue e[2]; link *f; }};
             typedef {name} own_array{at}<>;
             union own_union{at} switch (hue d) {{ case RED: {name} a<>; default: {name} b; }};
             program OWN_P{at} {{ version OWN_V{at} {{
                 {name} OWN_F{at}({name} own_a, {name} own_b<>, {name} own_c, int own_d) = 1;
                 own_array{at} OWN_G{at}({name}) = 2;
             }} = 1; }} = {at};"
        )
    };
    let expected = Expected {
        renamed: &["value", "from", "result"],
        refused: &["tenon", "RED"],
        kept: &["payable"],
    };
    refused_or_harmless("type", &of_stubs(using), using, &expected);
}

#[test]
fn members_of_stubs() {
    let using: Use = |name, at| {
        format!(
            "enum own_kind{at} {{ {name} = {at} }};
             struct own_user{at} {{ own_kind{at} a; own_kind{at} b<>; string c<>; }};
             union own_union{at} switch (own_kind{at} d) {{ case {name}: own_user{at} a<>; }};
             program OWN_P{at} {{ version OWN_V{at} {{
                 own_kind{at} OWN_F{at}(own_kind{at} own_a, own_union{at} own_b) = 1;
             }} = 1; }} = {at};"
        )
    };
    let expected = Expected {
        renamed: &["number", "value"],
        refused: &["hue"],
        kept: &["payable"],
    };
    refused_or_harmless("member", &of_stubs(using), using, &expected);
}

#[test]
fn fields_and_parameters() {
    let using: Use = |name, at| {
        format!(
            "struct own_user{at} {{ int {name}; }}; struct own_other{at} {{ string {name}<>; choice it; }};
             program P{at} {{ version V{at} {{ own_user{at} F{at}(own_other{at} {name}, int number, link last) = 1;
             int G{at}(hue {name}) = 2; int H{at}(opaque {name}<>, opaque more[4]) = 3; }} = 1; }} = {at};"
        )
    };
    let text = of_stubs(using) + &macros_of_the_library();
    let expected = Expected {
        // The last is a parameter of a function that calls it.
        renamed: &["EOF", "NULL", "memcpy", "linux"],
        refused: &[],
        kept: &["malloc", "payable"],
    };
    refused_or_harmless("field", &text, using, &expected);
}

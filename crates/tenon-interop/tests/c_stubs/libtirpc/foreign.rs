//! Names that only C knows, as case labels, lengths, bounds and numbers: they are passed on, as rpcgen passes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_interop::{XdrdumpRecoder, root};

use super::{
    SANITIZED, STRICT, Subject, VALUES_MIXED, build_streams, compare, compile, folder, generate,
    write_types, write_whole,
};

/// What foreign.h says, for who makes values.
const DEFINES: [&str; 10] = [
    "VALUES",
    "KIND_NUMBERS=7",
    "KIND_TEXT=9",
    "FIRST_LEVEL=40",
    "BLOCK_BYTES=13",
    "ROW_LENGTH=3",
    "NAME_MAX_BYTES=20",
    "MOST_NUMBERS=6",
    "PROGRAM_NUMBER=0x20005151",
    "SHADE_NUMBER=3",
];

/// The type that the interface finds in C, and its routine.
const SHADE: &str = "#include \"foreign.h\"
bool_t xdr_shade(XDR *xdrs, shade *objp) { return xdr_enum(xdrs, (enum_t *) objp); }
";

/// What the interface defines a second time.
const TWICE: &str = "typedef opaque block[BLOCK_BYTES];\n";

/// What rpcgen's files are compiled with: they use a type that C has not.
const THEIRS: [&str; 4] = ["-w", "-O2", "-Dbool=bool_t", "shade.c"];

fn subject() -> Subject {
    Subject {
        name: "foreign",
        path: root().join("tests/peers/c/foreign.x"),
        defines: &DEFINES,
    }
}

/// What `-I` finds foreign.h by, whose name is that of the header that is written, too.
fn place(who: &str) -> PathBuf {
    let folder = folder(&format!("foreign/{who}"));
    std::fs::copy(
        root().join("tests/peers/c/foreign.h"),
        folder.join("foreign.h"),
    )
    .expect("a copy");
    std::fs::write(folder.join("shade.c"), SHADE).expect("a file");
    folder
}

/// Our files, of which the interface has another name than the header that it includes.
fn ours(who: &str) -> (Subject, PathBuf) {
    let listed = Subject {
        name: "interface",
        ..subject()
    };
    let folder = place(who);
    generate(&listed.path, listed.name, &folder);
    list_types(&folder);
    (listed, folder)
}

/// Writes the table of all types, that of C among them.
fn list_types(folder: &Path) {
    write_types(&folder.join("interface.h"), folder);
    let list = folder.join("types.inc");
    let types = std::fs::read_to_string(&list).expect("a table");
    std::fs::write(list, types + "TYPE(shade)\n").expect("a file");
}

/// rpcgen's files, and the program that tries them.
fn theirs(who: &str) -> (Subject, PathBuf) {
    let listed = Subject {
        name: "interface",
        ..subject()
    };
    let folder = place(who);
    let text = std::fs::read_to_string(&listed.path).expect("an interface");
    // rpcgen passes a second definition on, which C refuses.
    let (before, behind) = text.rsplit_once(TWICE).expect("it stands there twice");
    std::fs::write(folder.join("interface.x"), before.to_owned() + behind).expect("a file");
    for (option, file) in [("-h", "interface.h"), ("-c", "interface_xdr.c")] {
        let _ = std::fs::remove_file(folder.join(file));
        let mut command = Command::new("rpcgen");
        command.current_dir(&folder);
        command.args(["-C", "-N", option, "-o", file, "interface.x"]);
        tenon_interop::run(command);
    }
    list_types(&folder);
    (listed, folder)
}

#[test]
fn names_that_only_c_knows_have_its_values() {
    let (listed, folder) = ours("ours");
    let mut flags = Vec::from(SANITIZED);
    flags.push("shade.c");
    build_streams(&listed, &folder, &flags);
    assert!(compare(&listed, &folder, VALUES_MIXED) > 8);

    let (listed, folder) = theirs("theirs");
    build_streams(&listed, &folder, &THEIRS);
    assert!(compare(&listed, &folder, VALUES_MIXED) > 8);
}

/// What no other of our languages has, moved by rpcgen's routines and by ours.
#[test]
fn unions_are_switched_by_64_bits() {
    let (listed, folder) = ours("wide/ours");
    let flags = ["-O2", "shade.c"];
    build_streams(&listed, &folder, &flags);
    let (listed, theirs) = theirs("wide/theirs");
    build_streams(&listed, &theirs, &THEIRS);
    let messages: [&[u8]; 5] = [
        &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 42],
        &[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, b'h', b'i', 0, 0],
        &[0, 0, 0, 1, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        &[0, 0, 0, 0],
    ];
    let messages = messages.map(<[u8]>::to_vec);
    let [ours, theirs] = [folder, theirs].map(|folder| {
        let mut streams = XdrdumpRecoder::start(Command::new(folder.join("streams")));
        streams.recode("widely", &messages)
    });
    for (index, message) in messages[..3].iter().enumerate() {
        assert_eq!(ours[index].as_ref(), Ok(message));
    }
    assert!(ours[3].is_err() && ours[4].is_err());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok());
    }
}

#[test]
fn files_with_foreign_names_compile_without_a_warning() {
    let (_, folder) = ours("warnings");
    write_whole("interface", &folder, false);
    for compiler in ["gcc", "clang"] {
        for file in ["whole.c", "interface_xdr.c"] {
            let mut arguments = vec!["-fsyntax-only", "-O2", "-Wpedantic"];
            arguments.extend(STRICT);
            arguments.push(file);
            super::compile_with(compiler, &folder, &arguments);
        }
    }
    compile(&folder, &["-c", "-o", "interface.o", "interface_xdr.c"]);
}

/// What stands in rpcgen's header stands in ours: numbers by their names, functions by the name of the version.
#[test]
fn headers_have_the_names_that_rpcgen_passes_on() {
    let (_, ours) = ours("header/ours");
    let (_, theirs) = theirs("header/theirs");
    let [ours, theirs] = [ours, theirs].map(|folder| {
        let text = std::fs::read_to_string(folder.join("interface.h")).expect("a header");
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let said = lines.filter(|line| !line.starts_with("* It was generated"));
        said.map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(ours.contains(&"#define FOREIGN_PROGRAM PROGRAM_NUMBER".to_owned()));
    let different = ours
        .iter()
        .zip(&theirs)
        .find(|(ours, theirs)| ours != theirs);
    assert_eq!(different, None);
    assert_eq!(ours.len(), theirs.len());
}

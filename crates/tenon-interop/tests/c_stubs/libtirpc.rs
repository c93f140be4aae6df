//! What the C back end writes, against rpcgen and libtirpc: it compiles without a warning, its routines
//! and rpcgen's have the same bytes in every stream of libtirpc, and clients and servers of either kind
//! understand each other.

mod foreign;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use tenon::wire::{Buffer, Encoder, Xdr};
use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_gen::c;
use tenon_idl::{Define, Output, Style, Undeclared};
use tenon_interop::compiled::INTERFACES;
use tenon_interop::{PeerTransport, Process, XdrdumpRecoder, peer, root, xdrdump};
use tenon_schema::{Type, TypeId, TypeKind};

/// Values per type.
const VALUES: usize = 1000;

/// Values per type where only the header is another.
const VALUES_MIXED: usize = 200;

/// Parts of a value, about.
const ITEMS: usize = 30;

/// Every warning there is, but for those about the lines that interfaces bring along.
pub const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"];

/// What finds bytes that are not ours, memory that is lost, and what C does not define.
pub const SANITIZED: [&str; 4] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
];

/// As programs are built.
pub const OPTIMISED: [&str; 2] = ["-O2", "-g"];

/// A folder for what is built, and none of another test's.
pub fn folder(name: &str) -> PathBuf {
    let folder = root().join("target/peers-c").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// What libtirpc is compiled with.
fn libtirpc() -> &'static [String] {
    static FLAGS: OnceLock<Vec<String>> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let output = Command::new("pkg-config")
            .args(["--cflags", "libtirpc"])
            .output()
            .expect("./test setup installs pkg-config");
        let flags = String::from_utf8(output.stdout).expect("text");
        flags.split_whitespace().map(str::to_owned).collect()
    })
}

/// Runs the C compiler in `folder`; it has to succeed and to say nothing.
pub fn compile(folder: &Path, arguments: &[&str]) {
    compile_with("cc", folder, arguments);
}

/// Runs one of the compilers.
fn compile_with(compiler: &str, folder: &Path, arguments: &[&str]) {
    let output = Command::new(compiler)
        .current_dir(folder)
        .args(["-D_GNU_SOURCE", "-I."])
        .args(libtirpc())
        .args(arguments)
        // clang complains where nothing is linked.
        .args(arguments.contains(&"-o").then_some("-ltirpc"))
        .output()
        .expect("./test setup installs the compilers");
    let said = String::from_utf8_lossy(&output.stderr);
    let is_silent = output.status.success() && said.is_empty();
    assert!(
        is_silent,
        "{compiler} in {}: {arguments:?}: {said}",
        folder.display()
    );
}

/// The options of `-N` for the interface `name`.
pub fn options(name: &str) -> c::Options {
    c::Options {
        header: format!("{name}.h"),
        source: format!("{name}.x"),
        by_value: true,
        ..c::Options::default()
    }
}

/// What is written with each set of options that builds use. Only with `-N` may procedures have several
/// arguments, as some of `torture.x` have.
fn option_sets(name: &str) -> Vec<(&'static str, c::Options)> {
    let plain = c::Options {
        by_value: name == "torture",
        ..options(name)
    };
    let with_main = c::Server {
        transports: vec![c::Transport::Udp, c::Transport::Tcp],
        inetd: true,
        idle_seconds: Some(30),
        syslog: true,
    };
    vec![
        ("C", plain.clone()),
        ("N", options(name)),
        (
            "M",
            c::Options {
                reentrant: true,
                ..plain.clone()
            },
        ),
        (
            "NM",
            c::Options {
                reentrant: true,
                ..options(name)
            },
        ),
        (
            "T",
            c::Options {
                tables: true,
                ..plain.clone()
            },
        ),
        (
            "I",
            c::Options {
                server: with_main,
                ..plain
            },
        ),
    ]
}

/// Writes what the back end makes of the interface `path` into `folder`.
fn generate(path: &Path, name: &str, folder: &Path) {
    generate_with(path, name, folder, &options(name));
}

/// Writes it with other options.
pub fn generate_with(path: &Path, name: &str, folder: &Path, options: &c::Options) {
    let write = |output: Output, ending: &str, make: &dyn Fn(c::Interface<'_>) -> String| {
        let parsed = tenon_idl::parse_file(
            path,
            &tenon_idl::Options {
                output,
                undeclared: Undeclared::OfLibtirpc,
                ..tenon_idl::Options::default()
            },
        );
        let said = parsed.render(Style::Plain);
        let of = c::Interface {
            schema: parsed.schema.as_ref().unwrap_or_else(|| panic!("{said}")),
            written: parsed.written.as_ref().expect("beside the schema"),
            dialect: c::Dialect::Libtirpc,
        };
        let file = folder.join(format!("{name}{ending}"));
        std::fs::write(file, make(of)).expect("a file");
    };
    write(Output::Header, ".h", &|of| of.header(options));
    write(Output::Xdr, "_xdr.c", &|of| of.xdr(options).expect("plans"));
    write(Output::Client, "_clnt.c", &|of| of.client(options));
    write(Output::Server, "_svc.c", &|of| of.server(options));
    write(Output::Table, "_tbl.i", &|of| of.table(options));
}

/// Writes the table of the types of a header, as the programs of `tests/peers/c` want it.
fn write_types(header: &Path, folder: &Path) {
    let text = std::fs::read_to_string(header).expect("a header");
    let names = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("extern  bool_t xdr_")?;
        rest.split_once(" (XDR *,").map(|(name, _)| name)
    });
    let table: String = names.map(|name| format!("TYPE({name})\n")).collect();
    std::fs::write(folder.join("types.inc"), table).expect("a file");
}

/// An interface whose routines are tried.
#[derive(Debug, Clone)]
struct Subject {
    name: &'static str,
    path: PathBuf,
    /// What is defined where values are made, beside what C knows.
    defines: &'static [&'static str],
}

/// All of them: those that rpcgen takes, and `nis.x`, which it refuses.
fn subjects() -> Vec<Subject> {
    let listed = INTERFACES.iter().map(|listed| Subject {
        name: listed.name,
        path: listed.path.into(),
        defines: &[],
    });
    let nis = Subject {
        name: "nis",
        path: "/usr/include/rpcsvc/nis.x".into(),
        defines: &[],
    };
    listed.chain([nis]).collect()
}

/// Builds `streams` with our routines and the header beside them.
fn build_streams(listed: &Subject, folder: &Path, flags: &[&str]) {
    let name = listed.name;
    let interface = format!("-DINTERFACE_H=\"{name}.h\"");
    let source = root().join("tests/peers/c/streams.c").display().to_string();
    let routines = format!("{name}_xdr.c");
    let mut arguments = vec![interface.as_str(), "-DXDR_TYPES=\"types.inc\""];
    arguments.extend(STRICT);
    arguments.extend(["-Wno-cast-function-type", "-Wno-missing-field-initializers"]);
    arguments.extend(flags);
    arguments.extend(["-o", "streams", &source, &routines]);
    compile(folder, &arguments);
}

/// Random values of every type, and their bytes.
fn encodings(listed: &Subject, values: usize) -> Vec<(String, Vec<Vec<u8>>)> {
    let options = tenon_idl::Options {
        defines: listed.defines.iter().map(|it| Define::parse(it)).collect(),
        ..tenon_idl::Options::default()
    };
    let parsed = tenon_idl::parse_file(&listed.path, &options);
    let said = parsed.render(Style::Plain);
    let schema = parsed.schema.unwrap_or_else(|| panic!("{said}"));
    let interface = Interface::new(schema).expect("an interface that can be moved");
    let types = interface.schema().types.iter().enumerate();
    let types = types.filter(|(_, ty)| ty.kind != TypeKind::External);
    let types = types.map(|(index, ty)| {
        let (name, id) = (&ty.name, TypeId(index as u32));
        let mut random = Random::new(u64::from(id.0) + 7);
        let ty = Type::Named(id);
        let values = (0..values).map(|_| {
            let value = random.value(interface.schema(), &ty, ITEMS);
            let mut buffer = Buffer::with_capacity(256);
            let mut out = Encoder::<Xdr>::over(&mut buffer);
            interface.encode(id, &value, &mut out).expect("a value");
            buffer.as_slice().to_vec()
        });
        (name.clone(), values.collect())
    });
    types.collect()
}

/// Holds the routines in `folder` to the bytes of random values, and rpcgen's with them.
fn compare(listed: &Subject, folder: &Path, values: usize) -> usize {
    let mut ours = XdrdumpRecoder::start(Command::new(folder.join("streams")));
    let encodings = encodings(listed, values);
    for (name, encodings) in &encodings {
        for (bytes, answer) in encodings.iter().zip(ours.recode(name, encodings)) {
            assert_eq!(answer.as_ref(), Ok(bytes), "{}.x: {name}", listed.name);
        }
    }
    encodings.len()
}

/// Runs `each` for some interfaces, two at a time, and adds up.
fn for_each(subjects: &[Subject], each: impl Fn(&Subject) -> usize + Sync) -> usize {
    let halves = subjects.split_at(subjects.len() / 2);
    thread::scope(|scope| {
        let run = |half: &[Subject]| half.iter().map(&each).sum::<usize>();
        let other = scope.spawn(move || run(halves.1));
        run(halves.0) + other.join().expect("its types agree")
    })
}

#[test]
fn routines_have_the_same_bytes_in_every_stream() {
    let types = for_each(&subjects(), |listed| {
        let folder = folder(&format!("sanitized/{}", listed.name));
        generate(&listed.path, listed.name, &folder);
        write_types(&folder.join(format!("{}.h", listed.name)), &folder);
        build_streams(listed, &folder, &SANITIZED);
        compare(listed, &folder, VALUES)
    });
    assert!(types > 250, "only {types} types were compared");
}

/// The options of `-N` and of a size for the interface `name`.
fn options_of(name: &str, size: c::Size) -> c::Options {
    c::Options {
        size,
        ..options(name)
    }
}

/// Sizes beside that which goes without saying.
const SIZES_ASKED_FOR: [(&str, c::Size); 2] =
    [("small", c::Size::Small), ("large", c::Size::Large)];

#[test]
fn routines_of_every_size_have_the_same_bytes() {
    for (word, size) in SIZES_ASKED_FOR {
        let types = for_each(&subjects(), |listed| {
            let name = listed.name;
            let folder = folder(&format!("{word}/{name}"));
            generate_with(&listed.path, name, &folder, &options_of(name, size));
            write_types(&folder.join(format!("{name}.h")), &folder);
            // Of the sanitizers there is enough in the one that has everything.
            let flags: &[&str] = if name == "torture" {
                &SANITIZED
            } else {
                &OPTIMISED
            };
            build_streams(listed, &folder, flags);
            compare(listed, &folder, VALUES_MIXED)
        });
        assert!(types > 250, "only {types} types were compared");
    }
}

#[test]
fn routines_go_with_the_headers_of_rpcgen() {
    // Its header stands where its own routines are built.
    drop(xdrdump("torture"));
    let mut subjects = subjects();
    subjects.retain(|listed| listed.name != "nis");
    let types = for_each(&subjects, |listed| {
        let name = listed.name;
        let folder = folder(&format!("mixed/{name}"));
        generate(&listed.path, name, &folder);
        let theirs = root().join(format!("target/peers/{name}"));
        let header = format!("{name}.h");
        std::fs::copy(theirs.join(&header), folder.join(&header)).expect("their header");
        write_types(&folder.join(&header), &folder);
        build_streams(listed, &folder, &OPTIMISED);
        compare(listed, &folder, VALUES_MIXED)
    });
    assert!(types > 250, "only {types} types were compared");
}

/// Everything that is written in one file, for a compiler's front end.
fn write_whole(name: &str, folder: &Path, tables: bool) {
    let table = format!("{name}_tbl.i");
    let parts = ["clnt.c", "svc.c"].map(|part| format!("{name}_{part}"));
    let parts = parts.into_iter().chain(tables.then_some(table));
    let mut whole = format!("#include \"{name}.h\"\n#define RPCGEN_ACTION(routine) routine\n");
    for part in parts {
        whole += &format!("#include \"{part}\"\n");
    }
    std::fs::write(folder.join("whole.c"), whole).expect("a file");
}

#[test]
fn every_file_compiles_without_a_warning() {
    let check = |compiler: &str, folder: &Path, file: &[&str]| {
        let mut arguments = vec!["-fsyntax-only", "-O2", "-Wpedantic"];
        arguments.extend(STRICT);
        arguments.extend(file);
        compile_with(compiler, folder, &arguments);
    };
    let files = for_each(&subjects(), |listed| {
        let name = listed.name;
        for (set, options) in option_sets(name) {
            let folder = folder(&format!("warnings/{name}/{set}"));
            generate_with(&listed.path, name, &folder, &options);
            write_whole(name, &folder, options.tables);
            check("gcc", &folder, &["whole.c"]);
            if ["N", "M"].contains(&set) {
                check("clang", &folder, &["whole.c"]);
            }
            if set == "N" {
                check("clang", &folder, &[&format!("{name}_xdr.c")]);
                for (_, size) in SIZES_ASKED_FOR {
                    generate_with(&listed.path, name, &folder, &options_of(name, size));
                    check("clang", &folder, &[&format!("{name}_xdr.c")]);
                    check("gcc", &folder, &[&format!("{name}_xdr.c")]);
                }
            }
            // The torture has a member that is called `operator`.
            if set == "M" && name != "torture" {
                std::fs::write(folder.join("header.cc"), format!("#include \"{name}.h\"\n"))
                    .expect("a file");
                check("g++", &folder, &["header.cc"]);
                check("clang++", &folder, &["header.cc"]);
            }
        }
        1
    });
    assert_eq!(files, subjects().len());
}

/// What libnfs has sed do to a header and to routines, which so are text that is relied upon.
const EDITS_OF_LIBNFS: [&str; 2] = [
    r#"-e "s/#include <rpc\/rpc.h>/#include \"zdr.h\"/" -e "s/xdr/zdr/g" -e "s/XDR/ZDR/g" -e "s/ CLIENT / void /g" -e "s/SVCXPRT /void /g" -e "s/bool_t/uint32_t/g""#,
    r#"-e "s/register int32_t \*buf;/register int32_t *buf;\n\tbuf = NULL;/" -e "s/bool_t/uint32_t/g""#,
];

/// What a header needs of libnfs's own streams.
const ZDR: &str = "#include <stdint.h>
#include <sys/types.h>
typedef struct ZDR ZDR;
typedef char *caddr_t;
typedef void CLIENT, SVCXPRT;
typedef uint32_t (*zdrproc_t) (ZDR *, void *, ...);
struct svc_req;
";

#[test]
fn edits_of_libnfs_find_what_they_look_for() {
    let folder = folder("libnfs");
    generate(&root().join("interfaces/nfs3.x"), "nfs3", &folder);
    let edit = |edits: &str, from: &str, to: &str| {
        let mut command = Command::new("bash");
        command
            .current_dir(&folder)
            .args(["-c", &format!("sed {edits} {from} >{to}")]);
        tenon_interop::run(command);
        std::fs::read_to_string(folder.join(to)).expect("an edited file")
    };
    std::fs::write(folder.join("zdr.h"), ZDR).expect("a file");
    let header = edit(EDITS_OF_LIBNFS[0], "nfs3.h", "header.h");
    assert!(header.contains("extern  uint32_t zdr_READ3res (ZDR *, READ3res*);"));
    std::fs::write(folder.join("header.c"), "#include \"header.h\"\n").expect("a file");
    compile(&folder, &["-fsyntax-only", "-Wall", "-Werror", "header.c"]);
    let routines = edit(EDITS_OF_LIBNFS[1], "nfs3_xdr.c", "routines.c");
    assert!(routines.contains("register int32_t *buf;\n\tbuf = NULL;"));
    assert!(!routines.contains("bool_t"));
    let declared = edit(r#"-e "s/bool_t/uint32_t/g""#, "nfs3.h", "declared.h");
    std::fs::write(folder.join("nfs3.h"), declared).expect("a file");
    compile(&folder, &["-c", "-o", "routines.o", "routines.c"]);
}

/// What amanda has sed make of the line that includes the header: `config.h` has to come before all others.
const EDIT_OF_AMANDA: &str = r#"s+#include "nfs3.h"+#include "config.h"\n\#include "nfs3.h"+"#;

/// A header of libtirpc's name that is not content to be included before `config.h`, as those of gnulib are not.
const PARTICULAR: &str = "#ifndef CONFIG_H
#error \"include config.h first\"
#endif
#include_next <rpc/rpc.h>
";

#[test]
fn routines_include_their_header_first() {
    let folder = folder("config");
    generate(&root().join("interfaces/nfs3.x"), "nfs3", &folder);
    std::fs::create_dir_all(folder.join("rpc")).expect("a folder");
    std::fs::write(folder.join("rpc/rpc.h"), PARTICULAR).expect("a file");
    std::fs::write(folder.join("config.h"), "#define CONFIG_H\n").expect("a file");
    let mut sed = Command::new("sed");
    sed.current_dir(&folder);
    sed.args(["-i", EDIT_OF_AMANDA, "nfs3_xdr.c"]);
    tenon_interop::run(sed);
    compile(&folder, &["-Wall", "-c", "-o", "nfs3.o", "nfs3_xdr.c"]);
}

/// A type that is used by another name alone is what messages begin with, so it is specialised, and used.
#[test]
fn what_has_another_name_is_specialised() {
    let folder = folder("aliases");
    let text = "struct pair { string of<>; pair *next; };
        struct pairs { pair *all; int count; };
        typedef pairs renamed;
        typedef renamed renamed_again;";
    let path = folder.join("aliases.x");
    std::fs::write(&path, text).expect("a file");
    generate(&path, "aliases", &folder);
    let routines = std::fs::read_to_string(folder.join("aliases_xdr.c")).expect("routines");
    let call = "tenon_marshal (xdrs, objp, tenon_encode_pairs, tenon_decode_pairs, ";
    assert!(routines.contains(call), "{routines}");
    let mut arguments = Vec::from(STRICT);
    arguments.extend(["-O2", "-c", "-o", "aliases.o", "aliases_xdr.c"]);
    compile(&folder, &arguments);
}

/// Words that what routines share is made of, and that an interface may have as constants.
const WORDS: [&str; 28] = [
    "at", "behind", "bound", "bytes", "count", "done", "element", "end", "first", "from", "index",
    "last", "left", "length", "memory", "more", "next", "now", "number", "numbers", "padded",
    "routine", "s", "size", "space", "text", "to", "unit",
];

#[test]
fn constants_may_be_called_as_what_routines_are_made_of() {
    let folder = folder("words");
    let mut text: String = WORDS.map(|word| format!("const {word} = 5;\n")).concat();
    text += "struct node { string of_it<>; opaque x<>; int y<4>; hyper z[99]; float f; double d; node *following; };
        union choice switch (bool is) { case TRUE: node all<>; case FALSE: void; };";
    let path = folder.join("words.x");
    std::fs::write(&path, text).expect("a file");
    let sizes = SIZES_ASKED_FOR.into_iter();
    for (_, size) in sizes.chain([("balanced", c::Size::Balanced)]) {
        generate_with(&path, "words", &folder, &options_of("words", size));
        let mut arguments = Vec::from(STRICT);
        arguments.extend(["-O2", "-c", "-o", "words.o", "words_xdr.c"]);
        compile(&folder, &arguments);
    }
}

/// With `--fast`, the header of the library stands beside what routines share.
#[test]
fn what_routines_share_is_called_as_nothing_of_the_library() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a source");
    let words = |text: &str| {
        let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let words = words.filter(|word| word.to_lowercase().starts_with("tenon_"));
        words.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let library = read("crates/tenon-c/include/tenon.h") + &read("crates/tenon-c/tirpc/tirpc.h");
    let ours = words(&read("crates/tenon-gen/src/c/xdr/runtime.c"));
    assert!(ours.len() > 50);
    let both: Vec<_> = ours.intersection(&words(&library)).cloned().collect();
    assert_eq!(both, [] as [String; 0]);
}

/// What open-vm-tools has sed delete from routines, which rpcgen declares whether it needs it or not.
const DELETED_BY_OPEN_VM_TOOLS: &str = "register int32_t .*buf;";

#[test]
fn routines_work_without_what_builds_delete() {
    let folder = folder("deleted");
    let listed = subjects().into_iter().find(|it| it.name == "torture");
    let listed = listed.expect("it is tried everywhere");
    let sizes = SIZES_ASKED_FOR.into_iter();
    for (_, size) in sizes.chain([("balanced", c::Size::Balanced)]) {
        generate_with(
            &listed.path,
            "torture",
            &folder,
            &options_of("torture", size),
        );
        write_types(&folder.join("torture.h"), &folder);
        let file = folder.join("torture_xdr.c");
        let whole = std::fs::read_to_string(&file).expect("routines");
        let mut sed = Command::new("sed");
        sed.current_dir(&folder);
        sed.args([
            "-i",
            &format!("/{DELETED_BY_OPEN_VM_TOOLS}/d"),
            "torture_xdr.c",
        ]);
        tenon_interop::run(sed);
        let rest = std::fs::read_to_string(&file).expect("routines");
        let routines = whole.matches("\nxdr_").count();
        assert_eq!(whole.lines().count() - rest.lines().count(), routines);
        build_streams(&listed, &folder, &OPTIMISED);
        assert!(compare(&listed, &folder, 20) > 40);
    }
}

/// Builds the server or client of the torture interface out of what is written for it.
fn torture(end: &str, stubs: &str) -> PathBuf {
    let folder = folder(&format!("torture_{end}"));
    let path = root().join("interfaces/torture.x");
    generate(&path, "torture", &folder);
    let peers = root().join("tests/peers/c");
    let include = format!("-I{}", peers.display());
    let sources = [format!("torture_{end}.c"), "transport.c".to_owned()];
    let sources = sources.map(|source| peers.join(source).display().to_string());
    let mut arguments = vec!["-w", "-fsanitize=address,undefined", "-g", &include];
    arguments.extend(["-o", end, &sources[0], &sources[1], "torture_xdr.c", stubs]);
    compile(&folder, &arguments);
    folder.join(end)
}

#[test]
fn clients_and_servers_understand_those_of_rpcgen() {
    let server = torture("server", "torture_svc.c");
    let mut command = Command::new(server);
    command.args(["tcp", "udp"]);
    let process = Process::start(command);
    for line in process.lines() {
        let address: Vec<&str> = line.split(' ').collect();
        peer("torture_client").check_at(&address);
    }
    assert_eq!(process.lines().len(), 2);
    let client = torture("client", "torture_clnt.c");
    let (_theirs, addresses) = peer("torture_server").serve(&["tcp", "udp"]);
    for transport in [PeerTransport::Tcp, PeerTransport::Udp] {
        let mut command = Command::new(&client);
        command.args(addresses.arguments(transport));
        let said = tenon_interop::run(command);
        assert!(said.contains("every answer is right"), "{said}");
    }
}

/// Builds a program of `tests/peers/c` with routines of each size for the torture interface, and runs it.
fn with_every_size(program: &str, flags: &[&str]) -> Vec<String> {
    let path = root().join("interfaces/torture.x");
    let source = root().join(format!("tests/peers/c/{program}.c"));
    let source = source.display().to_string();
    let sizes = SIZES_ASKED_FOR.into_iter();
    let sizes = sizes.chain([("balanced", c::Size::Balanced)]);
    let said = sizes.map(|(word, size)| {
        let folder = folder(&format!("{program}/{word}"));
        generate_with(&path, "torture", &folder, &options_of("torture", size));
        let mut arguments = vec!["-o", program, &source, "torture_xdr.c"];
        arguments.extend(STRICT);
        arguments.push("-Wno-cast-function-type");
        arguments.extend(flags);
        compile(&folder, &arguments);
        tenon_interop::run(Command::new(folder.join(program)))
    });
    said.collect()
}

#[test]
fn a_count_costs_no_memory_before_its_elements_are_there() {
    let wrap = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc";
    for said in with_every_size("hostile", &["-O1", "-g", wrap]) {
        assert!(said.contains("nothing was taken"), "{said}");
    }
}

/// Elements that take no bytes are counted, and nobody goes through them: for the counts that are tried here that
/// would take minutes.
#[test]
fn elements_without_bytes_are_only_counted() {
    let empty = Subject {
        name: "empty",
        path: root().join("tests/peers/c/empty.x"),
        defines: &[],
    };
    let folder = folder("empty");
    generate(&empty.path, empty.name, &folder);
    write_types(&folder.join("empty.h"), &folder);
    build_streams(&empty, &folder, &SANITIZED);
    // Values of tens of thousands of such elements are made for nearly each type.
    assert!(compare(&empty, &folder, 4) > 15);
    let mut routines = XdrdumpRecoder::start(Command::new(folder.join("streams")));
    let counts = [0, 1, 2, 3, 70_000, u32::MAX].map(u32::to_be_bytes);
    let messages = counts.map(Vec::from);
    let unbounded = ["many", "many_bare", "many_octets", "many_flags"];
    for name in unbounded
        .into_iter()
        .chain(["many_wide", "many_pairs", "many_rows"])
    {
        for (answer, bytes) in routines.recode(name, &messages).iter().zip(&messages) {
            assert_eq!(answer.as_ref(), Ok(bytes), "{name}");
        }
    }
    for (name, bound) in [("few", 2), ("few_rows", 3)] {
        let accepted = routines
            .recode(name, &messages)
            .into_iter()
            .map(|answer| answer.is_ok());
        let within = counts.map(|count| u32::from_be_bytes(count) <= bound);
        assert_eq!(accepted.collect::<Vec<_>>(), within, "{name}");
    }
}

/// Prints how large each type is, and where what follows a value of it lies.
const SIZES: &str = "#include <stdio.h>
#include \"empty.h\"
#define TYPE(name) { \\
	struct { name value; char behind; } both; \\
	printf(\"%s %zu %td\\n\", #name, sizeof(name), &both.behind - (char *) &both); \\
}
int main(void)
{
#include \"types.inc\"
	return 0;
}
";

/// Routines are C, and fill what programs in C++ look at.
#[test]
fn values_are_as_large_in_cpp_as_in_c() {
    let folder = folder("sizes");
    generate(&root().join("tests/peers/c/empty.x"), "empty", &folder);
    write_types(&folder.join("empty.h"), &folder);
    let sizes = ["cc", "g++", "clang++"].map(|compiler| {
        let source = if compiler == "cc" {
            "sizes.c"
        } else {
            "sizes.cc"
        };
        std::fs::write(folder.join(source), SIZES).expect("a file");
        let mut arguments = Vec::from(STRICT);
        // clang warns that they are not, whether they are or not.
        arguments.extend(["-Wno-extern-c-compat", "-o", compiler, source]);
        compile_with(compiler, &folder, &arguments);
        tenon_interop::run(Command::new(folder.join(compiler)))
    });
    assert!(sizes[0].lines().count() > 15, "{}", sizes[0]);
    assert!(sizes[0].contains(" 0 0\n"), "{}", sizes[0]);
    for other in &sizes[1..] {
        assert_eq!(*other, sizes[0]);
    }
}

#[test]
fn nobody_chooses_how_deep_a_decoder_goes() {
    for said in with_every_size("deep", &SANITIZED) {
        assert!(said.contains("nothing was too deep"), "{said}");
    }
}

#[test]
fn programs_find_what_they_rely_on() {
    let ours = with_every_size("contract", &SANITIZED);
    drop(xdrdump("torture"));
    let theirs = root().join("target/peers/torture");
    let include = format!("-iquote{}", theirs.display());
    let routines = theirs.join("torture_xdr.o").display().to_string();
    let folder = folder("contract");
    let copy = folder.join("theirs.c");
    std::fs::copy(root().join("tests/peers/c/contract.c"), &copy).expect("a copy");
    let arguments = [
        "-w",
        "-Dbool=bool_t",
        &include,
        "-o",
        "theirs",
        "theirs.c",
        &routines,
    ];
    compile(&folder, &arguments);
    let theirs = tenon_interop::run(Command::new(folder.join("theirs")));
    assert!(theirs.lines().count() > 25, "{theirs}");
    for ours in ours {
        assert_eq!(ours, theirs);
    }
}

//! What the C back end writes, against rpcgen and libtirpc: it compiles without a warning, its routines
//! and rpcgen's have the same bytes in every stream of libtirpc, and clients and servers of either kind
//! understand each other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use tenon::wire::{Buffer, Encoder, Xdr};
use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_gen::c;
use tenon_idl::{Output, Style, Undeclared};
use tenon_interop::compiled::{self, INTERFACES};
use tenon_interop::{Process, Recoder, Transport, peer, root, xdrdump};
use tenon_schema::Type;

/// Values per type.
const VALUES: usize = 1000;

/// Values per type where only the header is another.
const VALUES_MIXED: usize = 200;

/// Parts of a value, about.
const ITEMS: usize = 30;

/// Every warning there is, but for those about the lines that interfaces bring along.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"];

/// What finds bytes that are not ours, memory that is lost, and what C does not define.
const SANITIZED: [&str; 4] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
];

/// As programs are built.
const OPTIMISED: [&str; 2] = ["-O2", "-g"];

/// A folder for what is built, and none of another test's.
fn folder(name: &str) -> PathBuf {
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

/// Runs the compiler in `folder`; it has to succeed and to say nothing.
fn compile(folder: &Path, arguments: &[&str]) {
    let output = Command::new("cc")
        .current_dir(folder)
        .args(["-D_GNU_SOURCE", "-I."])
        .args(libtirpc())
        .args(arguments)
        .args(["-ltirpc"])
        .output()
        .expect("there is a C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    let is_silent = output.status.success() && said.is_empty();
    assert!(is_silent, "{}: {arguments:?}: {said}", folder.display());
}

/// The options of `-N` for the interface `name`.
fn options(name: &str) -> c::Options {
    c::Options {
        header: format!("{name}.h"),
        source: format!("{name}.x"),
        by_value: true,
        ..c::Options::default()
    }
}

/// Writes what the back end makes of the interface `path` into `folder`.
fn generate(path: &Path, name: &str, folder: &Path) {
    let options = options(name);
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
        };
        let file = folder.join(format!("{name}{ending}"));
        std::fs::write(file, make(of)).expect("a file");
    };
    write(Output::Header, ".h", &|of| of.header(&options));
    write(Output::Xdr, "_xdr.c", &|of| {
        of.xdr(&options).expect("plans")
    });
    write(Output::Client, "_clnt.c", &|of| of.client(&options));
    write(Output::Server, "_svc.c", &|of| of.server(&options));
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

/// Builds `streams` with our routines and the header beside them.
fn build_streams(listed: &compiled::Interface, folder: &Path, flags: &[&str]) {
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
fn encodings(listed: &compiled::Interface, values: usize) -> Vec<(String, Vec<Vec<u8>>)> {
    let parsed = tenon_idl::parse_file(listed.path.as_ref(), &tenon_idl::Options::default());
    let schema = parsed.schema.expect("the build has read it already");
    let interface = Interface::new(schema).expect("the build has lowered it already");
    let types = listed.types.iter().map(|(name, _)| {
        let id = interface.schema().find_type(name).expect("a type");
        let mut random = Random::new(u64::from(id.0) + 7);
        let ty = Type::Named(id);
        let values = (0..values).map(|_| {
            let value = random.value(interface.schema(), &ty, ITEMS);
            let mut buffer = Buffer::with_capacity(256);
            let mut out = Encoder::<Xdr>::over(&mut buffer);
            interface.encode(id, &value, &mut out).expect("a value");
            buffer.as_slice().to_vec()
        });
        ((*name).to_owned(), values.collect())
    });
    types.collect()
}

/// Holds the routines in `folder` to the bytes of random values, and rpcgen's with them.
fn compare(listed: &compiled::Interface, folder: &Path, values: usize) -> usize {
    let mut ours = Recoder::start(Command::new(folder.join("streams")));
    let encodings = encodings(listed, values);
    for (name, encodings) in &encodings {
        for (bytes, answer) in encodings.iter().zip(ours.recode(name, encodings)) {
            assert_eq!(answer.as_ref(), Ok(bytes), "{}.x: {name}", listed.name);
        }
    }
    encodings.len()
}

/// Runs `each` for all interfaces, two at a time, and adds up.
fn for_each_interface(each: impl Fn(&compiled::Interface) -> usize + Sync) -> usize {
    let halves = INTERFACES.split_at(INTERFACES.len() / 2);
    thread::scope(|scope| {
        let run = |half: &'static [compiled::Interface]| half.iter().map(&each).sum::<usize>();
        let other = scope.spawn(move || run(halves.1));
        run(halves.0) + other.join().expect("its types agree")
    })
}

#[test]
fn routines_have_the_same_bytes_in_every_stream() {
    let types = for_each_interface(|listed| {
        let folder = folder(&format!("sanitized/{}", listed.name));
        generate(listed.path.as_ref(), listed.name, &folder);
        write_types(&folder.join(format!("{}.h", listed.name)), &folder);
        build_streams(listed, &folder, &SANITIZED);
        compare(listed, &folder, VALUES)
    });
    assert!(types > 250, "only {types} types were compared");
}

#[test]
fn routines_go_with_the_headers_of_rpcgen() {
    // Its header stands where its own routines are built.
    drop(xdrdump("torture"));
    let types = for_each_interface(|listed| {
        let name = listed.name;
        let folder = folder(&format!("mixed/{name}"));
        generate(listed.path.as_ref(), name, &folder);
        let theirs = root().join(format!("target/peers/{name}"));
        let header = format!("{name}.h");
        std::fs::copy(theirs.join(&header), folder.join(&header)).expect("their header");
        write_types(&folder.join(&header), &folder);
        build_streams(listed, &folder, &OPTIMISED);
        compare(listed, &folder, VALUES_MIXED)
    });
    assert!(types > 250, "only {types} types were compared");
}

#[test]
fn every_file_compiles_without_a_warning() {
    let files = for_each_interface(|listed| {
        let folder = folder(&format!("warnings/{}", listed.name));
        generate(listed.path.as_ref(), listed.name, &folder);
        for ending in ["clnt", "svc"] {
            let file = format!("{}_{ending}.c", listed.name);
            let mut arguments = vec!["-fsyntax-only", "-O2", "-Wpedantic"];
            arguments.extend(STRICT);
            arguments.push(&file);
            if std::fs::metadata(folder.join(&file)).is_ok_and(|file| file.len() > 0) {
                compile(&folder, &arguments);
            }
        }
        1
    });
    assert_eq!(files, INTERFACES.len());
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
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut command = Command::new(&client);
        command.args(addresses.arguments(transport));
        let said = tenon_interop::run(command);
        assert!(said.contains("every answer is right"), "{said}");
    }
}

#[test]
fn a_count_costs_no_memory_before_its_elements_are_there() {
    let folder = folder("hostile");
    let path = root().join("interfaces/torture.x");
    generate(&path, "torture", &folder);
    let source = root().join("tests/peers/c/hostile.c").display().to_string();
    let mut arguments = vec!["-O1", "-g", "-o", "hostile", &source, "torture_xdr.c"];
    arguments.extend(STRICT);
    arguments.push("-Wno-cast-function-type");
    arguments.push("-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc");
    compile(&folder, &arguments);
    let said = tenon_interop::run(Command::new(folder.join("hostile")));
    assert!(said.contains("nothing was taken"), "{said}");
}

#[test]
fn programs_find_what_they_rely_on() {
    let folder = folder("contract");
    generate(&root().join("interfaces/torture.x"), "torture", &folder);
    let source = root()
        .join("tests/peers/c/contract.c")
        .display()
        .to_string();
    let mut arguments = vec!["-Wno-cast-function-type", "-o", "ours", &source];
    arguments.extend(STRICT);
    arguments.extend(SANITIZED);
    arguments.push("torture_xdr.c");
    compile(&folder, &arguments);
    drop(xdrdump("torture"));
    let theirs = root().join("target/peers/torture");
    let include = format!("-iquote{}", theirs.display());
    let routines = theirs.join("torture_xdr.o").display().to_string();
    let copy = folder.join("theirs.c");
    std::fs::copy(&source, &copy).expect("a copy");
    let header = folder.join("torture.h");
    std::fs::remove_file(header).expect("theirs is looked for");
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
    let [ours, theirs] =
        ["ours", "theirs"].map(|program| tenon_interop::run(Command::new(folder.join(program))));
    assert!(ours.lines().count() > 25, "{ours}");
    assert_eq!(ours, theirs);
}

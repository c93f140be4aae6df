//! Interfaces that programs in C open at run time: values lie as the generated headers have them, have the bytes that
//! generated routines have, rpcgen's and those of Tenon's stubs, and are called by name at libtirpc's servers and ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon::wire::{Buffer, Encoder, Xdr};
use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_interop::fast::{flags_of, install};
use tenon_interop::{PeerTransport, XdrdumpRecoder, peer, root, services, socket_path};
use tenon_schema::{Schema, Type, TypeId};

use crate::libtirpc::{SANITIZED, STRICT};

/// Values per type, and bytes that are no values.
const VALUES: usize = 100;
const WRONG: usize = 200;

/// `tenon_engine`.
const ENGINES: [&str; 3] = ["0", "1", "2"];

/// A folder for what a test builds, with the library in it.
struct Workplace {
    folder: PathBuf,
    prefix: PathBuf,
}

impl Workplace {
    fn new(name: &str) -> Self {
        let folder = root().join("target/peers-c/opened").join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let prefix = install(&folder);
        Self { folder, prefix }
    }

    /// Compiles a program of `tests/peers/c` with what else it needs.
    fn compile(&self, program: &str, arguments: &[&str]) -> PathBuf {
        let to = self.folder.join(program);
        let mut command = Command::new("cc");
        command
            .current_dir(&self.folder)
            .args(["-D_GNU_SOURCE", "-I."]);
        command.args(STRICT).args(SANITIZED);
        command.arg("-o").arg(&to);
        command.arg(root().join(format!("tests/peers/c/{program}.c")));
        command
            .args(arguments)
            .args(flags_of(&self.prefix, "tenon"));
        run_quietly(&mut command);
        to
    }

    /// Writes the interface `text` and the stubs of Tenon for it.
    fn write_stubs(&self, name: &str, text: &str) -> Schema {
        let parsed = tenon_idl::parse_text(&format!("{name}.x"), text, &Default::default());
        let (schema, written) = (parsed.schema.expect("a schema"), parsed.written);
        let written = written.expect("beside the schema");
        let stubs = tenon_gen::c::stubs::generate(&schema, &written, &format!("{name}.x"));
        let stubs = stubs.expect("stubs");
        self.write(&format!("{name}.x"), text);
        self.write(&format!("{name}.h"), &stubs.header);
        self.write(&format!("{name}.c"), &stubs.source);
        self.write_types(&schema);
        schema
    }

    fn write_types(&self, schema: &Schema) {
        let names = schema
            .types
            .iter()
            .map(|def| format!("TYPE({})\n", def.name));
        self.write("types.inc", &names.collect::<String>());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("a file");
    }
}

fn torture() -> String {
    fs::read_to_string(root().join("interfaces/torture.x")).expect("the interface")
}

fn random_values(interface: &Interface, id: TypeId) -> Vec<Vec<u8>> {
    let value = |seed| {
        let value = Random::new(seed).value(interface.schema(), &Type::Named(id), 30);
        let mut buffer = Buffer::default();
        let done = interface.encode(id, &value, &mut Encoder::<Xdr>::new(&mut buffer));
        done.expect("a value of the type");
        buffer.as_slice().to_vec()
    };
    (0..VALUES as u64).map(value).collect()
}

/// Bytes of values, damaged.
fn damaged(values: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    let mut chance = Random::new(seed);
    let damage = |bytes: &Vec<u8>| {
        let mut bytes = bytes.clone();
        let bit = chance.below(8 * bytes.len() as u64 + 1) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        bytes.truncate(chance.below(2 * bytes.len() as u64 + 1) as usize);
        bytes
    };
    values.iter().cycle().take(WRONG).map(damage).collect()
}

/// Has random values of all types recoded by the opened interface and the generated routines.
fn recode(program: &Path, file: &Path, schema: Schema, engine: &str, is_strict: bool) {
    let mut command = Command::new(program);
    command.arg(file).arg(engine);
    let mut recoder = XdrdumpRecoder::start(command);
    let interface = Interface::new(schema).expect("types that end");
    for id in (0..interface.schema().types.len() as u32).map(TypeId) {
        let name = &interface.schema().type_def(id).name;
        let values = random_values(&interface, id);
        for (sent, answered) in values.iter().zip(recoder.recode(name, &values)) {
            assert_eq!(answered.as_ref(), Ok(sent), "{name} by engine {engine}");
        }
        // libtirpc accepts other bytes than we do.
        if is_strict {
            let wrong = damaged(&values, id.0.into());
            for (sent, answered) in wrong.iter().zip(recoder.recode(name, &wrong)) {
                let why = answered.err().unwrap_or_default();
                assert!(!why.contains("do not agree"), "{name}: {sent:?}: {why}");
            }
        }
    }
}

#[test]
fn opened_interfaces_have_the_bytes_of_generated_stubs() {
    let place = Workplace::new("stubs");
    let schema = place.write_stubs("torture", &torture());
    let options = [
        "-DINTERFACE_H=\"torture.h\"",
        "-DXDR_TYPES=\"types.inc\"",
        "torture.c",
    ];
    let program = place.compile("opened_recode", &options);
    let file = place.folder.join("torture.x");
    for engine in ENGINES {
        recode(&program, &file, schema.clone(), engine, true);
    }
}

#[test]
fn opened_interfaces_have_the_bytes_of_rpcgens_routines() {
    let place = Workplace::new("rpcgen");
    // `long` has another size in rpcgen's C.
    let text = torture().replace("long ", "int ");
    let parsed = tenon_idl::parse_text("torture.x", &text, &Default::default());
    let schema = parsed.schema.expect("a schema");
    place.write("torture.x", &text);
    place.write_types(&schema);
    for (what, file) in [("-h", "torture.h"), ("-c", "torture_xdr.c")] {
        // It refuses to overwrite.
        let _ = fs::remove_file(place.folder.join(file));
        let mut rpcgen = Command::new("rpcgen");
        rpcgen.current_dir(&place.folder);
        run_quietly(rpcgen.args(["-C", "-N", what, "-o", file, "torture.x"]));
    }
    // What rpcgen writes does not compile without warnings.
    let mut routines = Command::new("cc");
    routines
        .current_dir(&place.folder)
        .args(["-w", "-D_GNU_SOURCE", "-Dbool=bool_t"]);
    routines.args(SANITIZED).args(libtirpc("--cflags"));
    run_quietly(routines.args(["-c", "-o", "torture_xdr.o", "torture_xdr.c"]));
    let mut options: Vec<String> = [
        "-DRPCGEN",
        "-DINTERFACE_H=\"torture_as_rpcgen.h\"",
        "-DXDR_TYPES=\"types.inc\"",
        "-Wno-cast-function-type",
        "torture_xdr.o",
    ]
    .map(str::to_owned)
    .into();
    options.extend(libtirpc("--cflags"));
    options.extend(libtirpc("--libs"));
    // rpcgen writes `bool` in arrays of them, which is libtirpc's there and C's in `tenon.h`.
    let header = "#define bool bool_t\n#include \"torture.h\"\n#undef bool\n";
    place.write("torture_as_rpcgen.h", header);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let program = place.compile("opened_recode", &options);
    let file = place.folder.join("torture.x");
    for engine in ENGINES {
        recode(&program, &file, schema.clone(), engine, false);
    }
}

#[test]
fn opened_interfaces_are_called_by_name() {
    let place = Workplace::new("calls");
    place.write_stubs("torture", &torture());
    let program = place.compile("opened_calls", &["torture.c"]);
    let (_libtirpc, theirs) = peer("torture_server").serve(&["tcp", "udp"]);
    let path = socket_path("opened");
    let (_ours, own) = services::serve(&path);
    let mut addresses = vec![theirs.url(PeerTransport::Tcp)];
    addresses.extend([PeerTransport::Tcp, PeerTransport::Unix].map(|way| own.url(way)));
    let lean = [PeerTransport::Tcp, PeerTransport::Unix, PeerTransport::Udp];
    addresses.extend(lean.map(|way| format!("lean+{}", own.url(way))));
    for engine in ENGINES {
        let mut command = Command::new(&program);
        command.arg(place.folder.join("torture.x")).arg(engine);
        assert_eq!(run_quietly(command.args(&addresses)), "fine\n");
    }
}

/// Runs a command, which has to succeed, and returns what it prints.
fn run_quietly(command: &mut Command) -> String {
    let output = command.output().expect("./test setup installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// What the compiler is told of libtirpc.
fn libtirpc(what: &str) -> Vec<String> {
    let said = run_quietly(Command::new("pkg-config").args([what, "libtirpc"]));
    said.split_whitespace().map(str::to_owned).collect()
}

//! The library as C programs see it: installed, found by pkg-config, linked shared and static, under the
//! sanitizers, over every transport, against itself and against the run time in Rust.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use pair::Pair;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, Client, LeanInput, LeanService, Refusal, Server, Service};

#[path = "../../tenon-xdp/tests/common/pair.rs"]
#[allow(
    clippy::unwrap_used,
    dead_code,
    reason = "as in the tests it comes from, which use all of it"
)]
mod pair;
#[path = "programs/raises.rs"]
mod raises;
#[path = "programs/results.rs"]
mod results;
#[path = "programs/stores.rs"]
mod stores;

const PROGRAM: u32 = 0x2000_0abc;

/// Every warning there is.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-std=gnu11"];

/// What finds memory that is not ours or is lost, and what C does not define.
const SANITIZED: [&str; 4] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
];

/// The script that installs, from what cargo has built for this test.
fn install() -> Command {
    let built = env::current_exe().expect("the test has a file");
    let built = built.parent().expect("it lies in a folder");
    let mut install = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("install"));
    install.args(["--built".as_ref(), built.as_os_str()]);
    install
}

/// The library as it is installed, and what was compiled against it.
struct Installed {
    prefix: PathBuf,
}

impl Installed {
    fn new(name: &str) -> Self {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        succeeds(install().args(["--prefix".as_ref(), prefix.as_os_str()]));
        Self { prefix }
    }

    /// With the shared library, for the tests that leave it as it is.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Installed> = OnceLock::new();
        SHARED.get_or_init(|| Self::new("shared"))
    }

    fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        let said = succeeds(command.args(arguments).arg("tenon"));
        said.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles `tests/programs/NAME.c` with the interface, and says where the program is.
    fn compile(&self, compiler: &str, name: &str, options: &[&str], is_static: bool) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let program = self.prefix.join(format!("{name}-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(STRICT).args(options);
        command.arg("-o").arg(&program);
        command.arg(sources.join(format!("{name}.c")));
        command.arg(sources.join("notes.c"));
        command.args(self.pkg_config(&["--cflags"]));
        match is_static {
            false => {
                let lib = self.prefix.join("lib");
                command.args(self.pkg_config(&["--libs"]));
                command.arg(format!("-Wl,-rpath,{}", lib.display()));
            }
            true => {
                command.args(["-Wl,--gc-sections", "-Wl,-Bstatic"]);
                command.args(self.pkg_config(&["--libs"]));
                command.arg("-Wl,-Bdynamic");
                let needed = self.pkg_config(&["--libs", "--static"]);
                command.args(needed.iter().filter(|flag| *flag != "-ltenon"));
            }
        }
        assert_eq!(succeeds(&mut command), "", "{command:?} warns");
        program
    }
}

/// Runs a command, which has to succeed, and hands out all that it says.
fn succeeds(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn has(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok()
}

/// A server in C that runs until it is told to end.
struct Serving {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    addresses: Vec<String>,
}

impl Serving {
    /// Serves at every kind of address that needs no network of its own; files lie in `folder`.
    fn start(program: &Path, folder: &Path, in_order: bool) -> Self {
        let mut command = Command::new(program);
        if in_order {
            command.env("IN_ORDER", "1");
        }
        Self::spawn(command, folder)
    }

    /// Has the command serve at every kind of address that needs no network of its own, which are its last arguments;
    /// files lie in `folder`.
    fn spawn(command: Command, folder: &Path) -> Self {
        let file = |name: &str| folder.join(format!("{}.{name}", std::process::id()));
        let (unix, shm) = (file("socket"), file("shm"));
        let listening = [
            "tcp://127.0.0.1:0".to_owned(),
            "udp://127.0.0.1:0".to_owned(),
            format!("unix://{}", unix.display()),
            format!("shm://{}", shm.display()),
        ];
        Self::spawn_at(command, &listening)
    }

    /// Has the command serve at these addresses, which are its last arguments.
    fn spawn_at(mut command: Command, addresses: &[String]) -> Self {
        command.args(addresses);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.expect("the server starts");
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut addresses = Vec::new();
        loop {
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("the server speaks");
            match line.trim_end() {
                "ready" => break,
                _ if read == 0 => panic!("the server ended: {:?}", process.wait()),
                address => addresses.push(address.to_owned()),
            }
        }
        Self {
            process,
            output,
            addresses,
        }
    }

    /// By which addresses a client can call, those of both protocols.
    fn reachable(&self) -> Vec<String> {
        let plain = self.addresses.iter();
        let twice = plain.flat_map(|address| match address.starts_with("shm") {
            true => vec![address.clone()],
            false => vec![address.clone(), format!("lean+{address}")],
        });
        twice.collect()
    }

    /// Has it end in order, and hands out what it says then.
    fn stop(mut self) -> String {
        drop(self.process.stdin.take());
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut said).expect("the server speaks");
        assert!(self.process.wait().expect("it ends").success(), "{said}");
        said
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn programs_call_and_serve_over_every_transport() {
    let installed = Installed::shared();
    let sanitized = installed.compile("gcc", "server", &SANITIZED, false);
    let client = installed.compile("gcc", "client", &SANITIZED, false);
    for in_order in [false, true] {
        let server = Serving::start(&sanitized, &installed.prefix, in_order);
        let addresses = server.reachable();
        assert_eq!(addresses.len(), 7, "{addresses:?}");
        let said = succeeds(Command::new(&client).arg("everything").args(&addresses));
        assert_eq!(said, "fine\n");
        rust_calls(&addresses);
        assert_eq!(server.stop(), "stopped\n");
    }
    a_server_that_dies_is_noticed(&sanitized, &client, &installed.prefix);
    rust_serves(&client, &installed.prefix);
}

#[test]
fn programs_call_and_serve_past_the_kernel() {
    let Some(pair) = Pair::make("programs_call_and_serve_past_the_kernel") else {
        return;
    };
    // Another test has programs of these names where all install.
    let installed = Installed::new("past_the_kernel");
    let server = installed.compile("gcc", "server", &SANITIZED, false);
    let client = installed.compile("gcc", "client", &SANITIZED, false);
    let listening = [format!("onc+xdp://{}:0", pair.server_at)];
    let server = pair.in_server(|| Serving::spawn_at(Command::new(server), &listening));
    let [onc] = server.addresses.as_slice() else {
        panic!("{:?}", server.addresses);
    };
    let lean = onc.strip_prefix("onc+").expect("as it was said");
    let mut command = Command::new(client);
    command.args(["everything", onc, lean]);
    assert_eq!(pair.in_client(|| succeeds(&mut command)), "fine\n");
    assert_eq!(server.stop(), "stopped\n");
}

/// The same library, linked into the programs, compiled by the other compiler if it is there.
#[test]
fn programs_may_be_linked_statically() {
    let installed = Installed::new("static");
    let compiler = match has("clang") {
        true => "clang",
        false => "gcc",
    };
    let server = installed.compile(compiler, "server", &["-O2"], true);
    let client = installed.compile(compiler, "client", &["-O2"], true);
    fs::remove_dir_all(installed.prefix.join("lib")).expect("nothing of it is needed any more");
    let server = Serving::start(&server, &installed.prefix, false);
    let addresses = server.reachable();
    succeeds(Command::new(&client).arg("everything").args(&addresses));
    assert_eq!(server.stop(), "stopped\n");
}

#[test]
fn warm_calls_allocate_nothing() {
    let installed = Installed::shared();
    let counts = installed.compile("gcc", "counts", &["-O1"], false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("counts.socket"));
    let shm = format!("shm://{}", file("counts.shm"));
    let lean = format!("lean+{unix}");
    let addresses = [&unix, &unix, &unix, &lean, &shm, &shm];
    assert_eq!(succeeds(Command::new(counts).args(addresses)), "fine\n");
}

#[test]
fn a_server_is_free_when_no_handler_runs() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "frees", &SANITIZED, false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("frees.socket"));
    let shm = format!("shm://{}", file("frees.shm"));
    let udp = "udp://127.0.0.1:0";
    let addresses = [&unix, &shm, udp];
    assert_eq!(succeeds(Command::new(program).args(addresses)), "fine\n");
}

#[test]
fn a_handler_sees_that_its_caller_has_stopped_waiting() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "cancels", &SANITIZED, false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("cancels.socket"));
    let shm = format!("shm://{}", file("cancels.shm"));
    let addresses = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", &unix, &shm];
    assert_eq!(succeeds(Command::new(program).args(addresses)), "fine\n");
}

/// Metadata of a call and of its reply, and a claim of who calls, over each transport of the lean protocol.
#[test]
fn metadata_goes_both_ways() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "metadata", &SANITIZED, false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("metadata.socket"));
    let shm = format!("shm://{}", file("metadata.shm"));
    let addresses = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", &unix, &shm];
    assert_eq!(succeeds(Command::new(program).args(addresses)), "fine\n");
}

/// Streams of arguments and of results by the functions of the library, over each transport that carries them.
#[test]
fn streams_go_both_ways() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "streams", &SANITIZED, false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("streams.socket"));
    let shm = format!("shm://{}", file("streams.shm"));
    let addresses = ["tcp://127.0.0.1:0", &unix, &shm];
    assert_eq!(succeeds(Command::new(program).args(addresses)), "fine\n");
}

#[test]
fn a_server_stops_whenever_it_is_told_to() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "runs", &SANITIZED, false);
    let said = succeeds(Command::new(program).arg("tcp://127.0.0.1:0"));
    assert_eq!(said, "fine\n");
}

#[test]
fn an_event_loop_steps_a_server() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "steps", &SANITIZED, false);
    let file = |name: &str| installed.prefix.join(name).display().to_string();
    let unix = format!("unix://{}", file("steps.socket"));
    let shm = format!("shm://{}", file("steps.shm"));
    let addresses = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", &unix, &shm];
    assert_eq!(succeeds(Command::new(program).args(addresses)), "fine\n");
}

/// Connecting waits for nothing but the system there, so that one thread can be both ends.
#[test]
fn an_event_loop_steps_a_server_and_its_clients() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "loops", &SANITIZED, false);
    let unix = format!("unix://{}", installed.prefix.join("loops.socket").display());
    let said = succeeds(Command::new(program).args(["tcp://127.0.0.1:0", &unix]));
    assert_eq!(said, "fine\n");
}

/// Without sanitizers, which take more of the address space than the program leaves itself.
#[test]
fn mistakes_of_a_program_are_errors() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "limits", &["-O1", "-g"], false);
    let unix = format!(
        "unix://{}",
        installed.prefix.join("limits.socket").display()
    );
    let said = succeeds(Command::new(program).arg(unix));
    assert!(said.contains("fine\n"), "{said}");
}

/// Interfaces that are opened at run time, from a file and from a descriptor, by every engine.
#[test]
fn interfaces_are_opened_at_run_time() {
    let installed = Installed::shared();
    let program = installed.compile("gcc", "opened", &SANITIZED, false);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/opened.x");
    let parsed = tenon_idl::parse_file(&file, &Default::default());
    let schema = parsed.schema.expect("an interface");
    let descriptor = tenon_descriptor::Descriptor::new(&schema).expect("a descriptor");
    let described = installed.prefix.join("opened.descriptor");
    fs::write(&described, descriptor.bytes()).expect("a file");
    let unix = format!(
        "unix://{}",
        installed.prefix.join("opened.socket").display()
    );
    let mut command = Command::new(program);
    command.args([&file, &described]).arg(unix);
    assert_eq!(succeeds(&mut command), "fine\n");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tenon.h");
    for compiler in ["g++", "clang++"].into_iter().filter(|name| has(name)) {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
        assert_eq!(succeeds(command.args(["-x", "c++"]).arg(&header)), "");
    }
    let mut command = Command::new("gcc");
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
    assert_eq!(
        succeeds(command.args(["-std=c99", "-x", "c"]).arg(&header)),
        ""
    );
}

/// What is declared is there, and the other way round.
#[test]
fn the_library_has_what_the_header_declares() {
    let installed = Installed::shared();
    let header = fs::read_to_string(installed.prefix.join("include/tenon.h")).expect("a header");
    let code = header
        .lines()
        .filter(|line| !line.starts_with(['/', ' ', '#']));
    let called = code.filter_map(|line| line.split_once('(').map(|(before, _)| before));
    let words = called.filter_map(|before| before.rsplit([' ', '*']).next());
    let names = words.filter(|word| word.starts_with("tenon_"));
    // Programs ask for the version of the interface that they were built for.
    let mut declared: Vec<_> = names.map(|name| format!("{name}@@TENON_0")).collect();
    let mut list = Command::new("nm");
    list.args(["-D", "--defined-only", "-j"]);
    let listed = succeeds(list.arg(installed.prefix.join("lib/libtenon.so")));
    let mut defined: Vec<_> = listed
        .lines()
        .filter(|name| name.starts_with("tenon_"))
        .collect();
    declared.sort_unstable();
    defined.sort_unstable();
    assert_eq!(declared, defined);
    assert_eq!(
        installed.pkg_config(&["--modversion"]),
        [env!("CARGO_PKG_VERSION")]
    );
}

/// A folder of libraries as distributions have it, found by pkg-config and by CMake.
#[test]
fn libraries_may_lie_in_a_folder_of_their_own() {
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libdir");
    let mut install = install();
    install.args(["--libdir", "lib/some-system", "--prefix"]);
    succeeds(install.arg(&prefix));
    let lib = prefix.join("lib/some-system");
    assert!(lib.join("libtenon.so").exists() && !prefix.join("lib/libtenon.so").exists());
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    let said = succeeds(command.args(["--libs", "tenon"]));
    assert_eq!(said.trim(), format!("-L{} -ltenon", lib.display()));
    if has("cmake") {
        cmake_finds(&prefix, &lib);
    }
}

fn cmake_finds(prefix: &Path, lib: &Path) {
    let folder = prefix.join("project");
    fs::create_dir_all(&folder).expect("a folder");
    let project = "cmake_minimum_required(VERSION 3.13)
project(uses_tenon C)
find_package(tenon 0.1 REQUIRED)
foreach(library tenon static tirpc)
    if(TARGET tenon::${library})
        add_executable(with_${library} main.c)
        target_link_libraries(with_${library} tenon::${library})
    endif()
endforeach()
";
    let main = "#include <tenon.h>
int main(void) { return puts(tenon_version()) < 0; }
";
    fs::write(folder.join("CMakeLists.txt"), project).expect("a file");
    fs::write(folder.join("main.c"), main).expect("a file");
    let mut configure = Command::new("cmake");
    configure.arg(format!("-Dtenon_DIR={}", lib.join("cmake/tenon").display()));
    succeeds(configure.args(["-B", "built", "."]).current_dir(&folder));
    succeeds(
        Command::new("cmake")
            .args(["--build", "built"])
            .current_dir(&folder),
    );
    for library in ["tenon", "static", "tirpc"] {
        let program = folder.join("built").join(format!("with_{library}"));
        let said = succeeds(&mut Command::new(program));
        assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"), "{library}");
    }
    let too_new = project.replace("0.1 REQUIRED", "0.2 REQUIRED");
    fs::write(folder.join("CMakeLists.txt"), too_new).expect("a file");
    let output = Command::new("cmake")
        .args(["-B", "other", "."])
        .current_dir(&folder)
        .output();
    assert!(!output.expect("cmake runs").status.success());
}

/// The manual has a page of all that the header says, and finds it by the name of each function.
#[test]
fn the_manual_knows_every_function() {
    let installed = Installed::shared();
    let pages = installed.prefix.join("share/man/man3");
    let page = fs::read_to_string(pages.join("tenon.3")).expect("a page");
    for heading in [".SH NAME", ".SH ERRORS: FOR PROGRAMS", ".SH SEE ALSO"] {
        assert!(page.contains(heading), "{heading}");
    }
    for function in ["tenon_connect", "tenon_server_step", "tenon_log"] {
        let link = fs::read_to_string(pages.join(format!("{function}.3"))).expect("a page");
        assert_eq!(link, ".so man3/tenon.3\n");
        assert!(page.contains(&format!("{function}(")), "{function}");
    }
    if has("man") {
        let mut man = Command::new("man");
        man.env("MANWIDTH", "100").args(["--warnings", "-l"]);
        let shown = succeeds(man.arg(pages.join("tenon.3")));
        assert!(
            shown.contains("Whose fault it is, and so what can be done."),
            "{shown}"
        );
        assert!(!shown.contains("warning"), "{shown}");
    }
}

#[test]
fn thread_sanitizer_reports_nothing_of_the_library() {
    let installed = Installed::shared();
    let suppressions = installed.prefix.join("share/tenon/tsan.supp");
    let options = format!("suppressions={}", suppressions.display());
    let sanitized = ["-O1", "-g", "-fsanitize=thread"];
    let socket = format!("unix://{}", installed.prefix.join("tsan.socket").display());
    for (program, address) in [("runs", "tcp://127.0.0.1:0"), ("frees", socket.as_str())] {
        let program = installed.compile("gcc", program, &sanitized, false);
        let mut command = Command::new(program);
        command.env("TSAN_OPTIONS", &options).arg(address);
        assert_eq!(succeeds(&mut command), "fine\n");
    }
}

/// Calls of a client in Rust, by both protocols.
fn rust_calls(addresses: &[String]) {
    for address in addresses {
        let client = Client::connect(address, PROGRAM, 1).expect("it listens");
        let (number, text) = match client.protocol() {
            tenon::Protocol::Onc => client.onc().call(1, put_note, get_note),
            tenon::Protocol::Lean => client.lean().call(
                1,
                |out| {
                    out.put(4_u32);
                    out.put_opaque(b"from Rust", 64)
                },
                |input| match input {
                    LeanInput::Native(input) => Ok((input.get()?, input.get_opaque(64)?)),
                    LeanInput::Swapped(input) => Ok((input.get()?, input.get_opaque(64)?)),
                },
            ),
        }
        .expect("an answer");
        assert_eq!((number, &text[..]), (5, &b"from Rust"[..]), "{address}");
    }
}

fn put_note(out: &mut Encoder<'_>) -> Result<(), tenon::wire::EncodeError> {
    out.put(4_u32);
    out.put_opaque(b"from Rust", 64)
}

fn get_note(input: &mut Decoder<'_>) -> Result<(u32, Vec<u8>), tenon::wire::DecodeError> {
    Ok((input.get()?, input.get_opaque(64)?))
}

/// A server in Rust whose results are none of the interface.
struct Hostile;

impl Hostile {
    /// What it answers, as words.
    fn answer(procedure: u32) -> Result<&'static [u32], Refusal> {
        match procedure {
            1 => Ok(&[1, u32::MAX]),
            4 => Ok(&[]),
            5 => Ok(&[1000, 1]),
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

impl Service for Hostile {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Self::answer(call.procedure())?
            .iter()
            .for_each(|word| result.put(*word));
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Hostile {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Self::answer(call.procedure())?
            .iter()
            .for_each(|word| result.put(*word));
        Ok(())
    }
}

fn rust_serves(client: &Path, folder: &Path) {
    let shm = format!("shm://{}", folder.join("hostile.shm").display());
    let builder = Server::builder().service(Hostile);
    let builder = builder.listen("tcp://127.0.0.1:0").expect("an address");
    let builder = builder.listen("udp://127.0.0.1:0").expect("an address");
    let server = builder
        .listen(&shm)
        .expect("an address")
        .start()
        .expect("it serves");
    let plain = server.addresses().iter().map(ToString::to_string);
    let all = plain.flat_map(|address| match address.starts_with("shm") {
        true => vec![address],
        false => vec![format!("lean+{address}"), address],
    });
    let said = succeeds(Command::new(client).arg("hostile").args(all));
    assert_eq!(said, "fine\n");
}

fn a_server_that_dies_is_noticed(server: &Path, client: &Path, folder: &Path) {
    for index in 0..7 {
        let server = Serving::start(server, folder, false);
        let address = &server.reachable()[index];
        let said = succeeds(Command::new(client).arg("dies").arg(address));
        assert_eq!(said, "fine\n", "{address}");
    }
}

/// Programs are built elsewhere than the library is installed from.
#[test]
fn a_folder_that_is_named_from_here_is_found_from_anywhere() {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR"));
    succeeds(install().current_dir(here).args(["--prefix", "from-here"]));
    let installed = Installed {
        prefix: here.join("from-here"),
    };
    let include = installed.prefix.join("include");
    assert_eq!(
        installed.pkg_config(&["--cflags"]),
        [format!("-I{}", include.display())]
    );
}

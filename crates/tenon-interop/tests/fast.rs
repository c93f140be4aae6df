//! Programs that `tenon rpcgen --fast` was used for: the same sources as libtirpc's own, with the run time of
//! Tenon behind libtirpc's names; against programs of rpcgen and libtirpc, and against each other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tenon_gen::c;
use tenon_idl::{Output, Style, Undeclared};
use tenon_interop::{Process, Transport, peer, root, run};

/// Where everything is built.
fn folder() -> PathBuf {
    root().join("target/peers-c/fast")
}

/// The libraries, as they are installed.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = folder().join("prefix");
        // cargo has built the library for this test, which depends on it.
        let built = std::env::current_exe().expect("the test has a file");
        let mut install = Command::new(root().join("crates/tenon-c/install"));
        install.args(["--prefix".as_ref(), prefix.as_os_str()]);
        install.args([
            "--built".as_ref(),
            built.parent().expect("a folder").as_os_str(),
        ]);
        install.env(
            "CFLAGS",
            "-O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined",
        );
        run(install);
        prefix
    })
}

fn flags(package: &str) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    command.args(["--cflags", "--libs", package]);
    run(command).split_whitespace().map(str::to_owned).collect()
}

/// Writes what the back end makes of the torture interface with `--fast`.
fn generate() {
    let options = c::Options {
        header: "torture.h".to_owned(),
        source: "torture.x".to_owned(),
        by_value: true,
        fast: true,
        ..c::Options::default()
    };
    let write = |output: Output, ending: &str, make: &dyn Fn(c::Interface<'_>) -> String| {
        let read = tenon_idl::Options {
            output,
            undeclared: Undeclared::OfLibtirpc,
            ..tenon_idl::Options::default()
        };
        let parsed = tenon_idl::parse_file(&root().join("interfaces/torture.x"), &read);
        let said = parsed.render(Style::Plain);
        let of = c::Interface {
            schema: parsed.schema.as_ref().unwrap_or_else(|| panic!("{said}")),
            written: parsed.written.as_ref().expect("beside the schema"),
            dialect: c::Dialect::Libtirpc,
        };
        std::fs::write(folder().join(format!("torture{ending}")), make(of)).expect("a file");
    };
    write(Output::Header, ".h", &|of| of.header(&options));
    write(Output::Xdr, "_xdr.c", &|of| {
        of.xdr(&options).expect("plans")
    });
    write(Output::Client, "_clnt.c", &|of| of.client(&options));
    write(Output::Server, "_svc.c", &|of| of.server(&options));
}

/// Runs the C compiler in the folder.
fn compile(arguments: &[&str], further: &[String]) {
    let mut command = Command::new("cc");
    command.current_dir(folder());
    command.args([
        "-D_GNU_SOURCE",
        "-w",
        "-g",
        "-fsanitize=address,undefined",
        "-I.",
    ]);
    command.arg(format!("-I{}", root().join("tests/peers/c").display()));
    command.args(arguments).args(further);
    run(command);
}

/// Builds one end out of the source of libtirpc's peer, and the routines.
fn build(end: &str, stubs: &str) -> PathBuf {
    let peer = |name: &str| {
        root()
            .join("tests/peers/c")
            .join(name)
            .display()
            .to_string()
    };
    let (program, transport) = (peer(&format!("torture_{end}.c")), peer("transport_tenon.c"));
    let sources = ["-o", end, "torture_xdr.o", stubs, &program, &transport];
    let mut libraries = flags("tenon-tirpc");
    libraries.push(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
    compile(&sources, &libraries);
    folder().join(end)
}

#[test]
fn clients_and_servers_understand_those_of_libtirpc() {
    std::fs::create_dir_all(folder()).expect("a folder");
    generate();
    compile(
        &["-c", "-o", "torture_xdr.o", "torture_xdr.c"],
        &flags("tenon-tirpc"),
    );
    let client = build("client", "torture_clnt.c");
    let unix = format!("unix={}", folder().join("socket").display());
    let mut serving = Command::new(build("server", "torture_svc.c"));
    serving.args(["tcp", "udp", &unix]);
    let server = Process::start(serving);
    for line in server.lines() {
        let address: Vec<&str> = line.split(' ').collect();
        peer("torture_client").check_at(&address);
        agrees(&client, &address);
    }
    assert_eq!(server.lines().len(), 3);
    let (_theirs, addresses) = peer("torture_server").serve(&["tcp", "udp"]);
    for transport in [Transport::Tcp, Transport::Udp] {
        agrees(&client, addresses.arguments(transport));
    }
}

/// Runs our client against a server.
fn agrees(client: &Path, address: &[impl AsRef<std::ffi::OsStr>]) {
    let mut command = Command::new(client);
    command.args(address);
    let said = run(command);
    assert!(said.contains("every answer is right"), "{said}");
}

//! Programs that `tenon rpcgen --fast` was used for: the same sources as libtirpc's own, with the run time of
//! Tenon behind libtirpc's names; against programs of rpcgen and libtirpc, and against each other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tenon_gen::c;
use tenon_idl::{Output, Style, Undeclared};
use tenon_interop::fast::{flags, install};
use tenon_interop::{PeerTransport, Process, in_private_network, peer, root, run, start_rpcbind};

/// Where the programs of a test are built.
fn folder(test: &str) -> PathBuf {
    let folder = root().join("target/peers-c/fast").join(test);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes what the back end makes of an interface with `--fast`.
fn generate(folder: &Path, interface: &Path, options: &c::Options) {
    let name = interface.file_stem().expect("a name").display();
    let write = |output: Output, ending: &str, make: &dyn Fn(c::Interface<'_>) -> String| {
        let read = tenon_idl::Options {
            output,
            undeclared: Undeclared::OfLibtirpc,
            ..tenon_idl::Options::default()
        };
        let parsed = tenon_idl::parse_file(interface, &read);
        let said = parsed.render(Style::Plain);
        let of = c::Interface {
            schema: parsed.schema.as_ref().unwrap_or_else(|| panic!("{said}")),
            written: parsed.written.as_ref().expect("beside the schema"),
            dialect: c::Dialect::Libtirpc,
        };
        std::fs::write(folder.join(format!("{name}{ending}")), make(of)).expect("a file");
    };
    write(Output::Header, ".h", &|of| of.header(options));
    write(Output::Xdr, "_xdr.c", &|of| of.xdr(options).expect("plans"));
    write(Output::Client, "_clnt.c", &|of| of.client(options));
    write(Output::Server, "_svc.c", &|of| of.server(options));
}

/// Builds a program of C files in `folder` and of those beside the peers' own.
fn build(folder: &Path, program: &str, sources: &[&str], flags: &[String]) -> PathBuf {
    let peers = root().join("tests/peers/c");
    let mut command = Command::new("cc");
    command.current_dir(folder);
    command.args(["-D_GNU_SOURCE", "-w", "-g", "-fsanitize=address,undefined"]);
    // Files that include no generated header have libtirpc's names, too.
    command.args(["-include", "tenon/tirpc.h"]);
    command.args(["-I.", "-o", program]);
    command.arg(format!("-I{}", peers.display()));
    command.args(sources.iter().map(|source| match folder.join(source) {
        written if written.exists() => written,
        _ => peers.join(source),
    }));
    command.args(flags);
    run(command);
    folder.join(program)
}

#[test]
fn clients_and_servers_understand_those_of_libtirpc() {
    let folder = &folder("torture");
    let options = c::Options {
        header: "torture.h".to_owned(),
        source: "torture.x".to_owned(),
        by_value: true,
        fast: true,
        ..c::Options::default()
    };
    generate(folder, &root().join("interfaces/torture.x"), &options);
    let flags = flags(&install(folder));
    let end = |program, source, stubs| {
        let sources = [source, stubs, "torture_xdr.c", "transport.c"];
        build(folder, program, &sources, &flags)
    };
    let client = end("client", "torture_client.c", "torture_clnt.c");
    let unix = format!("unix={}", folder.join("socket").display());
    let mut serving = Command::new(end("server", "torture_server.c", "torture_svc.c"));
    serving.args(["tcp", "udp", &unix]);
    let server = Process::start(serving);
    for line in server.lines() {
        let address: Vec<&str> = line.split(' ').collect();
        peer("torture_client").check_at(&address);
        agrees(&client, &address);
    }
    assert_eq!(server.lines().len(), 3);
    let (_theirs, addresses) = peer("torture_server").serve(&["tcp", "udp"]);
    for transport in [PeerTransport::Tcp, PeerTransport::Udp] {
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

/// What was read of arguments before their end was missed is given back: the program ends in order, and its
/// sanitizer looks then.
#[test]
fn arguments_that_are_cut_off_are_not_lost() {
    let folder = &folder("parcel");
    let options = c::Options {
        header: "parcel.h".to_owned(),
        source: "parcel.x".to_owned(),
        fast: true,
        ..c::Options::default()
    };
    generate(folder, &root().join("tests/peers/c/parcel.x"), &options);
    let flags = flags(&install(folder));
    let sources = ["parcel_cut_off.c", "parcel_svc.c", "parcel_xdr.c"];
    let mut program = Command::new(build(folder, "cut_off", &sources, &flags));
    program.env("ASAN_OPTIONS", "detect_leaks=1");
    assert_eq!(run(program), "fine\n");
}

/// A server that is written whole, main included, tells rpcbind where it is, and so clients find it that know
/// no more than the host.
#[test]
fn rpcbind_leads_clients_to_servers() {
    in_private_network("fast::rpcbind_leads_clients_to_servers", || {
        let folder = &folder("twice");
        let options = c::Options {
            header: "twice.h".to_owned(),
            source: "twice.x".to_owned(),
            fast: true,
            server: c::Server {
                transports: vec![c::Transport::Udp, c::Transport::Tcp],
                ..c::Server::default()
            },
            ..c::Options::default()
        };
        generate(folder, &root().join("tests/peers/c/twice.x"), &options);
        let flags = flags(&install(folder));
        let client = build(
            folder,
            "client",
            &["twice_client.c", "twice_clnt.c"],
            &flags,
        );
        let server = build(
            folder,
            "server",
            &["twice_service.c", "twice_svc.c"],
            &flags,
        );
        let _rpcbind = start_rpcbind();
        let server = Process::background(Command::new(server));
        for transport in ["udp", "tcp"] {
            assert_eq!(answer(&client, transport), "42");
        }
        drop(server);
    });
}

/// What a client prints that goes on until the server has registered itself.
fn answer(client: &Path, transport: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = Command::new(client).arg(transport).output();
        let output = output.expect("the client runs");
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).trim().to_owned();
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(Instant::now() < deadline, "{transport}: {said}");
        thread::sleep(Duration::from_millis(50));
    }
}

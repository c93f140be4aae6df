//! libtirpc's interface, used by hand: programs that are built on libtirpc alone and on what `tenon rpcgen --fast` puts
//! behind its names say the same, whichever of them calls and whichever serves. Each difference that docs/fast.md lists
//! has its own test.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tenon_interop::fast::{flags, install};
use tenon_interop::{Process, in_private_network, root, run, start_rpcbind};

/// What the programs are built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    Libtirpc,
    Fast,
}

const BUILDS: [Build; 2] = [Build::Libtirpc, Build::Fast];

/// Both builds of both programs.
struct Programs {
    folder: PathBuf,
}

impl Programs {
    fn get() -> &'static Self {
        static PROGRAMS: OnceLock<Programs> = OnceLock::new();
        PROGRAMS.get_or_init(|| {
            // A test in a private network is a process of its own, beside the others.
            let own = std::process::id().to_string();
            let folder = root().join("target/peers-c/fast/interface").join(own);
            fs::create_dir_all(&folder).expect("a folder");
            let programs = Programs { folder };
            let fast = flags(&install(&programs.folder));
            for program in ["server", "client"] {
                programs.build(Build::Libtirpc, program, &libtirpc());
                let mut with_names = vec!["-include".to_owned(), "tenon/tirpc.h".to_owned()];
                with_names.extend_from_slice(&fast);
                programs.build(Build::Fast, program, &with_names);
            }
            programs
        })
    }

    fn path(&self, build: Build, program: &str) -> PathBuf {
        self.folder.join(format!("{program}-{build:?}"))
    }

    fn build(&self, build: Build, program: &str, flags: &[String]) {
        let mut command = Command::new("cc");
        command.args(["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]);
        command.args(["-Wno-cast-function-type", "-Wno-sign-compare"]);
        command.arg("-fsanitize=address,undefined");
        command.arg("-o").arg(self.path(build, program));
        command.arg(root().join(format!("tests/peers/c/interface_{program}.c")));
        command.args(flags);
        run(command);
    }

    /// Starts a server and returns it with the ports that it listens at.
    fn serve(&self, build: Build, waits: &str, creates: &str) -> (Process, Vec<String>) {
        self.serve_with(build, waits, creates, &[])
    }

    /// The same with variables of the environment.
    fn serve_with(
        &self,
        build: Build,
        waits: &str,
        creates: &str,
        variables: &[(&str, &str)],
    ) -> (Process, Vec<String>) {
        let mut command = Command::new(self.path(build, "server"));
        command
            .args([waits, creates])
            .envs(variables.iter().copied());
        // What a forked process or one that is killed leaves is no leak.
        command.env("ASAN_OPTIONS", "detect_leaks=0");
        let server = Process::start(command);
        let line = server.lines().last().cloned().unwrap_or_default();
        let ports = line.split(' ').map(str::to_owned).collect();
        (server, ports)
    }

    fn call(&self, build: Build, what: &str, ports: &[String]) -> String {
        let mut command = Command::new(self.path(build, "client"));
        command.arg(what).args(ports);
        command.env("ASAN_OPTIONS", "detect_leaks=0");
        run(command)
    }

    /// What a client of one build says of a server of the other.
    fn said(&self, server: Build, client: Build, waits: &str, creates: &str, what: &str) -> String {
        let (_server, ports) = self.serve(server, waits, creates);
        self.call(client, what, &ports)
    }

    /// Has all builds say what those of libtirpc say among themselves.
    #[track_caller]
    fn agree(&self, waits: &str, creates: &str, what: &str) {
        let expected = self.said(Build::Libtirpc, Build::Libtirpc, waits, creates, what);
        assert!(!expected.is_empty(), "{what}");
        for (server, client) in [
            (Build::Libtirpc, Build::Fast),
            (Build::Fast, Build::Libtirpc),
            (Build::Fast, Build::Fast),
        ] {
            let said = self.said(server, client, waits, creates, what);
            assert_eq!(
                said, expected,
                "{what}: {client:?} calls {server:?} ({waits} {creates})"
            );
        }
    }
}

fn libtirpc() -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "libtirpc"]);
    run(command).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn calls_errors_controls_and_times_are_the_same() {
    Programs::get().agree("run", "old", "everything");
}

#[test]
fn event_loops_of_the_program_serve_the_same() {
    Programs::get().agree("set", "tli", "everything");
    for waits in ["poll", "common"] {
        Programs::get().agree(waits, "tli", "basic");
    }
}

#[test]
fn a_process_for_each_call_serves_the_same() {
    for waits in ["fork-run", "fork-set"] {
        Programs::get().agree(waits, "socket", "basic");
    }
}

#[test]
fn answers_behind_the_dispatcher_are_the_same() {
    for waits in ["set", "poll", "common"] {
        Programs::get().agree(waits, "socket", "later");
    }
}

#[test]
fn connections_that_inetd_hands_over_serve_the_same() {
    Programs::get().agree("run", "connected", "basic");
}

#[test]
fn programs_are_forgotten_the_same() {
    Programs::get().agree("run", "tli", "unregister");
}

#[test]
fn loops_end_and_clients_find_out_the_same() {
    for waits in ["run", "set"] {
        Programs::get().agree(waits, "socket", "exit");
    }
}

#[test]
fn credentials_that_tenon_does_not_know_are_libtirpcs_to_send() {
    Programs::get().agree("run", "socket", "credential");
}

#[test]
fn rpcbind_is_told_and_asked_the_same() {
    in_private_network("fast_interface::rpcbind_is_told_and_asked_the_same", || {
        let _rpcbind = start_rpcbind();
        for how in ["rpcbind-silent", "rpcbind-tcp-only", "rpcbind-create"] {
            let said = BUILDS.map(|server| announced(how, server));
            assert!(said[0][0].contains("unregistered program"), "{said:?}");
            assert_eq!(said[0], said[1], "{how}");
            assert_eq!(said[0][0], said[0][1], "{how}");
        }
    });
}

/// What clients of both builds say of a server that rpcbind knows, and then the server.
fn announced(how: &str, server: Build) -> [String; 3] {
    let programs = Programs::get();
    let (process, _) = programs.serve(server, "run", how);
    let none = ["0".to_owned(), "0".to_owned()];
    let [one, other] = BUILDS.map(|client| programs.call(client, "rpcbind", &none));
    let serves = process.lines().join("\n");
    drop(process);
    for (program, version) in [(536_872_823, "2"), (536_872_823, "3"), (536_872_824, "2")] {
        // It may not have been registered.
        let mut forget = Command::new("rpcinfo");
        let _ = forget
            .arg("-d")
            .arg(format!("{program}"))
            .arg(version)
            .output();
    }
    [one, other, serves]
}

// ---- What differs: docs/fast.md has a row for each ----

#[track_caller]
fn differ(what: &str, expected: impl Fn(Build, Build) -> &'static str) {
    for server in BUILDS {
        for client in BUILDS {
            let said = Programs::get().said(server, client, "run", "socket", what);
            let expected = expected(server, client);
            assert!(
                said.contains(expected),
                "{client:?} calls {server:?}: {said}"
            );
        }
    }
}

#[test]
fn a_result_that_cannot_be_encoded_is_an_error() {
    // libtirpc sends what there is of it, and the client takes it for a result.
    differ("unencodable", |server, _| match server {
        Build::Libtirpc => "unencodable: 0 []",
        Build::Fast => "unencodable: 12 [unencodable: RPC: Remote system error]",
    });
}

#[test]
fn a_call_behind_one_that_timed_out_succeeds() {
    // libtirpc's next call over TCP times out as well.
    differ("silence", |_, client| match client {
        Build::Libtirpc => "after silence: 5",
        Build::Fast => "after silence: 0",
    });
}

#[test]
fn a_call_of_more_than_64_mib_ends_its_connection() {
    differ("large", |server, _| match server {
        Build::Libtirpc => "large: 0",
        Build::Fast => "large: 4 errno 104",
    });
}

#[test]
fn a_program_sets_how_long_calls_may_be() {
    // rpc_control(RPC_SVC_CONNMAXREC_SET) is libtirpc's way to say it.
    let programs = Programs::get();
    for (limit, expected) in [("70000000", "large: 0"), ("1000000", "large: 4")] {
        let variables = [("RECORD_MAX", limit)];
        let (_server, ports) = programs.serve_with(Build::Fast, "run", "socket", &variables);
        let said = programs.call(Build::Fast, "large", &ports);
        assert!(said.contains(expected), "{limit}: {said}");
    }
}

#[test]
fn numbers_of_calls_are_not_told() {
    differ("numbers", |_, client| match client {
        Build::Libtirpc => "get 1\nset 1",
        Build::Fast => "get 0\nset 0",
    });
}

#[test]
fn a_lost_connection_raises_no_signal() {
    differ("signal", |_, client| match client {
        Build::Libtirpc => "signal 13",
        Build::Fast => "signal 0",
    });
}

#[test]
fn a_child_does_not_call_where_a_reply_may_still_come() {
    // With libtirpc parent and child time out, which takes as long as their calls may.
    let said = Programs::get().said(Build::Fast, Build::Fast, "run", "socket", "lost");
    assert!(said.contains("child: 3 errno 16"), "{said}");
    assert!(said.contains("parent: 0"), "{said}");
}

#[test]
fn datagrams_count_from_where_they_were_sent_to_alone() {
    for (client, expected) in [
        (Build::Libtirpc, "datagram: 0"),
        (Build::Fast, "datagram: 5"),
    ] {
        let called = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = called.local_addr().expect("it is bound").port();
        let answering = std::thread::spawn(move || {
            let mut call = [0; 200];
            let (_, from) = called.recv_from(&mut call).expect("a call");
            let words = [1, 0, 0, 0, 0, 2];
            let rest = words.iter().flat_map(|word: &u32| word.to_be_bytes());
            let reply: Vec<u8> = call[..4].iter().copied().chain(rest).collect();
            other.send_to(&reply, from).expect("it is sent");
            // The client is not told that nothing listens.
            called
        });
        let ports = ["0".to_owned(), port.to_string()];
        let said = Programs::get().call(client, "datagram", &ports);
        assert!(said.contains(expected), "{client:?}: {said}");
        drop(answering.join());
    }
}

#[test]
fn datagrams_that_nothing_takes_are_refused_the_same() {
    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let ports = ["0".to_owned(), port.expect("a socket").port().to_string()];
    let said = BUILDS.map(|client| Programs::get().call(client, "datagram", &ports));
    assert!(said[0].contains("errno 111"), "{said:?}");
    assert_eq!(said[0], said[1]);
}

// ---- Bytes that no client sends ----

/// A call of ADD with 1, as RFC 5531 has it, without its record mark.
fn call(xid: u32) -> Vec<u8> {
    let words = [xid, 0, 2, 0x2000_0777, 2, 1, 0, 0, 0, 0, 1];
    words
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect()
}

fn mark(length: usize, is_last: bool) -> [u8; 4] {
    let last = u32::from(is_last) << 31;
    (length as u32 | last).to_be_bytes()
}

fn record(message: &[u8]) -> Vec<u8> {
    [&mark(message.len(), true)[..], message].concat()
}

/// A connection to a server of the fast build.
fn connect(ports: &[String]) -> TcpStream {
    let stream = TcpStream::connect(format!("127.0.0.1:{}", ports[0])).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a socket");
    stream
}

#[track_caller]
fn answers(stream: &mut TcpStream, xid: u32) {
    let mut reply = [0; 32];
    stream.read_exact(&mut reply).expect("a reply");
    let words = [28 | 1 << 31, xid, 1, 0, 0, 0, 0, 2];
    let expected: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    assert_eq!(reply[..], expected[..]);
}

#[track_caller]
fn closes(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn records_come_in_any_pieces() {
    let (_server, ports) = Programs::get().serve(Build::Fast, "run", "socket");
    let mut stream = connect(&ports);
    // Byte by byte.
    for byte in record(&call(1)) {
        stream.write_all(&[byte]).expect("it is sent");
    }
    answers(&mut stream, 1);
    // A fragment for each byte, and empty ones between them.
    let mut fragments = Vec::new();
    for byte in call(2) {
        fragments.extend(mark(0, false));
        fragments.extend(mark(1, false));
        fragments.push(byte);
    }
    fragments.extend(mark(0, true));
    stream.write_all(&fragments).expect("it is sent");
    answers(&mut stream, 2);
    // Many at once, cut where no record ends.
    let many: Vec<u8> = (10..3000).flat_map(|xid| record(&call(xid))).collect();
    let sender = stream.try_clone().expect("a socket");
    let sending = std::thread::spawn(move || {
        let mut sender = sender;
        for piece in many.chunks(1001) {
            sender.write_all(piece).expect("it is sent");
        }
    });
    for xid in 10..3000 {
        answers(&mut stream, xid);
    }
    sending.join().expect("all is sent");
}

#[test]
fn bytes_that_are_no_call_end_their_connection_alone() {
    let (_server, ports) = Programs::get().serve(Build::Fast, "run", "socket");
    let mut good = connect(&ports);
    let hostile: [Vec<u8>; 5] = [
        record(b""),
        record(b"no call at all"),
        record(&call(1)[..20]),
        mark(0x7fff_ffff, true).to_vec(),
        [&mark(64 << 20, false)[..], &[0; 100]].concat(),
    ];
    for (index, bytes) in hostile.iter().enumerate() {
        let mut stream = connect(&ports);
        stream.write_all(bytes).expect("it is sent");
        if index == 4 {
            // It may still come whole; the server waits, and others are served.
            continue;
        }
        closes(&mut stream);
    }
    good.write_all(&record(&call(7))).expect("it is sent");
    answers(&mut good, 7);
}

#[test]
fn a_peer_that_leaves_in_the_middle_leaves_nothing() {
    let (server, ports) = Programs::get().serve(Build::Fast, "set", "socket");
    for end in 0..record(&call(1)).len() {
        let mut stream = connect(&ports);
        let bytes = &record(&call(1))[..end];
        stream.write_all(bytes).expect("it is sent");
    }
    let mut stream = connect(&ports);
    stream.write_all(&record(&call(9))).expect("it is sent");
    answers(&mut stream, 9);
    let open = fs::read_dir(Path::new("/proc").join(server.id().to_string()).join("fd"));
    let open = open.expect("its descriptors").count();
    assert!(open < 20, "{open} descriptors are open");
}

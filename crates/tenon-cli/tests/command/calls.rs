//! `tenon call`, `ping` and `demo` against servers in other processes and in this one.

use std::io::Write;

use crate::common;
use crate::common::{DemoServer, tenon, tenon_reading};
use crate::raises_views::trouble::Lost;
use crate::raises_views::{FileView, FilesV1, FilesV1ForgetError, FilesV1PutError, FilesV1Service};
use std::sync::Arc;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, Credential, LeanInput, LeanService, Refusal, Server, Service};

const DEMO: &str = "interfaces/demo.x";
const TORTURE: &str = "interfaces/torture.x";

/// Answers every procedure with the bytes of its arguments; by the lean protocol, if it speaks it, with the metadata of the
/// call, too.
struct Echo {
    speaks_lean: bool,
}

impl Service for Echo {
    fn program(&self) -> u32 {
        let parsed = tenon_idl::parse_file(
            &common::root().join(TORTURE),
            &tenon_idl::Options::default(),
        );
        parsed.schema.expect("the interface is right").programs[0].number
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        // ECHO_INT tells the caller's user number instead.
        if let (1, Credential::Sys(sys)) = (call.procedure(), call.peer().credential) {
            result.room(4).copy_from_slice(&sys.uid().to_be_bytes());
            return Ok(());
        }
        let bytes = arguments.rest();
        result.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.speaks_lean.then_some(self)
    }
}

impl LeanService for Echo {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(self.program(), self.version()))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        for (key, value) in call.metadata() {
            call.append_reply_metadata(key, value)?;
        }
        let LeanInput::Native(mut arguments) = arguments else {
            return Err(Refusal::SystemError(
                "the caller is of another machine".into(),
            ));
        };
        match call.peer().credential {
            Credential::Sys(sys) => result.put(sys.uid()),
            Credential::None => result.put(arguments.get::<u32>()?),
        }
        Ok(())
    }
}

fn echo_server() -> (Server, String) {
    start(Echo { speaks_lean: false })
}

fn start(echo: Echo) -> (Server, String) {
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("the address is right")
        .service(echo)
        .start()
        .expect("a port is free");
    let address = server.addresses()[0].to_string();
    (server, address)
}

#[test]
fn a_call_goes_over_every_transport() {
    let server = DemoServer::start();
    let lean = [&server.tcp, &server.udp, &server.unix].map(|address| format!("lean+{address}"));
    let onc = [&server.tcp, &server.udp, &server.unix];
    for address in onc.into_iter().chain(&lean).chain([&server.shm]) {
        let answer = tenon(&["call", address, DEMO, "SAY_HELLO", "\"Ada\""]).ok();
        assert_eq!(answer, "\"Hello, Ada\"\n", "{address}");
    }
    let of_program = "DEMO_PROGRAM.SAY_HELLO";
    let answer = tenon(&["call", &server.tcp, DEMO, of_program, "\"Ada\""]).ok();
    assert_eq!(answer, "\"Hello, Ada\"\n");
}

/// U+009B begins a command of terminals, and U+202E turns round what follows.
#[test]
fn what_moves_the_cursor_is_escaped_in_answers() {
    let server = DemoServer::start();
    for name in [r#""\u009b2JAda""#, r#""Ada\u007f""#, r#""\u202eAda""#] {
        let answer = tenon(&["call", &server.tcp, DEMO, "SAY_HELLO", name]).ok();
        assert_eq!(answer, format!("\"Hello, {}\n", &name[1..]));
    }
    let umlaut = tenon(&["call", &server.tcp, DEMO, "SAY_HELLO", "\"Zoë\""]).ok();
    assert_eq!(umlaut, "\"Hello, Zoë\"\n");
}

#[test]
fn arguments_come_from_stdin_and_answers_go_on_one_line() {
    let server = DemoServer::start();
    let arguments = ["call", &server.tcp, DEMO, "COUNT_TO", "-", "--compact"];
    assert_eq!(tenon_reading(&arguments, "3").ok(), "[1,2,3]\n");
    // Or the interface comes from stdin, but not both.
    let demo = std::fs::read(common::root().join(DEMO)).expect("the interface is there");
    let call = |json| ["call", &server.tcp, "-", "COUNT_TO", json, "--compact"];
    assert_eq!(tenon_reading(&call("3"), &demo).ok(), "[1,2,3]\n");
    let both = tenon_reading(&call("-"), &demo).fails_with(2);
    assert!(both.contains("cannot bring both"), "{both}");
}

#[test]
fn options_of_streams_are_for_procedures_that_have_some() {
    let server = DemoServer::start();
    for (option, value) in [("--input", DEMO), ("--output", "/dev/null")] {
        let call = ["call", &server.tcp, DEMO, "COUNT_TO", "3", option, value];
        let refused = tenon(&call).fails_with(2);
        assert!(refused.contains(option), "{refused}");
        assert!(refused.contains("the procedure has none"), "{refused}");
    }
}

/// Every value comes back as it was written: the echo returns the same bytes.
#[test]
fn every_kind_of_value_survives_the_way_there_and_back() {
    let (_server, address) = echo_server();
    for (procedure, json) in [
        ("ECHO_HYPER", "-9223372036854775808"),
        ("ECHO_UHYPER", "18446744073709551615"),
        ("ECHO_DOUBLE", "-0.1"),
        ("ECHO_DOUBLE", "\"NaN\""),
        ("ECHO_BOOL", "true"),
        ("ECHO_STRING", "\"gr\u{fc}\u{df} dich\""),
        ("ECHO_STRING", r#"{"hex":"ff00fe"}"#),
        ("ECHO_SHORT", "-32768"),
        ("ECHO_BLOB", "\"00ff10\""),
        ("ECHO_WORDS", r#"["to","","be"]"#),
        ("ECHO_NODE_LIST", "[]"),
        (
            "ECHO_TREE",
            r#"[{"value":1,"left":[{"value":0,"left":[]}]}]"#,
        ),
    ] {
        let answer = tenon(&["call", &address, TORTURE, procedure, json, "--compact"]).ok();
        assert_eq!(answer.trim_end(), json, "{procedure}");
    }
}

#[test]
fn auth_sys_says_who_calls() {
    let (_server, address) = echo_server();
    let call = |auth| {
        let arguments = ["call", &address, TORTURE, "ECHO_INT", "-1", "--auth", auth];
        tenon(&arguments).ok()
    };
    assert_eq!(call("none"), "-1\n");
    let user = rustix::process::getuid().as_raw();
    assert_eq!(call("sys"), format!("{user}\n"));
}

/// The folder and the path of a socket that somebody listened at who is gone.
fn abandoned_socket() -> (std::path::PathBuf, String) {
    let folder = std::env::temp_dir().join(format!("tenon-cli-left-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("the folder for temporary files can be written");
    let path = folder.join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("nobody else is there"));
    let path = path.to_str().expect("the path is text").to_owned();
    (folder, path)
}

#[test]
fn what_goes_wrong_is_said_with_what_to_do() {
    let server = DemoServer::start();
    let call = |rest: &[&str]| {
        let arguments = [&["call", &server.tcp, DEMO], rest].concat();
        tenon(&arguments).fails_with(1)
    };
    assert!(call(&["AVERAGE", "[1, \"x\"]"]).contains("$[1]"));
    assert!(call(&["AVERAGE", "[1,"]).contains("not JSON"));
    let unquoted = call(&["SAY_HELLO", "Ada"]);
    assert!(unquoted.contains("not JSON"), "{unquoted}");
    assert!(
        unquoted.contains(r#"write them as in '"text"'"#),
        "{unquoted}"
    );
    let twice = call(&["LOOK_UP", r#"{"text": "Ada", "text": "Bob"}"#]);
    assert!(
        twice.contains("do not fit: $.text is given twice at line 1 column 22"),
        "{twice}"
    );
    assert!(call(&["AVERAGE"]).contains("AVERAGE takes arguments, and none are given"));
    assert!(call(&["AVERAGE"]).contains("write them as in '[0]'"));
    assert!(
        call(&["SHOUT"]).contains("SAY_HELLO"),
        "the procedures there are"
    );
    assert!(call(&["SAY_HELLO", "\"Ada\"", "--version", "9"]).contains("version 9"));
    let arguments = ["call", &server.tcp, DEMO, "SAY_HELLO", "-"];
    let latin = tenon_reading(&arguments, b"\"caf\xe9\"").fails_with(1);
    assert!(latin.contains(r#"{"hex": "#), "{latin}");
    for address in [
        "tcp://127.0.0.1:1",
        "udp://127.0.0.1:1",
        "lean+udp://127.0.0.1:1",
    ] {
        let refused = tenon(&["call", address, DEMO, "DEMO_NULL"]).fails_with(1);
        assert_eq!(refused.matches(address).count(), 1, "{refused}");
        assert!(refused.contains("is the server started"), "{refused}");
    }
    let nothing = tenon(&["call", "unix:///nowhere/at/all", DEMO, "DEMO_NULL"]).fails_with(1);
    assert!(nothing.contains("there is no such socket"), "{nothing}");
    let (folder, left) = abandoned_socket();
    for scheme in ["unix", "lean+unix", "shm"] {
        let left = tenon(&["call", &format!("{scheme}://{left}"), DEMO, "DEMO_NULL"]).fails_with(1);
        assert!(left.contains("only the socket's file is left"), "{left}");
    }
    std::fs::remove_dir_all(folder).expect("the folder is ours");
    let of_shm = server.shm.replace("shm://", "unix://");
    let mistaken = tenon(&["call", &of_shm, DEMO, "DEMO_NULL"]).fails_with(1);
    assert!(
        mistaken.contains(&format!("connect to {}", server.shm)),
        "{mistaken}"
    );
    let stranger = tenon(&["call", "http://x", DEMO, "DEMO_NULL"]).fails_with(2);
    assert!(stranger.contains("the schemes are tcp"), "{stranger}");
}

#[test]
fn a_file_that_differs_from_the_servers_is_an_error_that_names_the_type() {
    let server = DemoServer::start();
    let text = std::fs::read_to_string(common::root().join(DEMO)).expect("the interface is there");
    let changed = text.replace("MACHINE = 2", "MACHINE = 3");
    assert_ne!(changed, text);
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("changed_demo.x");
    std::fs::write(&file, changed).expect("the interface can be written");
    let file = file.to_str().expect("the path is text");
    let address = format!("lean+{}", server.unix);
    let stderr = tenon(&["call", &address, file, "LOOK_UP", "\"Ada\""]).fails_with(1);
    assert!(
        stderr.contains("interface: procedure LOOK_UP differs, kind differs, entry differs"),
        "{stderr}"
    );
    assert!(stderr.contains("hint: the interface file here"), "{stderr}");
    let same = tenon(&["call", &address, DEMO, "LOOK_UP", "\"nobody\""]).ok();
    assert_eq!(same, "null\n");
}

#[test]
fn a_server_that_speaks_only_onc_rpc_is_said_to() {
    let (_server, onc) = echo_server();
    let lean = format!("lean+{onc}");
    let hint = format!("try {onc}");
    let call = tenon(&["call", &lean, TORTURE, "ECHO_INT", "1"]).fails_with(1);
    let ping = tenon(&["ping", &lean, "0x20004850.1"]).fails_with(1);
    for stderr in [call, ping] {
        assert!(stderr.contains("does not have program"), "{stderr}");
        assert!(stderr.contains(&hint), "{stderr}");
    }
    // One that has never heard of the lean protocol, and closes the connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let onc = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let closing = std::thread::spawn(move || listener.accept().map(drop));
    let arguments = ["call", &format!("lean+{onc}"), DEMO, "DEMO_NULL"];
    let stderr = tenon(&[&arguments[..], &["--timeout", "60s"]].concat()).fails_with(1);
    assert!(stderr.contains(&format!("try {onc}")), "{stderr}");
    let closed = closing.join().expect("the thread ends");
    closed.expect("the command connects");
}

/// The interface of `tenon demo` with changes.
fn changed_demo(changes: &[(&str, &str)]) -> String {
    let demo = std::fs::read_to_string(common::root().join(DEMO)).expect("the interface is there");
    changes.iter().fold(demo, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

#[test]
fn an_interface_that_was_changed_is_in_the_way_of_calls_that_use_the_change() {
    let server = DemoServer::start();
    let lean = [&server.tcp, &server.udp, &server.unix].map(|address| format!("lean+{address}"));
    // Members that change places, one more procedure, and a typedef of another name.
    let changed = changed_demo(&[
        ("PERSON = 1,", "MACHINE = 1,"),
        ("MACHINE = 2 ", "PERSON = 2 "),
        (
            "found LOOK_UP(name) = 4;",
            "found LOOK_UP(name) = 4; int MORE(int) = 5;",
        ),
        ("typedef string name<64>;", "typedef string label<64>;"),
        ("(name)", "(label)"),
    ]);
    for address in lean.iter().chain([&server.shm]) {
        let call = |procedure, argument| {
            tenon_reading(
                &["call", address, "-", procedure, argument, "--compact"],
                &changed,
            )
        };
        assert_eq!(
            call("SAY_HELLO", "\"Ada\"").ok(),
            "\"Hello, Ada\"\n",
            "{address}"
        );
        assert_eq!(call("COUNT_TO", "3").ok(), "[1,2,3]\n", "{address}");
        for (procedure, argument, why) in [
            (
                "LOOK_UP",
                "\"Ada\"",
                // The arms of the union go with the names.
                "procedure LOOK_UP differs, kind differs in names alone, entry differs",
            ),
            ("MORE", "1", "it lacks procedure MORE"),
        ] {
            let refused = call(procedure, argument).fails_with(1);
            assert!(refused.contains(why), "{address}: {refused}");
        }
    }
    // A procedure that goes by another name is another one.
    let swapped = changed_demo(&[("double AVERAGE(numbers) = 2", "double MEAN(numbers) = 2")]);
    let call = ["call", &lean[0], "-", "MEAN", "[1, 2]"];
    let refused = tenon_reading(&call, &swapped).fails_with(1);
    assert!(
        refused.contains("procedure MEAN differs in names alone (renamed or swapped)"),
        "{refused}"
    );
}

#[test]
fn a_call_carries_metadata_and_says_who_calls() {
    let (_server, onc) = start(Echo { speaks_lean: true });
    let address = format!("lean+{onc}");
    let call = |further: &[&str]| {
        let arguments = [
            "call",
            &address,
            TORTURE,
            "ECHO_INT",
            "7",
            "--reply-metadata",
        ];
        tenon(&[&arguments[..], further].concat())
    };
    let told = call(&[
        "--metadata",
        "request-id=7f=3a",
        "--metadata",
        "sum-bin=00ff",
    ]);
    assert_eq!(told.stderr, "request-id=7f=3a\nsum-bin=00ff\n");
    assert_eq!(told.ok(), "7\n");
    let user = rustix::process::getuid().as_raw();
    assert_eq!(call(&["--auth", "sys"]).ok(), format!("{user}\n"));

    for (pair, why) in [
        ("request-id", "write KEY=VALUE"),
        ("Request=1", "the key \"Request\" has other characters"),
        ("sum-bin=0", "pairs of hexadecimal digits"),
        ("name=\u{e4}", "is not printable ASCII"),
    ] {
        let stderr = call(&["--metadata", pair]).fails_with(2);
        assert!(stderr.contains(why), "{pair}: {stderr}");
    }
    let token = ["--metadata", "authorization=Bearer secret"];
    let stderr = call(&token).fails_with(2);
    assert!(stderr.contains("--allow-insecure sends it"), "{stderr}");
    let told = call(&[&token[..], &["--allow-insecure"]].concat());
    assert_eq!(told.stderr, "authorization=Bearer secret\n");

    let arguments = ["call", &onc, TORTURE, "ECHO_INT", "7", "--metadata", "k=v"];
    let stderr = tenon(&arguments).fails_with(2);
    assert!(stderr.contains(&format!("at lean+{onc}")), "{stderr}");
}

#[test]
fn a_server_that_is_silent_costs_the_timeout_and_no_more() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("tcp://{}", silent.local_addr().expect("it is bound"));
    let arguments = ["call", &address, DEMO, "DEMO_NULL", "--timeout", "200ms"];
    let stderr = tenon(&arguments).fails_with(1);
    assert!(stderr.contains("no reply within 200ms"), "{stderr}");
}

#[test]
fn times_are_written_with_their_unit() {
    let server = DemoServer::start();
    let call = |timeout| {
        let arguments = [
            "call",
            &server.tcp,
            DEMO,
            "SAY_HELLO",
            "\"Ada\"",
            "--timeout",
        ];
        tenon(&[&arguments[..], &[timeout]].concat())
    };
    for timeout in ["300ms", "2s", "1.5s", "1m", "2", "900000us"] {
        assert_eq!(call(timeout).ok(), "\"Hello, Ada\"\n", "{timeout}");
    }
    for wrong in ["0s", "2h", "ms", "1441m", "1e9s", "nan"] {
        let said = call(wrong).fails_with(2);
        assert!(said.contains("--timeout"), "{wrong}: {said}");
    }
}

#[test]
fn a_single_argument_may_be_given_by_name() {
    let server = DemoServer::start();
    let call = |procedure, json| tenon(&["call", &server.tcp, DEMO, procedure, json, "--compact"]);
    assert_eq!(call("COUNT_TO", r#"{"arg1": 3}"#).ok(), "[1,2,3]\n");
    assert_eq!(call("AVERAGE", r#"{"arg1": [2, 4]}"#).ok(), "3.0\n");
    let wrong = call("COUNT_TO", r#"{"arg1": "x"}"#).fails_with(1);
    assert!(wrong.contains("$.arg1"), "{wrong}");
}

#[test]
fn ping_finds_the_versions_there_are() {
    let server = DemoServer::start();
    let lean = format!("lean+{}", server.tcp);
    let exchange = format!("lean+{}", server.udp);
    for address in [&server.udp, &lean, &exchange, &server.shm] {
        let answer = tenon(&["ping", address, "0x2000d340"]).ok();
        assert!(
            answer.starts_with("program 536924992 version 1 answers: "),
            "{answer}"
        );
    }
    let json = tenon(&["ping", &server.tcp, "0x2000d340.1", "-c", "20", "--json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(
        (&report["version"], &report["calls"]),
        (&1.into(), &20.into())
    );
    let mismatch = tenon(&["ping", &server.tcp, "0x2000d340.7"]).fails_with(1);
    assert!(mismatch.contains("versions 1 to 1"), "{mismatch}");
    let mismatch = tenon(&["ping", &lean, "0x2000d340.7"]).fails_with(1);
    assert!(mismatch.contains("versions 1 to 1"), "{mismatch}");
    let unavailable = tenon(&["ping", &server.tcp, "100003"]).fails_with(1);
    assert!(unavailable.contains("PROG_UNAVAIL"), "{unavailable}");
    let unavailable = tenon(&["ping", &lean, "100003"]).fails_with(1);
    assert!(
        unavailable.contains("does not have program 100003"),
        "{unavailable}"
    );
}

#[test]
fn replies_are_waited_for_as_the_command_line_says() {
    let server = DemoServer::start();
    let lean = format!("lean+{}", server.unix);
    for address in [&server.tcp, &server.udp, &lean, &server.shm] {
        let ping = |wait: &str| {
            let arguments = ["ping", address, "0x2000d340.1", "-c", "50", "--json"];
            let json = tenon(&[&arguments[..], &["--wait", wait]].concat()).ok();
            let report: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
            ["blocks", "spins", "misses"].map(|count| report["waits"][count].as_u64())
        };
        // A receive that sleeps may have to be repeated; each call waits once at least.
        let [blocks, looked @ ..] = ping("block");
        assert!(blocks >= Some(50), "{address}: {blocks:?}");
        assert_eq!(looked, [Some(0); 2], "{address}");
        assert_eq!(ping("spin")[0], Some(0), "{address}");
        assert!(ping("adaptive").iter().all(Option::is_some));
    }
    for wait in ["block", "spin", "adaptive"] {
        let arguments = ["call", &server.tcp, DEMO, "SAY_HELLO", "\"Ada\"", "--wait"];
        let answer = tenon(&[&arguments[..], &[wait]].concat()).ok();
        assert_eq!(answer, "\"Hello, Ada\"\n", "{wait}");
    }
    let wrong = tenon(&["ping", &server.tcp, "0x2000d340", "--wait", "yield"]).fails_with(2);
    assert!(wrong.contains("block, spin, adaptive"), "{wrong}");
}

/// The demonstration ends with where the time goes: by each protocol over TCP, and through shared memory.
fn check_accounts(accounts: &serde_json::Value) {
    let accounts = accounts.as_array().expect("accounts");
    let ways = accounts.iter().map(|account| {
        let address = account["address"].as_str().expect("an address");
        let scheme = address.split(':').next().expect("a scheme");
        assert_eq!(account["procedure"], "DEMO_NULL");
        assert_eq!(
            (&account["calls"], &account["left_out"]),
            (&100.into(), &0.into())
        );
        let parts = account["parts"].as_array().expect("parts");
        (scheme, account["way"].as_str().expect("a way"), parts.len())
    });
    let ways: Vec<_> = ways.collect();
    let expected = [
        ("tcp", "client", 7),
        ("lean+tcp", "whole", 10),
        ("shm", "whole", 10),
    ];
    assert_eq!(ways, expected);
}

#[test]
fn the_demonstration_checks_every_answer_over_every_transport() {
    let has_xdp = tenon_xdp::check_privileges().is_ok();
    if !has_xdp {
        // Not by `eprintln!`: what it says of a test that passes is kept back.
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: tenon demo over xdp\n");
    }
    let of_xdp = usize::from(has_xdp);
    let json = tenon(&["demo", "--calls", "100", "--json"]).ok();
    let all: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let rows = all["figures"].as_array().expect("figures");
    for (transport, protocol, count) in [
        ("tcp", "onc", 6),
        ("udp", "onc", 6),
        ("unix", "onc", 6),
        ("tcp", "lean", 6),
        ("udp", "lean", 6),
        ("unix", "lean", 6),
        ("shm", "onc", 0),
        ("shm", "lean", 6),
        // A frame has no room for 1000 numbers.
        ("xdp", "onc", 4 * of_xdp),
        ("xdp", "lean", 6 * of_xdp),
    ] {
        let of_both = rows
            .iter()
            .filter(|row| row["transport"] == transport && row["protocol"] == protocol);
        assert_eq!(of_both.count(), count, "{transport}, {protocol}");
    }
    check_accounts(&all["accounts"]);
    let table = tenon(&["demo", "--calls", "100", "--wait", "block"]).ok();
    for shown in [
        "\nwhere the time of DEMO_NULL() goes, typical of 100 calls, in us\n",
        "ONC, tcp",
        "lean, tcp",
        "lean, shm",
        "until the reply is received",
        "decode, execute, encode the result",
        "unaccounted by the steps",
    ] {
        assert!(table.contains(shown), "{shown}: {table}");
    }
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("DEMO_NULL()"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 4 + of_xdp, "{table}");
    for row in rows {
        let has = |cells: &[&str]| cells.iter().all(|cell| *cell != "-");
        let (transport, has_onc, has_lean) = (row[1], has(&row[2..4]), has(&row[4..]));
        assert_eq!((row.len(), has_onc), (6, transport != "shm"), "{table}");
        assert!(has_lean, "{table}");
    }
}

/// Raises what it is asked for.
struct Drawer;

impl FilesV1 for Drawer {
    fn put(&self, _: &CallInfo<'_>, file: FileView<'_>) -> Result<i32, FilesV1PutError<Refusal>> {
        let what = file.name.into();
        Err(Lost { what })?
    }

    fn forget(&self, _: &CallInfo<'_>, number: i32) -> Result<(), FilesV1ForgetError<Refusal>> {
        let Ok(position) = number.try_into() else {
            Err(Refusal::InvalidArguments("not this number".to_owned()))?
        };
        // What the interface does not declare.
        let what = "all".into();
        Err(Refusal::raise(position, "something else", &Lost { what }))?
    }
}

#[test]
fn errors_of_the_interface_are_shown() {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.service(FilesV1Service(Drawer)).start().unwrap();
    let (onc, file) = (
        server.addresses()[0].to_string(),
        "crates/tenon-gen/tests/corpus/raises_views.x",
    );
    let lean = format!("lean+{onc}");
    let letter = r#"{"name": "letter", "data": ""}"#;
    let fails = |address: &str, procedure: &str, arguments: &str| {
        tenon(&["call", address, file, procedure, arguments]).fails_with(1)
    };
    assert_eq!(
        fails(&lean, "FILES_PUT", letter),
        "tenon: the procedure raised {\"trouble::lost\":{\"what\":\"letter\"}}\n"
    );
    let onc_error = fails(&onc, "FILES_PUT", letter);
    assert!(
        onc_error.contains("the peer refused the call"),
        "{onc_error}"
    );
    let undeclared = fails(&lean, "FILES_FORGET", "7");
    assert!(
        undeclared.contains("raised an error: something else"),
        "{undeclared}"
    );
    let invalid = fails(&lean, "FILES_FORGET", "-1");
    assert!(
        invalid.contains("invalid arguments: not this number"),
        "{invalid}"
    );
}

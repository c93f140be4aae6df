//! The demonstration and `tenon ping`, interrupted by Ctrl-C.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::common;

/// As the terminal does it: all processes of the group are interrupted.
#[test]
fn nothing_is_left_of_a_demonstration_that_is_interrupted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    // Of a run that was itself interrupted.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the folder can be made");
    // Who runs these tests in the background may have Ctrl-C ignored, which is handed down.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tenon")])
        .args(["demo", "--calls", "10000000"])
        .env("TMPDIR", &folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let said = child.stderr.take().expect("stderr is a pipe");
    let mut said = BufReader::new(said);
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    assert!(line.contains("server process"), "{line}");
    assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);

    let group = Pid::from_child(&child);
    kill_process_group(group, Signal::INT).expect("the group is ours");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
    // Its server writes to the same pipe, which ends when both have.
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it is text");
    assert_eq!(
        fs::read_dir(&folder).expect("it is there").count(),
        0,
        "{rest}"
    );
    fs::remove_dir(&folder).expect("the folder is ours");
}

/// The folder that cannot be made is named.
#[test]
fn a_server_without_a_place_for_its_socket_says_so() {
    let run = common::tenon_with(&["demo"], &[("TMPDIR", "/nowhere/at/all")]);
    let stderr = run.fails_with(1);
    assert!(stderr.contains("/nowhere/at/all/tenon-demo-"), "{stderr}");
}

/// Runs `tenon ping` and interrupts it once `is_time`; returns whether it succeeded, and what it printed.
fn interrupted_ping(arguments: &[&str], is_time: impl FnOnce()) -> (bool, String, String) {
    let child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tenon"), "ping"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    is_time();
    kill_process(Pid::from_child(&child), Signal::INT).expect("the process is ours");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    (output.status.success(), stdout, stderr)
}

/// Answers Null calls by ONC RPC over one connection and then no more; the first `answered` of them.
fn server_of(answered: usize) -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (told, is_silent) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the command connects");
        // A record mark, and a call of 40 bytes without credentials.
        let mut call = [0; 44];
        for _ in 0..answered {
            stream.read_exact(&mut call).expect("a call");
            // The xid, REPLY, MSG_ACCEPTED, AUTH_NONE without a body, SUCCESS (RFC 5531 section 9).
            let words = [0x8000_0018, 0, 1, 0, 0, 0, 0_u32];
            let mut reply = words.map(u32::to_be_bytes).concat();
            reply[4..8].copy_from_slice(&call[4..8]);
            stream.write_all(&reply).expect("a reply");
        }
        stream
            .read_exact(&mut call)
            .expect("the call that is not answered");
        told.send(()).expect("the test waits");
        // Until the command ends.
        let _ = stream.read(&mut call);
    });
    (format!("tcp://{address}"), is_silent)
}

#[test]
fn a_ping_that_is_interrupted_says_what_was_measured() {
    let is_silent = |answered: mpsc::Receiver<()>| move || answered.recv().expect("it is called");
    // The seventh call is under way, and would be for 25 seconds more.
    let (address, silent) = server_of(6);
    let arguments = [&address, "100.1", "-c", "1000", "--json"];
    let (ok, json, said) = interrupted_ping(&arguments, is_silent(silent));
    assert!(ok, "{said}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(
        (&json["calls"], &json["interrupted"]),
        (&6.into(), &true.into())
    );
    assert!(json["median_us"].as_f64() > Some(0.0), "{json}");

    let (address, silent) = server_of(2);
    let (ok, text, said) = interrupted_ping(&[&address, "100.1", "-c", "9"], is_silent(silent));
    assert!(ok, "{said}");
    assert!(text.contains("answers: 2 calls, median "), "{text}");
    assert!(text.ends_with("; interrupted, of 9 calls\n"), "{text}");

    // Nothing was measured: that is a failure.
    let (address, silent) = server_of(0);
    let (ok, text, said) = interrupted_ping(&[&address, "100.1"], is_silent(silent));
    assert_eq!((ok, &text[..]), (false, ""));
    assert!(
        said.contains("interrupted before a call was answered"),
        "{said}"
    );
}

/// What was measured before a call fails is not lost either.
#[test]
fn a_ping_that_fails_says_what_was_measured() {
    let (address, silent) = server_of(3);
    let arguments = ["ping", &address, "100.1", "-c", "9", "--timeout", "200ms"];
    let run = common::tenon(&arguments);
    silent.recv().expect("it is called");
    assert!(run.stdout.contains("3 calls, median "), "{}", run.stdout);
    assert!(
        run.stdout.ends_with("; the next of 9 calls failed\n"),
        "{}",
        run.stdout
    );
    assert!(run.fails_with(1).contains("no reply within 200ms"));
}

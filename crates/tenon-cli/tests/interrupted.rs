//! The demonstration, and somebody who presses Ctrl-C.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

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

//! Our client against our server.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use support::{Folder, LARGE, ServerProcess, assert_same, client, make_random_file};
use tenon_interop::run;

#[test]
fn the_client_carries_files_there_and_back() {
    let (server, folder) = (ServerProcess::start(), Folder::new("own"));
    let nfs = |arguments: &[&str]| client(server.tcp(), &[&["/export"], arguments].concat());
    let (original, back) = (folder.path("original"), folder.path("back"));
    make_random_file(&original, LARGE, 2);
    nfs(&["put", original.to_str().unwrap(), "large"]);
    nfs(&["get", "/large", back.to_str().unwrap()]);
    assert_same(&original, &back);
    let listing = nfs(&["ls"]);
    let columns: Vec<_> = listing.split_whitespace().collect();
    assert_eq!(columns[0], "-rw-r--r--");
    assert_eq!(columns[4..], [LARGE.to_string().as_str(), "large"]);

    fs::write(folder.path("short"), "short").unwrap();
    nfs(&["put", folder.path("short").to_str().unwrap(), "large"]);
    nfs(&["get", "large", back.to_str().unwrap()]);
    assert_same(&folder.path("short"), &back);
    nfs(&["rm", "large"]);
    assert_eq!(nfs(&["ls"]), "");
}

#[test]
fn datagrams_carry_files_too() {
    let (server, folder) = (ServerProcess::start(), Folder::new("own-udp"));
    let nfs = |arguments: &[&str]| client(server.udp(), &[&["/export"], arguments].concat());
    let (original, back) = (folder.path("original"), folder.path("back"));
    make_random_file(&original, 300_001, 5);
    nfs(&["put", original.to_str().unwrap(), "file"]);
    nfs(&["get", "file", back.to_str().unwrap()]);
    assert_same(&original, &back);
}

#[test]
fn the_server_ends_with_its_input_if_asked_to() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_nfs3-server"));
    server.arg("--until-eof");
    assert!(run(server).ends_with("ready\n"));
}

/// A port that is taken is the likely mistake: the message says which, in words.
#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", taken.local_addr().unwrap());
    let mut server = Command::new(env!("CARGO_BIN_EXE_nfs3-server"));
    let output = server.args(["--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!("nfs3-server: cannot listen at {address}: ");
    assert!(said.starts_with(&expected), "{said}");
}

//! A real client: the tools of libnfs against our server.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::process::Command;

use support::{Folder, LARGE, ServerProcess, assert_same, can_run, make_random_file};
use tenon_interop::run;

const TOOLS: [&str; 3] = ["nfs-ls", "nfs-cp", "nfs-cat"];

fn tool(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(name);
    command.args(arguments);
    run(command)
}

#[test]
fn libnfs_copies_there_and_back() {
    if !can_run("libnfs_copies_there_and_back", &TOOLS, false) {
        return;
    }
    let (server, folder) = (ServerProcess::start(), Folder::new("libnfs"));
    let (original, back) = (folder.path("original"), folder.path("back"));
    make_random_file(&original, LARGE, 1);
    let url = server.libnfs_url("/large");
    tool("nfs-cp", &[original.to_str().unwrap(), &url]);
    tool("nfs-cp", &[&url, back.to_str().unwrap()]);
    assert_same(&original, &back);

    let printed = folder.path("printed");
    let status = Command::new("timeout")
        .args(["60", "nfs-cat", &url])
        .stdout(File::create(&printed).unwrap())
        .status();
    assert!(status.unwrap().success());
    assert_same(&original, &printed);
}

#[test]
fn libnfs_lists_what_there_is() {
    if !can_run("libnfs_lists_what_there_is", &TOOLS, false) {
        return;
    }
    let (server, folder) = (ServerProcess::start(), Folder::new("libnfs-ls"));
    let small = folder.path("small");
    fs::write(&small, "hello").unwrap();
    for name in ["one", "two", "three"] {
        let url = server.libnfs_url(&format!("/{name}"));
        tool("nfs-cp", &[small.to_str().unwrap(), &url]);
    }
    let listing = tool("nfs-ls", &[&server.libnfs_url("")]);
    let mut found: Vec<_> = listing.lines().map(size_and_name).collect();
    found.sort();
    assert_eq!(found, [("5", "one"), ("5", "three"), ("5", "two")]);
}

/// The last two columns of a line of `nfs-ls`.
fn size_and_name(line: &str) -> (&str, &str) {
    let mut columns = line.split_whitespace().rev();
    let name = columns.next().unwrap();
    (columns.next().unwrap(), name)
}

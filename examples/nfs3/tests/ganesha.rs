//! A real server: nfs-ganesha, in a network of its own, against our client.
#![allow(clippy::unwrap_used)]

mod support;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::{Folder, LARGE, assert_same, can_run, client, make_random_file};
use tenon_interop::run;

/// Set for the run of this test that is inside, beside the server: the folder that it may use.
const INSIDE: &str = "TENON_NFS3_GANESHA_FOLDER";
/// Bytes of a file in the export from memory, which keeps no more than 2 MiB of each.
const IN_MEMORY: usize = 2_000_003;
const NAME: &str = "the_client_uses_nfs_ganesha";

#[test]
fn the_client_uses_nfs_ganesha() {
    if let Ok(folder) = env::var(INSIDE) {
        return use_both_exports(Path::new(&folder));
    }
    let programs = ["unshare", "ip", "rpcbind", "rpcinfo", "ganesha.nfsd"];
    if can_run(NAME, &programs, true) {
        let folder = Folder::new("ganesha");
        run(inside(folder.root()));
    }
}

/// This test once more, where the server runs.
fn inside(folder: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ganesha/run");
    let mut command = Command::new("unshare");
    command
        .args(["-n", "-m", "-p", "-f", "--mount-proc", "--kill-child"])
        .arg(script)
        .arg(folder)
        .arg(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(INSIDE, folder);
    command
}

fn use_both_exports(folder: &Path) {
    let on_disk = folder.join("export");
    let with_ports = ["tcp://127.0.0.1:2049", "--mount-port", "20048"];
    carry_a_file(folder, &with_ports, on_disk.to_str().unwrap(), LARGE);
    let by_rpcbind = ["tcp://127.0.0.1"];
    carry_a_file(folder, &by_rpcbind, "/mem", IN_MEMORY);
    let seen = fs::read_dir(on_disk).unwrap().count();
    assert_eq!(seen, 0, "the file is removed from the disk too");
}

fn carry_a_file(folder: &Path, server: &[&str], export: &str, len: usize) {
    let nfs =
        |arguments: &[&str]| client(server[0], &[&server[1..], &[export], arguments].concat());
    let (original, back) = (folder.join("original"), folder.join("back"));
    make_random_file(&original, len, 3);
    assert_eq!(nfs(&["ls"]), "");
    nfs(&["put", original.to_str().unwrap(), "large"]);
    let listing = nfs(&["ls"]);
    let columns: Vec<_> = listing.split_whitespace().collect();
    assert_eq!(columns[4..], [len.to_string().as_str(), "large"]);
    nfs(&["get", "large", back.to_str().unwrap()]);
    assert_same(&original, &back);
    nfs(&["rm", "large"]);
    assert_eq!(nfs(&["ls"]), "");
}

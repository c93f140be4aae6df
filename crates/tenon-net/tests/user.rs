//! The process of a peer, also when it lives in another namespace of processes, as clients of a server in a container
//! do: the kernel has no number for it there.
#![cfg(all(target_os = "linux", not(tenon_portable)))]
#![allow(clippy::unwrap_used)]

use std::env;
use std::io::{Write, stderr, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::process::geteuid;
use tenon_net::User;

/// Set in the process that is in a namespace of its own, whose standard input is a socket of one that is not.
const INSIDE: &str = "TENON_TEST_INSIDE";

#[test]
fn a_peer_has_the_number_and_the_user_of_its_process() {
    let (socket, _peer) = UnixStream::pair().unwrap();
    let user = User::at(socket.as_fd()).unwrap();
    assert_eq!(user.process as u32, std::process::id());
    assert_eq!(user.user, geteuid().as_raw());
}

#[test]
fn a_peer_in_another_namespace_has_no_number_but_a_user() {
    if env::var_os(INSIDE).is_some() {
        let user = User::at(stdin().as_fd()).unwrap();
        assert_eq!((user.process, user.user), (0, geteuid().as_raw()));
        return;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]);
        // Who is not root may do this as the root of a namespace of users.
        if !geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
    };
    if !unshare()
        .arg("true")
        .status()
        .is_ok_and(|ran| ran.success())
    {
        writeln!(stderr(), "skipped: this user may make no namespaces").unwrap();
        return;
    }
    let (peer, _other) = UnixStream::pair().unwrap();
    let inside = unshare()
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "a_peer_in_another_namespace_has_no_number_but_a_user",
        ])
        .env(INSIDE, "1")
        .stdin(OwnedFd::from(peer))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    assert!(inside.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

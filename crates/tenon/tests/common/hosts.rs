//! A name with several addresses, in a namespace with a file of hosts of its own.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Output};

use super::place::fresh_path;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, listen, socket_with};

/// The name that has the addresses.
pub const NAME: &str = "several.test";
/// The port at which tests listen there.
pub const PORT: u16 = 2049;

/// Starts the ignored test `name` of this binary in a private network, where it can [say](Hosts) which addresses names
/// have. It needs the rights of root; without them the test is skipped, and that is said.
pub fn run_with_own(name: &str) {
    if !rustix::process::geteuid().is_root() {
        // Not by eprintln!, which the harness hides when a test passes.
        let notice = format!("SKIPPED: {name} needs the rights of root\n");
        io::stderr().write_all(notice.as_bytes()).unwrap();
        return;
    }
    let private = ["300", "unshare", "-n", "-m", "-p", "-f", "--mount-proc"];
    let output = Command::new("timeout")
        .args(private)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

fn run(command: &str, arguments: &[&str]) {
    let output = Command::new(command).args(arguments).output().unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{command} {arguments:?}: {told}");
}

/// What the name means in this namespace.
pub struct Hosts(String);

impl Hosts {
    /// Brings the private network up, and replaces the file of hosts.
    pub fn replace() -> Self {
        run("ip", &["link", "set", "lo", "up"]);
        let folder = fresh_path();
        fs::create_dir(&folder).unwrap();
        let replace = |name: &str, content: &str| {
            let own = folder.join(name);
            fs::write(&own, content).unwrap();
            let (own, place) = (own.display().to_string(), format!("/etc/{name}"));
            run("mount", &["--bind", &own, &place]);
            own
        };
        for (name, content) in [
            ("nsswitch.conf", "hosts: files\n"),
            ("host.conf", "multi on\n"),
        ] {
            if fs::exists(format!("/etc/{name}")).unwrap() {
                replace(name, content);
            }
        }
        Self(replace("hosts", "127.0.0.1 localhost\n"))
    }

    /// Sets the addresses of the name.
    pub fn set(&self, addresses: &[&str]) {
        let mut content = String::from("127.0.0.1 localhost\n");
        for address in addresses {
            writeln!(content, "{address} {NAME}").unwrap();
        }
        fs::write(&self.0, content).unwrap();
    }
}

/// A listener whose queue is full: connections are neither taken nor refused.
pub struct SilentListener {
    _listener: TcpListener,
    _queued: Vec<OwnedFd>,
}

impl SilentListener {
    /// Opens one at `host` and [`PORT`].
    pub fn open(host: &str) -> Self {
        let listener = TcpListener::bind((host, PORT)).unwrap();
        listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let queue = || {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
            // It is not known yet whether it finds room.
            let _ = connect(&socket, &address);
            socket
        };
        Self {
            _queued: (0..8).map(|_| queue()).collect(),
            _listener: listener,
        }
    }
}

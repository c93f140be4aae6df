//! Two networks of the test's own with an Ethernet between them, a veth pair. They have no names: nothing is left
//! of them when the test's process is gone, however it went.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where clients are.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Where servers are.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Both networks.
#[derive(Debug)]
pub struct Pair {
    client: File,
    server: File,
}

impl Pair {
    /// Makes both; none where that is not allowed, which is said where nobody can miss it.
    ///
    /// # Panics
    /// If it is allowed and fails.
    pub fn make(test: &str) -> Option<Self> {
        if let Err(error) = tenon_xdp::check_privileges() {
            // Not by `eprintln!`: what it says of a test that passes is kept back.
            let _ = writeln!(io::stderr(), "\nSKIPPED: {test}: {error}\n");
            return None;
        }
        let (client, mut client_holder) = network();
        let (server, mut server_holder) = network();
        let holder = server_holder.id();
        enter(&client, || {
            ip(&format!(
                "link add tenon0 type veth peer name tenon0 netns {holder}"
            ));
            set_up(CLIENT);
        });
        enter(&server, || set_up(SERVER));
        for holder in [&mut client_holder, &mut server_holder] {
            holder.kill().unwrap();
            holder.wait().unwrap();
        }
        Some(Self { client, server })
    }

    /// Does something in the network of clients. What it opens stays there.
    pub fn in_client<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        enter(&self.client, body)
    }

    /// Does something in the network of servers.
    pub fn in_server<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        enter(&self.server, body)
    }
}

/// A network, and a process that keeps it until it is opened.
fn network() -> (File, Child) {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo; exec sleep 600"]);
    let mut holder = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut is_there = String::new();
    let mut said = BufReader::new(holder.stdout.take().unwrap());
    said.read_line(&mut is_there).unwrap();
    assert_eq!(is_there, "\n", "unshare failed");
    let network = File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
    (network, holder)
}

fn enter<T: Send>(network: &File, body: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            body()
        });
        inside.join().unwrap()
    })
}

fn set_up(address: Ipv4Addr) {
    ip("link set lo up");
    ip(&format!("address add {address}/24 dev tenon0"));
    ip("link set tenon0 up");
}

/// Runs `ip` in the network of the calling thread.
///
/// # Panics
/// If it fails.
pub fn ip(arguments: &str) {
    let mut command = Command::new("ip");
    let output = command.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

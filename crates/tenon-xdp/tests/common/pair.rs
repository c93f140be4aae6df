//! Two networks of the test's own with an Ethernet between them, a veth pair. They have no names: nothing is left
//! of them when the test's process is gone, however it went.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Pairs that this process has made. Each has addresses of its own, of those for such tests (RFC 2544).
static MADE: AtomicU8 = AtomicU8::new(0);

/// Both networks.
#[derive(Debug)]
pub struct Pair {
    client: File,
    server: File,
    /// Where clients are.
    pub client_at: Ipv4Addr,
    /// Where servers are.
    pub server_at: Ipv4Addr,
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
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let [client_at, server_at] = [1, 2].map(|end| Ipv4Addr::new(198, 18, number, end));
        let (client, mut client_holder) = network();
        let (server, mut server_holder) = network();
        let holder = server_holder.id();
        enter(&client, || {
            ip(&format!(
                "link add tenon0 type veth peer name tenon0 netns {holder}"
            ));
            set_up(client_at);
        });
        enter(&server, || set_up(server_at));
        for holder in [&mut client_holder, &mut server_holder] {
            holder.kill().unwrap();
            holder.wait().unwrap();
        }
        Some(Self {
            client,
            server,
            client_at,
            server_at,
        })
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

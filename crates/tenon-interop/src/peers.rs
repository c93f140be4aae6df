//! The peers of `tests/peers`: built once, started by name, called by address.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Process, run};
use crate::root;

/// The transport by which a peer is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerTransport {
    /// A TCP connection over loopback.
    Tcp,
    /// UDP datagrams over loopback.
    Udp,
    /// A Unix stream socket.
    Unix,
    /// UDP datagrams that fit a frame each, which go past the kernel at our end.
    Xdp,
}

impl PeerTransport {
    /// Those that need no network of their own.
    pub const ALL: [PeerTransport; 3] =
        [PeerTransport::Tcp, PeerTransport::Udp, PeerTransport::Unix];

    /// Returns the word by which addresses and peers call it.
    pub fn word(self) -> &'static str {
        match self {
            PeerTransport::Tcp => "tcp",
            PeerTransport::Udp => "udp",
            PeerTransport::Unix => "unix",
            PeerTransport::Xdp => "onc+xdp",
        }
    }
}

/// The addresses of a server: per transport, the arguments that a client of `tests/peers` takes.
#[derive(Debug, Clone, Default)]
pub struct PeerAddresses(BTreeMap<PeerTransport, Vec<String>>);

impl PeerAddresses {
    /// Reads Tenon's addresses: `tcp://127.0.0.1:1234` is `tcp 127.0.0.1 1234`.
    ///
    /// # Panics
    /// If one is not of such a form.
    pub fn from_urls<S: ToString>(urls: impl IntoIterator<Item = S>) -> PeerAddresses {
        let lines = urls.into_iter().map(|url| {
            let url = url.to_string();
            let (scheme, rest) = url.split_once("://").unwrap();
            let rest = match scheme {
                "unix" => rest.to_owned(),
                _ => rest.replace(':', " "),
            };
            format!("{scheme} {rest}")
        });
        PeerAddresses::from_lines(lines)
    }

    /// Reads the lines that a server of `tests/peers` prints.
    fn from_lines(lines: impl Iterator<Item = String>) -> PeerAddresses {
        let parse = |line: String| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let transport = PeerTransport::ALL
                .into_iter()
                .chain([PeerTransport::Xdp])
                .find(|t| t.word() == words[0]);
            (transport.unwrap(), words)
        };
        PeerAddresses(lines.map(parse).collect())
    }

    /// Returns the transports there are.
    pub fn transports(&self) -> impl Iterator<Item = PeerTransport> {
        self.0.keys().copied()
    }

    /// Returns the arguments of a client: `tcp HOST PORT`, `udp HOST PORT`, `unix PATH` or `onc+xdp HOST PORT`.
    ///
    /// # Panics
    /// If the server does not listen on `transport`.
    pub fn arguments(&self, transport: PeerTransport) -> &[String] {
        &self.0[&transport]
    }

    /// Tenon's form of the address.
    ///
    /// # Panics
    /// If the server does not listen on `transport`.
    pub fn url(&self, transport: PeerTransport) -> String {
        match self.arguments(transport) {
            [word, path] => format!("{word}://{path}"),
            [word, host, port] => format!("{word}://{host}:{port}"),
            other => panic!("no address: {other:?}"),
        }
    }
}

/// A program of `tests/peers`: what starts it, without its arguments.
#[derive(Debug, Clone)]
pub struct PeerProgram(Vec<String>);

impl PeerProgram {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]);
        command
    }

    /// Starts a server on `transports` (`tcp`, `udp`, `unix=PATH`, `onc+xdp=HOST`) and says where it listens.
    ///
    /// # Panics
    /// If it does not get ready.
    pub fn serve(&self, transports: &[&str]) -> (Process, PeerAddresses) {
        let mut command = self.command();
        command.args(transports);
        let process = Process::start(command);
        let addresses = PeerAddresses::from_lines(process.lines().iter().cloned());
        (process, addresses)
    }

    /// Runs a client against `transport` of `addresses`; it checks every answer itself.
    ///
    /// # Panics
    /// If the client finds a wrong answer, or takes too long.
    pub fn check(&self, addresses: &PeerAddresses, transport: PeerTransport) {
        self.check_at(addresses.arguments(transport));
    }

    /// Runs a client against an address of `tests/peers`, in words; it checks every answer itself.
    ///
    /// # Panics
    /// If the client finds a wrong answer, or takes too long.
    pub fn check_at<S: AsRef<str>>(&self, address: &[S]) {
        let said = self.output(address);
        assert!(said.contains("every answer is right"), "{said}");
    }

    /// Runs the program, and returns what it prints.
    ///
    /// # Panics
    /// If it fails, or takes too long.
    pub fn output<S: AsRef<str>>(&self, arguments: &[S]) -> String {
        let mut command = self.command();
        command.args(arguments.iter().map(AsRef::as_ref));
        run(command)
    }
}

/// Returns the program `name` that stands on libtirpc.
///
/// # Panics
/// If the peers cannot be built.
pub fn peer(name: &str) -> PeerProgram {
    PeerProgram(vec![built(name).display().to_string()])
}

/// Returns the script `name` that stands on python-vxi11.
///
/// # Panics
/// If its virtual environment cannot be made.
pub fn python_script(name: &str) -> PeerProgram {
    static PREPARED: OnceLock<()> = OnceLock::new();
    let folder = root().join("tests/peers/python");
    PREPARED.get_or_init(|| {
        Command::new(folder.join("prepare"))
            .status()
            .is_ok_and(|status| status.success())
            .then_some(())
            .expect("tests/peers/python/prepare fails")
    });
    let python = root().join("target/peers/python/bin/python");
    PeerProgram(vec![
        python.display().to_string(),
        folder.join(name).display().to_string(),
    ])
}

/// Returns the program that decodes and encodes by rpcgen's routines for `interface`.
///
/// # Panics
/// If the peers cannot be built.
pub fn xdrdump(interface: &str) -> Command {
    Command::new(built(&format!("xdrdump-{interface}")))
}

fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        Command::new("make")
            .args(["-s", "-j2", "-C"])
            .arg(root().join("tests/peers"))
            .arg(concat!("elsewhere=", env!("OUT_DIR"), "/random"))
            .status()
            .is_ok_and(|status| status.success())
            .then_some(())
            .expect("the peers cannot be built: ./test setup installs what they need")
    });
    root().join("target/peers").join(name)
}

//! Two networks of the demonstration's own with an Ethernet between them, for what goes past the kernel. They have no
//! names, and are gone when this process is, however it goes.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Address of the client: an address for tests (RFC 2544), in a network where no other host has it.
const CLIENT: &str = "198.18.0.1";
/// Address of the server.
const SERVER: &str = "198.18.0.2";

/// Both networks.
pub struct NetworkPair {
    client: NetworkNamespace,
    server: NetworkNamespace,
}

/// A network, and a process that is in it until its input ends.
struct NetworkNamespace {
    namespace: File,
    holder: Child,
}

impl NetworkPair {
    /// Makes both.
    ///
    /// # Errors
    /// `PermissionDenied`, with what is lacking; a tool that is needed is not there, or fails.
    pub fn make() -> io::Result<Self> {
        tenon_xdp::check_privileges()?;
        let (client, server) = (NetworkNamespace::make()?, NetworkNamespace::make()?);
        let other = server.holder.id().to_string();
        client.enter(|| {
            ip(&format!(
                "link add tenon0 type veth peer name tenon0 netns {other}"
            ))?;
            set_up(CLIENT)
        })?;
        server.enter(|| set_up(SERVER))?;
        Ok(Self { client, server })
    }

    /// Returns the address at which a server is to listen, for both protocols.
    pub fn server_address() -> String {
        format!("onc+xdp://{SERVER}:0")
    }

    /// Does something where the client is.
    pub fn at_client<T: Send>(&self, body: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.client.enter(|| Ok(body()))
    }

    /// Does something where the server is.
    pub fn at_server<T: Send>(&self, body: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.server.enter(|| Ok(body()))
    }
}

impl NetworkNamespace {
    fn make() -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed("unshare", &error))?;
        let mut said = String::new();
        if let Some(output) = holder.stdout.take() {
            BufReader::new(output).read_line(&mut said)?;
        }
        let namespace = File::open(format!("/proc/{}/ns/net", holder.id()));
        match (said.as_str(), namespace) {
            ("\n", Ok(namespace)) => Ok(Self { namespace, holder }),
            (_, namespace) => {
                // It has ended, or ends now that its input does.
                drop(holder.stdin.take());
                holder.wait()?;
                let refused = io::Error::from(io::ErrorKind::PermissionDenied);
                Err(failed("unshare", &namespace.err().unwrap_or(refused)))
            }
        }
    }

    /// Does something in the network. Sockets that it opens and processes that it starts stay there.
    fn enter<T: Send>(&self, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let inside = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.namespace.as_fd(), network)?;
            body()
        };
        let ended = thread::scope(|scope| scope.spawn(inside).join());
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // What it might still say is nothing that anybody waits for.
        let _ = self.holder.wait();
    }
}

fn set_up(address: &str) -> io::Result<()> {
    ip("link set lo up")?;
    ip(&format!("address add {address}/24 dev tenon0"))?;
    ip("link set tenon0 up")
}

/// Runs `ip` in the network of the calling thread.
fn ip(arguments: &str) -> io::Result<()> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| failed("ip", &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("ip {arguments}: {}", said.trim()))),
    }
}

fn failed(tool: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{tool} makes no network: {error}"))
}

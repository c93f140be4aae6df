//! The two servers of the store as processes, in a folder of their own.

#[path = "../../../../crates/tenon/tests/common/place.rs"]
mod place;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tenon_example_store::store::StoreV1Client;

/// A folder that goes away with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = place::fresh_path();
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ways to a server that carry streams: schemes of addresses. Every server listens for all of them.
pub const WAYS: [&str; 4] = ["lean+tcp", "lean+unix", "shm", "lean+udp"];

/// A server that can be stopped and started again, at the same addresses, with the same data.
pub struct ServerPlace {
    pub folder: Folder,
    binary: &'static str,
    /// Of `tcp`, `unix`, `shm` and `udp`.
    addresses: [String; 4],
    arguments: Vec<String>,
}

impl ServerPlace {
    /// Returns places for both servers.
    pub fn both(arguments: &[&str]) -> [Self; 2] {
        let binaries = [
            env!("CARGO_BIN_EXE_store-server"),
            env!("CARGO_BIN_EXE_store-server-tokio"),
        ];
        binaries.map(|binary| Self::new(binary, arguments))
    }

    fn new(binary: &'static str, arguments: &[&str]) -> Self {
        eprintln!("{binary}");
        let folder = Folder::new();
        let port = TcpListener::bind((place::fresh_host(), 0)).unwrap();
        let addresses = [
            format!("tcp://{}", port.local_addr().unwrap()),
            format!("unix://{}", folder.path("unix")),
            format!("shm://{}", folder.path("shm")),
            format!("udp://{}", port.local_addr().unwrap()),
        ];
        Self {
            folder,
            binary,
            addresses,
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
        }
    }

    /// The address by which a client reaches the server in one of the [`WAYS`].
    pub fn address(&self, way: &str) -> String {
        let [tcp, unix, shm, udp] = &self.addresses;
        match way {
            "lean+tcp" => format!("lean+{tcp}"),
            "lean+unix" => format!("lean+{unix}"),
            "lean+udp" => format!("lean+{udp}"),
            _ => shm.clone(),
        }
    }

    pub fn client(&self, way: &str) -> StoreV1Client {
        StoreV1Client::connect(&self.address(way)).unwrap()
    }

    /// Runs the client command, and returns what it prints, or the error that it reports.
    pub fn run_client(&self, way: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self.client_command(way, arguments).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            assert_eq!(errors, "");
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(errors)
        }
    }

    pub fn client_command(&self, way: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_store-client"));
        command.args(["--at", &self.address(way)]).args(arguments);
        command
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.arg("--data").arg(self.folder.0.join("data"));
        for address in &self.addresses {
            command.args(["--listen", address]);
        }
        command.args(&self.arguments);
        command
    }

    /// Starts the server, and returns when it listens.
    pub fn start(&self) -> ServerProcess {
        let mut log = File::options();
        let log = log.create(true).append(true).open(self.log_path());
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(log.unwrap());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = ServerProcess { child, output };
        for address in &self.addresses {
            assert_eq!(server.next_line(), format!("listening at {address}"));
        }
        server
    }

    /// Returns what the server has logged, each time that it was started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.0.join("log")
    }

    /// Returns the names of the files in the server's folder, but for its lock.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.0.join("data")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lock").collect()
    }
}

impl Drop for ServerPlace {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the server has logged:\n{}", self.log());
        }
    }
}

/// A server that runs. It is killed when this value is dropped.
pub struct ServerProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl ServerProcess {
    /// Returns the next line that the server prints.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Asks the server to end in order.
    pub fn signal(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits until the server has ended in order, and returns what it says at the end.
    pub fn wait(mut self) -> String {
        let mut last_words = String::new();
        self.output.read_to_string(&mut last_words).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {last_words}");
        last_words
    }

    /// Ends the server in order, and returns what it says at the end.
    pub fn terminate(self) -> String {
        self.signal();
        self.wait()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

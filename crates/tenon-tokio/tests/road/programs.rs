//! The two ends whose calls are counted, each a process of its own: this program, told by its arguments what to do.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::{env, fs, process};

use tenon::{ChannelOptions, Protocol, Waiting};
use tokio::runtime;

const PROGRAM: u32 = 0x2000_0001;
const VERSION: u32 = 1;

/// What carries the calls, at both ends.
#[derive(Debug, Clone, Copy)]
pub enum Driver {
    Threads,
    Tasks,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Driver {
    fn name(self) -> &'static str {
        match self {
            Driver::Threads => "threads",
            Driver::Tasks => "tasks",
        }
    }
}

/// Which end is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

/// Makes calls between two processes, and returns what callgrind says of one of them.
///
/// # Panics
///
/// Panics if a program fails.
pub fn profile(driver: Driver, end: End, prefix: &str, calls: u32) -> String {
    let output = env::temp_dir().join(format!("tenon-road-{}", process::id()));
    let under = |counted| {
        let program = env::current_exe().unwrap();
        if counted {
            let mut command = Command::new("valgrind");
            command.args(["-q", "--tool=callgrind"]);
            command.args(["--compress-pos=no", "--compress-strings=no"]);
            command.arg(format!("--callgrind-out-file={}", output.display()));
            command.arg(program);
            command
        } else {
            Command::new(program)
        }
    };
    let mut server = ServerProgram::start(under(end == End::Server), driver);
    let mut client = under(end == End::Client);
    client.args(["client", driver.name()]);
    client.args([format!("{prefix}{}", server.address), calls.to_string()]);
    let status = client.status().expect("valgrind is there: ./test setup");
    assert!(status.success(), "the client: {status}");
    server.stop();
    let text = fs::read_to_string(&output).unwrap();
    fs::remove_file(&output).unwrap();
    text
}

/// A server that runs until its input ends.
struct ServerProgram {
    child: Child,
    input: Option<ChildStdin>,
    address: String,
}

impl ServerProgram {
    fn start(mut command: Command, driver: Driver) -> Self {
        command.args(["server", driver.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("valgrind is there: ./test setup");
        let mut address = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut address).unwrap();
        Self {
            input: child.stdin.take(),
            address: address.trim_end().to_owned(),
            child,
        }
    }

    fn stop(&mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the server: {status}");
    }
}

/// If the client has failed, no server is left behind.
impl Drop for ServerProgram {
    fn drop(&mut self) {
        if self.input.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Does what the parent has said: `server DRIVER` or `client DRIVER ADDRESS CALLS`.
///
/// # Panics
///
/// Panics if the arguments are others, or if a call fails.
pub fn run(role: &str, arguments: &[String]) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (role, arguments.as_slice()) {
        ("server", ["threads"]) => serve_by_threads(),
        ("server", ["tasks"]) => tasks().block_on(serve_by_tasks()),
        ("client", ["threads", address, calls]) => call_by_threads(address, calls.parse().unwrap()),
        ("client", ["tasks", address, calls]) => {
            tasks().block_on(call_by_tasks(address, calls.parse().unwrap()));
        }
        _ => panic!("{role} {arguments:?}"),
    }
}

/// Both ends sleep while they wait, so that the counts do not depend on time.
fn options() -> ChannelOptions {
    ChannelOptions::default().waiting(Waiting::Block)
}

fn tasks() -> runtime::Runtime {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Waits for the end of the input.
fn wait_for_the_end() {
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn serve_by_threads() {
    let server = tenon::Server::builder()
        .waiting(Waiting::Block)
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .service(service::Empty)
        .start()
        .unwrap();
    println!("{}", server.addresses()[0]);
    wait_for_the_end();
}

async fn serve_by_tasks() {
    let server = tenon_tokio::Server::builder()
        .waiting(Waiting::Block)
        .listen("tcp://127.0.0.1:0")
        .unwrap()
        .sync_service(service::Empty)
        .start()
        .await
        .unwrap();
    println!("{}", server.addresses()[0]);
    tokio::task::spawn_blocking(wait_for_the_end).await.unwrap();
}

fn call_by_threads(address: &str, calls: u32) {
    let client = tenon::Client::connect_with(address, PROGRAM, VERSION, options()).unwrap();
    if client.protocol() == Protocol::Lean {
        for _ in 0..calls {
            client.lean().call(0, |_| Ok(()), |_| Ok(())).unwrap();
        }
    } else {
        for _ in 0..calls {
            client.onc().call(0, |_| Ok(()), |_| Ok(())).unwrap();
        }
    }
}

async fn call_by_tasks(address: &str, calls: u32) {
    let client = tenon_tokio::Client::connect_with(address, PROGRAM, VERSION, options())
        .await
        .unwrap();
    if client.protocol() == Protocol::Lean {
        for _ in 0..calls {
            let call = client.lean().call(0, |_| Ok(()), |_| Ok(()));
            call.await.unwrap();
        }
    } else {
        for _ in 0..calls {
            client.onc().call(0, |_| Ok(()), |_| Ok(())).await.unwrap();
        }
    }
}

/// The service that is called. Procedure 0 is answered without it.
mod service {
    use std::sync::Arc;

    use tenon::lean::Interface;
    use tenon::wire::{Decoder, Encoder, Lean};
    use tenon::{CallInfo, LeanInput, LeanService, Refusal, Service};

    use super::{PROGRAM, VERSION};

    pub struct Empty;

    impl Service for Empty {
        fn program(&self) -> u32 {
            PROGRAM
        }

        fn version(&self) -> u32 {
            VERSION
        }

        fn call(
            &self,
            _: &CallInfo<'_>,
            _: &mut Decoder<'_>,
            _: &mut Encoder<'_>,
        ) -> Result<(), Refusal> {
            Err(Refusal::ProcedureUnavailable)
        }

        fn lean(&self) -> Option<&dyn LeanService> {
            Some(self)
        }
    }

    impl LeanService for Empty {
        fn interface(&self) -> Arc<Interface> {
            Arc::new(Interface::unknown(PROGRAM, VERSION))
        }

        fn call_lean(
            &self,
            _: &CallInfo<'_>,
            _: LeanInput<'_>,
            _: &mut Encoder<'_, Lean>,
        ) -> Result<(), Refusal> {
            Err(Refusal::ProcedureUnavailable)
        }
    }
}

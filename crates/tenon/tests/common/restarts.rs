//! A server that comes and goes at the same addresses, and clients of it that speak either protocol.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::caller::PATIENCE;
use super::place::{fresh_host, fresh_path};
use super::serving::{Serving, rest};
use tenon::lean::Interface;
use tenon::{
    CallError, CallOptions, ChannelOptions, Client, Protocol, Refusal, Server, StartError,
};

pub const PROGRAM: u32 = 0x2000_0077;
pub const VERSION: u32 = 1;
pub const ECHO: u16 = 1;

/// The version that is served and called.
pub fn interface() -> Interface {
    Interface {
        fingerprint: 0x7777,
        ..Interface::unknown(PROGRAM, VERSION)
    }
}

/// Addresses of a server that need not be there: a port of TCP and a path.
pub struct Place {
    pub tcp: String,
    pub unix: String,
}

impl Place {
    /// Addresses at which there is nothing.
    pub fn fresh() -> Self {
        let port = TcpListener::bind((fresh_host(), 0)).unwrap();
        let tcp = format!("tcp://{}", port.local_addr().unwrap());
        let unix = format!("unix://{}", fresh_path().display());
        Self { tcp, unix }
    }

    /// Every address of a stream that a client may write for it.
    pub fn every_way(&self) -> [String; 4] {
        let Self { tcp, unix } = self;
        let lean = [format!("lean+{tcp}"), format!("lean+{unix}")];
        let [lean_tcp, lean_unix] = lean;
        [tcp.clone(), unix.clone(), lean_tcp, lean_unix]
    }

    /// Starts a server there, which makes results as `body` does.
    pub fn start<F>(&self, body: F) -> Server
    where
        F: Fn(u32, &[u8]) -> Result<Vec<u8>, Refusal> + Send + Sync + 'static,
    {
        let body = Arc::new(body);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (interface, body) = (interface(), Arc::clone(&body));
            let body = move |procedure, arguments: &[u8]| body(procedure, arguments);
            let builder = Server::builder().listen(&self.tcp).unwrap();
            let builder = builder.listen(&self.unix).unwrap();
            match builder.service(Serving { interface, body }).start() {
                // Another test may be starting a program, which has the sockets of this process until it runs.
                Err(StartError::Listen { cause, .. })
                    if cause.kind() == ErrorKind::AddrInUse && Instant::now() < deadline =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                started => return started.unwrap(),
            }
        }
    }

    /// Starts a server there whose results are the arguments.
    pub fn start_echo(&self) -> Server {
        self.start(|_, arguments| Ok(arguments.to_vec()))
    }
}

/// A client of the version at `address`.
pub fn client(address: &str, options: ChannelOptions) -> Client {
    let client = Client::connect_with(address, PROGRAM, VERSION, options).unwrap();
    client.with_interface(Arc::new(interface()))
}

/// Calls ECHO by the protocol of the client.
pub fn echo(client: &Client, options: CallOptions<'_>, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    let view = client.with_options(options);
    match client.protocol() {
        Protocol::Onc => view.onc().call(
            ECHO.into(),
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            |input| Ok(input.rest().to_vec()),
        ),
        Protocol::Lean => view.lean().call(
            ECHO.into(),
            |out| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            },
            |input| Ok(rest(input).to_vec()),
        ),
    }
}

/// What the callers were told of calls that may have been carried out or not: each calls once over a connection of its
/// own, again and again, while `stop` ends the server at `address`.
pub fn unknown_calls(address: &str, stop: impl FnOnce()) -> Vec<CallError> {
    let is_over = AtomicBool::new(false);
    let call_until_over = || {
        let mut unknown = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let client = Client::connect(address, PROGRAM, VERSION);
            let client = client.map(|client| client.with_interface(Arc::new(interface())));
            let Ok(client) = client else { continue };
            let told = echo(&client, CallOptions::default(), &7_u64.to_be_bytes());
            unknown.extend(told.err().filter(CallError::may_have_executed));
        }
        unknown
    };
    thread::scope(|scope| {
        let callers = [(); 4].map(|()| scope.spawn(call_until_over));
        stop();
        is_over.store(true, Ordering::Relaxed);
        let unknown = callers.into_iter().map(|caller| caller.join().unwrap());
        unknown.flatten().collect()
    })
}

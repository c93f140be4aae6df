//! The table: every way to call, and how a test calls by it.

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tenon::lean::Interface;
use tenon::{
    CallError, CallOptions, ChannelCounters, ChannelOptions, Credential, PendingCall, Protocol,
    ServerLimits,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::networks::{self, at_client, at_server, server_address};
pub use crate::place::{fresh_host, fresh_path};
use crate::service::{
    Obliging, PROGRAM, Patient, VERSION, interface, put, put_lean, rest, rest_lean,
};

/// Bounds every wait that is meant to succeed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What carries messages.
#[derive(Debug)]
pub struct Carrier {
    pub name: &'static str,
    /// Where a server is to listen.
    listen: fn() -> String,
    pub protocols: &'static [Protocol],
    /// Why nobody who has a socket can touch the bytes between the ends, if nobody can.
    pub hidden: Option<&'static str>,
    /// Bytes of the largest message, if messages are not cut.
    pub message_max: Option<usize>,
    /// Whether what is damaged is noticed.
    pub has_check: bool,
    /// Why there is no connection, if there is none: nothing that keeps calls in their order, that is cut into
    /// fragments of a stream, or that says by its end whether a call was begun.
    pub no_connection: Option<&'static str>,
}

/// Everything that carries messages.
pub const CARRIERS: [Carrier; 7] = [
    Carrier {
        name: "tcp",
        listen: || format!("tcp://{}:0", fresh_host()),
        protocols: &[Protocol::Onc, Protocol::Lean],
        hidden: None,
        message_max: None,
        has_check: false,
        no_connection: None,
    },
    Carrier {
        name: "unix",
        listen: || format!("unix://{}", fresh_path().display()),
        protocols: &[Protocol::Onc, Protocol::Lean],
        hidden: None,
        message_max: None,
        has_check: false,
        no_connection: None,
    },
    Carrier {
        name: "udp",
        listen: || format!("udp://{}:0", fresh_host()),
        protocols: &[Protocol::Onc],
        hidden: None,
        message_max: Some(65_507),
        has_check: false,
        no_connection: Some("a call is a datagram"),
    },
    Carrier {
        name: "exchange",
        listen: || "udp://127.0.0.1:0".to_owned(),
        protocols: &[Protocol::Lean],
        hidden: None,
        message_max: None,
        has_check: true,
        no_connection: Some(
            "packets overtake each other, and what is damaged or lost is sent again",
        ),
    },
    Carrier {
        name: "shm",
        listen: || format!("shm://{}", fresh_path().display()),
        protocols: &[Protocol::Lean],
        hidden: Some("its bytes lie in memory; tenon/tests/shm_scribbled.rs writes over them"),
        message_max: None,
        has_check: false,
        no_connection: None,
    },
    Carrier {
        name: "xdp",
        listen: || server_address("xdp"),
        protocols: &[Protocol::Lean],
        hidden: Some("its frames pass no socket; its packets are those of the exchange"),
        message_max: None,
        has_check: true,
        no_connection: Some(
            "packets overtake each other, and what is damaged or lost is sent again",
        ),
    },
    Carrier {
        name: "onc+xdp",
        listen: || server_address("onc+xdp"),
        protocols: &[Protocol::Onc],
        hidden: Some("its frames pass no socket; its datagrams are those of udp"),
        message_max: Some(1472),
        has_check: false,
        no_connection: Some("a call is a datagram"),
    },
];

impl Carrier {
    /// Whether it goes past the kernel, between networks that the test makes.
    fn needs_networks(&self) -> bool {
        ["xdp", "onc+xdp"].contains(&self.name)
    }
}

/// Who waits how at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Threads,
    Tasks,
}

const ENDS: [End; 2] = [End::Threads, End::Tasks];

/// How a server carries calls out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// Where they were received.
    Inline,
    /// By one thread for those that are held and wait, or by as many.
    Workers(usize),
    /// In tasks of their own; on workers where there are none.
    Waiting,
}

/// A way to call.
#[derive(Clone, Copy)]
pub struct Row {
    pub protocol: Protocol,
    pub carrier: &'static Carrier,
    pub client: End,
    pub server: End,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol,
            carrier,
            client,
            server,
        } = self;
        write!(
            f,
            "{protocol:?} over {}, {client:?} call {server:?}",
            carrier.name
        )
    }
}

/// Every row of the table.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let there = CARRIERS.iter();
    for carrier in there.filter(|carrier| !carrier.needs_networks() || networks::are_allowed()) {
        for protocol in carrier.protocols {
            for server in ENDS {
                for client in ENDS {
                    rows.push(Row {
                        protocol: *protocol,
                        carrier,
                        client,
                        server,
                    });
                }
            }
        }
    }
    rows
}

/// Those that carry messages of every size, and lose none.
pub fn sized_rows() -> Vec<Row> {
    let rows = rows().into_iter();
    rows.filter(|row| row.carrier.message_max.is_none())
        .collect()
}

/// Those over connections. Which are left out is said.
pub fn stream_rows() -> Vec<Row> {
    let rows = rows().into_iter();
    rows.filter(|row| is_in(row.carrier, row.carrier.no_connection))
        .collect()
}

/// Those whose bytes anybody can touch who has a socket. Which are left out is said.
pub fn touched_rows() -> Vec<Row> {
    let rows = rows().into_iter();
    rows.filter(|row| is_in(row.carrier, row.carrier.hidden))
        .collect()
}

/// Those over connections whose bytes anybody can touch who has a socket.
pub fn plain_rows() -> Vec<Row> {
    let rows = stream_rows().into_iter();
    rows.filter(|row| is_in(row.carrier, row.carrier.hidden))
        .collect()
}

/// Those whose servers a [relay](crate::relay) can have die.
pub fn mortal_rows() -> Vec<Row> {
    let why_not = |carrier: &Carrier| match carrier.name {
        "udp" => Some("a call is sent again until its time is over, even if nothing listens"),
        _ if carrier.needs_networks() => carrier.hidden,
        _ => None,
    };
    let rows = rows().into_iter();
    rows.filter(|row| is_in(row.carrier, why_not(row.carrier)))
        .collect()
}

/// Whether there is no reason to leave a carrier out of a test. Otherwise that is said, once for each reason.
fn is_in(carrier: &Carrier, why_not: Option<&'static str>) -> bool {
    static SAID: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    let Some(reason) = why_not else { return true };
    if SAID.lock().unwrap().insert((carrier.name, reason)) {
        // Not by `eprintln!`: what it says of a test that passes is kept back.
        let name = carrier.name;
        let _ = writeln!(
            io::stderr(),
            "\n{name} is left out of some rows: {reason}\n"
        );
    }
    false
}

/// A run time of its own for each end, so that no end can hold the other up.
fn runtime(blocking: usize) -> Arc<Runtime> {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(1).max_blocking_threads(blocking);
    Arc::new(builder.enable_all().build().unwrap())
}

/// Something for threads, or something for tasks with their run time.
pub enum Driven<T, A> {
    Threads(T),
    Tasks(A, Arc<Runtime>),
}

/// A server of either kind.
pub enum Server {
    Threads(tenon::Server),
    Tasks(tenon_tokio::Server, Arc<Runtime>),
}

impl Row {
    /// A server of the row that carries calls out so, and is granted no more than `limits`.
    pub fn serve(&self, service: &Obliging, execution: Execution, limits: ServerLimits) -> Server {
        let threads = match execution {
            Execution::Inline => limits.threads,
            Execution::Workers(workers) => workers,
            Execution::Waiting => 64,
        };
        let of_threads = ServerLimits {
            threads,
            ..limits.clone()
        };
        let address = (self.carrier.listen)();
        let service = service.clone();
        match self.server {
            End::Threads => {
                let builder = tenon::Server::builder().limits(of_threads);
                let builder = builder.listen(&address).unwrap().service(service);
                Server::Threads(at_server(&address, || builder.start().unwrap()))
            }
            End::Tasks => {
                let builder = tenon_tokio::Server::builder().limits(limits);
                let builder = builder.listen(&address).unwrap();
                let (builder, blocking) = match execution {
                    Execution::Inline => (builder.sync_service(service), 4),
                    Execution::Workers(workers) => (builder.sync_service(service), workers),
                    Execution::Waiting => (builder.service(Patient(service)), 4),
                };
                // The threads of a run time are in the network of the one that makes it.
                at_server(&address, || {
                    let runtime = runtime(blocking);
                    let server = runtime.block_on(builder.start()).unwrap();
                    Server::Tasks(server, runtime)
                })
            }
        }
    }

    /// A server that carries calls out so, within the usual limits.
    pub fn server(&self, service: &Obliging, execution: Execution) -> Server {
        self.serve(service, execution, ServerLimits::default())
    }

    /// A server of the row with what these add to it, for threads and for tasks.
    pub fn serve_by(
        &self,
        threads: impl FnOnce(tenon::ServerBuilder) -> tenon::ServerBuilder + Send,
        tasks: impl FnOnce(tenon_tokio::ServerBuilder) -> tenon_tokio::ServerBuilder + Send,
    ) -> Server {
        let address = (self.carrier.listen)();
        match self.server {
            End::Threads => {
                let builder = threads(tenon::Server::builder().listen(&address).unwrap());
                Server::Threads(at_server(&address, || builder.start().unwrap()))
            }
            End::Tasks => {
                let builder = tasks(tenon_tokio::Server::builder().listen(&address).unwrap());
                at_server(&address, || {
                    let runtime = runtime(4);
                    let server = runtime.block_on(builder.start()).unwrap();
                    Server::Tasks(server, runtime)
                })
            }
        }
    }

    /// What one of these makes of the address of a server, for threads or for tasks.
    pub fn connect_by<T: Send, A: Send>(
        &self,
        server: &Server,
        threads: impl FnOnce(&str) -> T + Send,
        tasks: impl AsyncFnOnce(&str) -> A + Send,
    ) -> Driven<T, A> {
        let address = server.address();
        let url = match self.protocol {
            Protocol::Onc => address.clone(),
            Protocol::Lean => format!("lean+{address}"),
        };
        match self.client {
            End::Threads => Driven::Threads(at_client(&address, || threads(&url))),
            End::Tasks => at_client(&address, || {
                let runtime = runtime(4);
                let connected = runtime.block_on(tasks(&url));
                Driven::Tasks(connected, runtime)
            }),
        }
    }

    /// What a client that blocks makes of the address of a server.
    pub fn connect_blocking<T: Send>(
        &self,
        server: &Server,
        connect: impl FnOnce(&str) -> T + Send,
    ) -> T {
        let address = server.address();
        let url = match self.protocol {
            Protocol::Onc => address.clone(),
            Protocol::Lean => format!("lean+{address}"),
        };
        at_client(&address, || connect(&url))
    }

    /// A client of the server at `address`, which is one for ONC RPC.
    pub fn client(&self, address: &str) -> Client {
        self.client_with(address, ChannelOptions::default())
    }

    pub fn client_with(&self, address: &str, options: ChannelOptions) -> Client {
        let again = Duration::from_millis(50);
        let options = options.retransmission(again, 4 * again);
        let address = match self.protocol {
            Protocol::Onc => address.to_owned(),
            Protocol::Lean => format!("lean+{address}"),
        };
        let client = match self.client {
            End::Threads => {
                let connect = || tenon::Client::connect_with(&address, PROGRAM, VERSION, options);
                Client::Threads(at_client(&address, connect).unwrap())
            }
            End::Tasks => at_client(&address, || {
                let runtime = runtime(4);
                let client = tenon_tokio::Client::connect_with(&address, PROGRAM, VERSION, options);
                let client = runtime.block_on(client);
                Client::Tasks(client.unwrap(), runtime)
            }),
        };
        client.of(interface()).within(PATIENCE)
    }
}

impl Server {
    pub fn address(&self) -> String {
        match self {
            Self::Threads(server) => server.addresses()[0].to_string(),
            Self::Tasks(server, _) => server.addresses()[0].to_string(),
        }
    }

    pub fn counters(&self) -> tenon::ServerCounters {
        match self {
            Self::Threads(server) => server.counters(),
            Self::Tasks(server, _) => server.counters(),
        }
    }

    /// Stops, but answers the calls that were begun.
    pub fn shutdown(&self) {
        match self {
            Self::Threads(server) => {
                server.shutdown(PATIENCE);
            }
            Self::Tasks(server, runtime) => runtime.block_on(server.shutdown(PATIENCE)),
        }
    }
}

/// A client of either kind.
#[derive(Clone)]
pub enum Client {
    Threads(tenon::Client),
    Tasks(tenon_tokio::Client, Arc<Runtime>),
}

/// A call that was started. Dropping it gives it up.
pub enum Pending {
    Thread(Box<PendingCall<Vec<u8>>>),
    Task(JoinHandle<Result<Vec<u8>, CallError>>, Arc<Runtime>),
}

impl Client {
    /// The same, built from this interface.
    pub fn of(self, interface: Interface) -> Self {
        let interface = Arc::new(interface);
        match self {
            Self::Threads(client) => Self::Threads(client.with_interface(interface)),
            Self::Tasks(client, runtime) => Self::Tasks(client.with_interface(interface), runtime),
        }
    }

    /// The same with so much time for every call.
    pub fn within(self, timeout: Duration) -> Self {
        match self {
            Self::Threads(client) => Self::Threads(client.with_timeout(timeout)),
            Self::Tasks(client, runtime) => Self::Tasks(client.with_timeout(timeout), runtime),
        }
    }

    /// Another version of a program over the same connection.
    pub fn over(&self, program: u32, version: u32) -> Self {
        match self {
            Self::Threads(client) => {
                let channel = client.channel().clone();
                Self::Threads(tenon::Client::over(channel, program, version))
            }
            Self::Tasks(client, runtime) => {
                let channel = client.channel().clone();
                let client = tenon_tokio::Client::over(channel, program, version);
                Self::Tasks(client, Arc::clone(runtime))
            }
        }
    }

    /// The same with this credential on every call.
    pub fn with_credential(&self, credential: &Credential<'_>) -> Self {
        match self {
            Self::Threads(client) => Self::Threads(client.with_credential(credential)),
            Self::Tasks(client, runtime) => {
                Self::Tasks(client.with_credential(credential), Arc::clone(runtime))
            }
        }
    }

    /// Calls with these options, waits, or starts the call and waits for it then.
    pub fn call_with(
        &self,
        (procedure, bytes): (u16, &[u8]),
        options: CallOptions<'_>,
        starts: bool,
    ) -> Result<Vec<u8>, CallError> {
        let number = procedure.into();
        match self {
            Self::Threads(client) => {
                let client = client.with_options(options);
                match (self.protocol(), starts) {
                    (Protocol::Onc, false) => client.onc().call(number, put(bytes), rest),
                    (Protocol::Onc, true) => client.onc().start(number, put(bytes), rest)?.wait(),
                    (Protocol::Lean, false) => {
                        client.lean().call(number, put_lean(bytes), rest_lean)
                    }
                    (Protocol::Lean, true) => {
                        let mut call = client.lean().start(number, put_lean(bytes), rest_lean)?;
                        while !call.wait_for(PATIENCE) {}
                        call.wait()
                    }
                }
            }
            Self::Tasks(client, runtime) => {
                let client = client.with_options(options);
                runtime.block_on(async {
                    match (self.protocol(), starts) {
                        (Protocol::Onc, false) => client.onc().call(number, put(bytes), rest).await,
                        (Protocol::Onc, true) => {
                            client.onc().start(number, put(bytes), rest)?.await
                        }
                        (Protocol::Lean, false) => {
                            let lean = client.lean();
                            lean.call(number, put_lean(bytes), rest_lean).await
                        }
                        (Protocol::Lean, true) => {
                            let lean = client.lean();
                            lean.start(number, put_lean(bytes), rest_lean)?.await
                        }
                    }
                })
            }
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::Threads(client) => client.protocol(),
            Self::Tasks(client, _) => client.protocol(),
        }
    }

    /// Calls and waits.
    pub fn call(&self, procedure: u16, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
        match self {
            Self::Threads(client) => match client.protocol() {
                Protocol::Onc => client.onc().call(procedure.into(), put(bytes), rest),
                Protocol::Lean => client
                    .lean()
                    .call(procedure.into(), put_lean(bytes), rest_lean),
            },
            Self::Tasks(client, runtime) => {
                let call = call_in_task(client, procedure, bytes);
                let call = async { tokio::time::timeout(2 * PATIENCE, call).await };
                runtime.block_on(call).expect("the call hangs")
            }
        }
    }

    /// Starts a call.
    pub fn start(&self, procedure: u16, bytes: &[u8]) -> Result<Pending, CallError> {
        Ok(match self {
            Self::Threads(client) => Pending::Thread(Box::new(match client.protocol() {
                Protocol::Onc => client.onc().start(procedure.into(), put(bytes), rest)?,
                Protocol::Lean => {
                    client
                        .lean()
                        .start(procedure.into(), put_lean(bytes), rest_lean)?
                }
            })),
            Self::Tasks(client, runtime) => {
                let (client, bytes) = (client.clone(), bytes.to_vec());
                let call = async move { call_in_task(&client, procedure, &bytes).await };
                Pending::Task(runtime.spawn(call), Arc::clone(runtime))
            }
        })
    }

    /// Starts calls in this order, and waits for all of them.
    pub fn call_all(&self, procedure: u16, calls: &[Vec<u8>]) -> Vec<Result<Vec<u8>, CallError>> {
        match self {
            Self::Threads(_) => {
                let started = calls.iter().map(|bytes| self.start(procedure, bytes));
                let started: Vec<_> = started.collect();
                let waited = started.into_iter().map(|call| call.and_then(Pending::wait));
                waited.collect()
            }
            // Tasks of their own would not begin in the order in which they were spawned.
            Self::Tasks(client, runtime) => {
                let calls = calls.iter();
                let calls = calls.map(|bytes| call_in_task(client, procedure, bytes));
                runtime.block_on(in_order(calls.map(Box::pin).collect()))
            }
        }
    }

    pub fn counters(&self) -> ChannelCounters {
        match self {
            Self::Threads(client) => client.channel().counters(),
            Self::Tasks(client, _) => client.channel().counters(),
        }
    }
}

/// Polls all whenever one may go on, in their order.
async fn in_order<F: Future + Unpin>(calls: Vec<F>) -> Vec<F::Output> {
    let mut calls: Vec<_> = calls.into_iter().map(|call| (call, None)).collect();
    poll_fn(|cx| {
        for (call, outcome) in calls.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            if let Poll::Ready(value) = Pin::new(call).poll(cx) {
                *outcome = Some(value);
            }
        }
        match calls.iter().all(|(_, outcome)| outcome.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    calls
        .into_iter()
        .filter_map(|(_, outcome)| outcome)
        .collect()
}

async fn call_in_task(
    client: &tenon_tokio::Client,
    procedure: u16,
    bytes: &[u8],
) -> Result<Vec<u8>, CallError> {
    let number = procedure.into();
    match client.protocol() {
        Protocol::Onc => client.onc().call(number, put(bytes), rest).await,
        Protocol::Lean => client.lean().call(number, put_lean(bytes), rest_lean).await,
    }
}

impl Pending {
    /// Waits for the end of the call.
    pub fn wait(self) -> Result<Vec<u8>, CallError> {
        match self {
            Self::Thread(call) => call.wait(),
            Self::Task(call, runtime) => runtime.block_on(call).unwrap(),
        }
    }

    /// Gives the call up.
    pub fn give_up(self) {
        match self {
            Self::Thread(call) => drop(call),
            Self::Task(call, runtime) => {
                call.abort();
                // It is over when the task is gone.
                let _ = runtime.block_on(call);
            }
        }
    }
}

/// Waits until something is so.
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} never came");
}

//! A service that does what a test asks it for in both protocols, and calls of it from tasks and from
//! threads.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::gate;
use super::place::{fresh_host, fresh_path};
use super::serving::Serving;
use tenon::lean::{Interface, Part};
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean};
use tenon::{
    Address, CallError, CallInfo, ChannelOptions, LeanInput, LeanService, Protocol, Refusal,
    ServerLimits, Service,
};
use tenon_tokio::{Answer, AsyncService, Call, Client};

pub const PROGRAM: u32 = 0x2000_0042;
pub const VERSION: u32 = 3;

pub const ECHO: u16 = 1;
pub const SLEEP: u16 = 2;
pub const PANIC: u16 = 3;
pub const FAIL: u16 = 8;
/// Returns its argument, a gate, when that is open. Few bits that flip make none of the others this.
pub const HOLD: u16 = 0x5a5a;

/// A server of tasks of [`interface`] at this address alone.
pub fn serving_at<F>(address: &str, limits: ServerLimits, body: F) -> tenon_tokio::ServerBuilder
where
    F: Fn(u32, &[u8]) -> Result<Vec<u8>, Refusal> + Send + Sync + 'static,
{
    let interface = interface();
    let builder = tenon_tokio::Server::builder().listen(address).unwrap();
    let builder = builder.limits(limits);
    builder.sync_service(Serving { interface, body })
}

/// Bounds every wait that is meant to succeed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn interface() -> Interface {
    interface_of(0x1234)
}

/// An interface of the program with this fingerprint.
pub fn interface_of(fingerprint: u64) -> Interface {
    Interface {
        fingerprint,
        parts: vec![Part {
            name: "point".into(),
            fingerprint,
            layout: 0,
            procedure: 0,
        }],
        ..Interface::unknown(PROGRAM, VERSION)
    }
}

/// What a procedure makes of its arguments.
fn oblige(procedure: u32, arguments: &[u8]) -> Result<Vec<u8>, Refusal> {
    match procedure as u16 {
        ECHO => Ok(arguments.to_vec()),
        SLEEP => {
            thread::sleep(duration(arguments));
            Ok(arguments.to_vec())
        }
        HOLD => {
            gate::hold(number(arguments));
            Ok(arguments.to_vec())
        }
        PANIC => panic!("as the test asked"),
        FAIL => Err(Refusal::SystemError("as the test asked".to_owned())),
        _ => Err(Refusal::ProcedureUnavailable),
    }
}

/// The time that the arguments of SLEEP mean.
pub fn duration(arguments: &[u8]) -> Duration {
    Duration::from_millis(number(arguments).into())
}

/// The number that the arguments of SLEEP and HOLD are.
fn number(arguments: &[u8]) -> u32 {
    u32::from_be_bytes(arguments[..4].try_into().unwrap())
}

/// Serves what a test asks for.
pub fn obliging() -> impl Service {
    let (interface, body) = (interface(), oblige);
    Serving { interface, body }
}

/// Obliges as the other one does, but waits as tasks do, and counts what became of the calls of HOLD.
#[derive(Default)]
pub struct Patient {
    pub held: Arc<Held>,
}

/// Calls that were held.
#[derive(Default)]
pub struct Held {
    /// Until the gate was open.
    pub to_the_end: AtomicUsize,
    /// However they ended.
    pub over: AtomicUsize,
}

impl Held {
    async fn hold(&self, gate: u32) {
        /// Counts a call that is dropped where it waits, too.
        struct Counted<'h>(&'h AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let _counted = Counted(&self.over);
        while !gate::is_open(gate) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.to_the_end.fetch_add(1, Ordering::SeqCst);
    }
}

impl AsyncService for Patient {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(interface()))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let arguments = match call.protocol() {
            Protocol::Onc => call.decode(get)?,
            Protocol::Lean => call.decode_lean(get_lean)?,
        };
        match call.procedure() as u16 {
            ECHO => tokio::task::yield_now().await,
            SLEEP => tokio::time::sleep(duration(&arguments)).await,
            HOLD => self.held.hold(number(&arguments)).await,
            PANIC => panic!("as the test asked"),
            FAIL => return Err(Refusal::SystemError("as the test asked".to_owned())),
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        match call.protocol() {
            Protocol::Onc => call.answer(put(&arguments)),
            Protocol::Lean => call.answer_lean(put_lean(&arguments)),
        }
    }
}

/// The calls of each connection are carried out in their order.
pub struct InOrder<S>(pub S);

impl<S: AsyncService> AsyncService for InOrder<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        self.0.interface()
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send {
        self.0.call(call)
    }
}

impl<S: Service> Service for InOrder<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.0.call(call, arguments, result)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.0.lean()
    }
}

/// A server of threads on TCP and Unix without a service.
pub fn listening() -> tenon::ServerBuilder {
    let builder = tenon::Server::builder()
        .listen(&format!("tcp://{}:0", fresh_host()))
        .unwrap();
    // What other systems than Linux do not have.
    #[cfg(not(tenon_portable))]
    let builder = builder
        .listen(&format!("unix://{}", fresh_path().display()))
        .unwrap();
    builder
}

/// A server of tasks on TCP and Unix without a service.
pub fn listening_in_tasks() -> tenon_tokio::ServerBuilder {
    let builder = tenon_tokio::Server::builder()
        .listen(&format!("tcp://{}:0", fresh_host()))
        .unwrap();
    #[cfg(not(tenon_portable))]
    let builder = builder
        .listen(&format!("unix://{}", fresh_path().display()))
        .unwrap();
    builder
}

/// Every address that a client may write for these: the lean ones, too.
pub fn every_way(addresses: &[Address]) -> Vec<String> {
    let ways = addresses
        .iter()
        .flat_map(|address| [address.to_string(), format!("lean+{address}")]);
    ways.collect()
}

pub fn put(bytes: &[u8]) -> impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

pub fn put_lean(
    bytes: &[u8],
) -> impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

pub fn get(input: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(input.take(input.left())?.to_vec())
}

pub fn get_lean(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    match input {
        LeanInput::Native(input) => Ok(input.take(input.left())?.to_vec()),
        LeanInput::Swapped(input) => Ok(input.take(input.left())?.to_vec()),
    }
}

/// Connects a client that lives in tasks.
pub async fn connect(address: &str) -> Client {
    connect_with(address, ChannelOptions::default()).await
}

pub async fn connect_with(address: &str, options: ChannelOptions) -> Client {
    let client = Client::connect_with(address, PROGRAM, VERSION, options).await;
    client.unwrap().with_interface(Arc::new(interface()))
}

/// Calls by the protocol that the client's channel speaks.
pub async fn call(client: &Client, procedure: u16, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    match client.channel().address().protocol() {
        Protocol::Onc => client.onc().call(procedure.into(), put(bytes), get).await,
        Protocol::Lean => {
            let lean = client.lean();
            lean.call(procedure.into(), put_lean(bytes), get_lean).await
        }
    }
}

/// Calls ECHO until the server has seen that it is quick, and carries it out where it was received.
pub async fn warm_up(server: &tenon_tokio::Server, client: &Client) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = server.counters().calls_handed_over;
        call(client, ECHO, b"warm").await.unwrap();
        if server.counters().calls_handed_over == before {
            return;
        }
        assert!(Instant::now() < deadline, "it is never quick");
    }
}

/// Calls SLEEP.
pub async fn sleep(client: &Client, millis: u32) -> Result<Vec<u8>, CallError> {
    call(client, SLEEP, &millis.to_be_bytes()).await
}

/// Calls HOLD.
pub async fn hold(client: &Client, gate: u32) -> Result<Vec<u8>, CallError> {
    call(client, HOLD, &gate.to_be_bytes()).await
}

/// Waits until something becomes true.
pub async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Connects a client that lives in threads.
pub fn connect_blocking(address: &str) -> tenon::Client {
    let client = tenon::Client::connect(address, PROGRAM, VERSION).unwrap();
    client.with_interface(Arc::new(interface()))
}

/// Calls by the protocol that the client's channel speaks, and blocks.
pub fn call_blocking(
    client: &tenon::Client,
    procedure: u16,
    bytes: &[u8],
) -> Result<Vec<u8>, CallError> {
    match client.channel().address().protocol() {
        Protocol::Onc => client.onc().call(procedure.into(), put(bytes), get),
        Protocol::Lean => client
            .lean()
            .call(procedure.into(), put_lean(bytes), get_lean),
    }
}

/// Fails instead of hanging.
pub async fn in_time<T>(test: impl Future<Output = T>) -> T {
    let bounded = tokio::time::timeout(2 * PATIENCE, test);
    bounded.await.expect("the test hangs")
}

/// Sizes of messages around every boundary that there is.
pub fn sizes() -> impl Iterator<Item = usize> {
    (0..40)
        .chain([1000, 4000, 4096, 8192, 8193, 16_300, 16_384, 16_385])
        .chain([65_503, 65_504, 65_536, 300_000, 3 << 20])
}

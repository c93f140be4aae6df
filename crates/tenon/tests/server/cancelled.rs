//! Handlers see that their callers have stopped waiting, also where they run on the threads that received their calls:
//! by a message that cancels, a reset, the end of a stream, a process that is killed, and the end of the server.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller;
use crate::common::caller::{Caller, PATIENCE, PROGRAM, VERSION, eventually, limited};
use crate::common::lean_caller::{LeanCaller, interface, with_shm};
use rustix::net::sockopt::set_socket_linger;
use tenon::lean::{Extras, Interface};
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{
    CallInfo, Client, EndOfStream, LeanInput, LeanService, PendingCall, Refusal, Server,
    ServerLimits, Service,
};

/// Returns at once.
const QUICK: u32 = 1;
/// The first procedure of those that return when their callers have stopped waiting.
const LONG: u32 = 100;

/// Says to a process where it is to call.
const ADDRESS: &str = "TENON_TEST_CANCELLED_ADDRESS";

/// Carries calls out until they are cancelled, and notes which it was told of.
#[derive(Clone, Default)]
struct LongPoll {
    begun: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<u32>>>,
}

impl LongPoll {
    fn hold(&self, call: &CallInfo<'_>) -> Result<(), Refusal> {
        if call.procedure() == QUICK {
            return Ok(());
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let until = Instant::now() + 2 * PATIENCE;
        while Instant::now() < until {
            if call.is_cancelled() {
                self.told.lock().unwrap().push(call.procedure());
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn wait_for_begun(&self, count: usize) {
        eventually("a handler begins", || {
            self.begun.load(Ordering::SeqCst) == count
        });
    }

    /// Waits until as many handlers were told as are named, and these.
    #[track_caller]
    fn expect_told(&self, procedures: &[u32]) {
        eventually("a handler is told", || {
            self.told.lock().unwrap().len() >= procedures.len()
        });
        assert_eq!(*self.told.lock().unwrap(), procedures);
    }
}

impl Service for LongPoll {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.hold(call)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for LongPoll {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(interface())
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        self.hold(call)
    }
}

fn serve(limits: ServerLimits) -> (Server, LongPoll) {
    let service = LongPoll::default();
    let builder = with_shm(caller::listening()).limits(limits);
    let server = builder.service(service.clone()).start().unwrap();
    (server, service)
}

/// Where the server is: by TCP, a Unix socket, UDP and shared memory.
fn addresses(server: &Server) -> [String; 4] {
    let addresses = server.addresses().iter().map(ToString::to_string);
    addresses.collect::<Vec<_>>().try_into().unwrap()
}

/// A procedure that was never called: its call is carried out where it is received.
fn fresh_procedure() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(LONG);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// No call was handed over, so every handler ran where its call was received.
fn assert_inline(server: &Server) {
    let counters = server.counters();
    assert_eq!(counters.calls_handed_over, 0, "{counters:?}");
}

fn connect(address: &str) -> Client {
    let client = Client::connect(address, PROGRAM, VERSION).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(2 * PATIENCE)
}

fn start(client: &Client, procedure: u32) -> PendingCall<()> {
    client
        .lean()
        .start(procedure, |_| Ok(()), |_| Ok(()))
        .unwrap()
}

#[test]
fn a_message_that_cancels_is_told() {
    let (server, service) = serve(ServerLimits::default());
    let [tcp, unix, udp, shm] = addresses(&server);
    let (mut begun, mut told) = (0, Vec::new());
    for address in [
        format!("lean+{tcp}"),
        format!("lean+{unix}"),
        format!("lean+{udp}"),
        shm,
    ] {
        let client = connect(&address);
        let procedures = [fresh_procedure(), fresh_procedure()];
        let calls = procedures.map(|procedure| {
            let call = start(&client, procedure);
            begun += 1;
            service.wait_for_begun(begun);
            call
        });
        // The later one first: the handler of the other is not told.
        for (call, procedure) in calls.into_iter().zip(procedures).rev() {
            drop(call);
            told.push(procedure);
            service.expect_told(&told);
        }
        start(&client, QUICK).wait().unwrap();
    }
    assert_inline(&server);
}

/// A call by ONC RPC of a procedure that takes long, and the connection that it was sent over.
fn call_onc(address: &str, service: &LongPoll) -> (Caller, u32) {
    let (mut caller, procedure) = (Caller::connect(address), fresh_procedure());
    let before = service.begun.load(Ordering::SeqCst);
    caller.send(&caller::call(1, procedure, &[]));
    service.wait_for_begun(before + 1);
    (caller, procedure)
}

/// The same by the lean protocol.
fn call_lean(address: &str, service: &LongPoll) -> (LeanCaller, u32) {
    let (mut caller, procedure) = (LeanCaller::connect(address), fresh_procedure());
    let before = service.begun.load(Ordering::SeqCst);
    let interface = Arc::new(interface());
    caller.start(
        &interface,
        procedure as u16,
        &[],
        &Extras::default(),
        "long",
    );
    caller.send();
    service.wait_for_begun(before + 1);
    (caller, procedure)
}

/// Closes a connection over TCP with a reset.
fn reset(caller: &Caller) {
    let Caller::Tcp(stream) = caller else {
        panic!("only TCP has resets");
    };
    set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_connection_that_is_gone_is_told() {
    let (server, service) = serve(ServerLimits::default());
    let [tcp, unix, ..] = addresses(&server);
    let (caller, first) = call_onc(&tcp, &service);
    reset(&caller);
    drop(caller);
    service.expect_told(&[first]);
    let (caller, second) = call_onc(&unix, &service);
    drop(caller);
    service.expect_told(&[first, second]);
    // That a lean client has ended its stream says enough, whatever carries it.
    let (caller, third) = call_lean(&tcp, &service);
    drop(caller);
    service.expect_told(&[first, second, third]);
    let (caller, fourth) = call_lean(&unix, &service);
    drop(caller);
    service.expect_told(&[first, second, third, fourth]);
    eventually("the connections are let go", || {
        server.counters().connections_open == 0
    });
    assert_inline(&server);
}

#[test]
fn the_end_of_a_stream_is_told_if_it_means_that_the_peer_is_gone() {
    let limits = limited(|limits| limits.end_of_stream = EndOfStream::Gone);
    let (server, service) = serve(limits);
    let [tcp, ..] = addresses(&server);
    let (caller, procedure) = call_onc(&tcp, &service);
    caller.finish_sending().unwrap();
    service.expect_told(&[procedure]);
    assert_inline(&server);
}

/// A process that calls until it is killed; without orders it does nothing.
#[test]
fn call_until_killed() {
    let Ok(address) = env::var(ADDRESS) else {
        return;
    };
    let client = connect(&address);
    start(&client, fresh_procedure()).wait().unwrap();
}

/// A process that is killed when it is dropped.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_death_of_a_process_over_shared_memory_is_told() {
    let (server, service) = serve(ServerLimits::default());
    let [.., shm] = addresses(&server);
    let victim = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "cancelled::call_until_killed",
            "--test-threads=1",
        ])
        .env(ADDRESS, &shm)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let victim = Victim(victim.unwrap());
    service.wait_for_begun(1);
    assert!(service.told.lock().unwrap().is_empty());
    drop(victim);
    service.expect_told(&[LONG]);
    assert_inline(&server);
}

/// A handler that outlasts the drain of a shutdown is told: its caller hears nothing any more.
#[test]
fn the_end_of_the_server_is_told() {
    let (server, service) = serve(ServerLimits::default());
    let [tcp, ..] = addresses(&server);
    let (_caller, procedure) = call_onc(&tcp, &service);
    server.shutdown(Duration::from_millis(50));
    service.expect_told(&[procedure]);
}

/// As many dead clients as the server takes connections, all of whose calls are carried out, some where they were
/// received and most elsewhere.
#[test]
fn dead_long_polls_let_others_in() {
    const CLIENTS: usize = 50;
    let (server, service) = serve(limited(|limits| limits.connections = CLIENTS));
    let [tcp, ..] = addresses(&server);
    let procedure = fresh_procedure();
    let callers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut caller = Caller::connect(&tcp);
            caller.send(&caller::call(1, procedure, &[]));
            caller
        })
        .collect();
    service.wait_for_begun(CLIENTS);
    assert_eq!(server.counters().connections_open, CLIENTS as u64);
    callers.iter().for_each(reset);
    drop(callers);
    eventually("the dead are let go", || {
        server.counters().connections_open == 0
    });
    Caller::connect(&tcp).expect(&caller::call(2, QUICK, &[]), &caller::success(2, &[]));
    service.expect_told(&[procedure; CLIENTS]);
    assert_eq!(server.counters().connections_refused, 0);
}

//! Handlers that take long, on every transport and by both protocols: calls of others do not wait for them, calls of
//! one connection are carried out at the same time as far as there are threads, and in their order if the service
//! needs that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller;
use crate::common::caller::{
    Caller, PATIENCE, PROGRAM, VERSION, eventually, limited, record, words,
};
use crate::common::gate;
use crate::common::lean_caller::{LeanCaller, interface, with_shm};
use crate::common::meeting::Meeting;
use crate::common::serving::{Serving, rest};
use tenon::lean::Extras;
use tenon::wire::{Decoder, Encoder};
use tenon::{
    CallInfo, ChannelOptions, Client, LeanService, PendingCall, Protocol, Refusal, Server,
    ServerBuilder, Service, Waiting,
};

/// Returns its arguments.
const ECHO: u32 = 1;
/// Returns when as many calls as its argument says are carried out at the same time.
const MEET: u32 = 2;
/// Takes ten milliseconds.
const NAP: u32 = 3;
/// Opens one gate, and returns when another is open. So are all procedures from here on.
const HOLD: u32 = 100;

const NAP_TIME: Duration = Duration::from_millis(10);

fn carry_out(meeting: &Meeting, procedure: u32, arguments: &[u8]) -> Result<Vec<u8>, Refusal> {
    let word = |index: usize| {
        let bytes = arguments[4 * index..4 * index + 4].try_into();
        u32::from_be_bytes(bytes.unwrap())
    };
    match procedure {
        ECHO => {}
        MEET => {
            if !meeting.join(word(0) as usize) {
                return Err(Refusal::SystemError("the others did not come".to_owned()));
            }
        }
        NAP => thread::sleep(NAP_TIME),
        HOLD.. => {
            gate::open(word(0));
            gate::hold(word(1));
        }
        _ => return Err(Refusal::ProcedureUnavailable),
    }
    Ok(arguments.to_vec())
}

fn builder() -> (ServerBuilder, Arc<Meeting>) {
    let meeting = Arc::new(Meeting::default());
    let meets = Arc::clone(&meeting);
    let service = Serving {
        interface: interface(),
        body: move |procedure, arguments: &[u8]| carry_out(&meets, procedure, arguments),
    };
    (with_shm(caller::listening()).service(service), meeting)
}

/// Where the server can be called, by both protocols wherever there are both.
fn addresses(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .flat_map(|address| {
            if address.starts_with("shm://") {
                vec![address]
            } else {
                vec![format!("lean+{address}"), address]
            }
        })
        .collect()
}

fn connect(address: &str) -> Client {
    let client = Client::connect(address, PROGRAM, VERSION).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(PATIENCE)
}

fn start(client: &Client, procedure: u32, arguments: &[u8]) -> PendingCall<Vec<u8>> {
    let started = match client.protocol() {
        Protocol::Onc => client.onc().start(
            procedure,
            |out| {
                out.room(arguments.len()).copy_from_slice(arguments);
                Ok(())
            },
            |input| Ok(input.rest().to_vec()),
        ),
        Protocol::Lean => client.lean().start(
            procedure,
            |out| {
                out.room(arguments.len()).copy_from_slice(arguments);
                Ok(())
            },
            |input| Ok(rest(input).to_vec()),
        ),
    };
    started.unwrap()
}

fn call(client: &Client, procedure: u32, arguments: &[u8]) {
    let result = start(client, procedure, arguments).wait().unwrap();
    assert_eq!(result, arguments);
}

/// One that sends several calls at once, and looks at what is answered in which order.
enum Peer {
    Onc(Caller),
    Lean(Box<LeanCaller>),
    /// The exchange is not spoken by hand here.
    Exchange(Client, HashMap<&'static str, PendingCall<Vec<u8>>>),
}

type NamedCall<'a> = (&'static str, u32, &'a [u8]);

impl Peer {
    fn connect(address: &str) -> Self {
        match address.split_once("://").unwrap().0 {
            "lean+udp" => Self::Exchange(connect(address), HashMap::new()),
            "lean+tcp" | "lean+unix" => Self::Lean(Box::new(LeanCaller::connect(
                address.trim_start_matches("lean+"),
            ))),
            "shm" => Self::Lean(Box::new(LeanCaller::connect(address))),
            _ => Self::Onc(Caller::connect(address)),
        }
    }

    /// Sends calls, all in one segment where that can be.
    fn send(&mut self, calls: &[NamedCall<'_>]) {
        match self {
            Self::Onc(onc) => {
                let messages = calls.iter().map(|&(name, procedure, arguments)| {
                    caller::call(xid(name), procedure, arguments)
                });
                if let Caller::Udp(_) = onc {
                    messages.for_each(|message| onc.send(&message));
                } else {
                    let records: Vec<_> = messages.map(|message| record(&message)).collect();
                    onc.send_raw(&records.concat());
                }
            }
            Self::Lean(lean) => {
                let interface = Arc::new(interface());
                for &(name, procedure, arguments) in calls {
                    let extras = Extras::default();
                    lean.start(&interface, procedure as u16, arguments, &extras, name);
                }
                lean.send();
            }
            Self::Exchange(client, pending) => {
                for &(name, procedure, arguments) in calls {
                    pending.insert(name, start(client, procedure, arguments));
                }
            }
        }
    }

    /// Waits for an answer, which is that to the call of this name.
    #[track_caller]
    fn expect(&mut self, name: &str) {
        match self {
            Self::Onc(onc) => assert_eq!(onc.receive()[..4], xid(name).to_be_bytes(), "{name}"),
            Self::Lean(lean) => {
                let answer = lean.answer();
                assert!(answer.starts_with(&format!("{name}: ")), "{answer}");
            }
            Self::Exchange(_, pending) => drop(pending.remove(name).unwrap().wait().unwrap()),
        }
    }
}

/// The number of an ONC RPC call of this name.
fn xid(name: &str) -> u32 {
    name.bytes().fold(0, |xid, byte| xid << 8 | u32::from(byte))
}

/// The arguments of a call that is held, and the gates that it opens and waits for.
fn held() -> (Vec<u8>, u32, u32) {
    let (begun, end) = (gate::fresh_gate(), gate::fresh_gate());
    (words(&[begun, end]), begun, end)
}

/// So many threads call over one client, each so many times.
fn call_at_once(client: &Client, callers: usize, calls: usize, procedure: u32) {
    let arguments = words(&[callers as u32]);
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                (0..calls).for_each(|_| call(client, procedure, &arguments));
            });
        }
    });
}

#[test]
fn calls_of_one_client_are_carried_out_at_the_same_time() {
    const CALLS: usize = 4;
    let (builder, meeting) = builder();
    let server = builder.start().unwrap();
    let mut expected = 0;
    for address in addresses(&server) {
        let client = connect(&address);
        for callers in [16, 64] {
            let before = server.counters();
            call_at_once(&client, callers, CALLS, MEET);
            expected += CALLS;
            assert_eq!(meeting.complete(), expected, "{address}");
            let counters = server.counters();
            let handed_over = counters.calls_handed_over - before.calls_handed_over;
            // Two at most are tried where they are received.
            assert!(handed_over >= (callers * CALLS - 2) as u64, "{address}");
            assert_eq!(counters.calls_waited, 0);
        }
    }
}

/// A thread that waits for a connection or port must not overlook what others have to say there.
#[test]
fn answers_of_other_threads_are_sent_by_a_thread_that_waits() {
    const CALLS: u32 = 20;
    let (builder, _) = builder();
    let server = builder.start().unwrap();
    for address in addresses(&server) {
        let client = connect(&address);
        (0..4).for_each(|_| call(&client, NAP, b""));
        // Nothing else comes that could wake the thread: an answer that it overlooks is not sent before the client's
        // patience is at its end.
        (0..CALLS).for_each(|_| call(&client, NAP, b""));
    }
    assert!(server.counters().calls_handed_over >= 7 * u64::from(CALLS));
}

/// A slow call and a quick one in the same segment: the quick one is answered while the slow one is held. Returns how
/// long that took.
fn time_behind_slow(peer: &mut Peer, procedure: u32) -> Duration {
    let (arguments, _, end) = held();
    let begin = Instant::now();
    peer.send(&[("slow", procedure, &arguments), ("fast", ECHO, b"fast")]);
    peer.expect("fast");
    let took = begin.elapsed();
    gate::open(end);
    peer.expect("slow");
    took
}

/// The same for a call that another peer makes right afterwards.
fn time_beside_slow(peer: &mut Peer, other: &mut Peer, procedure: u32) -> Duration {
    let (arguments, begun, end) = held();
    peer.send(&[("slow", procedure, &arguments)]);
    gate::hold(begun);
    let begin = Instant::now();
    other.send(&[("fast", ECHO, b"fast")]);
    other.expect("fast");
    let took = begin.elapsed();
    gate::open(end);
    peer.expect("slow");
    took
}

#[test]
fn a_slow_handler_delays_neither_calls_behind_it_nor_others() {
    let (builder, _) = builder();
    let server = builder.start().unwrap();
    let addresses = addresses(&server);
    // Every procedure is slow for the first time, so that it is carried out where it was received.
    let mut procedures = HOLD..;
    for address in &addresses {
        let mut peer = Peer::connect(address);
        peer.send(&[("fast", ECHO, b"")]);
        peer.expect("fast");
        time_behind_slow(&mut peer, procedures.next().unwrap());
        for other in &addresses {
            let mut other_peer = Peer::connect(other);
            other_peer.send(&[("fast", ECHO, b"")]);
            other_peer.expect("fast");
            let procedure = procedures.next().unwrap();
            time_beside_slow(&mut peer, &mut other_peer, procedure);
        }
    }
    // A call beside a slow one may find another thread that waits already.
    assert!(server.counters().takeovers >= addresses.len() as u64);
}

#[test]
fn a_server_with_one_thread_for_slow_handlers_goes_on_beside_one() {
    let (builder, _) = builder();
    let limits = limited(|limits| limits.threads = 1);
    let server = builder.limits(limits).start().unwrap();
    let addresses = addresses(&server);
    let mut peer = Peer::connect(&addresses[0]);
    let (arguments, begun, end) = held();
    peer.send(&[("slow", HOLD, &arguments)]);
    gate::hold(begun);
    let mut others: Vec<_> = addresses.iter().map(|at| Peer::connect(at)).collect();
    for other in &mut others {
        other.send(&[("fast", ECHO, b"")]);
    }
    // All of them wait for the one thread; those who receive them do not.
    eventually("they wait", || {
        server.counters().calls_waited == addresses.len() as u64
    });
    gate::open(end);
    peer.expect("slow");
    others.iter_mut().for_each(|other| other.expect("fast"));
}

#[test]
fn beyond_the_limit_of_threads_calls_wait_in_turn() {
    const THREADS: usize = 4;
    const CALLS: usize = 12;
    const NAMES: [&str; CALLS] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let (builder, _) = builder();
    let limits = limited(|limits| limits.threads = THREADS);
    let server = builder.limits(limits).start().unwrap();
    let mut peer = Peer::connect(&addresses(&server)[0]);
    for _ in 0..2 {
        time_behind_slow(&mut peer, HOLD);
    }
    eventually("the threads are free", || {
        let counters = server.counters();
        counters.calls == 4 && counters.threads_busy == 0
    });
    assert_eq!(server.counters().calls_waited, 0);
    let held: Vec<_> = (0..CALLS).map(|_| held()).collect();
    let calls = NAMES.iter().zip(&held);
    let calls: Vec<NamedCall<'_>> = calls
        .map(|(name, call)| (*name, HOLD, &call.0[..]))
        .collect();
    peer.send(&calls);
    eventually("all are received", || {
        server.counters().calls_handed_over == CALLS as u64
    });
    for (index, (_, begun, end)) in held.iter().enumerate() {
        gate::hold(*begun);
        let mut later = held.iter().skip(index + THREADS);
        assert!(!later.any(|(_, begun, _)| gate::is_open(*begun)), "{index}");
        gate::open(*end);
        peer.expect(NAMES[index]);
    }
    assert_eq!(server.counters().calls_waited, (CALLS - THREADS) as u64);
}

/// A service that needs the calls of a connection in their order.
struct InOrder<S>(S);

impl<S: Service> Service for InOrder<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.0.call(call, arguments, result)
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.0.lean()
    }
}

#[test]
fn a_service_that_keeps_order_gets_the_calls_of_a_connection_one_after_the_other() {
    const CALLS: u32 = 60;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let service = Serving {
        interface: interface(),
        body: move |procedure, arguments: &[u8]| {
            // Some are slow, and their procedures are learned; others are quick.
            if procedure == NAP {
                thread::sleep(Duration::from_millis(3));
            }
            sees.lock().unwrap().push(arguments.to_vec());
            Ok(arguments.to_vec())
        },
    };
    let builder = with_shm(caller::listening()).service(InOrder(service));
    let server = builder.start().unwrap();
    let mut handed_over = 0;
    for address in addresses(&server) {
        if address.contains("udp") {
            // Datagrams have no order.
            continue;
        }
        let client = connect(&address);
        let arguments = |number: u32| words(&[number]);
        let pending: Vec<_> = (0..CALLS)
            .map(|number| {
                let procedure = if number % 3 == 0 { NAP } else { ECHO };
                start(&client, procedure, &arguments(number))
            })
            .collect();
        for (number, call) in (0..).zip(pending) {
            assert_eq!(call.wait().unwrap(), arguments(number));
        }
        let expected: Vec<_> = (0..CALLS).map(arguments).collect();
        assert_eq!(*seen.lock().unwrap(), expected, "{address}");
        seen.lock().unwrap().clear();
        let counters = server.counters();
        assert!(counters.calls_handed_over > handed_over, "{address}");
        handed_over = counters.calls_handed_over;
    }
}

/// The middle, the 99th of 100, and the longest.
fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    let (middle, most, longest) = (at(50), at(99), at(100));
    println!("{what:32} median {middle:9.1?}  p99 {most:9.1?}  longest {longest:9.1?}");
}

/// `cargo test --release -p tenon-rpc --test server -- --ignored --nocapture measure_delays`
#[test]
#[ignore = "prints what it measures"]
fn measure_delays() {
    const TRIES: usize = 50;
    let addresses_of_all = {
        let (builder, _) = builder();
        addresses(&builder.start().unwrap()).len()
    };
    for index in 0..addresses_of_all {
        // A fresh server for each, as procedures are learned.
        let (builder, _) = builder();
        let server = builder.start().unwrap();
        let addresses = addresses(&server);
        let address = &addresses[index];
        let kind = address.split_once("://").unwrap().0;
        let other_address = &addresses[(index + 3) % addresses.len()];
        let other_kind = other_address.split_once("://").unwrap().0;
        let mut peer = Peer::connect(address);
        let mut twin = Peer::connect(address);
        let mut other = Peer::connect(other_address);
        for peer in [&mut peer, &mut twin, &mut other] {
            peer.send(&[("fast", ECHO, b"")]);
            peer.expect("fast");
        }
        let mut procedures = HOLD..;
        let mut tries = |time: &mut dyn FnMut(u32) -> Duration| {
            let mut times = Vec::new();
            for procedure in procedures.by_ref().take(TRIES) {
                times.push(time(procedure));
                thread::sleep(Duration::from_millis(3));
            }
            times
        };
        let behind = tries(&mut |procedure| time_behind_slow(&mut peer, procedure));
        report(&format!("{kind}: behind, in one segment"), behind);
        let beside = tries(&mut |procedure| time_beside_slow(&mut peer, &mut twin, procedure));
        report(&format!("{kind}: another connection"), beside);
        let beside = tries(&mut |procedure| time_beside_slow(&mut peer, &mut other, procedure));
        report(&format!("{kind}: {other_kind}"), beside);
    }
}

/// `cargo test --release -p tenon-rpc --test server -- --ignored --nocapture measure_rates`
#[test]
#[ignore = "prints what it measures"]
fn measure_rates() {
    const CALLS: usize = 100;
    for waiting in [Waiting::Block, Waiting::Adaptive] {
        let (builder, _) = builder();
        let server = builder.start().unwrap();
        for address in addresses(&server) {
            let options = ChannelOptions::default().waiting(waiting);
            let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
            let client = client.with_interface(Arc::new(interface()));
            for callers in [16, 64] {
                call_at_once(&client, callers, 2, NAP);
                let begin = Instant::now();
                call_at_once(&client, callers, CALLS, NAP);
                let rate = (callers * CALLS) as f64 / begin.elapsed().as_secs_f64();
                let part = rate / (callers as f64 / NAP_TIME.as_secs_f64());
                let kind = address.split_once("://").unwrap().0;
                println!(
                    "{waiting:?} {kind:10} {callers:2} callers: {rate:7.0} calls/s, {part:.3}"
                );
            }
        }
    }
}

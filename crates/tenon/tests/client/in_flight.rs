//! Calls in flight over one connection: how many they may be, and what becomes of those that are more.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::caller;
use crate::common::caller::{PATIENCE, PROGRAM, VERSION, eventually, limited, words};
use crate::common::gate;
use crate::common::lean_caller::interface;
use crate::common::meeting::Meeting;
use crate::common::serving::{Serving, rest};
use crate::common::slow_path::slow_path;
use tenon::{CallError, Client, PendingCall, Refusal, Server, ServerLimits};

/// Returns its argument.
const ECHO: u16 = 1;
/// Returns when as many calls as its argument says are carried out at the same time.
const MEET: u16 = 2;
/// Returns its argument, a gate, when that is open.
const HOLD: u16 = 3;

/// What a server was called for, in that order.
type Seen = Arc<Mutex<Vec<(u32, u32)>>>;

fn serve(limits: ServerLimits) -> (Server, Seen) {
    let (meeting, seen) = (Meeting::default(), Seen::default());
    let sees = Arc::clone(&seen);
    let service = Serving {
        interface: interface(),
        body: move |procedure, arguments: &[u8]| {
            let argument = u32::from_be_bytes(arguments.try_into().unwrap());
            sees.lock().unwrap().push((procedure, argument));
            match procedure as u16 {
                ECHO => {}
                MEET if meeting.join(argument as usize) => {}
                HOLD => gate::hold(argument),
                _ => return Err(Refusal::SystemError("the others did not come".to_owned())),
            }
            Ok(arguments.to_vec())
        },
    };
    let builder = caller::listening().limits(limits).service(service);
    (builder.start().unwrap(), seen)
}

fn connect(address: &str) -> Client {
    let client = Client::connect(&format!("lean+{address}"), PROGRAM, VERSION).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(2 * PATIENCE)
}

fn start(
    client: &Client,
    procedure: u16,
    argument: u32,
) -> Result<PendingCall<Vec<u8>>, CallError> {
    client.lean().start(
        procedure.into(),
        |out| {
            out.room(4).copy_from_slice(&words(&[argument]));
            Ok(())
        },
        |input| Ok(rest(input).to_vec()),
    )
}

fn call(client: &Client, procedure: u16, argument: u32) -> Result<(), CallError> {
    let result = start(client, procedure, argument)?.wait()?;
    assert_eq!(result, words(&[argument]));
    Ok(())
}

#[test]
fn a_thousand_long_polls_leave_room_for_another_call() {
    const POLLS: usize = 1000;
    let (server, _) = serve(limited(|limits| limits.threads = POLLS + 100));
    for address in server.addresses() {
        let client = connect(&address.to_string());
        let gate = gate::fresh_gate();
        let polls: Vec<_> = (0..POLLS)
            .map(|_| start(&client, HOLD, gate).unwrap())
            .collect();
        assert_eq!(client.channel().counters().in_flight, POLLS, "{address}");
        call(&client, ECHO, 5).unwrap();
        gate::open(gate);
        for poll in polls {
            assert_eq!(poll.wait().unwrap(), words(&[gate]));
        }
    }
}

/// None of them is answered before all are carried out.
#[test]
fn two_hundred_callers_are_in_flight_together_over_a_slow_path() {
    const CALLERS: u32 = 200;
    let (server, seen) = serve(ServerLimits::default());
    let place: SocketAddr = server.addresses()[0]
        .to_string()
        .replace("tcp://", "")
        .parse()
        .unwrap();
    let path = slow_path(place, Duration::from_millis(25));
    let client = connect(&format!("tcp://{path}"));
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| call(&client, MEET, CALLERS).unwrap());
        }
    });
    assert_eq!(seen.lock().unwrap().len(), CALLERS as usize);
    assert_eq!(client.channel().counters().connections, 1);
}

/// Waits until a thread sleeps, and not only for a moment.
fn wait_until_asleep(task: &PathBuf) {
    let mut times = 0;
    eventually("a thread sleeps", || {
        let stat = fs::read_to_string(PathBuf::from("/proc").join(task).join("stat")).unwrap();
        let state = stat.rsplit(") ").next().unwrap();
        times = if state.starts_with('S') { times + 1 } else { 0 };
        times == 5
    });
}

/// Waits until all calls are held, and forgets what the server has seen until then.
fn forget_when_held(seen: &Seen, calls: &mut [PendingCall<Vec<u8>>]) {
    eventually("the calls are held", || {
        // By datagrams not all are sent before the client has looked what the server says.
        assert!(!calls.iter_mut().any(PendingCall::is_ready));
        let seen = seen.lock().unwrap();
        let held = seen
            .iter()
            .filter(|(procedure, _)| *procedure == u32::from(HOLD));
        held.count() == calls.len()
    });
    seen.lock().unwrap().clear();
}

#[test]
fn calls_that_wait_for_room_go_in_their_order() {
    // As few as a lean server may take.
    const ROOM: usize = 16;
    const WAITING: u32 = 6;
    let (server, seen) = serve(limited(|limits| limits.connection_calls = ROOM));
    for address in server.addresses() {
        let client = connect(&address.to_string());
        // The server has said what it takes.
        call(&client, ECHO, 0).unwrap();
        let gates: Vec<_> = (0..ROOM).map(|_| gate::fresh_gate()).collect();
        let mut held: Vec<_> = gates
            .iter()
            .map(|gate| start(&client, HOLD, *gate).unwrap())
            .collect();
        forget_when_held(&seen, &mut held);
        thread::scope(|scope| {
            for number in 1..=WAITING {
                let (client, (tell, told)) = (&client, mpsc::channel());
                scope.spawn(move || {
                    tell.send(fs::read_link("/proc/thread-self").unwrap())
                        .unwrap();
                    call(client, ECHO, number).unwrap();
                });
                wait_until_asleep(&told.recv().unwrap());
            }
            assert_eq!(client.channel().counters().in_flight, ROOM, "{address}");
            // One after the other has room.
            gate::open(gates[0]);
        });
        let echoes = seen.lock().unwrap().clone();
        let expected: Vec<_> = (1..=WAITING).map(|number| (ECHO.into(), number)).collect();
        assert_eq!(echoes, expected, "{address}");
        gates.iter().for_each(|gate| gate::open(*gate));
        held.into_iter().for_each(|call| drop(call.wait().unwrap()));
    }
}

#[test]
fn a_call_that_has_found_no_room_says_so() {
    const ROOM: usize = 16;
    let (server, seen) = serve(limited(|limits| limits.connection_calls = ROOM));
    for address in server.addresses() {
        let client = connect(&address.to_string());
        call(&client, ECHO, 0).unwrap();
        let gate = gate::fresh_gate();
        let mut held: Vec<_> = (0..ROOM)
            .map(|_| start(&client, HOLD, gate).unwrap())
            .collect();
        forget_when_held(&seen, &mut held);
        let hurried = client.with_timeout(Duration::from_millis(100));
        let error = call(&hurried, ECHO, 1).unwrap_err();
        assert!(!error.may_have_executed());
        assert_eq!(
            error.to_string(),
            "no reply within 100ms; it waited for room among the 16 calls in flight, and was not sent"
        );
        gate::open(gate);
        held.into_iter().for_each(|call| drop(call.wait().unwrap()));
        call(&client, ECHO, 2).unwrap();
        assert!(
            !seen.lock().unwrap().contains(&(ECHO.into(), 1)),
            "{address}"
        );
    }
}

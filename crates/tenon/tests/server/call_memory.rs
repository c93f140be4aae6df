//! The memory of calls that are carried out: it is bounded for each connection and for all, and calls that find none
//! wait in their connections, each of which goes through in the end.

use std::thread;

use crate::common::caller;
use crate::common::caller::{Caller, eventually, limited, words};
use crate::common::gate;
use crate::common::lean_caller::interface;
use crate::common::serving::Serving;
use tenon::{Server, ServerLimits};

/// Returns its first argument.
const ECHO: u32 = 1;
/// Opens the gate that is its first argument, and returns that when the gate of the second one is open.
const HOLD: u32 = 2;

const LARGE: usize = 300 << 10;

/// Memory for two large calls, and not for four.
const MEMORY: usize = 1 << 20;

fn serve(limits: ServerLimits) -> (Server, String) {
    let service = Serving {
        interface: interface(),
        body: |procedure, arguments: &[u8]| {
            let word = |index: usize| {
                let bytes = arguments[4 * index..4 * index + 4].try_into();
                u32::from_be_bytes(bytes.unwrap())
            };
            if procedure == HOLD {
                gate::open(word(0));
                gate::hold(word(1));
            }
            Ok(words(&[word(0)]))
        },
    };
    let builder = caller::listening().limits(limits).service(service);
    let server = builder.start().unwrap();
    let tcp = server.addresses()[0].to_string();
    (server, tcp)
}

/// A call that is held until a test lets it go.
struct Held {
    begun: u32,
    end: u32,
}

impl Held {
    fn new() -> Self {
        let [begun, end] = [gate::fresh_gate(), gate::fresh_gate()];
        Self { begun, end }
    }

    /// The call with so many bytes of arguments.
    fn message(&self, size: usize) -> Vec<u8> {
        let mut arguments = words(&[self.begun, self.end]);
        arguments.resize(size, 0);
        caller::call(self.begun, HOLD, &arguments)
    }

    fn has_begun(&self) -> bool {
        gate::is_open(self.begun)
    }

    fn wait_for_begun(&self) {
        eventually("a call begins", || self.has_begun());
    }

    fn let_go(&self) {
        gate::open(self.end);
    }

    #[track_caller]
    fn expect_reply(&self, from: &mut Caller) {
        assert_eq!(
            from.receive(),
            caller::success(self.begun, &words(&[self.begun]))
        );
    }
}

fn held_back(server: &Server, count: u64) {
    eventually("calls are held back", || {
        server.counters().calls_held_back >= count
    });
}

#[test]
fn the_calls_of_one_connection_take_bounded_memory() {
    const CALLS: usize = 8;
    let limits = limited(|limits| limits.connection_call_bytes = MEMORY);
    let (server, tcp) = serve(limits);
    let calls: Vec<_> = (0..CALLS).map(|_| Held::new()).collect();
    let mut client = Caller::connect(&tcp);
    thread::scope(|scope| {
        let (mut sends, calls) = (client.twin(), &calls);
        // What the server does not read waits in the sockets, and then here.
        scope.spawn(move || {
            for call in calls {
                sends.send(&call.message(LARGE));
            }
        });
        calls[0].wait_for_begun();
        held_back(&server, 1);
        let begun = calls.iter().filter(|call| call.has_begun()).count();
        assert!(begun * LARGE <= MEMORY, "{begun} calls have begun");
        assert!(!calls[CALLS - 1].has_begun());
        for call in calls {
            call.wait_for_begun();
            call.let_go();
            call.expect_reply(&mut client);
        }
    });
    assert_eq!(server.counters().connections_open, 1);
}

#[test]
fn the_calls_of_all_connections_take_bounded_memory() {
    let (server, tcp) = serve(limited(|limits| limits.call_bytes = MEMORY));
    let connect = || (Caller::connect(&tcp), Held::new());
    // Two fill the memory.
    let mut first = [connect(), connect()];
    for (caller, call) in &mut first {
        caller.send(&call.message(LARGE));
        call.wait_for_begun();
    }
    // The next ones wait in the order in which they come.
    let mut waiting = [connect(), connect(), connect()];
    for ((caller, call), count) in waiting.iter_mut().zip(1..) {
        caller.send(&call.message(LARGE));
        held_back(&server, count);
    }
    // A request that has arrived in part is no obstacle, and is none to others.
    let (mut half, call_of_half) = connect();
    let record = caller::record(&call_of_half.message(LARGE));
    let (front, rest) = record.split_at(LARGE / 2);
    half.send_raw(front);
    // Small calls are carried out although all memory is taken.
    let (mut small, call_of_small) = connect();
    small.expect(
        &caller::call(1, ECHO, &words(&[7])),
        &caller::success(1, &words(&[7])),
    );
    small.send(&call_of_small.message(8));
    call_of_small.wait_for_begun();
    call_of_small.let_go();
    call_of_small.expect_reply(&mut small);
    assert!(!waiting.iter().any(|(_, call)| call.has_begun()));
    // One after the other goes on as room is made, in their order.
    let mut ends = first.into_iter();
    for index in 0..waiting.len() {
        match ends.next() {
            Some((mut caller, call)) => {
                call.let_go();
                call.expect_reply(&mut caller);
            }
            None => {
                let (caller, call) = &mut waiting[0];
                call.let_go();
                call.expect_reply(caller);
            }
        }
        waiting[index].1.wait_for_begun();
        assert!(
            waiting[index + 1..]
                .iter()
                .all(|(_, call)| !call.has_begun())
        );
    }
    half.send_raw(rest);
    for (caller, call) in &mut waiting[1..] {
        call.let_go();
        call.expect_reply(caller);
    }
    call_of_half.wait_for_begun();
    call_of_half.let_go();
    call_of_half.expect_reply(&mut half);
    let counters = server.counters();
    assert_eq!(counters.memory_exhausted, 0, "{counters:?}");
}

/// A connection that ends while it waits does not keep others from the room that there is.
#[test]
fn a_connection_that_ends_while_it_waits_is_no_obstacle() {
    let (server, tcp) = serve(limited(|limits| limits.call_bytes = MEMORY));
    let connect = || (Caller::connect(&tcp), Held::new());
    let mut first = [connect(), connect()];
    for (caller, call) in &mut first {
        caller.send(&call.message(LARGE));
        call.wait_for_begun();
    }
    let (mut gone, call_of_gone) = connect();
    gone.send(&call_of_gone.message(LARGE));
    held_back(&server, 1);
    let (mut next, call_of_next) = connect();
    next.send(&call_of_next.message(LARGE));
    held_back(&server, 2);
    drop(gone);
    call_of_gone.let_go();
    for (caller, call) in &mut first {
        call.let_go();
        call.expect_reply(caller);
    }
    call_of_next.wait_for_begun();
    call_of_next.let_go();
    call_of_next.expect_reply(&mut next);
}

/// Whatever the limits, a message that the server takes in is carried out.
#[test]
fn a_single_call_always_goes_through() {
    const LARGEST: usize = 3 << 20;
    let limits = limited(|limits| {
        limits.call_bytes = 1;
        limits.connection_call_bytes = 1;
    });
    let (_server, tcp) = serve(limits);
    let mut clients = [(); 2].map(|()| (Caller::connect(&tcp), Held::new()));
    for (caller, call) in &mut clients {
        caller.send(&call.message(LARGEST));
        // Either may be the first that has come whole.
        call.let_go();
    }
    for (caller, call) in &mut clients {
        call.expect_reply(caller);
    }
}

//! A call over shared memory makes no system call at all, at neither end, if both look while they wait, and
//! no more than two at the client's end if it sleeps: to wake the server and to sleep.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::fresh_path;
use crate::common::counting::{Counts, all, alone, count, orders, system_calls_of};
use crate::common::lean_caller::{LeanObliging, SLEEP};
use crate::common::lean_steady::{call, client_with};
use tenon::wire::{Encoder, Lean};
use tenon::{ChannelOptions, Server, Waiting};

/// Calls of a round, by turns. One with few may be over before somebody else gets the processor.
const CALLS: [u32; 4] = [1000, 30, 30, 30];

/// Other system calls than those for the calls, which come and go.
const FEW: u64 = 20;

/// How long a round is waited for that is free of noise: an end that does not get to run makes the other
/// one wait, and offer its processor.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes rounds of calls until the system calls of one are as they are to be.
fn check(child: &str, waiting: Waiting, is_well: impl Fn(&Counts, u64) -> bool) {
    let _alone = alone();
    let address = format!("shm://{}", fresh_path().display());
    let _server = serve(&address, waiting);
    let end = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    for calls in CALLS.into_iter().cycle() {
        let counts = system_calls_of(child, &address, calls);
        if is_well(&counts, calls.into()) {
            return;
        }
        seen.push(counts);
        assert!(Instant::now() < end, "{seen:#?}");
    }
}

fn serve(address: &str, waiting: Waiting) -> Server {
    let builder = Server::builder().listen(address).unwrap();
    let builder = builder.service(LeanObliging).waiting(waiting);
    builder.start().unwrap()
}

/// Whether calls cost nothing. Where both ends cannot run at the same time, the end that looks has to offer the
/// processor, and sees now and then whether the peer is still there.
fn is_none(counts: &Counts) -> bool {
    match thread::available_parallelism().map_or(1, NonZero::get) {
        1 => all(counts) - count(counts, "sched_yield") - count(counts, "recvfrom") < FEW,
        _ => all(counts) < FEW,
    }
}

#[test]
fn a_warm_call_of_a_client_that_looks_makes_none() {
    check("shm::make_calls_that_look", Waiting::Spin, |counts, _| {
        is_none(counts)
    });
}

/// Client and server are threads of the process that is counted.
#[test]
fn a_warm_call_between_two_that_look_makes_none_at_either_end() {
    let child = "shm::serve_and_make_calls_that_look";
    check(child, Waiting::Block, |counts, _| is_none(counts));
}

#[test]
fn a_warm_call_of_a_client_that_sleeps_makes_two_at_most() {
    check(
        "shm::make_calls_that_sleep",
        Waiting::Block,
        |counts, calls| {
            let (sent, received) = (count(counts, "sendto"), count(counts, "recvfrom"));
            let limit = calls + 5;
            sent <= limit && received <= limit && all(counts) - sent - received < FEW
        },
    );
}

/// Its peer may need the processor to answer.
#[test]
fn a_client_that_looks_for_long_offers_its_processor() {
    check("shm::make_long_calls", Waiting::Block, |counts, calls| {
        count(counts, "sched_yield") >= calls
    });
}

fn make_calls(address: &str, calls: u32, waiting: Waiting) {
    let options = ChannelOptions::default().waiting(waiting);
    let client = client_with(address, options);
    (0..calls).for_each(|number| call(&client, number));
}

/// A child whose system calls are counted; without orders it does nothing.
#[test]
fn make_calls_that_look() {
    let Some(orders) = orders() else { return };
    make_calls(&orders.address, orders.calls, Waiting::Spin);
}

/// The same, with calls that take a millisecond.
#[test]
fn make_long_calls() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Spin);
    let client = client_with(&orders.address, options);
    for _ in 0..orders.calls {
        let put = |out: &mut Encoder<'_, Lean>| {
            out.put(1_u32);
            Ok(())
        };
        client.lean().call(SLEEP.into(), put, |_| Ok(())).unwrap();
    }
}

/// The same.
#[test]
fn make_calls_that_sleep() {
    let Some(orders) = orders() else { return };
    make_calls(&orders.address, orders.calls, Waiting::Block);
}

/// The same, with the server in the child.
#[test]
fn serve_and_make_calls_that_look() {
    let Some(orders) = orders() else { return };
    let address = format!("shm://{}", fresh_path().display());
    let _server = serve(&address, Waiting::Spin);
    make_calls(&address, orders.calls, Waiting::Spin);
}

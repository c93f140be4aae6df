//! In which order the calls of a connection are carried out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::caller::*;
use tenon::wire::{Decoder, Encoder};
use tenon::{CallInfo, InOrder, Refusal, Service};

/// Calls of each round: the first takes long.
const CALLS: u32 = 4;

/// Notes which calls it has carried out, and that no two ran at once.
struct Orderly {
    keeps_order: bool,
    done: &'static Mutex<Vec<u32>>,
    running: &'static AtomicUsize,
}

impl Service for Orderly {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let others = self.running.fetch_add(1, Ordering::SeqCst);
        assert!(!self.keeps_order || others == 0, "two at once");
        if call.procedure() == SLEEP {
            thread::sleep(Duration::from_millis(30));
        }
        let number: u32 = arguments.get()?;
        self.done.lock().unwrap().push(number);
        result.put(number);
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Returns in which order the calls of some rounds were carried out and answered.
fn rounds(keeps_order: bool, rounds: u32) -> (Vec<u32>, Vec<u32>) {
    of_service(keeps_order, rounds, |service| service)
}

/// The same of the service that `wrap` makes of it.
fn of_service<S: Service>(
    keeps_order: bool,
    rounds: u32,
    wrap: impl FnOnce(Orderly) -> S,
) -> (Vec<u32>, Vec<u32>) {
    let done: &'static Mutex<Vec<u32>> = Box::leak(Box::default());
    let running: &'static AtomicUsize = Box::leak(Box::default());
    let service = Orderly {
        keeps_order,
        done,
        running,
    };
    let server = listening().service(wrap(service)).start().unwrap();
    let mut caller = Caller::tcp(&server);
    let mut answered = Vec::new();
    for round in 0..rounds {
        let numbers = round * CALLS..(round + 1) * CALLS;
        let procedure = |number: u32| match number % CALLS {
            0 => SLEEP,
            _ => ECHO,
        };
        let calls = numbers.clone().flat_map(|number| {
            let call = call(number, procedure(number), &words(&[number]));
            record(&call)
        });
        caller.send_raw(&calls.collect::<Vec<u8>>());
        for _ in numbers {
            let reply = caller.receive();
            answered.push(u32::from_be_bytes(reply[..4].try_into().unwrap()));
        }
    }
    let done = done.lock().unwrap().clone();
    (done, answered)
}

/// Also once the procedure is known to be slow, so that another thread carries it out.
#[test]
fn a_service_that_keeps_order_has_one_call_of_a_connection_at_a_time() {
    let expected: Vec<u32> = (0..6 * CALLS).collect();
    assert_eq!(rounds(true, 6), (expected.clone(), expected));
}

#[test]
fn any_service_keeps_order_that_is_said_to() {
    let expected: Vec<u32> = (0..6 * CALLS).collect();
    let in_order = of_service(false, 6, InOrder);
    assert_eq!(in_order, (expected.clone(), expected));
}

#[test]
fn calls_overtake_one_that_takes_long_by_default() {
    let (done, answered) = rounds(false, 6);
    // From the second time on the server knows the procedure.
    for round in 2..6_u32 {
        let of_round = |order: &[u32]| order[(round * CALLS) as usize..][..CALLS as usize].to_vec();
        assert_eq!(of_round(&done).last(), Some(&(round * CALLS)), "{done:?}");
        assert_eq!(of_round(&answered).last(), Some(&(round * CALLS)));
    }
}

use std::io::ErrorKind;

use super::super::{Looking, Spinners, WaitTally};
use super::*;
use crate::wait::WaitCounters;

const FAR: Duration = Duration::from_secs(1000);

struct WaitFixture {
    spinners: Spinners,
    tally: WaitTally,
}

impl WaitFixture {
    fn new() -> Self {
        Self {
            spinners: Spinners::new(),
            tally: WaitTally::default(),
        }
    }

    fn wait_context(&self) -> WaitContext<'_> {
        WaitContext {
            spinners: &self.spinners,
            looking: Looking::AtSocket,
            tally: &self.tally,
        }
    }

    /// Looks until `limit` is over, with an attempt that fails so often before it succeeds.
    fn look(&self, waiter: &mut Waiter, limit: Duration, failures: u64) -> &'static str {
        let attempt = succeeds_after(failures);
        told(&waiter.look(
            &self.wait_context(),
            |begin| begin + limit,
            || true,
            attempt,
        ))
    }

    /// Spins, misses and attempts.
    fn counts(&self) -> (u64, u64, u64) {
        let WaitCounters {
            spins,
            misses,
            attempts,
            ..
        } = self.tally.snapshot();
        (spins, misses, attempts)
    }
}

/// An attempt that finds nothing so often before it succeeds.
fn succeeds_after(mut failures: u64) -> impl FnMut() -> io::Result<()> {
    move || match failures {
        0 => Ok(()),
        _ => {
            failures -= 1;
            Err(io::Error::from(ErrorKind::WouldBlock))
        }
    }
}

fn told<T>(spun: &Spun<T>) -> &'static str {
    match spun {
        Spun::Ready(Ok(_)) => "came",
        Spun::Ready(Err(_)) => "failed",
        Spun::Late => "late",
        Spun::Sleep => "sleep",
    }
}

#[test]
fn room_is_looked_for_unless_the_peer_mostly_takes_nothing() {
    let fixture = WaitFixture::new();
    let context = fixture.wait_context();
    let mut waiter = Waiter::new(Waiting::Block);
    let sent = waiter.room.look(&context, || Ok::<bool, ()>(true));
    assert_eq!(sent, Ok(true));
    let mut attempts = 0;
    let sent = waiter.room.look(&context, || {
        attempts += 1;
        Ok::<bool, ()>(false)
    });
    assert_eq!(sent, Ok(false));
    assert!(attempts > 0);
    let sent = waiter
        .room
        .look(&context, || -> Result<bool, ()> { panic!("not again") });
    assert_eq!(sent, Ok(false));
    let failed = waiter.room.look(&context, || Err("the socket is gone"));
    assert_eq!(failed, Err("the socket is gone"));
}

fn adaptive() -> Waiter {
    Waiter {
        policy: Waiting::Adaptive,
        estimator: SpinEstimator::new(2),
        rest: SpinBackoff::default(),
        room: YieldingLook::for_room(),
        items: YieldingLook::for_items(),
        polled: None,
    }
}

#[test]
fn who_blocks_does_not_look() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Block);
    assert_eq!(place.look(&mut waiter, FAR, 0), "sleep");
    assert_eq!(place.counts(), (0, 0, 0));
}

#[test]
fn what_is_there_at_once_teaches_nothing() {
    for mut waiter in [Waiter::new(Waiting::Spin), adaptive()] {
        let place = WaitFixture::new();
        let before = waiter.estimator.clone();
        assert_eq!(place.look(&mut waiter, FAR, 0), "came");
        assert_eq!(place.counts(), (0, 0, 0));
        assert_eq!(waiter.estimator, before);
    }
}

#[test]
fn attempts_in_vain_are_counted() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    assert_eq!(place.look(&mut waiter, FAR, 1), "came");
    assert_eq!(place.look(&mut waiter, FAR, 100), "came");
    assert_eq!(place.counts(), (2, 0, 101));
}

#[test]
fn who_spins_looks_until_it_is_late() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    let moment = Duration::from_millis(1);
    assert_eq!(place.look(&mut waiter, moment, u64::MAX), "late");
    assert_eq!(place.look(&mut waiter, Duration::ZERO, u64::MAX), "late");
    let (spins, misses, attempts) = place.counts();
    assert_eq!((spins, misses), (0, 1), "no time is no wait");
    assert!(attempts > 1);
}

#[test]
fn who_adapts_looks_for_a_while_and_then_not_the_next_time() {
    let place = WaitFixture::new();
    let mut waiter = adaptive();
    assert_eq!(place.look(&mut waiter, FAR, u64::MAX), "sleep");
    let counts = place.counts();
    assert_eq!((counts.0, counts.1), (0, 1));
    assert_eq!(place.look(&mut waiter, FAR, u64::MAX), "sleep");
    assert_eq!(place.counts(), counts);
}

#[test]
fn the_rest_of_a_message_is_looked_for_unless_it_mostly_takes_long() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Block);
    let mut look = |failures: u64, is_taken: bool| {
        let attempt = succeeds_after(failures);
        let came = waiter.look_between(&place.wait_context(), attempt, || is_taken);
        came.is_some()
    };
    assert!(look(0, false), "it is there");
    assert!(look(ATTEMPTS_AT_REST - 1, false), "it comes at once");
    assert_eq!(place.counts(), (1, 0, ATTEMPTS_AT_REST - 1));
    assert!(!look(ATTEMPTS_AT_REST, false), "it takes long");
    assert_eq!(place.counts(), (1, 1, 2 * ATTEMPTS_AT_REST - 1));
    assert!(!look(0, false), "then nobody looks");
    assert!(look(0, false));
    assert!(!look(1, true), "others need the processor");
    assert_eq!(place.counts(), (1, 2, 2 * ATTEMPTS_AT_REST));
}

fn told_of_poll<T>(polled: &Polled<T>) -> &'static str {
    match polled {
        Polled::Ready(_) => "came",
        Polled::Yields => "yields",
        Polled::Sleep => "sleep",
    }
}

const SLICE: Duration = Duration::from_micros(1);

#[test]
fn a_look_of_a_task_goes_on_over_several_polls() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    let mut polls = 1;
    let begin = Instant::now();
    let most = Duration::from_secs(1);
    let mut poll = |attempt: &dyn Fn() -> io::Result<()>| {
        let polled = waiter.look_within_poll(&place.wait_context(), SLICE, most, attempt);
        told_of_poll(&polled)
    };
    let nothing = || Err(io::Error::from(ErrorKind::WouldBlock));
    while poll(&nothing) == "yields" {
        polls += 1;
    }
    assert!(polls > 1 && begin.elapsed() >= most);
    let counts = place.counts();
    assert_eq!((counts.0, counts.1), (0, 1), "it is one look");
    assert_eq!(poll(&nothing), "yields");
    assert_eq!(poll(&|| Ok(())), "came");
    let counts = place.counts();
    assert_eq!((counts.0, counts.1), (1, 1));
}

#[test]
fn a_look_ends_where_other_tasks_take_long() {
    let place = WaitFixture::new();
    // A busy machine may stand still between any two steps.
    let is_well = || {
        let before = place.counts().1;
        let mut waiter = adaptive();
        let mut poll = || {
            let attempt = succeeds_after(u64::MAX);
            told_of_poll(&waiter.look_within_poll(&place.wait_context(), SLICE, FAR, attempt))
        };
        let first = poll();
        std::thread::sleep(2 * OTHERS_RAN);
        let second = poll();
        let misses = place.counts().1 - before;
        // The next wait is slept through.
        (first, second, misses, poll()) == ("yields", "sleep", 1, "sleep")
    };
    assert!((0..1000).any(|_| is_well()));
}

#[test]
fn what_comes_between_two_polls_was_found_by_looking() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    let attempt = succeeds_after(u64::MAX);
    let polled = waiter.look_within_poll(&place.wait_context(), SLICE, FAR, attempt);
    assert_eq!(told_of_poll(&polled), "yields");
    waiter.note_received(&place.wait_context());
    waiter.note_received(&place.wait_context());
    let counts = place.counts();
    assert_eq!((counts.0, counts.1), (1, 0));
}

#[test]
fn an_error_ends_the_wait() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    let mut kinds = [ErrorKind::WouldBlock, ErrorKind::ConnectionReset].into_iter();
    let attempt = || Err::<(), _>(io::Error::from(kinds.next().unwrap()));
    let spun = waiter.look(&place.wait_context(), |begin| begin + FAR, || true, attempt);
    assert_eq!(told(&spun), "failed");
}

#[test]
fn looking_ends_when_it_may_not_go_on() {
    let place = WaitFixture::new();
    let mut waiter = Waiter::new(Waiting::Spin);
    let attempt = || Err::<(), _>(io::Error::from(ErrorKind::WouldBlock));
    let spun = waiter.look(
        &place.wait_context(),
        |begin| begin + FAR,
        || false,
        attempt,
    );
    assert_eq!(told(&spun), "sleep");
    assert_eq!(place.counts(), (0, 1, 2));
}

#[test]
fn who_finds_no_room_sleeps() {
    let place = WaitFixture::new();
    let mut others = Vec::new();
    while let Some(other) = place.spinners.enter(Looking::AtSocket) {
        others.push(other);
    }
    let mut waiter = Waiter::new(Waiting::Spin);
    assert_eq!(place.look(&mut waiter, FAR, 5), "sleep");
    drop(others);
    assert_eq!(place.look(&mut waiter, FAR, 5), "came");
}

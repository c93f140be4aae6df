//! An end that is killed at every step of what it does with the memory: behind each of its stores, and between a
//! store and the notifier that is to follow it. The other end gets what was published and not a byte of anything else,
//! is never told that rules were broken, and finds that it may sleep, where the system wakes it, as it closes the
//! sockets of the dead. `crates/tenon/tests/shm` has the sockets.
//!
//! The rings are compiled here once more, with [atomics that stop](sync) in place of the processor's. Lines of the
//! annex are copied by words: nobody looks at them before a cell refers to them.
#![allow(clippy::unwrap_used)]
#![allow(
    dead_code,
    unexpected_cfgs,
    unreachable_pub,
    reason = "not all of the sources are used here; loom is nobody's feature"
)]

#[path = "../../src/annex.rs"]
mod annex;
#[path = "../../src/end.rs"]
mod end;
#[path = "../../src/layout.rs"]
mod layout;
#[path = "../../src/ring/mod.rs"]
mod ring;
mod sync;

mod segment {
    /// Copies nothing, so that words are copied.
    pub mod lines {
        use crate::sync::AtomicU64;

        pub fn put(_: &[AtomicU64], _: &[u8]) -> usize {
            0
        }

        pub fn take(_: &[AtomicU64], _: &mut [u8]) -> usize {
            0
        }
    }
}

use std::cell::Cell;
use std::fmt::Debug;
use std::rc::Rc;

use end::{ConnectionRole, RingEndpoint};
use layout::Sizes;
use sync::{AtomicU64, step, within};

type Memory = Rc<[AtomicU64]>;

/// Bytes that a cell carries, and cells that are published together.
const LOAD: usize = 56;
const CHUNK: usize = 128;

/// Bytes of rings: the smallest, the largest without an annex, and the smallest with one, which is half of it.
const SMALL: usize = 4 << 10;
const PLAIN: usize = 32 << 10;
const LARGE: usize = 64 << 10;

/// Bytes that a cell refers to at most in the annex of a large ring: half of it.
const REFERRED_MOST: usize = LARGE / 4;

/// Bytes that the cells of a ring without an annex carry.
const fn full(ring: usize) -> usize {
    ring / 64 * LOAD
}

struct Pair {
    /// The one that is killed.
    victim: RingEndpoint<Memory>,
    survivor: RingEndpoint<Memory>,
    has_rung: Cell<bool>,
}

impl Pair {
    /// Two ends that have passed so many bytes to each other in short messages, so that their cells are not
    /// at the beginning, and some are not those of the first round.
    fn new(ring: usize, side: ConnectionRole, before: usize) -> Self {
        let sizes = Sizes::new(ring as u64, ring as u64).unwrap();
        let words = sizes.segment() / size_of::<AtomicU64>();
        let memory: Memory = (0..words).map(|_| AtomicU64::new(0)).collect();
        let other = match side {
            ConnectionRole::Server => ConnectionRole::Client,
            ConnectionRole::Client => ConnectionRole::Server,
        };
        let pair = Self {
            victim: RingEndpoint::new(Rc::clone(&memory), sizes, side),
            survivor: RingEndpoint::new(memory, sizes, other),
            has_rung: Cell::new(false),
        };
        for _ in 0..before {
            for (from, to) in [
                (&pair.victim, &pair.survivor),
                (&pair.survivor, &pair.victim),
            ] {
                // Some in cells, and some in the annex if there is one.
                for size in [1, 700] {
                    assert_eq!(from.send(&vec![0xee; size], || ()).unwrap(), size);
                    assert_eq!(to.receive(&mut [0; 800], || ()).unwrap(), size);
                }
            }
        }
        pair
    }

    /// Notifies, which is a step of its own: an end that is killed before it has not.
    fn notify(&self) {
        step();
        self.has_rung.set(true);
    }

    /// All that there is to receive for the survivor.
    fn received(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut room = vec![0; 5000];
        loop {
            match self.survivor.receive(&mut room, || ()).unwrap() {
                0 => return all,
                received => all.extend(&room[..received]),
            }
        }
    }

    /// Bytes that the survivor can send, in messages of so many.
    fn sent(&self, size: usize) -> usize {
        let message = pattern(size, 3);
        let mut all = 0;
        loop {
            match self.survivor.send(&message, || ()).unwrap() {
                0 => return all,
                sent => all += sent,
            }
        }
    }
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 7 + at / 256 + salt * 13 + 1) as u8)
        .collect()
}

/// Does something again and again, each time killed one step later, until it is done before: `check` looks at the
/// pair behind each, and says what it saw. What was seen, without repetitions, is in the order of the steps.
fn at_every_step<T, S: PartialEq + Debug>(
    make: impl Fn() -> Pair,
    act: impl Fn(&Pair) -> T,
    check: impl Fn(&Pair, Option<T>) -> S,
) -> Vec<S> {
    let mut seen = Vec::new();
    for steps in 0.. {
        let pair = make();
        let done = within(steps, || act(&pair));
        let is_done = done.is_some();
        let saw = check(&pair, done);
        if seen.last() != Some(&saw) {
            seen.push(saw);
        }
        if is_done {
            assert!(steps > 0, "it has stored nothing");
            return seen;
        }
    }
    unreachable!("it never ends")
}

/// Who sends, and how many rounds came before: none, as many as go past the end of a small ring, and, for a message
/// that is to lie across the end of an annex, almost as many as go past that.
fn begins(ring: usize, size: usize) -> impl Iterator<Item = (ConnectionRole, usize)> {
    let is_across = ring == LARGE && size == 1003;
    let all = [(ConnectionRole::Server, 0), (ConnectionRole::Client, 5)].into_iter();
    all.chain(is_across.then_some((ConnectionRole::Server, 46)))
}

/// What is sent, in a ring of so many bytes, and how many bytes of it there are to receive behind each store that
/// publishes some.
fn sendings() -> Vec<(usize, usize, Vec<usize>)> {
    let mut all = Vec::new();
    for ring in [SMALL, PLAIN, LARGE] {
        for size in [1, 8, LOAD, LOAD + 1, 200, 511] {
            all.push((ring, size, vec![0, size]));
        }
    }
    let chunk = CHUNK * LOAD;
    all.push((SMALL, 2000, vec![0, 2000]));
    all.push((PLAIN, chunk + 1, vec![0, chunk, chunk + 1]));
    all.push((PLAIN, 15_000, vec![0, chunk, 2 * chunk, 15_000]));
    for size in [512, 1003, REFERRED_MOST] {
        all.push((LARGE, size, vec![0, size]));
    }
    for size in [REFERRED_MOST + 1, REFERRED_MOST + 3000] {
        all.push((LARGE, size, vec![0, REFERRED_MOST, size]));
    }
    all
}

#[test]
fn of_a_message_that_is_cut_off_only_what_was_published_comes() {
    for (ring, size, published) in sendings() {
        for (side, before) in begins(ring, size) {
            for sleeps in [false, true] {
                let earlier = pattern(100, 9);
                let make = || {
                    let pair = Pair::new(ring, side, before);
                    if sleeps {
                        assert!(pair.survivor.park_receiver());
                    } else {
                        pair.victim.send(&earlier, || ()).unwrap();
                    }
                    pair
                };
                let message = pattern(size, 1);
                let act = |pair: &Pair| pair.victim.send(&message, || pair.notify()).unwrap();
                let seen = at_every_step(make, act, |pair, done| {
                    if let Some(sent) = done {
                        assert_eq!((sent, pair.has_rung.get()), (size, sleeps));
                    }
                    let mut received = pair.received();
                    if !sleeps {
                        assert_eq!(received[..earlier.len()], earlier);
                        received.drain(..earlier.len());
                    }
                    assert!(received == message[..received.len()], "{ring}: {size}");
                    assert!(!pair.survivor.peer_sends_nothing());
                    assert!(pair.survivor.park_receiver(), "the system wakes it");
                    received.len()
                });
                // What lies across the end of the ring or the annex may be published in more parts.
                match before {
                    0 => assert_eq!(seen, published, "{ring}: {size}"),
                    _ => assert!(seen.is_sorted() && seen.starts_with(&[0])),
                }
                assert_eq!(seen.last(), Some(&size));
            }
        }
    }
}

/// What there is no room for was not sent, whenever who sends is killed.
#[test]
fn of_what_fills_the_ring_only_what_was_published_comes() {
    for (ring, size) in [(SMALL, full(SMALL)), (LARGE, LARGE / 2)] {
        let message = pattern(size + 700, 2);
        let make = || Pair::new(ring, ConnectionRole::Client, 0);
        let act = |pair: &Pair| pair.victim.send(&message, || pair.notify()).unwrap();
        let seen = at_every_step(make, act, |pair, done| {
            assert!(done.is_none_or(|sent| sent == size));
            let received = pair.received();
            assert!(received == message[..received.len()]);
            received.len()
        });
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&size)));
    }
}

#[test]
fn of_pieces_that_are_cut_off_only_what_was_published_comes() {
    let first_chunk = 3 + (CHUNK - 1) * LOAD;
    for (ring, published) in [
        (
            PLAIN,
            vec![0, first_chunk, first_chunk + CHUNK * LOAD, 20_003],
        ),
        (LARGE, vec![0, 3 + REFERRED_MOST, 20_003]),
    ] {
        let message = pattern(20_003, 4);
        let pieces = [&message[..3], &message[3..]];
        let make = || Pair::new(ring, ConnectionRole::Server, 0);
        let act = |pair: &Pair| pair.victim.send_pieces(&pieces, || pair.notify()).unwrap();
        let seen = at_every_step(make, act, |pair, _| {
            let received = pair.received();
            assert!(received == message[..received.len()]);
            received.len()
        });
        assert_eq!(seen, published, "{ring}");
    }
}

/// Who sends to somebody who was killed while it received finds no more room than was made, and may sleep for more.
#[test]
fn a_receiver_that_is_cut_off_makes_no_room_that_is_not_there() {
    // A ring that is full of messages of so many bytes, and what is taken of it.
    for (ring, size, filled, taken) in [
        (SMALL, LOAD, full(SMALL), full(SMALL) / 4),
        (SMALL, LOAD, full(SMALL), full(SMALL)),
        (LARGE, 4096, LARGE / 2, LARGE / 8),
        (LARGE, 4096, LARGE / 2, LARGE / 2),
    ] {
        for sleeps in [false, true] {
            let make = || {
                let pair = Pair::new(ring, ConnectionRole::Server, 0);
                assert_eq!(pair.sent(size), filled);
                if sleeps {
                    assert!(pair.survivor.park_sender());
                }
                pair
            };
            let act = |pair: &Pair| {
                let mut room = vec![0; taken];
                let received = pair.victim.receive(&mut room, || pair.notify()).unwrap();
                let expected = pattern(size, 3).repeat(filled / size);
                assert!(room[..received] == expected[..taken]);
            };
            let seen = at_every_step(make, act, |pair, done| {
                assert!(done.is_none() || pair.has_rung.get() == sleeps);
                let has_room = pair.survivor.look_for_room(1);
                let sent = pair.sent(size);
                assert!(!has_room || sent > 0, "a sender that is told finds room");
                assert!(pair.survivor.park_sender(), "the system wakes it");
                sent
            });
            // It is told of less than a quarter late, and never of what was not taken.
            let told = seen.last().unwrap();
            assert!(seen.is_sorted() && seen[0] == 0, "{ring}: {seen:?}");
            assert!(*told <= taken && told + filled / 4 > taken, "{seen:?}");
        }
    }
}

/// Whether the dead slept or not, who goes on sends and receives, and rings at most once for nothing.
#[test]
fn whoever_is_cut_off_while_it_goes_to_sleep_or_wakes_up_holds_nobody_up() {
    type Act = fn(&Pair);
    let acts: [(&str, Act); 4] = [
        ("going to sleep for bytes", |pair| {
            pair.victim.park_receiver();
        }),
        ("waking up from that", |pair| {
            pair.victim.park_receiver();
            pair.victim.unpark_receiver();
        }),
        ("going to sleep for room", |pair| {
            pair.victim.park_sender();
        }),
        ("waking up from that", |pair| {
            pair.victim.park_sender();
            pair.victim.unpark_sender();
        }),
    ];
    for (what, act) in acts {
        for is_full in [false, true] {
            let earlier = pattern(full(SMALL), 5);
            let make = || {
                let pair = Pair::new(SMALL, ConnectionRole::Client, 0);
                if is_full {
                    assert_eq!(pair.victim.send(&earlier, || ()).unwrap(), earlier.len());
                }
                pair
            };
            at_every_step(make, act, |pair, _| {
                let rung = Cell::new(0);
                let ring = || rung.set(rung.get() + 1);
                let mut room = vec![0; earlier.len()];
                let received = pair.survivor.receive(&mut room, ring).unwrap();
                assert_eq!(received, if is_full { earlier.len() } else { 0 });
                assert!(room[..received] == earlier[..received], "{what}");
                for _ in 0..3 {
                    assert_eq!(pair.survivor.send(b"anybody", ring).unwrap(), 7);
                }
                assert!(rung.get() <= 1, "{what}: {}", rung.get());
                assert!(pair.survivor.park_receiver(), "the system wakes it");
            });
        }
    }
}

/// What was sent before is received, whether the end could be said or not.
#[test]
fn an_end_that_is_cut_off_is_there_or_not() {
    type Act = fn(&Pair);
    let acts: [(Act, bool); 2] = [
        (|pair| pair.victim.end_sending(|| pair.notify()), false),
        (
            |pair| pair.victim.close(|| pair.notify(), || pair.notify()),
            true,
        ),
    ];
    for (act, is_close) in acts {
        for sleeps in [false, true] {
            let make = || {
                let pair = Pair::new(SMALL, ConnectionRole::Server, 0);
                if sleeps {
                    pair.sent(LOAD);
                    assert!(pair.survivor.park_receiver() && pair.survivor.park_sender());
                } else {
                    pair.victim.send(b"the last", || ()).unwrap();
                }
                pair
            };
            let seen = at_every_step(make, act, |pair, done| {
                assert!(done.is_none() || pair.has_rung.get() == sleeps);
                let survivor = &pair.survivor;
                let has_ended = survivor.peer_sends_nothing();
                assert_eq!(survivor.peer_receives_nothing(), has_ended && is_close);
                let expected: &[u8] = if sleeps { b"" } else { b"the last" };
                assert_eq!(pair.received(), expected);
                assert_eq!(survivor.park_receiver(), !has_ended);
                has_ended
            });
            assert_eq!(seen, [false, true]);
        }
    }
}

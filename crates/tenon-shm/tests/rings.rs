//! What goes into one end comes out of the other, whatever its size and wherever the ring is; and a
//! peer that writes nonsense is found out.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenon_shm::{AtomicU64, ConnectionRole, RingEndpoint, RingViolation, Sizes};

type Memory = Arc<[AtomicU64]>;

/// So much usually, and so much under Miri, which tries more orders in which an end may see what the other wrote
/// than there are processors for, and takes thousands of times as long.
const fn usually_or_under_miri(usually: usize, under_miri: usize) -> usize {
    match cfg!(miri) {
        true => under_miri,
        false => usually,
    }
}

const RING: usize = 4096;

/// Bytes that a cell carries, cells of the ring, and bytes that they carry together.
const LOAD: usize = 56;
const CELLS: usize = RING / 64;
const FULL: usize = CELLS * LOAD;

/// Where in the segment the blocks and rings of [`small`] are, in words: see `docs/shm.md`.
const CLIENT: usize = 32;
const TO_SERVER: usize = 512;

fn pair(sizes: Sizes) -> (RingEndpoint<Memory>, RingEndpoint<Memory>, Memory) {
    let memory: Memory = (0..sizes.segment() / 8)
        .map(|_| AtomicU64::new(0))
        .collect();
    let end = |side| RingEndpoint::new(Arc::clone(&memory), sizes, side);
    (
        end(ConnectionRole::Server),
        end(ConnectionRole::Client),
        Arc::clone(&memory),
    )
}

fn small() -> (RingEndpoint<Memory>, RingEndpoint<Memory>, Memory) {
    pair(Sizes::new(RING as u64, RING as u64).unwrap())
}

/// Bytes of the smallest ring with an annex, which is its second half, and of what a sender refers to at
/// least and, in such an annex, at most.
const LARGE_RING: usize = 64 << 10;
const ANNEX: usize = LARGE_RING / 2;
const REFERRED_LEAST: usize = 512;
const REFERRED_MOST: usize = ANNEX / 2;

fn large() -> (RingEndpoint<Memory>, RingEndpoint<Memory>, Memory) {
    pair(Sizes::new(LARGE_RING as u64, LARGE_RING as u64).unwrap())
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 7 + salt * 13 + 1) as u8)
        .collect()
}

fn quietly() {}

fn receive(end: &RingEndpoint<Memory>, most: usize) -> Vec<u8> {
    let mut room = vec![0; most];
    let received = end.receive(&mut room, quietly).unwrap();
    room.truncate(received);
    room
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn every_size_fits_at_every_place_of_the_ring() {
    for size in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 100] {
        let (server, client, _) = small();
        // Enough for the place to go all round, in steps that no power of two divides.
        for number in 0..2 * CELLS + 9 {
            let message = pattern(size, number);
            assert_eq!(client.send(&message, quietly).unwrap(), size);
            assert_eq!(
                receive(&server, size + 1),
                message,
                "{size}, message {number}"
            );
            let answer = pattern(size + 1, number + 5);
            assert_eq!(server.send(&answer, quietly).unwrap(), size + 1);
            assert_eq!(receive(&client, size + 1), answer);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_full_ring_takes_nothing_and_loses_nothing() {
    for skew in 0..9 {
        let (server, client, _) = small();
        for _ in 0..skew {
            client.send(b"x", quietly).unwrap();
            receive(&server, 1);
        }
        // The sender has not been told of the cells that were emptied.
        let room = FULL - skew * LOAD;
        let message = pattern(room + 10, skew);
        assert_eq!(client.send(&message, quietly).unwrap(), room);
        assert_eq!(client.send(b"more", quietly).unwrap(), 0);
        let quarter = FULL / 4;
        assert_eq!(receive(&server, quarter), message[..quarter]);
        assert_eq!(client.send(&message[room..], quietly).unwrap(), 10);
        assert_eq!(receive(&server, 2 * RING), message[quarter..], "{skew}");
        assert!(receive(&server, 10).is_empty());
    }
}

/// The sender is told in quarters; what it fills lies where it is allowed to know that nothing is.
#[test]
fn room_is_seen_in_quarters() {
    let (server, client, _) = small();
    client.send(&pattern(FULL, 1), quietly).unwrap();
    receive(&server, FULL / 4 - LOAD);
    assert_eq!(client.send(b"x", quietly).unwrap(), 0);
    receive(&server, LOAD);
    assert_eq!(client.send(&pattern(FULL, 2), quietly).unwrap(), FULL / 4);
}

/// Cells are taken in parts, too, and a message may lie in many.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn what_is_received_need_not_be_what_was_sent_at_a_time() {
    for most in [1, 2, 3, 7, 8, 13, 55, 56, 57, 112, 113, 1000] {
        let (server, client, _) = small();
        let (mut sent, mut back) = (Vec::new(), Vec::new());
        for number in 0..40 {
            let message = pattern(number * 5 % 171 + 1, number);
            assert_eq!(client.send(&message, quietly).unwrap(), message.len());
            sent.extend(message);
            while back.len() + 100 < sent.len() {
                back.extend(receive(&server, most));
            }
        }
        while back.len() < sent.len() {
            back.extend(receive(&server, most));
        }
        assert!(back == sent, "{most} at a time");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn pieces_follow_each_other_until_the_ring_is_full() {
    let (server, client, _) = pair(Sizes::default());
    let whole = pattern(30_000, 3);
    let cuts = [
        &whole[..3],
        &whole[3..3],
        &whole[3..20_003],
        &whole[20_003..],
    ];
    let pieces = cuts.map(IoSlice::new);
    assert_eq!(client.send_pieces(&pieces, quietly).unwrap(), 30_000);
    assert_eq!(receive(&server, 1 << 20), whole);

    let (server, client, _) = small();
    // A piece begins a cell of its own.
    let sent = 3 + FULL - LOAD;
    assert_eq!(client.send_pieces(&pieces, quietly).unwrap(), sent);
    assert_eq!(receive(&server, 1 << 20), whole[..sent]);
}

#[test]
fn threads_that_send_and_receive_as_they_can_agree() {
    for pair in [small, large].into_iter().take(usually_or_under_miri(2, 1)) {
        let (server, client, _) = pair();
        agree(server, client);
    }
}

fn agree(server: RingEndpoint<Memory>, client: RingEndpoint<Memory>) {
    const ALL: usize = usually_or_under_miri(3 << 20, 500);
    let sent = pattern(ALL, 9);
    let expected = sent.clone();
    let sender = thread::spawn(move || {
        let (mut done, mut size) = (0, 1);
        while done < ALL {
            let piece = &sent[done..(done + size).min(ALL)];
            match client.send(piece, quietly).unwrap() {
                // Where there is one processor, the other needs it.
                0 => thread::yield_now(),
                taken => done += taken,
            }
            size = size * 5 % 9973 + 1;
        }
    });
    let (mut received, mut size) = (Vec::new(), 1);
    while received.len() < ALL {
        let piece = receive(&server, size);
        if piece.is_empty() {
            thread::yield_now();
        }
        received.extend(piece);
        size = size * 3 % 8191 + 1;
    }
    sender.join().unwrap();
    assert!(received == expected);
}

/// A counter of wakes.
#[derive(Default)]
struct Notifier(Cell<u32>);

impl Notifier {
    fn notify(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn taken(&self) -> u32 {
        self.0.take()
    }
}

#[test]
fn whoever_sleeps_for_bytes_is_woken_once() {
    let (server, client, _) = small();
    let notifier = Notifier::default();
    client.send(b"a", || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0, "nobody sleeps");
    assert!(!server.park_receiver(), "there is something");
    client.send(b"b", || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0);
    receive(&server, 9);
    assert!(server.park_receiver());
    client.send(b"c", || notifier.notify()).unwrap();
    client.send(b"d", || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 1);
    assert_eq!(receive(&server, 9), b"cd");
    assert!(server.park_receiver());
    server.unpark_receiver();
    client.send(b"e", || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn whoever_sleeps_for_room_is_woken_when_there_is_a_quarter() {
    let (server, client, _) = small();
    let notifier = Notifier::default();
    assert!(!client.park_sender(), "there is room");
    client.send(&pattern(FULL, 0), quietly).unwrap();
    assert!(client.park_sender());
    let mut room = [0; FULL / 8];
    server.receive(&mut room, || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0);
    server.receive(&mut room, || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 1);
    server.receive(&mut room, || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0);
    assert!(!client.park_sender());
}

#[test]
fn an_end_wakes_everybody() {
    let (server, client, _) = small();
    let notifier = Notifier::default();
    client.send(&pattern(FULL, 0), quietly).unwrap();
    assert!(client.park_sender());
    assert!(client.park_receiver());
    server.end_sending(|| notifier.notify());
    assert_eq!(notifier.taken(), 1);
    assert!(client.peer_sends_nothing() && !client.peer_receives_nothing());
    assert!(!client.park_receiver(), "nothing will come");
    let senders = Notifier::default();
    server.close(|| notifier.notify(), || senders.notify());
    assert_eq!((notifier.taken(), senders.taken()), (0, 1));
    assert!(client.peer_receives_nothing());
    assert!(!client.park_sender());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn what_cannot_be_is_named() {
    // The mark of the first cell of what the client sends.
    for found in [1, 2, 65, 1 << 40, u64::MAX >> 9] {
        let (server, _client, memory) = small();
        memory[TO_SERVER].store((found + 1) << 8 | 8, Ordering::Relaxed);
        let error = server.receive(&mut [0; 8], quietly).unwrap_err();
        assert_eq!(error, RingViolation::Mark { awaited: 0, found });
        assert!(!server.park_receiver(), "who slept would not be told");
    }
    for length in [0, 57, 255] {
        let (server, _client, memory) = small();
        memory[TO_SERVER].store(1 << 8 | length, Ordering::Relaxed);
        let error = server.receive(&mut [0; 100], quietly).unwrap_err();
        assert_eq!(error, RingViolation::Length(length));
        assert!(!server.park_receiver());
    }
    // The client's head, who has received what was never sent.
    for head in [CELLS as u64 + 1, u64::MAX, 1 << 63] {
        let (server, _client, memory) = small();
        server.send(&[0; FULL], quietly).unwrap();
        memory[CLIENT].store(head, Ordering::Relaxed);
        let error = server.send(b"x", quietly).unwrap_err();
        assert!(matches!(error, RingViolation::Received { .. }), "{error}");
        assert!(!server.park_sender());
    }
    // No more than fits is missing between such a head and the beginning, and none is before that.
    for spoiled in [CLIENT, CLIENT + 1] {
        let (server, _client, memory) = small();
        server.send(b"x", quietly).unwrap();
        memory[spoiled].store(u64::MAX, Ordering::Relaxed);
        assert!(!server.park_sender());
        assert!(server.look_for_room(1), "who sends is told");
    }
}

#[test]
fn a_cell_that_shrinks_while_it_is_taken_is_noticed() {
    let (server, client, memory) = small();
    client.send(&[1; 40], quietly).unwrap();
    receive(&server, 30);
    for length in [30, 5, 0] {
        memory[TO_SERVER].store(1 << 8 | length, Ordering::Relaxed);
        let error = server.receive(&mut [0; 100], quietly).unwrap_err();
        assert_eq!(error, RingViolation::Length(length));
    }
    memory[TO_SERVER].store(1 << 8 | 31, Ordering::Relaxed);
    assert_eq!(receive(&server, 100), [1]);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn what_was_sent_before_what_cannot_be_is_received() {
    let (server, client, memory) = small();
    client.send(&[7; 100], quietly).unwrap();
    memory[TO_SERVER + 16].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(receive(&server, 200), [7; 100]);
    server.receive(&mut [0; 9], quietly).unwrap_err();
}

/// Messages that lie in the annex.
const LONG: [usize; 10] = [
    REFERRED_LEAST - 1,
    REFERRED_LEAST,
    REFERRED_LEAST + 1,
    1003,
    REFERRED_MOST - 1,
    REFERRED_MOST,
    REFERRED_MOST + 1,
    REFERRED_MOST + REFERRED_LEAST,
    10_000,
    20_000,
];

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn long_messages_fit_at_every_place_of_the_annex() {
    for size in LONG {
        let (server, client, _) = large();
        for number in 0..3 * ANNEX / size {
            let message = pattern(size, number);
            assert_eq!(client.send(&message, quietly).unwrap(), size);
            assert_eq!(receive(&server, size + 1), message, "{size}, {number}");
            let answer = pattern(size + 1, number + 5);
            assert_eq!(server.send(&answer, quietly).unwrap(), size + 1);
            assert_eq!(receive(&client, size + 1), answer);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn what_is_referred_to_is_taken_in_parts_too() {
    for most in [1, 3, 7, 8, 9, 63, 64, 65, 511, 513, 4095, 4097, 9001] {
        let (server, client, _) = large();
        let (mut sent, mut back) = (Vec::new(), Vec::new());
        for (number, size) in LONG.into_iter().chain([5, 100, 600]).enumerate() {
            let message = pattern(size, number);
            let mut gone = client.send(&message, quietly).unwrap();
            while gone < size {
                back.extend(receive(&server, most));
                gone += client.send(&message[gone..], quietly).unwrap();
            }
            sent.extend(message);
            while back.len() + 1000 < sent.len() {
                back.extend(receive(&server, most));
            }
        }
        while back.len() < sent.len() {
            back.extend(receive(&server, most));
        }
        assert!(back == sent, "{most} at a time");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_full_annex_takes_nothing_and_loses_nothing() {
    let (server, client, _) = large();
    let notifier = Notifier::default();
    let message = pattern(ANNEX + REFERRED_MOST + 800, 1);
    assert_eq!(client.send(&message, quietly).unwrap(), ANNEX);
    assert_eq!(client.send(&message[ANNEX..], quietly).unwrap(), 0);
    // There are cells, but who waits for more than they carry would wait for ever.
    assert!(client.park_sender());
    // What a cell refers to is given back as a whole.
    let mut taken = vec![0; REFERRED_MOST - 1];
    server.receive(&mut taken, || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 0);
    server.receive(&mut [0], || notifier.notify()).unwrap();
    assert_eq!(notifier.taken(), 1);
    assert!(taken == message[..REFERRED_MOST - 1]);
    let rest = &message[ANNEX..];
    assert_eq!(client.send(rest, quietly).unwrap(), REFERRED_MOST);
    assert!(receive(&server, ANNEX) == message[REFERRED_MOST..][..ANNEX]);
    let rest = &rest[REFERRED_MOST..];
    assert_eq!(client.send(rest, quietly).unwrap(), rest.len());
    assert_eq!(receive(&server, ANNEX), rest);
    assert!(!client.park_sender());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn whoever_sleeps_for_a_long_message_is_woken() {
    let (server, client, _) = large();
    let notifier = Notifier::default();
    for size in [REFERRED_LEAST, REFERRED_MOST, 2 * REFERRED_MOST, 20_000] {
        assert!(server.park_receiver());
        let message = pattern(size, 1);
        client.send(&message, || notifier.notify()).unwrap();
        assert_eq!(notifier.taken(), 1, "{size}");
        assert_eq!(receive(&server, size), message);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn references_that_cannot_be_are_named() {
    const REFERS: u64 = 255;
    let most = REFERRED_MOST;
    for found in [0, most as u64 + 1, 1 << 40, u64::MAX] {
        let (server, _client, memory) = large();
        memory[TO_SERVER + 1].store(found, Ordering::Relaxed);
        memory[TO_SERVER].store(1 << 8 | REFERS, Ordering::Relaxed);
        let error = server.receive(&mut [0; 8], quietly).unwrap_err();
        let taken = 0;
        assert_eq!(error, RingViolation::Reference { found, taken, most });
        assert!(!server.park_receiver(), "who slept would not be told");
    }
    // Behind the end of the annex.
    let (server, client, memory) = large();
    let message = pattern(ANNEX - 64, 0);
    client.send(&message, quietly).unwrap();
    assert_eq!(receive(&server, ANNEX), message);
    let cells = ANNEX.div_ceil(REFERRED_MOST);
    memory[TO_SERVER + 8 * cells + 1].store(65, Ordering::Relaxed);
    memory[TO_SERVER + 8 * cells].store((cells as u64 + 1) << 8 | REFERS, Ordering::Relaxed);
    let error = server.receive(&mut [0; 8], quietly).unwrap_err();
    assert!(
        matches!(error, RingViolation::Reference { most: 64, .. }),
        "{error}"
    );
    // What becomes less while it is taken.
    let (server, client, memory) = large();
    client.send(&pattern(1000, 0), quietly).unwrap();
    receive(&server, 600);
    memory[TO_SERVER + 1].store(600, Ordering::Relaxed);
    let error = server.receive(&mut [0; 8], quietly).unwrap_err();
    assert!(
        matches!(error, RingViolation::Reference { taken: 600, .. }),
        "{error}"
    );
    // Where there is no annex.
    let (server, _client, memory) = small();
    memory[TO_SERVER + 1].store(8, Ordering::Relaxed);
    memory[TO_SERVER].store(1 << 8 | REFERS, Ordering::Relaxed);
    let error = server.receive(&mut [0; 8], quietly).unwrap_err();
    assert_eq!(error, RingViolation::Length(REFERS));
    // A client that has emptied lines of the annex that were never filled.
    for head in [ANNEX as u64 / 64 + 1, u64::MAX] {
        let (server, _client, memory) = large();
        memory[CLIENT + 1].store(head, Ordering::Relaxed);
        let outcome = server.send(&vec![0; ANNEX + 512], quietly);
        assert!(
            matches!(outcome, Err(RingViolation::Received { .. })),
            "{outcome:?}"
        );
    }
}

/// A peer that writes everywhere, all the time: both ends get answers or errors, and nothing worse.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_peer_that_scribbles_hurts_nobody() {
    for seed in 1..5_u64 {
        let (server, client, memory) = match seed % 2 {
            0 => large(),
            _ => small(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let scribbler = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut random = seed;
                while !stop.load(Ordering::Relaxed) {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let at = (random >> 33) as usize % memory.len();
                    // The words of the front are hit as often as all others.
                    let at = if random & 1 == 0 { at % 64 } else { at };
                    // So are the first cells, which are the next again and again.
                    let at = if random & 6 == 0 {
                        TO_SERVER + at % 64
                    } else {
                        at
                    };
                    memory[at].store(random >> (random % 64), Ordering::Relaxed);
                }
            }
        });
        let (mut errors, mut room, mut round) = (0, vec![0; 9000], 0);
        // On a busy machine, as many more as the scribbler needs to get a turn on a core.
        let end = Instant::now() + Duration::from_secs(60);
        while round < 20_000 || (errors == 0 && Instant::now() < end) {
            round += 1;
            let size = round % 9000;
            let outcomes = [
                client.send(&room[..size], quietly),
                server.receive(&mut room[..size], quietly),
            ];
            for outcome in outcomes {
                match outcome {
                    Ok(moved) => assert!(moved <= size),
                    Err(_) => errors += 1,
                }
            }
            server.park_receiver();
            client.park_sender();
        }
        stop.store(true, Ordering::Relaxed);
        scribbler.join().unwrap();
        assert!(errors > 0, "nothing was hit");
    }
}

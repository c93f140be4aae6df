//! What goes into one end comes out of the other, whatever its size and wherever the ring is; and a
//! peer that writes nonsense is found out.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenon_shm::{AtomicU64, End, Side, Sizes, Violation};

type Memory = Arc<[AtomicU64]>;

const RING: usize = 4096;

/// Bytes that a cell carries, cells of the ring, and bytes that they carry together.
const LOAD: usize = 56;
const CELLS: usize = RING / 64;
const FULL: usize = CELLS * LOAD;

/// Where in the segment the blocks and rings of [`small`] are, in words: see `docs/shm.md`.
const CLIENT: usize = 32;
const TO_SERVER: usize = 512;

fn pair(sizes: Sizes) -> (End<Memory>, End<Memory>, Memory) {
    let memory: Memory = (0..sizes.segment() / 8)
        .map(|_| AtomicU64::new(0))
        .collect();
    let end = |side| End::new(Arc::clone(&memory), sizes, side);
    (end(Side::Server), end(Side::Client), Arc::clone(&memory))
}

fn small() -> (End<Memory>, End<Memory>, Memory) {
    pair(Sizes::new(RING as u64, RING as u64).unwrap())
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 7 + salt * 13 + 1) as u8)
        .collect()
}

fn quietly() {}

fn receive(end: &End<Memory>, most: usize) -> Vec<u8> {
    let mut room = vec![0; most];
    let received = end.receive(&mut room, quietly).unwrap();
    room.truncate(received);
    room
}

#[test]
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
    const ALL: usize = 3 << 20;
    let (server, client, _) = small();
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
struct Bell(Cell<u32>);

impl Bell {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn taken(&self) -> u32 {
        self.0.take()
    }
}

#[test]
fn whoever_sleeps_for_bytes_is_woken_once() {
    let (server, client, _) = small();
    let bell = Bell::default();
    client.send(b"a", || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 0, "nobody sleeps");
    assert!(!server.park_receiver(), "there is something");
    client.send(b"b", || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 0);
    receive(&server, 9);
    assert!(server.park_receiver());
    client.send(b"c", || bell.ring()).unwrap();
    client.send(b"d", || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 1);
    assert_eq!(receive(&server, 9), b"cd");
    assert!(server.park_receiver());
    server.unpark_receiver();
    client.send(b"e", || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 0);
}

#[test]
fn whoever_sleeps_for_room_is_woken_when_there_is_a_quarter() {
    let (server, client, _) = small();
    let bell = Bell::default();
    assert!(!client.park_sender(), "there is room");
    client.send(&pattern(FULL, 0), quietly).unwrap();
    assert!(client.park_sender());
    let mut room = [0; FULL / 8];
    server.receive(&mut room, || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 0);
    server.receive(&mut room, || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 1);
    server.receive(&mut room, || bell.ring()).unwrap();
    assert_eq!(bell.taken(), 0);
    assert!(!client.park_sender());
}

#[test]
fn an_end_wakes_everybody() {
    let (server, client, _) = small();
    let bell = Bell::default();
    client.send(&pattern(FULL, 0), quietly).unwrap();
    assert!(client.park_sender());
    assert!(client.park_receiver());
    server.end_sending(|| bell.ring());
    assert_eq!(bell.taken(), 1);
    assert!(client.peer_sends_nothing() && !client.peer_receives_nothing());
    assert!(!client.park_receiver(), "nothing will come");
    let senders = Bell::default();
    server.close(|| bell.ring(), || senders.ring());
    assert_eq!((bell.taken(), senders.taken()), (0, 1));
    assert!(client.peer_receives_nothing());
    assert!(!client.park_sender());
}

#[test]
fn what_cannot_be_is_named() {
    // The mark of the first cell of what the client sends.
    for found in [1, 2, 65, 1 << 40, u64::MAX >> 9] {
        let (server, _client, memory) = small();
        memory[TO_SERVER].store((found + 1) << 8 | 8, Ordering::Relaxed);
        let error = server.receive(&mut [0; 8], quietly).unwrap_err();
        assert_eq!(error, Violation::Mark { awaited: 0, found });
        assert!(!server.park_receiver(), "who slept would not be told");
    }
    for length in [0, 57, 255] {
        let (server, _client, memory) = small();
        memory[TO_SERVER].store(1 << 8 | length, Ordering::Relaxed);
        let error = server.receive(&mut [0; 100], quietly).unwrap_err();
        assert_eq!(error, Violation::Length(length));
        assert!(!server.park_receiver());
    }
    // The client's head, who has received what was never sent.
    for head in [CELLS as u64 + 1, u64::MAX, 1 << 63] {
        let (server, _client, memory) = small();
        server.send(&[0; FULL], quietly).unwrap();
        memory[CLIENT].store(head, Ordering::Relaxed);
        let error = server.send(b"x", quietly).unwrap_err();
        assert!(matches!(error, Violation::Received { .. }), "{error}");
        assert!(!server.park_sender());
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
        assert_eq!(error, Violation::Length(length));
    }
    memory[TO_SERVER].store(1 << 8 | 31, Ordering::Relaxed);
    assert_eq!(receive(&server, 100), [1]);
}

#[test]
fn what_was_sent_before_what_cannot_be_is_received() {
    let (server, client, memory) = small();
    client.send(&[7; 100], quietly).unwrap();
    memory[TO_SERVER + 16].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(receive(&server, 200), [7; 100]);
    server.receive(&mut [0; 9], quietly).unwrap_err();
}

/// A peer that writes everywhere, all the time: both ends get answers or errors, and nothing worse.
#[test]
fn a_peer_that_scribbles_hurts_nobody() {
    for seed in 1..5_u64 {
        let (server, client, memory) = small();
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

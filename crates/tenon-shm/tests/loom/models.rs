//! The models.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::ops::Deref;

use tenon_shm::{AtomicU64, ConnectionRole, RingEndpoint, Sizes};

/// Four cells, each a mark and 8 bytes.
const RING: usize = 64;

/// Bytes of five cells.
const ASCENDING: [u8; 40] = {
    let mut all = [0; 40];
    let mut at = 0;
    while at < 40 {
        all[at] = at as u8;
        at += 1;
    }
    all
};

#[derive(Clone)]
struct Memory(Arc<Vec<AtomicU64>>);

impl Deref for Memory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// What the system has for a notifier: it is remembered that it was notified.
#[derive(Clone)]
struct Notifier(Arc<(Mutex<bool>, Condvar)>);

impl Notifier {
    fn new() -> Self {
        Self(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn notify(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
    }

    /// Sleeps until it was notified; loom finds out who sleeps for ever.
    fn wait(&self) {
        let mut is_rung = self.0.0.lock().unwrap();
        while !*is_rung {
            is_rung = self.0.1.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }
}

fn pair() -> (RingEndpoint<Memory>, RingEndpoint<Memory>) {
    pair_of(RING)
}

fn pair_of(ring: usize) -> (RingEndpoint<Memory>, RingEndpoint<Memory>) {
    let sizes = Sizes::new(ring as u64, ring as u64).unwrap();
    let words = (0..16 + 2 * ring / 8).map(|_| AtomicU64::new(0));
    let memory = Memory(Arc::new(words.collect()));
    (
        RingEndpoint::new(memory.clone(), sizes, ConnectionRole::Server),
        RingEndpoint::new(memory, sizes, ConnectionRole::Client),
    )
}

/// Sends all of `bytes`, sleeping when there is no room.
fn send_all(end: &RingEndpoint<Memory>, bytes: &[u8], theirs: &Notifier, own: &Notifier) {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += end.send(&bytes[sent..], || theirs.notify()).unwrap();
        if sent < bytes.len() && end.park_sender() {
            own.wait();
            end.unpark_sender();
        }
    }
}

/// Receives `length` bytes, at most `most` at a time, sleeping when there is nothing.
fn receive_all(
    end: &RingEndpoint<Memory>,
    length: usize,
    most: usize,
    theirs: &Notifier,
    own: &Notifier,
) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < length {
        let mut room = vec![0; most];
        let received = end.receive(&mut room, || theirs.notify()).unwrap();
        all.extend_from_slice(&room[..received]);
        if received == 0 && end.park_receiver() {
            own.wait();
            end.unpark_receiver();
        }
    }
    all
}

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A message, a receiver that sleeps for it, and one that comes behind.
#[test]
fn a_receiver_that_sleeps_is_woken() {
    explore(3, || {
        let (server, client) = pair();
        let (bytes, room) = (Notifier::new(), Notifier::new());
        let sender = thread::spawn({
            let (bytes, room) = (bytes.clone(), room.clone());
            move || {
                send_all(&client, b"12345678", &bytes, &room);
                send_all(&client, b"abc", &bytes, &room);
            }
        });
        let received = receive_all(&server, 11, 16, &room, &bytes);
        assert_eq!(received, b"12345678abc");
        sender.join().unwrap();
    });
}

/// More than the ring holds: the sender sleeps until there is room.
#[test]
fn a_sender_that_sleeps_is_woken() {
    explore(2, || {
        let (server, client) = pair();
        let (bytes, room) = (Notifier::new(), Notifier::new());
        let sender = thread::spawn({
            let (bytes, room) = (bytes.clone(), room.clone());
            move || send_all(&client, &ASCENDING, &bytes, &room)
        });
        let received = receive_all(&server, ASCENDING.len(), 16, &room, &bytes);
        assert_eq!(received, ASCENDING);
        sender.join().unwrap();
    });
}

/// The receiver takes more at once than it takes to wake, and the ring is filled again.
#[test]
fn a_ring_that_is_filled_again_and_again_goes_on() {
    explore(2, || {
        let (server, client) = pair();
        let (bytes, room) = (Notifier::new(), Notifier::new());
        let sender = thread::spawn({
            let (bytes, room) = (bytes.clone(), room.clone());
            move || send_all(&client, &[7; 72], &bytes, &room)
        });
        let received = receive_all(&server, 72, 24, &room, &bytes);
        assert_eq!(received, [7; 72]);
        sender.join().unwrap();
    });
}

/// The annex has four lines, each of 16 bytes, and a cell refers to one: the sender sleeps until there is room.
#[test]
fn what_lies_in_the_annex_comes_with_what_refers_to_it() {
    explore(2, || {
        let (server, client) = pair_of(2 * RING);
        let (bytes, room) = (Notifier::new(), Notifier::new());
        let sender = thread::spawn({
            let (bytes, room) = (bytes.clone(), room.clone());
            move || {
                send_all(&client, &ASCENDING, &bytes, &room);
                send_all(&client, &ASCENDING, &bytes, &room);
            }
        });
        let received = receive_all(&server, 80, 24, &room, &bytes);
        assert_eq!(received[..40], ASCENDING);
        assert_eq!(received[40..], ASCENDING);
        sender.join().unwrap();
    });
}

/// What was sent before the end is received, and then the end.
#[test]
fn an_end_comes_behind_the_last_byte() {
    explore(3, || {
        let (server, client) = pair();
        let (bytes, room) = (Notifier::new(), Notifier::new());
        let sender = thread::spawn({
            let bytes = bytes.clone();
            move || {
                client.send(b"last", || bytes.notify()).unwrap();
                client.close(|| bytes.notify(), || ());
            }
        });
        let mut all = Vec::new();
        loop {
            let mut place = [0; 8];
            let ended = server.peer_sends_nothing();
            let received = server.receive(&mut place, || room.notify()).unwrap();
            all.extend_from_slice(&place[..received]);
            match received {
                0 if ended => break,
                0 if server.park_receiver() => {
                    bytes.wait();
                    server.unpark_receiver();
                }
                _ => {}
            }
        }
        assert_eq!(all, b"last");
        sender.join().unwrap();
    });
}

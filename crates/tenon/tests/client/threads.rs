//! Many threads on one channel: everybody gets the own reply, whatever the order.

use std::thread;
use std::time::Duration;

use crate::common::onc_peer::{Call, Line, Peer, bounded, get_raw, record, start, success};
use tenon::{Client, PendingCall};

const THREADS: u32 = 16;
const CALLS: u32 = 1000;

/// Answers in batches, each in another order, from a generator with a fixed seed.
fn shuffle_replies(line: &mut Line) {
    let mut random = 1_u32;
    let mut held: Vec<Call> = Vec::new();
    while let Some(call) = line.call() {
        held.push(call);
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let batch = (random >> 16) % THREADS;
        if held.len() as u32 >= batch || !line.has_more() {
            answer_all(line, &mut held, random);
        }
    }
}

fn answer_all(line: &mut Line, held: &mut Vec<Call>, random: u32) {
    let mut replies = Vec::new();
    while !held.is_empty() {
        let call = held.swap_remove(random as usize % held.len());
        replies.extend(record(&success(call.xid, &call.arguments)));
    }
    line.send(&replies);
}

fn call_many(client: &Client, thread: u32) {
    for number in 0..CALLS {
        let token = thread << 16 | number;
        assert_eq!(start(client, token).wait().unwrap(), token);
    }
}

#[test]
fn sixteen_threads_get_their_own_replies_out_of_order() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| shuffle_replies(&mut line));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let client = &client;
                scope.spawn(move || call_many(client, thread));
            }
        });
        let counters = client.channel().counters();
        assert_eq!(counters.calls.successes, u64::from(THREADS * CALLS));
        assert_eq!(counters.calls.unmatched, 0);
        assert_eq!(counters.in_flight, 0);
        drop(client);
        peer.join();
    });
}

#[test]
fn tickets_travel_between_threads() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| line.echo());
        for round in 0..50 {
            let tickets: Vec<_> = (0..8).map(|n| start(&client, round * 8 + n)).collect();
            thread::scope(|scope| {
                for (n, ticket) in (0..).zip(tickets) {
                    scope.spawn(move || assert_eq!(ticket.wait().unwrap(), round * 8 + n));
                }
            });
        }
        drop(client);
        peer.join();
    });
}

#[test]
fn the_readers_role_passes_on_when_the_reader_has_its_reply() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| {
            let calls: Vec<_> = (0..3).map(|_| line.call().unwrap()).collect();
            for call in calls {
                thread::sleep(Duration::from_millis(20));
                line.reply(&success(call.xid, &call.arguments));
            }
        });
        let tickets: Vec<_> = (0..3).map(|number| start(&client, number)).collect();
        thread::scope(|scope| {
            for (number, ticket) in (0..).zip(tickets) {
                scope.spawn(move || assert_eq!(ticket.wait().unwrap(), number));
            }
        });
        peer.join();
    });
}

#[test]
fn impatient_callers_do_not_take_the_readers_role_with_them() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| {
            while let Some(call) = line.call() {
                // About as long as the impatient have patience.
                thread::sleep(Duration::from_micros(u64::from(call.xid % 8) * 150));
                line.reply(&success(call.xid, &call.arguments));
            }
        });
        thread::scope(|scope| {
            for thread in 0..4 {
                let impatient = client.with_timeout(Duration::from_millis(1 + thread));
                let patient = &client;
                scope.spawn(move || {
                    for number in 0..200 {
                        // The sender may not get to run, so that not even the start is in time.
                        let started = impatient.onc().start(number, |_| Ok(()), get_raw);
                        let _ = started.and_then(PendingCall::wait);
                    }
                });
                scope.spawn(move || {
                    for number in 0..200 {
                        assert_eq!(start(patient, number).wait().unwrap(), number);
                    }
                });
            }
        });
        drop(client);
        peer.join();
    });
}

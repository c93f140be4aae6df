//! What a server does with streams: requests and replies in any number of pieces, peers that are
//! slow, that leave, that do not read, and the limits they meet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::*;
use crate::common::gate;
use tenon::{InOrder, ServerBuilder};

#[test]
fn a_request_may_come_in_many_fragments() {
    let server = builder().start().unwrap();
    let payload: Vec<u8> = (0..=255).collect();
    let message = call(5, ECHO, &payload);
    for mut caller in Caller::on_streams(&server) {
        for size in [1, 3, 4, 40, 100] {
            let mut pieces: Vec<_> = message.chunks(size).collect();
            let last = pieces.pop().unwrap();
            for piece in pieces {
                caller.send_raw(&fragment(piece, false));
            }
            caller.send_raw(&fragment(&[], false));
            caller.send_raw(&fragment(last, true));
            assert_eq!(caller.receive(), success(5, &payload));
        }
    }
}

/// 500 calls of ECHO in one piece, with numbers from 0, whose arguments are their numbers.
fn batch_of_calls() -> Vec<u8> {
    let call_of = |xid| record(&call(xid, ECHO, &words(&[xid; 8])));
    (0..500).flat_map(call_of).collect()
}

#[test]
fn requests_that_come_together_are_all_answered() {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        caller.send_raw(&batch_of_calls());
        // A second thread goes on with the connection while a handler takes long, and may be first to answer.
        let mut replies: Vec<_> = (0..500).map(|_| caller.receive()).collect();
        replies.sort();
        for (xid, reply) in (0..).zip(replies) {
            assert_eq!(reply, success(xid, &words(&[xid; 8])));
        }
    }
}

#[test]
fn a_service_that_keeps_order_answers_in_order() {
    let server = listening().service(InOrder(Obliging(VERSION)));
    let server = server.start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        caller.send_raw(&batch_of_calls());
        for xid in 0..500 {
            assert_eq!(caller.receive(), success(xid, &words(&[xid; 8])));
        }
    }
}

#[test]
fn a_megabyte_goes_both_ways() {
    let server = builder().start().unwrap();
    let payload: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    for mut caller in Caller::on_streams(&server) {
        caller.expect(&call(6, ECHO, &payload), &success(6, &payload));
        caller.expect(
            &call(7, BIG, &words(&[1 << 20])),
            &success(7, &[0x5a; 1 << 20]),
        );
    }
}

#[test]
fn replies_are_cut_into_fragments_when_asked() {
    let server = builder().fragment_max(10).start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        caller.send(&call(8, ECHO, &words(&[1, 2])));
        let reply = success(8, &words(&[1, 2]));
        let cut: Vec<u8> = [
            fragment(&reply[..10], false),
            fragment(&reply[10..20], false),
            fragment(&reply[20..30], false),
            fragment(&reply[30..], true),
        ]
        .concat();
        assert_eq!(caller.receive_raw(cut.len()), cut);
    }
}

#[test]
fn a_peer_that_has_said_all_still_gets_its_replies() {
    let inline = builder().start().unwrap();
    let on_workers = listening().service(Obliging(VERSION)).start();
    for server in [inline, on_workers.unwrap()] {
        for mut caller in Caller::on_streams(&server) {
            caller.send(&call(1, SLEEP, &words(&[50])));
            caller.send(&call(2, SLEEP, &words(&[50])));
            caller.finish_sending().unwrap();
            let mut replies = [caller.receive(), caller.receive()];
            replies.sort();
            assert_eq!(replies, [1, 2].map(|xid| success(xid, &words(&[50]))));
            caller.expect_close();
        }
    }
}

#[test]
fn a_peer_that_is_killed_in_the_middle_of_a_call_hurts_nobody() {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        caller.send(&call(1, SLEEP, &words(&[30])));
        drop(caller);
    }
    for mut caller in Caller::on_streams(&server) {
        let message = record(&call(1, ECHO, &[0; 64]));
        caller.send_raw(&message[..30]);
        drop(caller);
    }
    eventually("the connections are closed", || {
        let counters = server.counters();
        counters.broken_connections == 2 && counters.connections_open == 0
    });
    Caller::on_all(&server)
        .iter_mut()
        .for_each(Caller::expect_service);
}

#[test]
fn peers_that_send_a_byte_at_a_time_starve_nobody() {
    let limits = limited(|limits| limits.threads = 2);
    let server = builder().limits(limits).start().unwrap();
    let message = record(&call(3, ECHO, &[7; 20]));
    let mut slow: Vec<_> = (0..100).map(|_| Caller::tcp(&server)).collect();
    let mut quick = Caller::tcp(&server);
    for byte in &message {
        for caller in &mut slow {
            caller.send_raw(&[*byte]);
        }
        quick.expect_service();
    }
    for caller in &mut slow {
        assert_eq!(caller.receive(), success(3, &[7; 20]));
    }
}

#[test]
fn more_busy_peers_than_threads_are_all_served() {
    let limits = limited(|limits| limits.threads = 3);
    let server = builder().limits(limits).start().unwrap();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut caller = Caller::tcp(&server);
                for _ in 0..200 {
                    caller.expect_service();
                }
            });
        }
    });
    assert_eq!(server.counters().calls, 20 * 200);
}

#[test]
fn peers_that_never_pause_starve_nobody() {
    let limits = limited(|limits| limits.threads = 1);
    let server = builder().limits(limits).start().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _set_at_the_end = SetOnDrop(&is_over);
        for mut caller in Caller::on_all(&server) {
            let mut reader = caller.twin();
            let is_datagram = matches!(caller, Caller::Udp(_));
            let batch = match is_datagram {
                true => call(1, ECHO, &[]),
                false => record(&call(1, ECHO, &[])).repeat(50),
            };
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    caller.send_raw(&batch);
                }
                if !is_datagram {
                    caller.finish_sending().unwrap();
                }
            });
            if !is_datagram {
                scope.spawn(move || while let Ok(Some(_)) = reader.try_receive() {});
            }
        }
        let mut others = Caller::on_all(&server);
        others.truncate(2);
        for _ in 0..50 {
            others.iter_mut().for_each(Caller::expect_service);
        }
    });
}

/// Ends the threads of a test that fails, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn replies_overtake_each_other() {
    let server = listening().service(Obliging(VERSION)).start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        let gate = gate::fresh_gate();
        caller.send(&call(1, HOLD, &words(&[gate])));
        caller.send(&call(2, ECHO, &[]));
        assert_eq!(caller.receive(), success(2, &[]));
        gate::open(gate);
        assert_eq!(caller.receive(), success(1, &words(&[gate])));
    }
}

#[test]
fn a_handler_that_panics_is_a_system_error() {
    let server = listening().service(Obliging(VERSION)).start().unwrap();
    for mut caller in Caller::on_all(&server) {
        caller.expect(&call(1, PANIC, &[]), &accepted(1, &[5]));
        caller.expect_service();
    }
}

#[test]
fn calls_beyond_the_limit_wait_until_there_is_room() {
    let limits = limited(|limits| {
        limits.connection_calls = 3;
        limits.calls = 5;
    });
    let server = listening()
        .service(Obliging(VERSION))
        .limits(limits)
        .start()
        .unwrap();
    thread::scope(|scope| {
        for mut caller in (0..8).flat_map(|_| Caller::on_streams(&server)) {
            scope.spawn(move || {
                for xid in 0..50 {
                    caller.send(&call(xid, SLEEP, &words(&[1])));
                }
                let mut xids: Vec<_> = (0..50).map(|_| caller.receive()[..4].to_vec()).collect();
                xids.sort();
                assert_eq!(xids.concat(), words(&(0..50).collect::<Vec<_>>()));
            });
        }
    });
}

#[test]
fn a_record_over_the_limit_closes_its_connection_and_no_other() {
    let limits = limited(|limits| limits.message_bytes = 1000);
    let server = builder().limits(limits).start().unwrap();
    let mut other = Caller::tcp(&server);
    other.expect_service();
    for mut caller in Caller::on_streams(&server) {
        caller.expect(&call(1, ECHO, &[1; 960]), &success(1, &[1; 960]));
        caller.send_raw(&fragment(&[0; 4], false)[..4]);
        caller.send_raw(&[0; 4]);
        caller.send_raw(&0x8000_03e8_u32.to_be_bytes());
        caller.expect_close();
    }
    other.expect_service();
    assert_eq!(server.counters().broken_connections, 2);
}

#[test]
fn what_came_before_a_broken_record_is_answered() {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        let good = record(&call(1, ECHO, &[]));
        caller.send_raw(&[good, vec![0x7f; 8]].concat());
        assert_eq!(caller.receive(), success(1, &[]));
        caller.expect_close();
    }
}

#[test]
fn a_reply_is_not_answered_but_ends_the_connection() {
    let server = builder().start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        caller.send(&success(1, &[]));
        caller.expect_close();
    }
    assert_eq!(server.counters().violations, 2);
}

#[test]
fn a_peer_that_does_not_read_is_closed_in_the_end() {
    let limits = limited(|limits| limits.send_timeout = Some(Duration::from_millis(100)));
    let server = builder().limits(limits).start().unwrap();
    let mut reluctant = Caller::tcp(&server);
    // A reply that no pair of socket buffers holds.
    reluctant.send(&call(1, BIG, &words(&[64 << 20])));
    eventually("the connection is closed", || {
        server.counters().slow_readers == 1
    });
    eventually("nothing is left of it", || {
        server.counters().connections_open == 0
    });
    Caller::tcp(&server).expect_service();
}

/// It reads more than 64 KiB within the limit again and again, and takes longer than that for all.
#[test]
fn a_peer_that_reads_on_gets_all_of_a_reply_that_takes_longer() {
    const LIMIT: Duration = Duration::from_secs(3);
    const PARTS: usize = 40;
    let limits = limited(|limits| limits.send_timeout = Some(LIMIT));
    let server = builder().limits(limits).start().unwrap();
    let address = server.addresses()[1].to_string();
    let (mut steady, begin) = (Caller::connect(&address), Instant::now());
    let message = success(1, &vec![0x5a; PARTS * (64 << 10)]);
    steady.send(&call(1, BIG, &words(&[(PARTS * (64 << 10)) as u32])));
    for part in record(&message).chunks(64 << 10) {
        thread::sleep(LIMIT / 25);
        assert!(steady.receive_raw(part.len()) == part);
    }
    assert!(begin.elapsed() > LIMIT);
    steady.expect_service();
    assert_eq!(server.counters().slow_readers, 0);
}

/// Of large requests those that go on are waited for, and of others nothing.
#[test]
fn half_of_a_large_request_is_not_waited_for_long() {
    let limits = limited(|limits| limits.receive_timeout = Some(Duration::from_millis(300)));
    let server = builder().limits(limits).start().unwrap();
    let (small, large) = (vec![1; 1 << 10], vec![1; 200 << 10]);
    let [small, large] = [small, large].map(|payload| record(&call(1, ECHO, &payload)));
    let mut patient = Caller::tcp(&server);
    patient.send_raw(&small[..100]);
    for mut silent in Caller::on_streams(&server) {
        silent.send_raw(&large[..100 << 10]);
        silent.expect_close();
    }
    let slow = || server.counters().slow_senders;
    assert_eq!(slow(), 2);
    let mut dripping = Caller::tcp(&server);
    dripping.send_raw(&large[..100 << 10]);
    eventually("it is closed that sends a byte now and then", || {
        let _ = dripping.try_send_raw(&[1]);
        slow() == 3
    });
    patient.send_raw(&small[100..]);
    assert_eq!(patient.receive().len(), 24 + (1 << 10));
}

#[test]
fn a_large_request_may_take_longer_if_it_goes_on() {
    const LIMIT: Duration = Duration::from_secs(1);
    let limits = limited(|limits| limits.receive_timeout = Some(LIMIT));
    let server = builder().limits(limits).start().unwrap();
    let (mut steady, begin) = (Caller::tcp(&server), Instant::now());
    let payload = vec![1; 40 * (64 << 10)];
    for part in record(&call(1, ECHO, &payload)).chunks(64 << 10) {
        thread::sleep(LIMIT / 25);
        steady.send_raw(part);
    }
    assert!(begin.elapsed() > LIMIT);
    assert!(steady.receive() == success(1, &payload));
    assert_eq!(server.counters().slow_senders, 0);
}

#[test]
fn times_may_be_longer_than_any() {
    let limits = limited(|limits| {
        [
            limits.send_timeout,
            limits.receive_timeout,
            limits.idle_timeout,
        ] = [Some(Duration::MAX); 3];
    });
    let server = builder().limits(limits).start().unwrap();
    for mut caller in Caller::on_streams(&server) {
        // More than fits between the ends, so that the server has to wait.
        let message = success(1, &vec![0x5a; 16 << 20]);
        caller.expect(&call(1, BIG, &words(&[16 << 20])), &message);
        caller.expect_service();
    }
}

#[test]
fn a_peer_that_reads_a_byte_now_and_then_is_closed_in_the_end() {
    let limits = limited(|limits| limits.send_timeout = Some(Duration::from_millis(300)));
    let server = builder().limits(limits).start().unwrap();
    for index in [0, 1] {
        let mut dripping = Caller::connect(&server.addresses()[index].to_string());
        dripping.send(&call(1, BIG, &words(&[64 << 20])));
        eventually("the connection is closed", || {
            dripping.receive_raw(1);
            server.counters().slow_readers == index as u64 + 1
        });
    }
}

/// More peers that do not read than threads, each granted longer than the test waits: they hold no thread.
fn peers_that_do_not_read_do_not_hold_up(builder: ServerBuilder, calls_each: u32) {
    let limits = limited(|limits| {
        limits.send_timeout = Some(PATIENCE * 10);
        limits.threads = 2;
    });
    let server = builder.limits(limits).start().unwrap();
    let mut reader = Caller::tcp(&server);
    let mut reluctant: Vec<_> = (0..5).map(|_| Caller::tcp(&server)).collect();
    for peer in &mut reluctant {
        for xid in 0..calls_each {
            // The server may have closed it already.
            let _ = peer.try_send_raw(&record(&call(xid, BIG, &words(&[16 << 20]))));
        }
    }
    for _ in 0..5 {
        reader.expect_service();
    }
    assert_eq!(server.counters().slow_readers, 0);
    drop(reluctant);
}

#[test]
fn peers_that_do_not_read_hold_no_threads() {
    for calls_each in [1, 2] {
        peers_that_do_not_read_do_not_hold_up(builder(), calls_each);
    }
}

#[test]
fn silent_connections_are_closed_and_others_are_not() {
    // Long enough for a caller that waits for a core not to be taken for a silent one.
    let limits = limited(|limits| limits.idle_timeout = Some(Duration::from_secs(2)));
    let server = builder().limits(limits).start().unwrap();
    let mut silent = Caller::on_streams(&server);
    silent[0].send_raw(&[0x80, 0]);
    let mut busy = Caller::tcp(&server);
    eventually("the silent ones are closed", || {
        busy.expect_service();
        server.counters().idle_connections == 2
    });
    silent.iter_mut().for_each(Caller::expect_close);
    busy.expect_service();
}

#[test]
fn a_connection_that_waits_for_a_reply_is_not_silent() {
    let idle = Duration::from_secs(1);
    let server = listening()
        .service(Obliging(VERSION))
        .limits(limited(|limits| limits.idle_timeout = Some(idle)))
        .start()
        .unwrap();
    let mut caller = Caller::tcp(&server);
    let gate = gate::fresh_gate();
    caller.send(&call(1, HOLD, &words(&[gate])));
    eventually("the call arrives", || server.counters().calls == 1);
    thread::sleep(2 * idle);
    gate::open(gate);
    assert_eq!(caller.receive(), success(1, &words(&[gate])));
}

#[test]
fn one_connection_too_many_is_closed() {
    let limits = limited(|limits| limits.connections = 2);
    let server = builder().limits(limits).start().unwrap();
    let mut kept = Caller::on_streams(&server);
    kept.iter_mut().for_each(Caller::expect_service);
    Caller::tcp(&server).expect_close();
    assert_eq!(server.counters().connections_refused, 1);
    kept.iter_mut().for_each(Caller::expect_service);
    drop(kept);
    eventually("there is room again", || {
        server.counters().connections_open == 0
    });
    Caller::tcp(&server).expect_service();
}

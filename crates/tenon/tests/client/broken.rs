//! The client and a connection that does not hold: closed, reset, stalled, full, restarted. No
//! call hangs, none is reported done that was not, and the next one connects again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::onc_peer::{
    PATIENCE, Peer, bounded, bounded_by, call_raw, call_raw_when_ready, get_raw, put_raw, record,
    start, success,
};
use tenon::{CallError, ChannelOptions, PendingCall};
use tenon_proto::onc::reply::CLOSE_NOTICE;

const SHORT: Duration = Duration::from_millis(60);

#[track_caller]
fn assert_disconnected(error: &CallError, hint: &str) {
    assert!(
        matches!(
            error,
            CallError::Disconnected {
                may_have_executed: true,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains(hint), "{error}");
    assert!(error.to_string().contains("unknown whether"), "{error}");
}

#[track_caller]
fn assert_timed_out(error: &CallError, executed: bool) {
    match error {
        CallError::TimedOut {
            may_have_executed, ..
        } => assert_eq!(*may_have_executed, executed, "{error}"),
        other => panic!("{other}"),
    }
}

#[test]
fn calls_without_a_reply_in_front_of_a_close_notice_were_not_carried_out() {
    let peer = Peer::tcp(|accept| {
        let mut line = accept();
        let first = line.call().unwrap();
        line.call().unwrap();
        line.reply(&success(first.xid, &first.arguments));
        line.reply(&CLOSE_NOTICE);
        drop(line);
        accept().echo();
    });
    let client = peer.client();
    let (first, second) = (start(&client, 1), start(&client, 2));
    assert_eq!(first.wait().unwrap(), 1);
    let error = second.wait().unwrap_err();
    let is_told = matches!(error, CallError::Disconnected { .. });
    assert!(is_told && !error.may_have_executed(), "{error}");
    assert_eq!(start(&client, 3).wait().unwrap(), 3);
    assert_eq!(client.channel().counters().connections, 2);
    drop(client);
    peer.join();
}

#[test]
fn a_peer_that_closes_fails_the_calls_in_flight_and_serves_the_next() {
    let peer = Peer::tcp(|accept| {
        let mut line = accept();
        line.call().unwrap();
        line.call().unwrap();
        drop(line);
        accept().echo();
    });
    let client = peer.client();
    let (first, second) = (start(&client, 1), start(&client, 2));
    assert_disconnected(&first.wait().unwrap_err(), "the peer closed it");
    assert_disconnected(&second.wait().unwrap_err(), "the peer closed it");
    assert_eq!(start(&client, 3).wait().unwrap(), 3);
    assert_eq!(client.channel().counters().connections, 2);
    drop(client);
    peer.join();
}

#[test]
fn a_connection_may_break_for_one_who_waits_and_one_who_sends_at_once() {
    const TIMES: usize = 3;
    let peer = Peer::tcp(|accept| {
        let mut line = accept();
        for _ in 0..TIMES {
            line.call().unwrap();
            // The one who sends has begun.
            line.0.read_exact(&mut [0; 100]).unwrap();
            drop(line);
            line = accept();
            let again = line.call().unwrap();
            line.reply(&success(again.xid, &[]));
        }
    });
    let client = peer.client();
    let large = vec![7; 16 << 20];
    for _ in 0..TIMES {
        let waiting = start(&client, 1);
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let call = client
                    .onc()
                    .start(2, |out| put_raw(out, &large), |_| Ok(()));
                call.and_then(PendingCall::wait)
            });
            assert!(waiting.wait().unwrap_err().may_have_executed());
            sending.join().unwrap().unwrap();
        });
    }
    peer.join();
}

#[test]
fn half_a_reply_is_no_reply() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let call = line.call().unwrap();
        let reply = record(&success(call.xid, &call.arguments));
        line.send(&reply[..reply.len() - 1]);
    });
    let error = start(&client, 1).wait().unwrap_err();
    assert_disconnected(&error, "in the middle of a reply");
    peer.join();
}

#[test]
fn a_stalled_peer_costs_the_deadline_and_nothing_else() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        line.call().unwrap();
        line.echo();
    });
    let error = start(&client.with_timeout(SHORT), 1).wait().unwrap_err();
    assert_timed_out(&error, true);
    assert!(error.to_string().contains("60ms"), "{error}");
    assert_eq!(start(&client, 2).wait().unwrap(), 2);
    assert_eq!(client.channel().counters().connections, 1);
    drop(client);
    peer.join();
}

#[test]
fn deadlines_end_the_sleep_of_those_who_do_not_read() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let slow = line.call().unwrap();
        while let Some(call) = line.call() {
            if call.procedure == 9 {
                line.reply(&success(slow.xid, &slow.arguments));
            }
        }
    });
    let reader = start(&client, 1);
    thread::scope(|scope| {
        let reading = scope.spawn(|| reader.wait().unwrap());
        let impatient = client.with_timeout(SHORT);
        for number in 0..3 {
            let error = start(&impatient, number).wait().unwrap_err();
            assert_timed_out(&error, true);
        }
        drop(start(&client, 9));
        assert_eq!(reading.join().unwrap(), 1);
    });
    drop(client);
    peer.join();
}

#[test]
fn a_connection_that_was_closed_while_it_rested_is_replaced_before_the_call() {
    let (closed, is_closed) = mpsc::channel();
    let peer = Peer::tcp(move |accept| {
        drop(accept());
        closed.send(()).unwrap();
        accept().echo();
    });
    let client = peer.client();
    is_closed.recv().unwrap();
    thread::sleep(Duration::from_millis(150));
    assert_eq!(start(&client, 1).wait().unwrap(), 1);
    drop(client);
    peer.join();
}

/// A listener where another one was a moment ago.
fn listen_again(address: SocketAddr) -> TcpListener {
    TcpListener::bind(address).unwrap()
}

#[test]
fn a_restarted_peer_is_found_again_within_the_deadline() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| {
            let call = line.call().unwrap();
            line.reply(&success(call.xid, &call.arguments));
        });
        let address = peer.address["tcp://".len()..].parse().unwrap();
        assert_eq!(start(&client, 1).wait().unwrap(), 1);
        peer.join();

        // Whichever way the client finds out.
        call_raw(&client.with_timeout(SHORT), 2, &[]).unwrap_err();
        let error = call_raw(&client.with_timeout(SHORT), 3, &[]).unwrap_err();
        assert!(matches!(error, CallError::Connect(_)), "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
        assert!(!error.may_have_executed());

        let waiting = thread::spawn({
            let client = client.clone();
            move || call_raw_when_ready(&client, 4, &[4; 4]).unwrap()
        });
        thread::sleep(SHORT);
        let peer = Peer::tcp_at(listen_again(address), |accept| accept().echo());
        assert_eq!(waiting.join().unwrap(), [4; 4]);
        drop(client);
        peer.join();
    });
}

#[test]
fn no_deadlock_with_a_peer_that_writes_before_it_reads_on() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| line.echo_without_reading_ahead());
        let block = vec![5; 10 << 20];
        let calls: Vec<_> = (0..3)
            .map(|_| {
                client
                    .onc()
                    .start(1, |out| put_raw(out, &block), get_raw)
                    .unwrap()
            })
            .collect();
        for call in calls {
            assert!(call.wait().unwrap() == block);
        }
        drop(client);
        peer.join();
    });
}

#[test]
fn big_calls_of_several_threads_do_not_mix() {
    bounded(|| {
        let (client, peer) = Peer::with_one_line(|mut line| line.echo_without_reading_ahead());
        thread::scope(|scope| {
            for number in 0..4_u8 {
                let client = &client;
                scope.spawn(move || {
                    let block = vec![number; 3 << 20];
                    assert!(call_raw(client, 1, &block).unwrap() == block);
                });
            }
        });
        drop(client);
        peer.join();
    });
}

#[test]
fn a_call_that_could_not_be_sent_whole_was_not_executed_and_breaks_the_line() {
    bounded(|| {
        let (resume, may_resume) = mpsc::channel::<()>();
        let peer = Peer::tcp(move |accept| {
            let stuck = accept();
            may_resume.recv().unwrap();
            drop(stuck);
            accept().echo();
        });
        let client = peer.client();
        let block = vec![0; 32 << 20];
        let error = call_raw(&client.with_timeout(SHORT), 1, &block).unwrap_err();
        assert_timed_out(&error, false);
        resume.send(()).unwrap();
        assert_eq!(start(&client, 2).wait().unwrap(), 2);
        assert_eq!(client.channel().counters().connections, 2);
        drop(client);
        peer.join();
    });
}

#[test]
fn who_waits_to_send_keeps_to_the_deadline_too() {
    bounded(|| {
        let (begun, is_begun) = mpsc::channel();
        let (resume, may_resume) = mpsc::channel::<()>();
        let peer = Peer::tcp(move |accept| {
            let mut line = accept();
            line.0.peek(&mut [0; 4]).unwrap();
            begun.send(()).unwrap();
            may_resume.recv_timeout(PATIENCE).unwrap();
            line.echo();
        });
        let client = peer.client();
        let block = vec![3; 32 << 20];
        thread::scope(|scope| {
            let (client, block) = (&client, &block);
            let sending = scope.spawn(move || call_raw(client, 1, block).unwrap());
            is_begun.recv().unwrap();
            let error = call_raw(&client.with_timeout(SHORT), 2, &[]).unwrap_err();
            assert_timed_out(&error, false);
            resume.send(()).unwrap();
            assert!(sending.join().unwrap() == *block);
        });
        drop(client);
        peer.join();
    });
}

#[test]
fn who_may_not_call_passes_the_turn_to_send_on() {
    bounded(|| {
        let (begun, is_begun) = mpsc::channel();
        let (resume, may_resume) = mpsc::channel::<()>();
        let peer = Peer::tcp(move |accept| {
            let mut line = accept();
            line.0.peek(&mut [0; 4]).unwrap();
            begun.send(()).unwrap();
            may_resume.recv_timeout(PATIENCE).unwrap();
            let call = line.call().unwrap();
            may_resume.recv_timeout(PATIENCE).unwrap();
            line.reply(&success(call.xid, &[]));
        });
        let client = peer.client_with(ChannelOptions::default().calls_max(1));
        thread::scope(|scope| {
            let client = &client;
            let sending = scope.spawn(move || call_raw(client, 1, &vec![3; 32 << 20]).unwrap());
            is_begun.recv().unwrap();
            let waiting = [2, 3].map(|procedure| {
                scope.spawn(move || call_raw(client, procedure, &[]).unwrap_err())
            });
            // Most often both wait by now; if not, the test proves less.
            thread::sleep(SHORT);
            resume.send(()).unwrap();
            for error in waiting.map(|thread| thread.join().unwrap()) {
                assert!(matches!(error, CallError::TooManyCalls { .. }), "{error}");
            }
            resume.send(()).unwrap();
            assert!(sending.join().unwrap().is_empty());
        });
        drop(client);
        peer.join();
    });
}

#[test]
fn a_connection_that_breaks_wakes_everybody() {
    bounded(|| {
        let peer = Peer::tcp(|accept| {
            let mut line = accept();
            for _ in 0..8 {
                line.call().unwrap();
            }
        });
        let client = peer.client();
        thread::scope(|scope| {
            for number in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    let error = start(client, number).wait().unwrap_err();
                    assert_disconnected(&error, "the peer closed it");
                });
            }
        });
        peer.join();
    });
}

#[test]
fn a_peer_that_never_stops_talking_does_not_hold_up_the_deadline() {
    // Without a look at the clock it would take half a minute.
    bounded_by(Duration::from_secs(20), || {
        let peer = Peer::tcp(|accept| {
            let mut line = accept();
            let call = line.call().unwrap();
            let strange = record(&success(call.xid ^ 1, &[])).repeat(10_000);
            while line.0.write_all(&strange).is_ok() {}
        });
        let client = peer.client().with_timeout(SHORT);
        let error = start(&client, 1).wait().unwrap_err();
        assert_timed_out(&error, true);
        drop(client);
        peer.join();
    });
}

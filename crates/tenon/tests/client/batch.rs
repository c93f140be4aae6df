//! Calls that are started in a batch: they go out together, and nobody waits for one that was not
//! sent.

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use crate::common::counting::{count, expect_system_calls, orders};
use crate::common::lean_caller::{ECHO, lean_builder};
use crate::common::lean_steady::{client_with, clients};
use crate::common::onc_peer::{
    Line, PATIENCE, Peer, call_raw, put_raw, record, start, success, words,
};
use tenon::wire::{Encoder, Lean};
use tenon::{ChannelOptions, Client, LeanInput, PendingCall, Transport, Waiting};

/// Calls in a batch whose system calls are counted.
const TOGETHER: u32 = 16;

fn answer(line: &mut Line, calls: u32) {
    for _ in 0..calls {
        let call = line.call().unwrap();
        line.send(&record(&success(call.xid, &call.arguments)));
    }
}

fn wait_for_all(calls: Vec<PendingCall<u32>>) {
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.wait().unwrap(), number as u32);
    }
}

#[test]
fn nothing_is_sent_before_the_batch_is_over() {
    let (start_looking, may_look) = mpsc::channel();
    let (looked, has_looked) = mpsc::channel();
    let (client, peer) = Peer::with_one_line(move |mut line| {
        may_look.recv_timeout(PATIENCE).unwrap();
        assert!(!line.has_more());
        looked.send(()).unwrap();
        answer(&mut line, 8);
    });
    let batch = client.channel().batch();
    let calls: Vec<_> = (0..8).map(|number| start(&client, number)).collect();
    let inner = client.channel().batch();
    drop(inner);
    start_looking.send(()).unwrap();
    has_looked.recv_timeout(PATIENCE).unwrap();
    drop(batch);
    wait_for_all(calls);
    peer.join();
}

#[test]
fn whoever_waits_has_everything_sent() {
    let (client, peer) = Peer::with_one_line(|mut line| answer(&mut line, 10));
    let batch = client.channel().batch();
    let calls: Vec<_> = (0..8).map(|number| start(&client, number)).collect();
    wait_for_all(calls);
    // So does a call, on any thread.
    thread::scope(|scope| {
        let called = scope.spawn(|| call_raw(&client, 8, &words(&[8])).unwrap());
        assert_eq!(called.join().unwrap(), words(&[8]));
    });
    let mut looked_at = start(&client, 0);
    while !looked_at.is_ready() {}
    assert_eq!(looked_at.wait().unwrap(), 0);
    drop(batch);
    peer.join();
}

#[test]
fn what_is_gathered_has_a_limit() {
    const SIZE: usize = 1 << 10;
    const CALLS: usize = 200;
    let (tell, told) = mpsc::channel();
    let (client, peer) = Peer::with_one_line(move |mut line| {
        let mut first = vec![0; 64 << 10];
        line.0.read_exact(&mut first).unwrap();
        tell.send(()).unwrap();
        line.0.read_to_end(&mut first).unwrap();
    });
    let arguments = vec![7; SIZE];
    let batch = client.channel().batch();
    let start = |_| {
        client
            .onc()
            .start(1, |out| put_raw(out, &arguments), |_| Ok(()))
    };
    let calls: Vec<_> = (0..CALLS).map(start).collect();
    told.recv_timeout(PATIENCE)
        .expect("what is beyond the limit does not wait for the end of the batch");
    drop(batch);
    drop(calls);
    drop(client);
    peer.join();
}

#[test]
fn calls_that_were_never_sent_fail_with_the_connection() {
    let (client, peer) = Peer::with_one_line(drop);
    peer.join();
    let batch = client.channel().batch();
    let call = start(&client, 1);
    drop(batch);
    assert!(call.wait().is_err());
}

#[test]
fn datagrams_are_sent_at_once() {
    let peer = Peer::udp(|socket| {
        let mut call = [0; 100];
        let (size, from) = socket.recv_from(&mut call).unwrap();
        let xid = u32::from_be_bytes(call[..4].try_into().unwrap());
        let reply = success(xid, &call[size - 4..size]);
        socket.send_to(&reply, from).unwrap();
    });
    let client = peer.client();
    let batch = client.channel().batch();
    let call = start(&client, 3);
    peer.join();
    drop(batch);
    assert_eq!(call.wait().unwrap(), 3);
}

fn start_lean(client: &Client, number: u32) -> PendingCall<u32> {
    let put = |out: &mut Encoder<'_, Lean>| {
        out.put(number);
        Ok(())
    };
    client
        .lean()
        .start(ECHO.into(), put, |input| match input {
            LeanInput::Native(input) => input.get(),
            LeanInput::Swapped(input) => input.get(),
        })
        .unwrap()
}

#[test]
fn more_lean_calls_than_the_server_takes_are_gathered() {
    const CALLS: u32 = 2000;
    let server = lean_builder().start().unwrap();
    for client in clients(server.addresses()) {
        let batch = client.channel().batch();
        let calls: Vec<_> = (0..CALLS).map(|n| start_lean(&client, n)).collect();
        drop(batch);
        wait_for_all(calls);
    }
}

#[test]
fn a_batch_is_sent_with_one_system_call_and_answered_with_one() {
    const CALLS: u32 = 100 * TOGETHER;
    let server = lean_builder().start().unwrap();
    for address in server.addresses() {
        // Several datagrams go by another of them.
        let name = match address.transport() {
            Transport::Udp => "sendmsg",
            Transport::Tcp | Transport::Unix | Transport::Shm | Transport::Xdp => "sendto",
        };
        let child = "batch::make_the_batches_that_are_ordered";
        expect_system_calls(child, &format!("lean+{address}"), CALLS, |counts| {
            let others = count(counts, "sendto") + count(counts, "sendmsg") - count(counts, name);
            count(counts, name) == u64::from(CALLS / TOGETHER) && others == 0
        });
    }
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_batches_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = client_with(&orders.address, options);
    for _ in 0..orders.calls / TOGETHER {
        let batch = client.channel().batch();
        let calls: Vec<_> = (0..TOGETHER).map(|n| start_lean(&client, n)).collect();
        drop(batch);
        wait_for_all(calls);
    }
}

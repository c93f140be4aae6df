//! The client against a peer made by hand, over a stream: what it sends, how it reads, and whom it
//! blames.
#![allow(clippy::unwrap_used)]

mod common;

use std::thread;
use std::time::Duration;

use common::{
    Call, Line, PROGRAM, Peer, VERSION, bounded, call_raw, fragment, get_raw, get_word, put_raw,
    record, success, words,
};
use tenon::wire::{DecodeErrorKind, DecodeMode, EncodeError, EncodeErrorKind};
use tenon::{
    AuthStat, AuthSys, CallError, Channel, ChannelOptions, Client, ConnectError, Credential,
    Misbehavior, PendingCall, Refused, Violation,
};

fn start(client: &Client, number: u32) -> PendingCall<u32> {
    let arguments = number.to_be_bytes();
    client
        .start(number, |out| put_raw(out, &arguments), get_word)
        .unwrap()
}

fn read_calls(line: &mut Line, count: usize) -> Vec<Call> {
    (0..count).map(|_| line.call().unwrap()).collect()
}

fn echo_of(call: &Call) -> Vec<u8> {
    record(&success(call.xid, &call.arguments))
}

#[test]
fn a_call_carries_what_it_was_given_and_brings_its_result() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let call = line.call().unwrap();
        assert_eq!(call.procedure, 7);
        assert_eq!(call.credential, (0, vec![]));
        assert_eq!(call.arguments, words(&[1, 2]));
        line.reply(&success(call.xid, &words(&[3, 4, 5])));
    });
    let result = call_raw(&client, 7, &words(&[1, 2])).unwrap();
    assert_eq!(result, words(&[3, 4, 5]));
    peer.join();
}

//! The client against a peer made by hand, over a stream: what it sends, how it reads, and whom it
//! blames.

use std::time::Duration;

use crate::common::onc_peer::{
    Call, Line, PATIENCE, Peer, call_raw, fragment, get_raw, get_word, put_raw, record, start,
    success, words,
};
use tenon::wire::{DecodeErrorKind, DecodeMode, EncodeError, EncodeErrorKind};
use tenon::{
    AuthStat, AuthSys, CallError, Channel, ChannelOptions, Client, ConnectError, Credential,
    Misbehavior, Refused, Violation,
};

const SHORT: Duration = Duration::from_millis(40);

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

#[test]
fn a_user_is_named_on_every_call() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        for _ in 0..2 {
            let call = line.call().unwrap();
            let body = words(&[0, 3, 0x626f_7800, 1000, 100, 2, 4, 24]);
            assert_eq!(call.credential, (1, body));
            line.reply(&success(call.xid, &[]));
        }
    });
    let user = AuthSys::new(b"box", 1000, 100, &[4, 24]).unwrap();
    let client = client.with_credential(&Credential::Sys(user));
    call_raw(&client, 0, &[]).unwrap();
    call_raw(&client, 1, &[]).unwrap();
    peer.join();
}

#[test]
fn replies_find_their_calls_in_any_order() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        for call in read_calls(&mut line, 5).iter().rev() {
            line.send(&echo_of(call));
        }
    });
    let mut pending: Vec<_> = (0..5).map(|number| Some(start(&client, number))).collect();
    for number in [3, 0, 4, 1, 2] {
        let call = pending[number].take().unwrap();
        assert_eq!(call.wait().unwrap(), number as u32);
    }
    peer.join();
}

#[test]
fn several_replies_may_come_at_once_and_to_several_threads() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let replies: Vec<_> = read_calls(&mut line, 5).iter().map(echo_of).collect();
        line.send(&replies.concat());
    });
    std::thread::scope(|scope| {
        for number in 0..5 {
            let client = &client;
            scope.spawn(move || assert_eq!(start(client, number).wait().unwrap(), number));
        }
    });
    peer.join();
}

#[test]
fn a_reply_may_come_in_fragments() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let call = line.call().unwrap();
        let message = success(call.xid, &words(&[1, 2, 3]));
        let pieces = [
            fragment(&message[..3], false),
            fragment(&[], false),
            fragment(&message[3..30], false),
            fragment(&message[30..], false),
            fragment(&[], true),
        ];
        line.send(&pieces.concat());
    });
    assert_eq!(call_raw(&client, 1, &[]).unwrap(), words(&[1, 2, 3]));
    peer.join();
}

#[test]
fn a_reply_may_come_byte_by_byte() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        for _ in 0..2 {
            let call = line.call().unwrap();
            for byte in echo_of(&call) {
                line.send(&[byte]);
            }
        }
    });
    for number in 0..2 {
        assert_eq!(start(&client, number).wait().unwrap(), number);
    }
    peer.join();
}

#[test]
fn a_call_is_cut_into_fragments_when_that_is_asked_for() {
    let peer = Peer::tcp(|accept| {
        let mut line = accept();
        let sizes = line.fragment_sizes();
        assert_eq!(sizes, [1024, 1024, 40 + 3000 - 2048]);
        let call = line.call().unwrap();
        assert!(call.arguments.iter().all(|byte| *byte == 9));
        line.send(&echo_of(&call));
    });
    let options = ChannelOptions::default().fragment_max(1024);
    let client = peer.client_with(options);
    // The peer answers the second call alone; of the first it looks at the marks.
    let first = client
        .onc()
        .start(1, |out| put_raw(out, &[9; 3000]), get_raw)
        .unwrap();
    assert_eq!(call_raw(&client, 1, &[9; 3000]).unwrap(), [9; 3000]);
    drop(first);
    peer.join();
}

#[test]
fn a_late_reply_is_nobodys() {
    let (client, peer) = Peer::with_one_line(|mut line| {
        let late = line.call().unwrap();
        let call = line.call().unwrap();
        line.send(&echo_of(&late));
        line.send(&echo_of(&call));
    });
    let error = start(&client.with_timeout(SHORT), 1).wait().unwrap_err();
    assert!(
        matches!(
            error,
            CallError::TimedOut {
                may_have_executed: true,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(start(&client, 2).wait().unwrap(), 2);
    let counters = client.channel().counters();
    assert_eq!(counters.calls.timeouts, 1);
    assert_eq!(counters.calls.unmatched, 1);
    assert_eq!(counters.in_flight, 0);
    peer.join();
}

#[test]
fn every_refusal_is_told_by_its_status() {
    let refusals = [
        (vec![0, 0, 0, 1], Refused::ProgramUnavailable),
        (
            vec![0, 0, 0, 2, 4, 6],
            Refused::ProgramMismatch { low: 4, high: 6 },
        ),
        (vec![0, 0, 0, 3], Refused::ProcedureUnavailable),
        (vec![0, 0, 0, 4], Refused::GarbageArguments),
        (vec![0, 0, 0, 5], Refused::SystemError),
        (vec![1, 0, 3, 3], Refused::RpcMismatch { low: 3, high: 3 }),
        (vec![1, 1, 5], Refused::Authentication(AuthStat::TOO_WEAK)),
        (vec![1, 1, 99], Refused::Authentication(AuthStat(99))),
    ];
    let script = refusals.clone();
    let (client, peer) = Peer::with_one_line(move |mut line| {
        for (status, _) in script {
            let call = line.call().unwrap();
            line.reply(&[words(&[call.xid, 1]), words(&status)].concat());
        }
    });
    for (_, expected) in refusals {
        match call_raw(&client, 1, &[]).unwrap_err() {
            CallError::Refused(refused) => assert_eq!(refused, expected),
            other => panic!("{other} where {expected} was expected"),
        }
    }
    assert_eq!(client.channel().counters().connections, 1);
    peer.join();
}

/// Has the peer answer with `reply`, which knows the call's xid.
#[track_caller]
fn misbehavior(reply: fn(u32) -> Vec<u8>) -> Misbehavior {
    let (client, peer) = Peer::with_one_line(move |mut line| {
        let call = line.call().unwrap();
        line.send(&reply(call.xid));
        line.call();
    });
    let error = call_raw(&client, 1, &[]).unwrap_err();
    assert!(error.may_have_executed());
    drop(client);
    peer.join();
    match error {
        CallError::Misbehaved(misbehavior) => misbehavior,
        other => panic!("{other} is not the peer's fault"),
    }
}

#[test]
fn garbage_is_the_peers_fault() {
    let found = [
        misbehavior(|xid| record(&words(&[xid, 1, 2]))),
        misbehavior(|xid| record(&words(&[xid, 1, 0, 0, 0, 6]))),
        misbehavior(|xid| record(&words(&[xid, 1, 1, 2]))),
        misbehavior(|xid| record(&words(&[xid, 1, 0]))),
        misbehavior(|xid| record(&words(&[xid, 1, 0, 0, 401]))),
        misbehavior(|xid| record(&words(&[xid, 0, 2, 1, 1, 0]))),
        misbehavior(|_| record(&[1, 2])),
    ];
    let expected = [
        Violation::UnknownReplyStat(2),
        Violation::UnknownAcceptStat(6),
        Violation::UnknownRejectStat(2),
        Violation::Truncated(12),
        Violation::VerifierTooLong(401),
        Violation::NotAReply(0),
        Violation::Truncated(0),
    ];
    assert_eq!(found, expected.map(Misbehavior::Message));
}

#[test]
fn a_record_over_the_limit_is_an_error_that_names_sizes() {
    let peer = Peer::tcp(|accept| {
        let mut line = accept();
        let call = line.call().unwrap();
        line.reply(&success(call.xid, &[0; 1001]));
        line.call();
    });
    let client = peer.client_with(ChannelOptions::default().receive_max(1024));
    let error = call_raw(&client, 1, &[]).unwrap_err().to_string();
    assert!(error.contains("1025 bytes"), "{error}");
    assert!(error.contains("limit of 1024"), "{error}");
    assert!(error.contains("receive_max"), "{error}");
    drop(client);
    peer.join();
}

#[test]
fn a_result_of_another_shape_ends_the_call_and_not_the_connection() {
    let (client, peer) = Peer::with_one_line(|mut line| line.echo());
    let no_word = client.onc().call(1, |_| Ok(()), get_word).unwrap_err();
    let CallError::Misbehaved(Misbehavior::Result(error)) = no_word else {
        panic!("{no_word} is not about the result");
    };
    let kind = DecodeErrorKind::Truncated { needed: 4, left: 0 };
    assert_eq!((error.kind, error.offset), (kind, 0));

    let eight = |client: &Client| client.onc().call(1, |out| put_raw(out, &[0; 8]), get_word);
    assert_eq!(eight(&client).unwrap(), 0, "bytes behind are forgiven");
    let strict = eight(&client.with_decode_mode(DecodeMode::Strict));
    let error = strict.unwrap_err().to_string();
    assert!(error.contains("4 bytes follow the value"), "{error}");

    assert_eq!(client.channel().counters().connections, 1);
    drop(client);
    peer.join();
}

#[test]
fn what_cannot_be_sent_is_your_fault_and_stays_here() {
    let peer = Peer::tcp(|accept| accept().echo());
    let options = ChannelOptions::default().send_max(100).calls_max(1);
    let client = peer.client_with(options);

    let bound = EncodeErrorKind::TooLong {
        length: 9,
        bound: 8,
    };
    let error = client
        .onc()
        .call(1, |_| Err(EncodeError::new(bound)), get_raw)
        .unwrap_err();
    assert!(matches!(error, CallError::Arguments(_)), "{error}");
    assert!(!error.may_have_executed());

    let error = call_raw(&client, 1, &[0; 64]).unwrap_err().to_string();
    assert!(error.contains("104 bytes"), "{error}");
    assert!(error.contains("limit of 100"), "{error}");
    assert!(error.contains("send_max"), "{error}");

    let first = start(&client, 1);
    let error = call_raw(&client, 2, &[]).unwrap_err();
    assert!(
        matches!(error, CallError::TooManyCalls { limit: 1 }),
        "{error}"
    );
    assert_eq!(first.wait().unwrap(), 1);
    assert_eq!(call_raw(&client, 3, &[0; 60]).unwrap(), [0; 60]);
    drop(client);
    peer.join();
}

#[test]
fn a_pending_call_can_be_looked_at_before_it_is_waited_for() {
    let (answer, may_answer) = std::sync::mpsc::channel();
    let (client, peer) = Peer::with_one_line(move |mut line| {
        let call = line.call().unwrap();
        may_answer.recv().unwrap();
        line.send(&echo_of(&call));
    });
    let mut pending = start(&client, 6);
    assert!(!pending.is_ready());
    assert!(!pending.wait_for(SHORT));
    answer.send(()).unwrap();
    assert!(pending.wait_for(PATIENCE));
    assert!(pending.is_ready());
    assert_eq!(pending.wait().unwrap(), 6);
    peer.join();
}

#[test]
fn dropped_calls_leave_nothing_behind() {
    let peer = Peer::tcp(|accept| accept().echo());
    let client = peer.client_with(ChannelOptions::default().calls_max(2));
    for number in 0..200 {
        let given_up = start(&client, number);
        assert_eq!(start(&client, number + 1).wait().unwrap(), number + 1);
        drop(given_up);
    }
    let counters = client.channel().counters();
    assert_eq!(counters.in_flight, 0);
    assert_eq!(
        counters.calls.successes, 400,
        "the replies came before the drop"
    );
    drop(client);
    peer.join();
}

#[test]
fn a_decoder_that_panics_leaves_the_channel_to_others() {
    let (client, peer) = Peer::with_one_line(|mut line| line.echo());
    let shared = client.clone();
    let panicked = std::thread::spawn(move || {
        shared
            .onc()
            .call(1, |_| Ok(()), |_| -> Result<(), _> { panic!("on purpose") })
    });
    panicked.join().unwrap_err();
    assert_eq!(start(&client, 2).wait().unwrap(), 2);
    drop(client);
    peer.join();
}

#[test]
fn an_address_that_leads_nowhere_says_what_to_do() {
    let error = Client::connect("localhost:1", 1, 1).unwrap_err();
    assert!(matches!(error, ConnectError::Address(_)), "{error}");
    let error = Channel::connect("tcp://127.0.0.1").unwrap_err();
    assert!(error.to_string().contains("has no port"), "{error}");
    let error = Channel::connect("unix:///nowhere/at/all").unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(
        error.to_string().contains("unix:///nowhere/at/all"),
        "{error}"
    );
}

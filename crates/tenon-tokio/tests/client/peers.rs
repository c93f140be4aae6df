//! Clients in tasks, at peers that do what a script says: that answer wrongly, too much, in part or not
//! at all, and that go away.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::obliging::{ECHO, PATIENCE, call, connect, in_time, interface};
use crate::common::raw::take_out;
use tenon::CallError;
use tenon::wire::Buffer;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Connection, Event, ReplyDraft, ServiceTable};
use tenon_proto::onc::reply::CLOSE_NOTICE;
use tokio::task::JoinSet;

/// A peer on TCP that does what `script` says with each connection, by its number.
struct Peer {
    address: String,
    script: JoinHandle<()>,
}

impl Peer {
    fn new(connections: usize, script: impl Fn(usize, TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let script = thread::spawn(move || {
            for number in 0..connections {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                script(number, stream);
            }
        });
        Self { address, script }
    }
}

/// Reads one record of one fragment; none at the end.
fn read_record(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).ok()?;
    let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
    stream.read_exact(&mut record).ok()?;
    Some(record)
}

/// The reply to a call whose arguments begin 40 bytes behind its xid: its own arguments.
fn echo(call: &[u8]) -> Vec<u8> {
    let words: [u32; 5] = [1, 0, 0, 0, 0];
    let body = [
        &call[..4],
        &words.map(u32::to_be_bytes).concat(),
        &call[40..],
    ]
    .concat();
    let mark = body.len() as u32 | 1 << 31;
    [&mark.to_be_bytes(), &body[..]].concat()
}

/// What an honest lean server says to the first call of a connection, all of it.
fn lean_answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut services = ServiceTable::default();
    let interface = interface();
    services.add(
        interface.program,
        interface.version,
        Some(Arc::new(interface)),
    );
    let (mut connection, mut receiver) = Connection::<()>::server(ConnectionConfig::server());
    loop {
        while let Some(frame) = receiver.next_frame().unwrap() {
            if let Event::Called(call) = connection.handle_frame(frame, &services).unwrap() {
                let mut reply = Buffer::default();
                let draft = ReplyDraft::begin(&mut reply, call.caller);
                reply.extend(call.arguments);
                draft.seal(&mut reply);
                connection.push_reply(&mut reply);
                return take_out(&mut connection);
            }
        }
        let bytes = stream.read(receiver.room()).unwrap();
        assert!(bytes > 0, "the client makes a call");
        receiver.handle_received(bytes).unwrap();
    }
}

/// The honest answer to the first call of a connection.
fn honest(is_lean: bool, stream: &mut TcpStream) -> Vec<u8> {
    match is_lean {
        true => lean_answer(stream),
        false => echo(&read_record(stream).unwrap()),
    }
}

fn way(is_lean: bool, address: &str) -> String {
    match is_lean {
        true => format!("lean+{address}"),
        false => address.to_owned(),
    }
}

/// By ONC RPC it is the last reply, and what a lean client gets instead of a preamble that has crossed with its own.
#[tokio::test]
async fn calls_without_a_reply_in_front_of_a_close_notice_were_not_carried_out() {
    for is_lean in [false, true] {
        let peer = Peer::new(1, move |_, mut stream| {
            assert!(stream.read(&mut [0; 512]).unwrap() > 0);
            let mark = (1 << 31 | CLOSE_NOTICE.len() as u32).to_be_bytes();
            stream
                .write_all(&[&mark, &CLOSE_NOTICE[..]].concat())
                .unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let client = connect(&way(is_lean, &peer.address)).await;
        let client = client.with_timeout(PATIENCE);
        let error = in_time(call(&client, ECHO, b"late")).await.unwrap_err();
        assert!(!error.may_have_executed(), "{is_lean}: {error:?}");
        assert!(error.to_string().contains("stop"), "{error}");
        peer.script.join().unwrap();
    }
}

#[tokio::test]
async fn answers_that_are_cut_off_are_no_answers() {
    for is_lean in [false, true] {
        const CUTS: usize = 24;
        let peer = Peer::new(CUTS, move |number, mut stream| {
            let answer = honest(is_lean, &mut stream);
            let length = answer.len() * number / CUTS;
            stream.write_all(&answer[..length]).unwrap();
            stream.shutdown(Shutdown::Both).unwrap();
        });
        let address = way(is_lean, &peer.address);
        for cut in 0..CUTS {
            let client = connect(&address).await.with_timeout(PATIENCE);
            let error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
            let is_broken = matches!(error, CallError::Disconnected { .. });
            assert!(is_broken && error.may_have_executed(), "{cut}: {error:?}");
        }
        peer.script.join().unwrap();
    }
}

#[tokio::test]
async fn answers_that_are_damaged_end_in_an_error_or_a_result() {
    for is_lean in [false, true] {
        const ROUNDS: usize = 300;
        let peer = Peer::new(ROUNDS, move |number, mut stream| {
            let mut answer = honest(is_lean, &mut stream);
            let place = number.wrapping_mul(7919) % answer.len();
            answer[place] ^= 1 << (number % 8);
            let _ = stream.write_all(&answer);
            let _ = stream.shutdown(Shutdown::Both);
        });
        let address = way(is_lean, &peer.address);
        let mut failures = 0;
        for _ in 0..ROUNDS {
            let client = connect(&address).await.with_timeout(PATIENCE);
            failures += usize::from(in_time(call(&client, ECHO, b"four")).await.is_err());
        }
        assert!(failures > ROUNDS / 4, "{failures}");
        peer.script.join().unwrap();
    }
}

#[tokio::test]
async fn noise_is_no_protocol() {
    for is_lean in [false, true] {
        // A call may take several connections.
        let peer = Peer::new(usize::MAX, |number, mut stream| {
            let mut seed = number as u32;
            let noise = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            });
            let noise: Vec<_> = noise.take(4096).collect();
            let _ = stream.write_all(&noise);
            let _ = stream.shutdown(Shutdown::Both);
        });
        let address = way(is_lean, &peer.address);
        for _ in 0..40 {
            let client = connect(&address)
                .await
                .with_timeout(Duration::from_millis(300));
            let error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
            assert!(
                !matches!(error, CallError::Refused(_) | CallError::Exception(_)),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_was_not_sent_goes_over_the_next_connection() {
    let (closed, is_closed) = mpsc::channel();
    let peer = Peer::new(2, move |number, mut stream| match number {
        0 => {
            drop(stream);
            closed.send(()).unwrap();
        }
        _ => {
            while let Some(call) = read_record(&mut stream) {
                stream.write_all(&echo(&call)).unwrap();
            }
        }
    });
    let client = connect(&peer.address).await.with_timeout(PATIENCE);
    is_closed.recv_timeout(PATIENCE).unwrap();
    // Long enough for the channel to have rested.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let echoed = in_time(call(&client, ECHO, b"four")).await.unwrap();
    assert_eq!(echoed, b"four");
    assert_eq!(client.channel().counters().connections, 2);
    in_time(client.channel().close()).await;
    peer.script.join().unwrap();
}

#[tokio::test]
async fn answers_may_come_in_any_order() {
    const CALLS: u32 = 50;
    let peer = Peer::new(1, |_, mut stream| {
        let calls: Vec<_> = (0..CALLS)
            .map(|_| read_record(&mut stream).unwrap())
            .collect();
        for call in calls.iter().rev() {
            stream.write_all(&echo(call)).unwrap();
        }
        assert_eq!(read_record(&mut stream), None);
    });
    let client = connect(&peer.address).await.with_timeout(PATIENCE);
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move {
            let bytes = number.to_be_bytes();
            assert_eq!(call(&client, ECHO, &bytes).await.unwrap(), bytes);
        });
    }
    in_time(calls.join_all()).await;
    drop(client);
    tokio::task::spawn_blocking(|| peer.script.join().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_peer_that_reads_nothing_holds_up_no_other_call_for_ever() {
    let (tell, told) = mpsc::channel();
    let peer = Peer::new(2, move |number, mut stream| match number {
        // Reads nothing until the client has given up.
        0 => told.recv_timeout(PATIENCE).unwrap(),
        _ => {
            while let Some(call) = read_record(&mut stream) {
                stream.write_all(&echo(&call)).unwrap();
            }
        }
    });
    let client = connect(&peer.address)
        .await
        .with_timeout(Duration::from_millis(300));
    let large = vec![7; 32 << 20];
    let error = in_time(call(&client, ECHO, &large)).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    assert!(!error.may_have_executed());
    tell.send(()).unwrap();
    let client = client.with_timeout(PATIENCE);
    let echoed = in_time(call(&client, ECHO, b"four")).await.unwrap();
    assert_eq!(echoed, b"four");
    in_time(client.channel().close()).await;
    peer.script.join().unwrap();
}

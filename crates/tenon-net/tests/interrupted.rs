//! A thread that waits gives up in time, however often signals interrupt it. No handler of signals is needed for that: a
//! process that is stopped and goes on finds its waits with limits interrupted, too.
#![allow(clippy::unwrap_used)]

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::listen;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tenon_net::{Address, Carrier, Listener, Stream};

const PATIENCE: Duration = Duration::from_secs(60);

/// How long each wait is to take, many times as long as it is left alone.
const LIMIT: Duration = Duration::from_millis(300);

const LEFT_ALONE: Duration = Duration::from_millis(10);

/// Says to this program, when it starts itself, what is to wait.
const WAITS: &str = "TENON_TEST_WAITS";

/// Starts this program for a test, and interrupts it until it is done.
fn interrupt(test: &str, waits: &str) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(WAITS, waits)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let deadline = Instant::now() + PATIENCE;
    let is_over = loop {
        thread::sleep(LEFT_ALONE);
        // It is there until its end was heard of.
        kill_process(pid, Signal::STOP).unwrap();
        let looked = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let state = waitid(WaitId::Pid(pid), looked).unwrap().unwrap();
        if !state.stopped() {
            break true;
        }
        kill_process(pid, Signal::CONT).unwrap();
        if Instant::now() > deadline {
            child.kill().unwrap();
            break false;
        }
    };
    let status = child.wait().unwrap();
    assert!(is_over, "{waits}: it waits for ever");
    assert!(status.success(), "{waits}: {status}");
}

fn fresh_path() -> String {
    let path = env::temp_dir().join(format!("tenon-interrupted-{}", std::process::id()));
    path.display().to_string()
}

fn late() -> Instant {
    Instant::now() + LIMIT
}

/// The kinds of errors of receives from a peer that is silent, one that waits until a deadline and one for a while.
fn from_a_silent_stream(address: &str) -> [io::ErrorKind; 2] {
    let listener = Listener::bind(&address.parse().unwrap()).unwrap();
    let stream = Stream::connect(listener.address(), Instant::now() + PATIENCE).unwrap();
    let mut room = [0; 8];
    let until = stream.recv_until(&mut room, late()).unwrap_err();
    let within = stream.recv_within(&mut room, LIMIT).unwrap_err();
    [until.kind(), within.kind()]
}

/// The same of packets that come alone, or together.
fn from_a_silent_carrier(are_together: bool) -> [io::ErrorKind; 2] {
    let any: Address = "udp://127.0.0.1:0".parse().unwrap();
    let server = Carrier::bind(&any).unwrap();
    let client = Carrier::connect(&server.address().unwrap(), Instant::now() + PATIENCE).unwrap();
    if are_together {
        server.expect_train(100);
        client.expect_train(100);
    }
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    let until = client.recv_until(&mut room, late().into()).unwrap_err();
    let within = server.recv_from_within(&mut room, LIMIT).unwrap_err();
    [until.kind(), within.kind()]
}

/// Connects to an address where `listener` listens and never takes a connection in; says what became of the first
/// that finds no room.
fn to_one_who_is_full(listener: impl AsFd, address: &str) -> io::ErrorKind {
    listen(listener, 0).unwrap();
    let address: Address = address.parse().unwrap();
    let mut others = Vec::new();
    loop {
        match Stream::connect(&address, late()) {
            Ok(other) if others.len() < 8 => others.push(other),
            Ok(_) => panic!("there is always room"),
            Err(error) => return error.kind(),
        }
    }
}

#[test]
fn receives_end_in_time_however_often_they_are_interrupted() {
    let ends = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
    let test = "receives_end_in_time_however_often_they_are_interrupted";
    match env::var(WAITS).as_deref() {
        Ok("tcp") => assert_eq!(from_a_silent_stream("tcp://127.0.0.1:0"), ends),
        Ok("unix") => {
            let address = format!("unix://{}", fresh_path());
            assert_eq!(from_a_silent_stream(&address), ends);
        }
        Ok("alone") => assert_eq!(from_a_silent_carrier(false), ends),
        Ok("together") => assert_eq!(from_a_silent_carrier(true), ends),
        Ok(other) => panic!("{other}"),
        Err(_) => thread::scope(|scope| {
            for waits in ["tcp", "unix", "alone", "together"] {
                scope.spawn(move || interrupt(test, waits));
            }
        }),
    }
}

#[test]
fn connecting_ends_in_time_however_often_it_is_interrupted() {
    let test = "connecting_ends_in_time_however_often_it_is_interrupted";
    let kind = match env::var(WAITS).as_deref() {
        Ok("tcp") => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("tcp://{}", listener.local_addr().unwrap());
            to_one_who_is_full(&listener, &address)
        }
        Ok("unix") => {
            let path = fresh_path();
            let listener = UnixListener::bind(&path).unwrap();
            let kind = to_one_who_is_full(&listener, &format!("unix://{path}"));
            std::fs::remove_file(path).unwrap();
            kind
        }
        Ok(other) => panic!("{other}"),
        Err(_) => {
            return ["tcp", "unix"]
                .into_iter()
                .for_each(|to| interrupt(test, to));
        }
    };
    assert_eq!(kind, io::ErrorKind::TimedOut);
}

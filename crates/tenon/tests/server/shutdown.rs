//! How a server ends: what was begun is answered, what was not is not, and nothing is left.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::caller::*;
use crate::common::gate;
use tenon::{Address, Server, StartError};

fn servers() -> [Server; 2] {
    let on_workers = listening().service(Obliging(VERSION));
    [builder(), on_workers].map(|builder| builder.start().unwrap())
}

/// Waits until `count` calls are with the services.
fn wait_for_calls(server: &Server, count: u64) {
    eventually("the calls arrive", || server.counters().calls == count);
}

/// Where a server listens for TCP.
fn tcp_of(server: &Server) -> String {
    let address = server.addresses()[0].to_string();
    address["tcp://".len()..].to_owned()
}

/// Waits until a server that ends has begun to.
fn wait_until_nobody_listens(server: &Server) {
    let place = tcp_of(server);
    eventually("nobody listens", || TcpStream::connect(&place).is_err());
}

#[test]
fn calls_that_were_begun_are_answered() {
    for server in servers() {
        let mut callers = Caller::on_all(&server);
        let gate = gate::fresh_gate();
        for caller in &mut callers {
            caller.send(&call(1, HOLD, &words(&[gate])));
        }
        wait_for_calls(&server, 3);
        thread::scope(|scope| {
            let stopping = scope.spawn(|| server.shutdown(PATIENCE));
            wait_until_nobody_listens(&server);
            assert!(!stopping.is_finished(), "it waits for calls");
            gate::open(gate);
            for caller in &mut callers {
                assert_eq!(caller.receive(), success(1, &words(&[gate])));
            }
        });
        callers.truncate(2);
        callers.iter_mut().for_each(Caller::expect_close_notice);
        assert_eq!(server.counters().connections_open, 0);
    }
}

#[test]
fn a_call_that_outlasts_the_drain_is_cut_off() {
    for server in servers() {
        let mut callers = Caller::on_streams(&server);
        let gate = gate::fresh_gate();
        for caller in &mut callers {
            caller.send(&call(1, HOLD, &words(&[gate])));
        }
        wait_for_calls(&server, 2);
        server.shutdown(Duration::from_millis(20));
        // It is carried out, and has no reply: the notice would be a lie.
        callers.iter_mut().for_each(Caller::expect_close);
        gate::open(gate);
    }
}

#[test]
fn connections_that_wait_are_closed() {
    let server = builder().start().unwrap();
    let mut callers = Caller::on_streams(&server);
    callers.iter_mut().for_each(Caller::expect_service);
    // One is parked for certain by the time the other has been attended.
    thread::sleep(Duration::from_millis(50));
    callers[0].expect_service();
    server.shutdown(Duration::MAX);
    callers.iter_mut().for_each(Caller::expect_close_notice);
}

#[test]
fn nobody_listens_behind_the_end() {
    let server = builder().start().unwrap();
    let addresses = server.addresses().to_vec();
    server.shutdown(Duration::ZERO);
    let path = addresses.iter().find_map(Address::path);
    let path = path.expect("it listened at a path");
    assert!(TcpStream::connect(tcp_of(&server)).is_err());
    assert!(!Path::new(path).exists());
    // The same ports are free again.
    let mut again = Server::builder();
    for address in &addresses {
        again = again.listen(&address.to_string()).unwrap();
    }
    again.start().unwrap();
}

#[test]
fn a_client_that_never_stops_calling_does_not_hold_the_server() {
    let server = builder().start().unwrap();
    thread::scope(|scope| {
        for mut caller in Caller::on_streams(&server) {
            caller.expect_service();
            let batch: Vec<u8> = record(&call(1, ECHO, &[])).repeat(100);
            let mut reader = caller.twin();
            scope.spawn(move || while caller.try_send_raw(&batch).is_ok() {});
            scope.spawn(move || while let Ok(Some(_)) = reader.try_receive() {});
        }
        server.shutdown(PATIENCE);
    });
    assert_eq!(server.counters().connections_open, 0);
}

#[test]
fn waiting_ends_when_somebody_shuts_down() {
    let server = Arc::new(builder().start().unwrap());
    let waiting = thread::spawn({
        let server = Arc::clone(&server);
        move || server.wait()
    });
    Caller::tcp(&server).expect_service();
    server.shutdown(PATIENCE);
    server.shutdown(PATIENCE);
    waiting.join().unwrap();
}

#[test]
fn dropping_a_server_ends_it() {
    let server = builder().start().unwrap();
    let mut callers = Caller::on_streams(&server);
    callers.iter_mut().for_each(Caller::expect_service);
    drop(server);
    callers.iter_mut().for_each(Caller::expect_close_notice);
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let nowhere = Server::builder().service(Obliging(VERSION)).start();
    assert!(matches!(nowhere, Err(StartError::NoAddress)));
    let twice = listening().service(Obliging(3)).service(Obliging(3));
    assert_eq!(
        twice.start().unwrap_err().to_string(),
        format!("version 3 of program {PROGRAM} is registered twice")
    );
    let first = builder().start().unwrap();
    for address in first.addresses() {
        let address = address.to_string();
        let second = Server::builder().listen(&address).unwrap().start();
        let complaint = second.unwrap_err().to_string();
        assert!(complaint.contains(&address), "{complaint}");
    }
    assert!(Server::builder().listen("carrier-pigeon://coop").is_err());
}

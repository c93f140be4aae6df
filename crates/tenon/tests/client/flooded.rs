//! A client whose peer asks for more than it takes.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, fresh_path};
use tenon::lean::{Fault, Interface, Preamble};
use tenon::{CallError, Client, Misbehavior};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Connection, ServiceTable, TransmitBatch};

/// More than a socket has room for the answers to, and more than a client keeps beside.
const PINGS: u32 = 20_000;

#[test]
fn a_peer_that_pings_on_and_reads_nothing_is_given_up() {
    let path = fresh_path();
    let listener = UnixListener::bind(&path).unwrap();
    let pinging = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut connection, _) = Connection::<()>::server(ConnectionConfig::server());
        let client = Frame::Preamble(Preamble::client(1 << 20));
        let services = ServiceTable::default();
        connection.handle_frame(client, &services).unwrap();
        for _ in 0..PINGS {
            connection.ping();
        }
        let mut batch = TransmitBatch::default();
        assert!(connection.poll_transmit(&mut batch));
        // The client may have gone before it has read all of them.
        let _ = stream.write_all(&batch.slices().concat());
        // Until then it stays there, and reads nothing that it could take for the end.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        thread::park_timeout(PATIENCE);
        let _ = stream.read(&mut [0]);
    });
    let address = format!("lean+unix://{}", path.display());
    let client = Client::connect(&address, PROGRAM, VERSION).unwrap();
    let client = client
        .with_timeout(PATIENCE)
        .with_interface(Arc::new(Interface::unknown(PROGRAM, VERSION)));
    let error = client
        .lean()
        .call(1, |_| Ok(()), |_| Ok(()))
        .map(|()| "an answer");
    pinging.thread().unpark();
    match error.unwrap_err() {
        CallError::Misbehaved(Misbehavior::Lean { violation }) => {
            assert_eq!(violation.fault, Fault::Flood);
        }
        other => panic!("{other}"),
    }
    drop(client);
    pinging.join().unwrap();
    std::fs::remove_file(path).unwrap();
}

//! Messages for which there is no memory: they end the connection that they come over, and the process goes on.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenon::{Channel, ChannelOptions, Client};

use crate::common::caller::{
    Caller, PATIENCE, PROGRAM, VERSION, builder, eventually, limited, record, success, words,
};

/// Bytes of a message that this process cannot have, and which it accepts all the same.
const LARGE: usize = 1 << 30;

/// Bytes that it may take beyond what it has.
const LEFT: u64 = 100 << 20;

/// Lets this process take [`LEFT`] bytes of address space more.
fn limit_memory() -> Rlimit {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kilobytes: u64 = size
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let before = getrlimit(Resource::As);
    let little = Rlimit {
        current: Some((kilobytes << 10) + LEFT),
        ..before
    };
    setrlimit(Resource::As, little).unwrap();
    before
}

/// Sends a record of [`LARGE`] bytes that begins with `first`, until the other end is gone.
fn send_large(stream: &mut TcpStream, first: &[u8]) {
    let mark = 1 << 31 | LARGE as u32;
    let piece = vec![0; 64 << 10];
    let began = stream
        .write_all(&mark.to_be_bytes())
        .and_then(|()| stream.write_all(first));
    if began.is_ok() {
        while stream.write_all(&piece).is_ok() {}
    }
}

pub fn a_message_without_memory_ends_its_connection_alone() {
    let limits = limited(|limits| {
        limits.message_bytes = LARGE + 1024;
        limits.receive_bytes = 2 * LARGE;
    });
    let server = builder().limits(limits).start().unwrap();
    let tcp = server.addresses()[0].to_string();
    let mut others = Caller::connect(&tcp);
    others.expect_service();
    let mut hoarder = TcpStream::connect(tcp.trim_start_matches("tcp://")).unwrap();
    let (client, peer) = client_of_a_boaster();

    let before = limit_memory();
    send_large(&mut hoarder, &[]);
    eventually("it is closed", || server.counters().memory_exhausted == 1);
    others.expect_service();

    let error = client
        .onc()
        .call(1, |_| Ok(()), |input| Ok(input.left()))
        .unwrap_err();
    assert!(error.to_string().contains("out of memory"), "{error}");
    setrlimit(Resource::As, before).unwrap();
    others.expect_service();
    drop(client);
    peer.join().unwrap();
}

/// A client whose peer answers its only call with a message of [`LARGE`] bytes.
fn client_of_a_boaster() -> (Client, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut call = [0; 44];
        stream.read_exact(&mut call).unwrap();
        let xid = u32::from_be_bytes(call[4..8].try_into().unwrap());
        let reply = record(&success(xid, &words(&[])));
        send_large(&mut stream, &reply[4..]);
    });
    let options = ChannelOptions::default().receive_max(LARGE + 1024);
    let channel = Channel::connect_with(&address.parse().unwrap(), options).unwrap();
    (Client::over(channel, PROGRAM, VERSION), peer)
}

//! Channels over sockets that the program has connected itself.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;

use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use caller::*;
use tenon::wire::Encoder;
use tenon::{CallError, Channel, ChannelOptions, Client, ConnectError, Server};

fn server(addresses: &[&str]) -> Server {
    let mut builder = Server::builder().service(Obliging(VERSION));
    for address in addresses {
        builder = builder.listen(address).unwrap();
    }
    builder.start().unwrap()
}

fn client(socket: impl Into<OwnedFd>) -> Client {
    let channel = Channel::over(socket.into(), ChannelOptions::default()).unwrap();
    Client::over(channel, PROGRAM, VERSION)
}

fn echo(client: &Client, word: u32) -> Result<u32, CallError> {
    let put = |out: &mut Encoder<'_>| {
        out.put(word);
        Ok(())
    };
    client.onc().call(ECHO, put, |input| input.get())
}

fn port(server: &Server, index: usize) -> String {
    let address = server.addresses()[index].to_string();
    address.split_once("://").unwrap().1.to_owned()
}

#[test]
fn calls_go_over_sockets_that_the_program_connected() {
    let path = fresh_path();
    let unix = format!("unix://{}", path.display());
    let server = server(&["tcp://127.0.0.1:0", "udp://127.0.0.1:0", &unix]);
    let tcp = TcpStream::connect(port(&server, 0)).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(port(&server, 1)).unwrap();
    let stream = UnixStream::connect(&path).unwrap();
    for client in [client(tcp), client(udp), client(stream)] {
        assert_eq!(echo(&client, 7).unwrap(), 7);
        assert_eq!(echo(&client, 8).unwrap(), 8);
    }
}

#[test]
fn a_lost_connection_of_the_program_is_not_made_again() {
    let server = server(&["tcp://127.0.0.1:0"]);
    let address = port(&server, 0);
    let client = client(TcpStream::connect(&address).unwrap());
    assert_eq!(echo(&client, 1).unwrap(), 1);
    drop(server);
    let _again = TcpListener::bind(&address);
    // The first call may find out by a reset.
    let failures = [echo(&client, 2).unwrap_err(), echo(&client, 3).unwrap_err()];
    let last = failures[1].to_string();
    assert!(last.contains("was connected by the program"), "{last}");
}

#[test]
fn what_is_no_connected_socket_is_refused() {
    let refused = |fd: OwnedFd| Channel::over(fd, ChannelOptions::default()).unwrap_err();
    let unconnected = UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = File::open("/dev/null").unwrap();
    for error in [refused(unconnected.into()), refused(file.into())] {
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    }
}

//! Names with several addresses, and names and ports that lead elsewhere when a connection is made again.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::caller::*;
use crate::common::hosts::{self, Hosts, NAME, PORT, SilentListener};
use crate::common::serving::Serving;
use tenon::lean::Interface;
use tenon::resolve::Resolver;
use tenon::wire::Encoder;
use tenon::{Address, CallError, ChannelOptions, Client, ConnectError, Refusal, Server};

/// Tells the place that a test has set last.
#[derive(Debug)]
struct Directory(Mutex<Option<Address>>);

impl Directory {
    fn of(place: Option<Address>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(place)))
    }

    fn tell(&self, place: Option<Address>) {
        *self.0.lock().unwrap() = place;
    }
}

impl Resolver for Directory {
    fn resolve(
        &self,
        _address: &Address,
        _program: u32,
        _version: u32,
        _timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

fn serving(address: &str) -> Server {
    let builder = Server::builder().service(Serving {
        interface: Interface::unknown(PROGRAM, VERSION),
        body: |_procedure: u32, arguments: &[u8]| -> Result<Vec<u8>, Refusal> {
            Ok(arguments.to_vec())
        },
    });
    builder.listen(address).unwrap().start().unwrap()
}

fn options() -> ChannelOptions {
    // A server that has gone is to be found out soon.
    ChannelOptions::default().retransmission(Duration::from_millis(20), Duration::from_millis(100))
}

/// Calls until one succeeds: the first may find out that the server has gone.
fn ping_until_it_succeeds(client: &Client) {
    eventually("a call succeeds", || client.ping().is_ok());
}

#[test]
fn the_resolver_is_asked_again_when_the_connection_is_made_again() {
    for scheme in ["tcp", "lean+tcp", "udp", "lean+udp"] {
        let transport = scheme.trim_start_matches("lean+");
        let listen = format!("{transport}://127.0.0.1:0");
        let first = serving(&listen);
        let directory = Directory::of(Some(first.addresses()[0].clone()));
        let options = options().resolver(Arc::<Directory>::clone(&directory));
        let address = format!("{scheme}://127.0.0.1");
        let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
        let client = client.with_timeout(Duration::from_secs(2));
        client.ping().unwrap();
        assert_eq!(client.channel().address().to_string(), address);

        let second = serving(&listen);
        drop(first);
        directory.tell(Some(second.addresses()[0].clone()));
        ping_until_it_succeeds(&client);
        assert!(second.counters().pings > 0, "{scheme}");
        let located = client.channel().located();
        let port = |address: &Address| address.host().unwrap().port;
        assert_eq!(port(&located), port(&second.addresses()[0]), "{scheme}");

        // One that is not registered any more is told, and found when it is again.
        directory.tell(None);
        drop(second);
        eventually("it is not registered", || {
            let is_told = |error| {
                matches!(
                    error,
                    CallError::Connect(ConnectError::NotRegistered { .. })
                )
            };
            client.ping().is_err_and(is_told)
        });
        let third = serving(&listen);
        directory.tell(Some(third.addresses()[0].clone()));
        ping_until_it_succeeds(&client);
    }
}

#[test]
fn a_channel_that_connects_lazily_asks_the_resolver_then() {
    let directory = Directory::of(None);
    let options = options().resolver(Arc::<Directory>::clone(&directory));
    let options = options.connect_lazily(true);
    let client = Client::connect_with("tcp://127.0.0.1", PROGRAM, VERSION, options).unwrap();
    let error = client.ping().unwrap_err();
    assert!(
        matches!(
            error,
            CallError::Connect(ConnectError::NotRegistered { .. })
        ),
        "{error}"
    );
    let server = serving("tcp://127.0.0.1:0");
    directory.tell(Some(server.addresses()[0].clone()));
    ping_until_it_succeeds(&client);
}

// ---- Names with several addresses, in a namespace with a file of hosts of its own ----

#[test]
fn with_hosts_of_its_own() {
    hosts::run_with_own("addresses::inside");
}

#[test]
#[ignore = "not a test of its own: it wants a private network and a file of hosts"]
fn inside() {
    let hosts = Hosts::replace();
    a_silent_address_does_not_keep_a_connection_from_the_next(&hosts);
    datagrams_go_to_the_first_address_that_answers(&hosts);
    all_addresses_are_told_with_their_causes(&hosts);
    a_name_is_asked_for_again_when_the_connection_is_made_again(&hosts);
}

fn connect_by_name(scheme: &str, options: ChannelOptions) -> Result<Client, ConnectError> {
    let address = format!("{scheme}://{NAME}:{PORT}");
    Client::connect_with(&address, PROGRAM, VERSION, options)
}

fn a_silent_address_does_not_keep_a_connection_from_the_next(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    let _silent = SilentListener::open("127.0.0.2");
    // Nothing listens at 127.0.0.3.
    let server = serving(&format!("tcp://127.0.0.4:{PORT}"));
    for scheme in ["tcp", "lean+tcp"] {
        let client = connect_by_name(scheme, options().connect_timeout(PATIENCE)).unwrap();
        client.ping().unwrap();
    }
    assert_eq!(server.counters().connections_accepted, 2);
    server.shutdown(PATIENCE);
}

fn datagrams_go_to_the_first_address_that_answers(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    let silent = UdpSocket::bind(("127.0.0.2", PORT)).unwrap();
    let server = serving(&format!("udp://127.0.0.4:{PORT}"));
    for scheme in ["udp", "lean+udp"] {
        let client = connect_by_name(scheme, options().connect_timeout(PATIENCE)).unwrap();
        for _ in 0..3 {
            client.ping().unwrap();
        }
        if scheme == "udp" {
            let put = |out: &mut Encoder<'_>| {
                out.put(7_u32);
                Ok(())
            };
            let echoed: u32 = client.onc().call(ECHO, put, |input| input.get()).unwrap();
            assert_eq!(echoed, 7);
        }
    }
    // The silent address was sent probes, and no call of the program: those are of procedure 0, or greetings.
    silent.set_nonblocking(true).unwrap();
    let mut room = [0; 2048];
    let mut probes = 0;
    while let Ok(length) = silent.recv(&mut room) {
        let word = |at: usize| u32::from_be_bytes(room[at..at + 4].try_into().unwrap());
        // The message is a call (0), and that of ONC RPC (version 2).
        if length >= 24 && word(4) == 0 && word(8) == 2 && word(12) == PROGRAM {
            assert_eq!(word(20), 0, "the procedure");
            probes += 1;
        }
    }
    assert!(probes > 0);
    server.shutdown(PATIENCE);
}

fn all_addresses_are_told_with_their_causes(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3"]);
    let _silent = UdpSocket::bind(("127.0.0.2", PORT)).unwrap();
    // Machines were seen that stood still for half a second in the middle of a system call.
    let limit = Duration::from_millis(2500);
    for scheme in ["tcp", "udp", "lean+udp"] {
        let error = connect_by_name(scheme, options().connect_timeout(limit)).unwrap_err();
        let text = error.to_string();
        for address in ["127.0.0.2:2049: ", "127.0.0.3:2049: Connection refused"] {
            assert!(text.contains(address), "{scheme}: {text}");
        }
    }
}

fn a_name_is_asked_for_again_when_the_connection_is_made_again(hosts: &Hosts) {
    for scheme in ["tcp", "lean+tcp", "udp", "lean+udp"] {
        let transport = scheme.trim_start_matches("lean+");
        hosts.set(&["127.0.0.5"]);
        let first = serving(&format!("{transport}://127.0.0.5:{PORT}"));
        let client = connect_by_name(scheme, options()).unwrap();
        let client = client.with_timeout(Duration::from_secs(2));
        client.ping().unwrap();
        drop(first);
        hosts.set(&["127.0.0.6"]);
        let second = serving(&format!("{transport}://127.0.0.6:{PORT}"));
        ping_until_it_succeeds(&client);
        assert!(second.counters().pings > 0, "{scheme}");
        second.shutdown(PATIENCE);
    }
    // A peer that goes silent, and does not refuse, is left too when its name leads elsewhere.
    hosts.set(&["127.0.0.5"]);
    let first = serving(&format!("udp://127.0.0.5:{PORT}"));
    let client = connect_by_name("udp", options()).unwrap();
    let client = client.with_timeout(Duration::from_millis(300));
    client.ping().unwrap();
    drop(first);
    let _silent = UdpSocket::bind(("127.0.0.5", PORT)).unwrap();
    hosts.set(&["127.0.0.6"]);
    let _second = serving(&format!("udp://127.0.0.6:{PORT}"));
    ping_until_it_succeeds(&client);
}

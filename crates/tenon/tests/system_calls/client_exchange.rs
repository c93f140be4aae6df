//! A large message of the packet exchange costs few system calls: datagrams that pass an Ethernet go to the
//! system and come from it many at a time.

use std::io::{self, Write};
use std::net::{IpAddr, UdpSocket};

use crate::common::counting::{all, expect_system_calls, orders};
use crate::common::lean_caller::LeanObliging;
use crate::common::lean_steady::{client_with, echo};
use tenon::{ChannelOptions, Server, Waiting};

/// Bytes of every argument and every result.
const MEGABYTE: usize = 1 << 20;

/// An address of this machine that other machines reach it at: between such addresses datagrams are as small
/// as an Ethernet has them, though the system carries them as quickly as any others.
fn outer_address() -> Option<IpAddr> {
    // Nothing is sent: the system only says which of its addresses it would send from.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("203.0.113.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

fn server() -> Option<Server> {
    let Some(ip) = outer_address() else {
        // Not by `eprintln!`: what it says of a test that passes is kept back.
        let why = "this machine has no address but those of its loopback";
        let _ = writeln!(
            io::stderr(),
            "\nSKIPPED: a megabyte's system calls: {why}\n"
        );
        return None;
    };
    let builder = Server::builder().service(LeanObliging);
    Some(
        builder
            .listen(&format!("udp://{ip}:0"))
            .unwrap()
            .start()
            .unwrap(),
    )
}

/// A megabyte is 740 packets each way, and an acknowledgement for every eighth of them: more than 1,600 system calls if
/// each packet took one. How many are received together depends on how fast the machine is: 60 to 170 were seen.
#[test]
fn a_megabyte_there_and_back_makes_few_system_calls() {
    const CALLS: u32 = 20;
    let Some(server) = server() else { return };
    let address = format!("lean+{}", server.addresses()[0]);
    let child = "client_exchange::make_the_large_calls_that_are_ordered";
    expect_system_calls(child, &address, CALLS, |counts| {
        all(counts) / u64::from(CALLS) < 250
    });
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_large_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = client_with(&orders.address, options);
    (0..orders.calls).for_each(|_| echo(&client, MEGABYTE));
}

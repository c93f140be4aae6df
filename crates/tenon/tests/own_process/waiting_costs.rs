//! What waiting costs, counted: whatever looks for messages in this process.

use std::thread;
use std::time::Duration;

use crate::common::caller::*;
use tenon::{Address, Channel, ChannelOptions, Client, Server, WaitCounters, Waiting};

fn client(address: &Address, waiting: Waiting) -> Client {
    let options = ChannelOptions::default().waiting(waiting);
    let channel = Channel::connect_with(address, options).unwrap();
    Client::over(channel, PROGRAM, VERSION)
}

fn server(waiting: Waiting) -> Server {
    builder().waiting(waiting).start().unwrap()
}

fn sleep(client: &Client, millis: u32) {
    let put = |out: &mut tenon::wire::Encoder<'_>| {
        out.put(millis);
        Ok(())
    };
    let get = |input: &mut tenon::wire::Decoder<'_>| input.get::<u32>();
    assert_eq!(client.onc().call(SLEEP, put, get).unwrap(), millis);
}

/// What `calls` add to what has been counted of a client.
fn counted(client: &Client, calls: impl FnOnce()) -> WaitCounters {
    let before = client.channel().counters().waits;
    calls();
    let mut waits = client.channel().counters().waits;
    waits.blocks -= before.blocks;
    waits.spins -= before.spins;
    waits.misses -= before.misses;
    waits.attempts -= before.attempts;
    waits
}

/// Receives that can be tried in vain within the longest patience there is.
const PATIENT_ATTEMPTS: u64 = 2000;

pub fn waiting_costs_what_its_policy_says() {
    let servers = Waiting::ALL.map(|(_, waiting)| server(waiting));
    for server in &servers {
        for address in server.addresses() {
            who_blocks_looks_at_nothing(address);
            who_spins_does_not_block(address);
            who_adapts_soon_sleeps_through_a_long_wait(address);
            who_adapts_learns_that_looking_does_not_pay(address);
        }
    }
    let [at_blocking, ..] = &servers;
    assert_eq!(at_blocking.counters().waits.attempts, 0);
    servers.iter().for_each(an_idle_server_costs_nothing);
}

fn who_blocks_looks_at_nothing(address: &Address) {
    let client = client(address, Waiting::Block);
    let waits = counted(&client, || (0..50).for_each(|_| sleep(&client, 0)));
    assert!(waits.blocks >= 50, "{waits:?}");
    assert_eq!((waits.spins, waits.misses, waits.attempts), (0, 0, 0));
}

fn who_spins_does_not_block(address: &Address) {
    let client = client(address, Waiting::Spin);
    let waits = counted(&client, || (0..10).for_each(|_| sleep(&client, 2)));
    assert_eq!(waits.blocks, 0, "{waits:?}");
    assert!(
        waits.attempts >= waits.spins && waits.spins > 0,
        "{waits:?}"
    );
}

fn who_adapts_soon_sleeps_through_a_long_wait(address: &Address) {
    let client = client(address, Waiting::Adaptive);
    // Who does not get to run meanwhile finds the reply at the next look.
    eventually("a wait is slept through", || {
        let waits = counted(&client, || sleep(&client, 200));
        assert!(waits.attempts < PATIENT_ATTEMPTS, "{waits:?}");
        waits.blocks > 0
    });
    let idle = counted(&client, || thread::sleep(Duration::from_millis(50)));
    assert_eq!(idle, WaitCounters::default());
}

fn who_adapts_learns_that_looking_does_not_pay(address: &Address) {
    let client = client(address, Waiting::Adaptive);
    // 1 + 2 + 4 + ... waits are slept through; a busy machine may make looking succeed by chance.
    eventually("most waits are slept through", || {
        let waits = counted(&client, || (0..100).for_each(|_| sleep(&client, 1)));
        waits.misses < 50 && waits.blocks > 50
    });
}

fn an_idle_server_costs_nothing(server: &Server) {
    let mut callers = Caller::on_all(server);
    callers.iter_mut().for_each(Caller::expect_service);
    eventually("nobody waits but for events", || {
        let before = server.counters().waits;
        thread::sleep(Duration::from_millis(250));
        server.counters().waits == before
    });
    callers.iter_mut().for_each(Caller::expect_service);
}

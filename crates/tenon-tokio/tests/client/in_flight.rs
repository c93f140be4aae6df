//! Calls in flight over one connection of tasks: how many they may be, and what becomes of those that are more.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::obliging;
use crate::common::obliging::{
    ECHO, HOLD, PATIENCE, PROGRAM, VERSION, call, connect, connect_with, eventually, in_time,
};
use crate::common::place::{fresh_host, fresh_path};
use crate::common::slow_path::slow_path;
use tenon::lean::Interface;
use tenon::{ChannelOptions, Protocol, Refusal, ServerLimits};
use tenon_tokio::{Answer, AsyncService, Call, Client, Server};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Returns when as many calls as its argument says are carried out at the same time.
const MEET: u16 = 2;

/// Carries out what a test asks for, and notes it.
#[derive(Default)]
struct Noted {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Procedures and arguments, in the order in which they were begun.
    seen: Vec<(u16, u32)>,
    open: BTreeSet<u32>,
}

impl Noted {
    fn seen(&self) -> Vec<(u16, u32)> {
        self.state.lock().unwrap().seen.clone()
    }

    fn count(&self, procedure: u16) -> usize {
        let state = self.state.lock().unwrap();
        let seen = state.seen.iter();
        seen.filter(|(seen, _)| *seen == procedure).count()
    }

    fn open(&self, gate: u32) {
        self.state.lock().unwrap().open.insert(gate);
        self.changed.notify_waiters();
    }

    /// Waits until this is so.
    async fn wait_until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.state.lock().unwrap()) {
                return;
            }
            changed.await;
        }
    }
}

struct Noting(Arc<Noted>);

impl AsyncService for Noting {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(obliging::interface()))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let arguments = match call.protocol() {
            Protocol::Onc => call.decode(obliging::get)?,
            Protocol::Lean => call.decode_lean(obliging::get_lean)?,
        };
        let argument = u32::from_be_bytes(arguments[..4].try_into().unwrap());
        let (noted, procedure) = (&self.0, call.procedure() as u16);
        noted.state.lock().unwrap().seen.push((procedure, argument));
        match procedure {
            HOLD => {
                noted
                    .wait_until(|state| state.open.contains(&argument))
                    .await
            }
            MEET => {
                noted.changed.notify_waiters();
                let come = |state: &State| state.seen.len() >= argument as usize;
                noted.wait_until(come).await;
            }
            _ => {}
        }
        match call.protocol() {
            Protocol::Onc => call.answer(obliging::put(&arguments)),
            Protocol::Lean => call.answer_lean(obliging::put_lean(&arguments)),
        }
    }
}

/// A server of tasks on TCP, a Unix socket and UDP.
async fn serve(limits: ServerLimits) -> (Server, Arc<Noted>) {
    let noted = Arc::<Noted>::default();
    let mut builder = Server::builder().limits(limits);
    for address in [
        format!("tcp://{}:0", fresh_host()),
        format!("unix://{}", fresh_path().display()),
        format!("udp://{}:0", fresh_host()),
    ] {
        builder = builder.listen(&address).unwrap();
    }
    let service = Noting(Arc::clone(&noted));
    (builder.service(service).start().await.unwrap(), noted)
}

fn lean_addresses(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter();
    addresses.map(|address| format!("lean+{address}")).collect()
}

/// Has a task make a call.
fn spawn(client: &Client, procedure: u16, argument: u32) -> JoinHandle<()> {
    let client = client.with_timeout(2 * PATIENCE);
    tokio::spawn(async move {
        let bytes = argument.to_be_bytes();
        assert_eq!(call(&client, procedure, &bytes).await.unwrap(), bytes);
    })
}

async fn join(calls: impl IntoIterator<Item = JoinHandle<()>>) {
    for call in calls {
        call.await.unwrap();
    }
}

fn with_room_for(calls: usize) -> ServerLimits {
    ServerLimits {
        connection_calls: calls,
        ..ServerLimits::default()
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(in_time(test));
}

#[test]
fn a_thousand_long_polls_leave_room_for_another_call() {
    const POLLS: usize = 1000;
    run(async {
        let (server, noted) = serve(ServerLimits::default()).await;
        for (address, gate) in lean_addresses(&server).iter().zip(1..) {
            let client = connect(address).await;
            let before = noted.count(HOLD);
            let polls: Vec<_> = (0..POLLS).map(|_| spawn(&client, HOLD, gate)).collect();
            eventually("all of them are carried out", || {
                noted.count(HOLD) == before + POLLS
            })
            .await;
            spawn(&client, ECHO, 5).await.unwrap();
            assert_eq!(client.channel().counters().in_flight, POLLS, "{address}");
            noted.open(gate);
            join(polls).await;
        }
    });
}

/// None of them is answered before all are carried out.
#[test]
fn two_hundred_callers_are_in_flight_together_over_a_slow_path() {
    const CALLERS: u32 = 200;
    run(async {
        let (server, noted) = serve(ServerLimits::default()).await;
        let place = server.addresses()[0].to_string().replace("tcp://", "");
        let place: SocketAddr = place.parse().unwrap();
        let path = slow_path(place, Duration::from_millis(25));
        let client = connect(&format!("lean+tcp://{path}")).await;
        let calls: Vec<_> = (0..CALLERS)
            .map(|_| spawn(&client, MEET, CALLERS))
            .collect();
        join(calls).await;
        assert_eq!(noted.count(MEET), CALLERS as usize);
    });
}

#[test]
fn calls_that_wait_for_room_go_in_their_order() {
    // As few as a lean server may take.
    const ROOM: usize = 16;
    const WAITING: u32 = 100;
    run(async {
        let (server, noted) = serve(with_room_for(ROOM)).await;
        for address in lean_addresses(&server) {
            let client = connect(&address).await;
            spawn(&client, ECHO, 0).await.unwrap();
            noted.state.lock().unwrap().seen.clear();
            let held: Vec<_> = (0..ROOM as u32)
                .map(|number| spawn(&client, HOLD, number))
                .collect();
            eventually("all of them are carried out", || noted.count(HOLD) == ROOM).await;
            let mut waiting = Vec::new();
            for number in 1..=WAITING {
                let call = client.lean().start(
                    ECHO.into(),
                    obliging::put_lean(&number.to_be_bytes()),
                    obliging::get_lean,
                );
                waiting.push(call.unwrap());
            }
            assert_eq!(noted.count(ECHO), 0, "{address}");
            // One after the other has room.
            noted.open(0);
            for call in waiting {
                call.await.unwrap();
            }
            let seen = noted.seen();
            let echoes: Vec<_> = seen
                .iter()
                .filter(|(procedure, _)| *procedure == ECHO)
                .collect();
            let expected: Vec<_> = (1..=WAITING).map(|number| (ECHO, number)).collect();
            assert_eq!(echoes, expected.iter().collect::<Vec<_>>(), "{address}");
            (0..ROOM as u32).for_each(|gate| noted.open(gate));
            join(held).await;
            noted.state.lock().unwrap().open.clear();
        }
    });
}

#[test]
fn a_call_that_has_found_no_room_says_so() {
    const ROOM: usize = 16;
    const SHORT: Duration = Duration::from_millis(100);
    let says = |limit: usize| {
        format!(
            "no reply within 100ms; it waited for room among the {limit} calls in flight, and was not sent"
        )
    };
    run(async {
        let (server, noted) = serve(with_room_for(ROOM)).await;
        for (address, gate) in lean_addresses(&server).iter().zip(1..) {
            // Room that the server does not give, and room that the channel does not.
            let few = ChannelOptions::default().calls_max(4);
            let clients = [
                (ROOM, connect(address).await),
                (4, connect_with(address, few).await),
            ];
            for (limit, client) in clients {
                spawn(&client, ECHO, 0).await.unwrap();
                noted.state.lock().unwrap().seen.clear();
                let held: Vec<_> = (0..limit).map(|_| spawn(&client, HOLD, gate)).collect();
                eventually("all of them are carried out", || noted.count(HOLD) == limit).await;
                let hurried = client.with_timeout(SHORT);
                let error = call(&hurried, ECHO, &[0; 4]).await.unwrap_err();
                assert!(!error.may_have_executed());
                assert_eq!(error.to_string(), says(limit), "{address}");
                assert_eq!(noted.count(ECHO), 0, "{address}");
                noted.open(gate);
                join(held).await;
                noted.state.lock().unwrap().open.clear();
            }
        }
    });
}

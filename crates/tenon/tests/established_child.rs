//! Calls to a child process, which serves on its standard input and output. The child is this program once more, so it
//! has no harness, which would write to its output.
#![allow(clippy::unwrap_used)]

use std::io::{stdin, stdout};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tenon::wire::{Decoder, Encoder};
use tenon::{
    CallInfo, Channel, ChannelOptions, Client, EstablishedConnection, Protocol, Refusal, Server,
    Service,
};

const PROGRAM: u32 = 0x2000_0042;
/// Says that this process is the child.
const SERVES: &str = "TENON_TEST_SERVES_STDIO";

/// Adds one to a number.
struct Successor;

impl Service for Successor {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        result.put(arguments.get::<u32>()?.wrapping_add(1));
        Ok(())
    }
}

fn main() {
    if std::env::var_os(SERVES).is_some() {
        return serve();
    }
    // Tools that run tests one by one ask for their names.
    if std::env::args().any(|argument| argument == "--list") {
        return println!("calls_reach_a_child: test");
    }
    calls_reach_a_child();
    println!("test calls_reach_a_child ... ok");
}

/// Serves until the parent has closed the connection.
fn serve() {
    let builder = Server::builder().no_listener().service(Successor);
    let server = builder.start().unwrap();
    let closed = Arc::new(AtomicBool::new(false));
    let connection = EstablishedConnection::from_halves(stdin(), stdout()).on_close({
        let closed = Arc::clone(&closed);
        move || closed.store(true, Ordering::SeqCst)
    });
    server.serve_stream(connection).unwrap();
    while !closed.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(5));
    }
}

fn start_child() -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.env(SERVES, "1");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn calls_reach_a_child() {
    let mut child = start_child();
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let connection = EstablishedConnection::from_halves(reader, writer);
    let channel = Channel::over(connection, Protocol::Onc, ChannelOptions::default()).unwrap();
    let client = Client::over(channel, PROGRAM, 1).with_timeout(Duration::from_secs(60));
    for number in 0..1000 {
        let encode = |out: &mut Encoder<'_>| {
            out.put(number);
            Ok(())
        };
        let next: u32 = client.onc().call(1, encode, |input| input.get()).unwrap();
        assert_eq!(next, number + 1);
    }
    // Closing the channel ends the child's input, and so the child.
    drop(client);
    assert!(child.wait().unwrap().success());

    // A child that dies ends the connection.
    let mut child = start_child();
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let connection = EstablishedConnection::from_halves(reader, writer);
    let channel = Channel::over(connection, Protocol::Onc, ChannelOptions::default()).unwrap();
    let client = Client::over(channel, PROGRAM, 1).with_timeout(Duration::from_secs(60));
    client.ping().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let error = client.ping().unwrap_err();
    assert!(!error.to_string().contains("no reply within"), "{error}");
}

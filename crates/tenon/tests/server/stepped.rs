//! A server without threads, in an event loop of the program's own.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::*;
use crate::common::lean_caller;
use crate::common::lean_caller::{LeanCaller, LeanObliging, with_shm};
use crate::common::own_process::run;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenon::{Client, Protocol, ServerBuilder, SteppedServer};

/// Serves as an event loop does, which waits for nothing but what the server tells, until `clients` are done.
fn serve_while(server: &mut SteppedServer, clients: impl FnOnce(Vec<String>) + Send) {
    let addresses = server.handle().addresses().iter().map(ToString::to_string);
    let addresses = addresses.collect();
    let (end, mut ending) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            clients(addresses);
            ending.write_all(b"end").unwrap();
        });
        loop {
            let limit = server.next_timeout().unwrap_or(PATIENCE);
            let limit = Timespec::try_from(limit.min(PATIENCE)).unwrap();
            let sockets = [server.as_fd(), end.as_fd()];
            let mut waited = sockets.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            poll(&mut waited, Some(&limit)).unwrap();
            if !waited[1].revents().is_empty() {
                return;
            }
            assert!(server.step());
        }
    });
}

fn stepped(builder: ServerBuilder) -> SteppedServer {
    builder.start_stepped().unwrap()
}

/// Calls and checks the answer, by whichever protocol the address has.
fn echo(client: &Client, number: u32) {
    let got: u32 = match client.protocol() {
        Protocol::Onc => client.onc().call(
            ECHO,
            |out| {
                out.put(number);
                Ok(())
            },
            |input| input.get(),
        ),
        Protocol::Lean => client.lean().call(
            lean_caller::ECHO.into(),
            |out| {
                out.put(number);
                Ok(())
            },
            |input| match input {
                tenon::LeanInput::Native(input) => input.get(),
                tenon::LeanInput::Swapped(input) => input.get(),
            },
        ),
    }
    .unwrap();
    assert_eq!(got, number);
}

/// Threads of this process that a server has started.
fn server_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("tenon-")).count()
}

#[test]
fn an_event_loop_serves_every_transport_and_both_protocols_without_a_thread() {
    run(
        "stepped::an_event_loop_serves_every_transport_and_both_protocols_without_a_thread",
        serve_every_transport_and_both_protocols,
    );
}

fn serve_every_transport_and_both_protocols() {
    let mut server = stepped(with_shm(listening()).service(LeanObliging));
    serve_while(&mut server, |addresses| {
        let lean = addresses.iter().filter(|one| !one.starts_with("shm"));
        let lean: Vec<_> = lean.map(|one| format!("lean+{one}")).collect();
        for address in addresses.iter().chain(&lean) {
            let client = Client::connect(address, PROGRAM, VERSION).unwrap();
            (0..100).for_each(|number| echo(&client, number));
        }
        assert_eq!(server_threads(), 0);
    });
    assert_eq!(server.handle().counters().calls, 700);
    assert_eq!(server.handle().counters().calls_handed_over, 0);
}

#[test]
fn more_calls_than_a_turn_has_are_all_answered() {
    const CALLS: u32 = 5000;
    let mut server = stepped(builder());
    serve_while(&mut server, |addresses| {
        let mut callers: Vec<_> = (0..3).map(|_| Caller::connect(&addresses[0])).collect();
        let calls: Vec<u8> = (0..CALLS)
            .flat_map(|xid| record(&call(xid, ECHO, &words(&[xid]))))
            .collect();
        thread::scope(|scope| {
            for caller in &mut callers {
                let mut twin = caller.twin();
                let calls = &calls;
                scope.spawn(move || twin.send_raw(calls));
                scope.spawn(move || {
                    for xid in 0..CALLS {
                        assert_eq!(caller.receive(), success(xid, &words(&[xid])));
                    }
                });
            }
        });
    });
    assert_eq!(server.handle().counters().calls, 3 * u64::from(CALLS));
}

#[test]
fn a_silent_connection_is_closed_at_the_time_that_the_server_told() {
    const IDLE: Duration = Duration::from_millis(400);
    let limits = limited(|limits| limits.idle_timeout = Some(IDLE));
    let mut server = stepped(builder().limits(limits));
    serve_while(&mut server, |addresses| {
        let mut caller = Caller::connect(&addresses[0]);
        caller.expect_service();
        let begin = Instant::now();
        caller.expect_close();
        assert!(begin.elapsed() >= IDLE - Duration::from_millis(10));
    });
}

#[test]
fn a_large_answer_waits_for_its_reader_and_others_are_served_meanwhile() {
    const SIZE: u32 = 4 << 20;
    let mut server = stepped(builder());
    serve_while(&mut server, |addresses| {
        let mut slow = Caller::connect(&addresses[0]);
        slow.send(&call(1, BIG, &words(&[SIZE])));
        let mut other = Caller::connect(&addresses[0]);
        (0..10).for_each(|_| other.expect_service());
        assert!(slow.receive().len() > SIZE as usize);
    });
}

#[test]
fn a_server_between_two_steps_shuts_down_at_once() {
    let mut server = stepped(with_shm(listening()).service(LeanObliging));
    let address = server.handle().addresses()[0].to_string();
    serve_while(&mut server, |addresses| {
        LeanCaller::connect(&addresses[0]).call(lean_caller::ECHO, b"");
    });
    let mut idle = Caller::connect(&address);
    server.step();
    let begin = Instant::now();
    server.handle().shutdown(PATIENCE);
    assert!(begin.elapsed() < Duration::from_secs(10));
    idle.expect_close_notice();
    assert!(!server.step(), "it has ended");
    assert_eq!(server.next_timeout(), None);
    assert_eq!(server.handle().counters().connections_open, 0);
}

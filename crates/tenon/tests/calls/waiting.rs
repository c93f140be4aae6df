//! Whatever the way to wait: calls are answered, time limits hold, ends are noticed, at both ends and
//! over every transport.

use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::caller::*;
use crate::common::lean_caller;
use tenon::{
    Address, CallError, Channel, ChannelOptions, Client, PendingCall, Server, Transport, Waiting,
};

fn options(waiting: Waiting) -> ChannelOptions {
    ChannelOptions::default().waiting(waiting)
}

fn client(address: &Address, waiting: Waiting) -> Client {
    let channel = Channel::connect_with(address, options(waiting)).unwrap();
    Client::over(channel, PROGRAM, VERSION)
}

fn server(waiting: Waiting) -> Server {
    builder().waiting(waiting).start().unwrap()
}

/// Does the same for each way to wait of a client and a server.
fn for_each_pair(mut test: impl FnMut(&Client, &Server)) {
    for (_, at_server) in Waiting::ALL {
        let server = server(at_server);
        for address in server.addresses() {
            for (_, at_client) in Waiting::ALL {
                test(&client(address, at_client), &server);
            }
        }
    }
}

/// Fails instead of hanging.
fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(3 * PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => running.join().unwrap(),
    }
}

fn start(client: &Client, procedure: u32, bytes: &[u8]) -> PendingCall<Vec<u8>> {
    let put = |out: &mut tenon::wire::Encoder<'_>| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    };
    let get = |input: &mut tenon::wire::Decoder<'_>| Ok(input.take(input.left())?.to_vec());
    client.onc().start(procedure, put, get).unwrap()
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

#[test]
fn messages_of_all_sizes_come_back() {
    bounded(|| {
        for_each_pair(|client, _| {
            let most = match client.channel().address().transport() {
                Transport::Udp | Transport::Xdp => 60_000,
                Transport::Tcp | Transport::Unix | Transport::Shm => 1 << 20,
            };
            for size in [0, 4, 1440, 4096, 9000, 16_384, 60_000, most] {
                let bytes = pattern(size);
                let echoed = start(client, ECHO, &bytes).wait().unwrap();
                assert!(echoed == bytes, "{size} bytes over {client:?}");
            }
        });
    });
}

#[test]
fn many_calls_are_in_flight() {
    bounded(|| {
        for_each_pair(|client, _| {
            let calls = (0..100).map(|number: u32| start(client, ECHO, &number.to_be_bytes()));
            for (number, call) in (0_u32..).zip(calls.collect::<Vec<_>>()) {
                assert_eq!(call.wait().unwrap(), number.to_be_bytes());
            }
        });
    });
}

#[test]
fn many_threads_share_a_channel() {
    const THREADS: u32 = 6;
    const CALLS: u32 = 50;
    bounded(|| {
        for_each_pair(|client, _| {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        for number in 0..CALLS {
                            let token = (thread << 16 | number).to_be_bytes();
                            assert_eq!(start(client, ECHO, &token).wait().unwrap(), token);
                        }
                    });
                }
            });
            let counters = client.channel().counters();
            assert_eq!(counters.calls.successes, u64::from(THREADS * CALLS));
            assert_eq!(counters.in_flight, 0);
        });
    });
}

#[test]
fn lean_calls_are_answered() {
    bounded(|| {
        for (_, waiting) in Waiting::ALL {
            let server = lean_caller::lean_everywhere().waiting(waiting);
            let server = server.start().unwrap();
            let addresses = server.addresses().iter().cloned();
            for address in addresses.map(Address::over_lean) {
                let client = client(&address, waiting);
                for _ in 0..100 {
                    let call = client
                        .lean()
                        .call(lean_caller::ECHO.into(), |_| Ok(()), |_| Ok(()));
                    call.unwrap();
                }
            }
        }
    });
}

/// Peers that take calls and never answer.
struct Silent {
    listener: TcpListener,
    socket: UdpSocket,
}

impl Silent {
    fn new() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
        }
    }

    fn addresses(&self) -> [Address; 2] {
        let tcp = self.listener.local_addr().unwrap();
        let udp = self.socket.local_addr().unwrap();
        [format!("tcp://{tcp}"), format!("udp://{udp}")].map(|address| address.parse().unwrap())
    }
}

#[test]
fn a_call_ends_at_its_time_limit() {
    bounded(|| {
        let silent = Silent::new();
        for (_, waiting) in Waiting::ALL {
            for address in silent.addresses() {
                let client = client(&address, waiting).with_timeout(Duration::from_millis(30));
                // The second sleeps behind the first or looks itself.
                let calls = [(); 2].map(|()| start(&client, ECHO, &[]));
                thread::scope(|scope| {
                    for call in calls {
                        scope.spawn(move || {
                            let error = call.wait().unwrap_err();
                            assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
                        });
                    }
                });
            }
        }
    });
}

#[test]
fn waiting_for_a_moment_leaves_the_call_in_flight() {
    bounded(|| {
        for_each_pair(|client, _| {
            let mut call = start(client, SLEEP, &words(&[5]));
            while !call.wait_for(Duration::from_micros(300)) {}
            assert_eq!(call.wait().unwrap(), words(&[5]));
        });
    });
}

#[test]
fn a_peer_that_leaves_is_noticed() {
    bounded(|| {
        for (_, waiting) in Waiting::ALL {
            let silent = Silent::new();
            let [address, _] = silent.addresses();
            let client = client(&address, waiting);
            let line = silent.listener.accept().unwrap().0;
            let call = start(&client, ECHO, &[]);
            let waiter = thread::spawn(move || call.wait().unwrap_err());
            // What has come is unread: the connection is reset.
            thread::sleep(Duration::from_millis(20));
            drop(line);
            let error = waiter.join().unwrap();
            assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
        }
    });
}

#[test]
fn a_client_that_leaves_is_noticed() {
    bounded(|| {
        for_each_pair(|client, server| {
            start(client, ECHO, &[]).wait().unwrap();
            let address = client.channel().address().clone();
            let own = self::client(&address, Waiting::Block);
            start(&own, ECHO, &[]).wait().unwrap();
            drop(own);
            let streams = match address.transport() {
                Transport::Udp | Transport::Xdp => 0,
                Transport::Tcp | Transport::Unix | Transport::Shm => 1,
            };
            eventually("the connection is closed", || {
                server.counters().connections_open == streams
            });
        });
    });
}

#[test]
fn a_server_ends_while_it_waits() {
    bounded(|| {
        for (_, waiting) in Waiting::ALL {
            let server = server(waiting);
            let mut callers = Caller::on_all(&server);
            callers.iter_mut().for_each(Caller::expect_service);
            server.shutdown(PATIENCE);
            callers.truncate(2);
            callers.iter_mut().for_each(Caller::expect_close_notice);
            assert_eq!(server.counters().connections_open, 0);
        }
    });
}

#[test]
fn crowds_are_served_though_threads_look() {
    bounded(|| {
        for (_, waiting) in Waiting::ALL {
            let limits = limited(|limits| limits.threads = 2);
            let server = builder().limits(limits).waiting(waiting);
            let server = server.start().unwrap();
            let mut callers: Vec<_> = (0..10).flat_map(|_| Caller::on_all(&server)).collect();
            for xid in 0..10 {
                let message = call(xid, ECHO, &words(&[xid]));
                callers.iter_mut().for_each(|caller| caller.send(&message));
                for caller in &mut callers {
                    assert_eq!(caller.receive(), success(xid, &words(&[xid])));
                }
            }
        }
    });
}

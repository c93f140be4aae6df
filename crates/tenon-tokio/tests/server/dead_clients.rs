//! Clients that die while their calls are carried out: their connections are let go at once, and their calls cancelled.

use std::future::pending;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{
    CallInfo, EndOfStream, LeanInput, LeanService, Refusal, ServerCounters, ServerLimits, Service,
};
use tenon_tokio::{Answer, AsyncService, Call};

const PROGRAM: u32 = 0x2000_0d11;
const CLIENTS: usize = 12;
/// A handler gives up by then, whether it is told to or not.
const HELD: Duration = Duration::from_secs(20);

/// Answers when nobody waits any more, and counts that it was told so.
#[derive(Clone, Default)]
struct LongPoll {
    begun: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl LongPoll {
    fn hold(&self, call: &CallInfo<'_>) -> Result<(), Refusal> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let until = Instant::now() + HELD;
        while Instant::now() < until {
            if call.is_cancelled() {
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Service for LongPoll {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.hold(call)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for LongPoll {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        self.hold(call)
    }
}

/// Counts that a future is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl AsyncService for LongPoll {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(Interface::unknown(PROGRAM, 1)))
    }

    async fn call(&self, _: Call) -> Result<Answer, Refusal> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _dropped = Dropped(Arc::clone(&self.cancelled));
        pending().await
    }
}

/// Where a server listens, and what it has seen.
struct Served<'s> {
    tcp: String,
    unix: String,
    counters: &'s dyn Fn() -> ServerCounters,
    service: LongPoll,
}

impl Served<'_> {
    fn wait_for(&self, what: &str, is_true: impl Fn() -> bool) {
        let until = Instant::now() + HELD / 2;
        while !is_true() {
            assert!(Instant::now() < until, "{what}: {:?}", (self.counters)());
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn wait_for_begun(&self, before: usize) {
        let begun = &self.service.begun;
        self.wait_for("a call", || begun.load(Ordering::SeqCst) > before);
    }

    /// A client by ONC RPC dies: the kernel closes its Unix socket.
    fn die_over_unix(&self) {
        let before = self.service.begun.load(Ordering::SeqCst);
        let mut stream = UnixStream::connect(&self.unix).unwrap();
        let words = [0x8000_0028, 7, 0, 2, PROGRAM, 1, 1, 0, 0, 0, 0];
        let call: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        stream.write_all(&call).unwrap();
        self.wait_for_begun(before);
    }

    /// A lean client dies: the kernel ends its TCP connection. A relay stands for its process.
    fn die_over_tcp(&self) {
        let before = self.service.begun.load(Ordering::SeqCst);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("lean+tcp://{}", listener.local_addr().unwrap());
        let client = tenon::Client::connect(&address, PROGRAM, 1).unwrap();
        let (mut from, _) = listener.accept().unwrap();
        let mut to = TcpStream::connect(&self.tcp).unwrap();
        let call = client.lean().start(1, |_| Ok(()), |_| Ok(())).unwrap();
        let mut bytes = [0; 4096];
        let length = from.read(&mut bytes).unwrap();
        to.write_all(&bytes[..length]).unwrap();
        self.wait_for_begun(before);
        drop(to);
        drop(from);
        call.wait().unwrap_err();
    }

    /// Has more clients die than the server takes connections.
    fn outlive_clients(&self) {
        for number in 0..CLIENTS {
            match number % 2 {
                0 => self.die_over_unix(),
                _ => self.die_over_tcp(),
            }
            self.wait_for("the connection is let go", || {
                (self.counters)().connections_open == 0
            });
        }
        assert_eq!((self.counters)().connections_refused, 0);
        assert_eq!(self.service.begun.load(Ordering::SeqCst), CLIENTS);
    }
}

fn limits() -> ServerLimits {
    ServerLimits {
        connections: 1,
        ..ServerLimits::default()
    }
}

fn socket(name: &str) -> String {
    let name = format!("tenon-dead-{}-{name}", std::process::id());
    std::env::temp_dir().join(name).display().to_string()
}

#[test]
fn a_server_of_threads_lets_dead_clients_go() {
    let (service, unix) = (LongPoll::default(), socket("threads"));
    let builder = tenon::Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let builder = builder.listen(&format!("unix://{unix}")).unwrap();
    let builder = builder.limits(limits()).service(service.clone());
    let server = builder.start().unwrap();
    let served = Served {
        tcp: server.addresses()[0].to_string().replace("tcp://", ""),
        unix,
        counters: &|| server.counters(),
        service,
    };
    served.outlive_clients();
    let cancelled = &served.service.cancelled;
    served.wait_for("every handler is told", || {
        cancelled.load(Ordering::SeqCst) == CLIENTS
    });
    server.shutdown(Duration::ZERO);
}

#[test]
fn a_server_of_tasks_lets_dead_clients_go() {
    let (service, unix) = (LongPoll::default(), socket("tasks"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let builder = tenon_tokio::Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let builder = builder.listen(&format!("unix://{unix}")).unwrap();
    let builder = builder.limits(limits()).service(service.clone());
    let server = runtime.block_on(builder.start()).unwrap();
    let served = Served {
        tcp: server.addresses()[0].to_string().replace("tcp://", ""),
        unix,
        counters: &|| server.counters(),
        service,
    };
    served.outlive_clients();
    let cancelled = &served.service.cancelled;
    served.wait_for("every future is dropped", || {
        cancelled.load(Ordering::SeqCst) == CLIENTS
    });
}

/// As many dead clients as a server of tasks takes connections; they die with a reset, as they have not read all that
/// was sent to them.
#[test]
fn dead_long_polls_let_others_in() {
    const MANY: usize = 50;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let service = LongPoll::default();
    let limits = ServerLimits {
        connections: MANY,
        ..ServerLimits::default()
    };
    let builder = tenon_tokio::Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let builder = builder.limits(limits).service(service.clone());
    let server = runtime.block_on(builder.start()).unwrap();
    let served = Served {
        tcp: server.addresses()[0].to_string().replace("tcp://", ""),
        unix: String::new(),
        counters: &|| server.counters(),
        service,
    };
    let message = |procedure| {
        let words = [0x8000_0028, 7, 0, 2, PROGRAM, 1, procedure, 0, 0, 0, 0];
        words.map(u32::to_be_bytes).concat()
    };
    let clients: Vec<_> = (0..MANY)
        .map(|_| {
            let mut stream = TcpStream::connect(&served.tcp).unwrap();
            stream
                .write_all(&[message(0), message(1)].concat())
                .unwrap();
            // The reply to procedure 0 has come, and is not read.
            assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
            stream
        })
        .collect();
    let begun = &served.service.begun;
    served.wait_for("all calls", || begun.load(Ordering::SeqCst) == MANY);
    drop(clients);
    served.wait_for("the dead are let go", || {
        (served.counters)().connections_open == 0
    });
    let mut stream = TcpStream::connect(&served.tcp).unwrap();
    stream.write_all(&message(0)).unwrap();
    stream.read_exact(&mut [0; 28]).unwrap();
    let cancelled = &served.service.cancelled;
    served.wait_for("every future is dropped", || {
        cancelled.load(Ordering::SeqCst) == MANY
    });
    assert_eq!((served.counters)().connections_refused, 0);
}

/// What the end of a stream means over TCP, where it may be of one direction alone.
#[test]
fn whether_a_half_closed_connection_is_answered_is_a_policy() {
    for (policy, is_answered) in [
        (EndOfStream::ByProtocol, true),
        (EndOfStream::HalfClosed, true),
        (EndOfStream::Gone, false),
    ] {
        let limits = ServerLimits {
            end_of_stream: policy,
            ..ServerLimits::default()
        };
        let service = Late;
        let builder = tenon::Server::builder()
            .listen("tcp://127.0.0.1:0")
            .unwrap();
        let server = builder.limits(limits).service(service).start().unwrap();
        let place = server.addresses()[0].to_string().replace("tcp://", "");
        let mut answered = Vec::new();
        for _ in 0..4 {
            let mut stream = TcpStream::connect(&place).unwrap();
            let words = [0x8000_0028, 7, 0, 2, PROGRAM, 1, 1, 0, 0, 0, 0];
            let call: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            stream.write_all(&call).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            let _ = stream.read_to_end(&mut reply);
            answered.push(!reply.is_empty());
        }
        assert_eq!(answered, [is_answered; 4], "{policy:?}");
    }
}

/// Answers after a while.
struct Late;

impl Service for Late {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        thread::sleep(Duration::from_millis(100));
        Ok(())
    }
}

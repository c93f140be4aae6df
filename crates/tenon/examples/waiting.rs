//! What waiting costs here: the round trip of an empty call for each way to wait, beside one of as
//! many bytes over a bare socket.
//!
//! `cargo run --release -p tenon --example waiting [MILLISECONDS [FILTER]]`
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::VecDeque;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tenon::wire::{Decoder, Encoder};
use tenon::{
    Address, CallInfo, Channel, ChannelOptions, Client, Refusal, Server, Service, Waiting,
};

const PROGRAM: u32 = 0x2000_0001;
const CALL: usize = 44;
const REPLY: usize = 28;

/// Where client and server run: the list of processors of each.
const PLACES: [(&str, [&str; 2]); 6] = [
    ("two cores", ["0", "1"]),
    ("any core", ["0-1", "0-1"]),
    ("one core", ["0", "0"]),
    // They begin where there are two, and then are moved to one.
    (MOVED, ["0-1", "0-1"]),
    (CROWD, ["0-1", "0-1"]),
    (FLIGHT, ["0-1", "0-1"]),
];

const MOVED: &str = "moved";

/// Several clients at once.
const CROWD: &str = "crowd";

/// Many calls at once, of one client.
const FLIGHT: &str = "in flight";
const CALLS_IN_FLIGHT: usize = 64;

const USAGE: &str = "\
usage: waiting [MILLISECONDS [FILTER]]

Measures each row for so long, 1000 unless said otherwise, or those rows that FILTER is a part of:
`two cores`, `one core tcp`, `udp adaptive`.";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", "raw", way, transport] => serve_raw(way.parse().unwrap(), transport),
        ["serve", "tenon", way, transport] => serve_tenon(way.parse().unwrap(), transport),
        ["call", "raw", way, at, time] => call_raw(way.parse().unwrap(), at, milliseconds(time)),
        ["call", "tenon", way, at, time] => {
            call_tenon(way.parse().unwrap(), at, milliseconds(time))
        }
        ["call", "many", way, at, time] => call_many(way.parse().unwrap(), at, milliseconds(time)),
        [] => compare("1000", ""),
        [time] if time.parse::<u64>().is_ok() => compare(time, ""),
        [time, filter] if time.parse::<u64>().is_ok() => compare(time, filter),
        ["-h" | "--help"] => println!("{USAGE}"),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}

fn milliseconds(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap())
}

fn compare(time: &str, filter: &str) {
    println!("round trips in us: median, 99th percentile; calls per second");
    for (place, _) in PLACES {
        for transport in ["tcp", "unix", "udp"] {
            for (name, _) in Waiting::ALL {
                for system in ["raw", "tenon"] {
                    let row = format!("{place} {transport} {name} {system}");
                    let can = match system {
                        "raw" => name != "adaptive" && ![CROWD, FLIGHT].contains(&place),
                        _ => true,
                    };
                    if can && row.contains(filter) {
                        let told = measure(system, name, transport, place, time);
                        println!("{row:30} {told}");
                    }
                }
            }
        }
    }
}

fn measure(system: &str, way: &str, transport: &str, place: &str, time: &str) -> String {
    let cores = PLACES.iter().find(|(name, _)| *name == place).unwrap().1;
    let mut server = Started::new(cores[1], &["serve", system, way, transport]);
    let at = server.line();
    let callers = match place {
        CROWD => 4,
        _ => 1,
    };
    let caller = match place {
        FLIGHT => "many",
        _ => system,
    };
    let client = || Started::new(cores[0], &["call", caller, way, &at, time]);
    let mut clients: Vec<_> = (0..callers).map(|_| client()).collect();
    if place == MOVED {
        std::thread::sleep(Duration::from_millis(50));
        server.move_to("0");
        clients.iter().for_each(|client| client.move_to("0"));
    }
    let told: Vec<_> = clients.iter_mut().map(Started::line).collect();
    told.join(&format!("\n{:34}", ""))
}

/// This program, started again and killed when dropped.
struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Started {
    fn new(cores: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new("taskset")
            .args(["-c", cores])
            .arg(env::current_exe().unwrap())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn move_to(&self, core: &str) {
        let moved = Command::new("taskset")
            .args(["-a", "-p", "-c", core, &self.child.id().to_string()])
            .stdout(Stdio::null())
            .status();
        assert!(moved.unwrap().success());
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Nothing;

impl Service for Nothing {
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
        Ok(())
    }
}

fn fresh_path() -> String {
    let path = env::temp_dir().join(format!("tenon-waiting-{}", std::process::id()));
    path.display().to_string()
}

fn serve_tenon(way: Waiting, transport: &str) {
    let at = match transport {
        "unix" => format!("unix://{}", fresh_path()),
        _ => format!("{transport}://127.0.0.1:0"),
    };
    let builder = Server::builder().listen(&at).unwrap().service(Nothing);
    let server = builder.waiting(way).start().unwrap();
    println!("{}", server.addresses()[0]);
    server.wait();
}

fn client(way: Waiting, at: &str) -> Client {
    let address: Address = at.parse().unwrap();
    let options = ChannelOptions::default().waiting(way);
    let channel = Channel::connect_with(&address, options).unwrap();
    Client::over(channel, PROGRAM, 1)
}

/// A call begins when the oldest of those in flight has ended.
fn call_many(way: Waiting, at: &str, time: Duration) {
    let client = client(way, at);
    let start = || client.onc().start(0, |_| Ok(()), |_| Ok(())).unwrap();
    let mut flying: VecDeque<_> = (0..CALLS_IN_FLIGHT).map(|_| start()).collect();
    let told = measure_calls(time, || {
        flying.pop_front().unwrap().wait().unwrap();
        flying.push_back(start());
    });
    println!("{told} {:?}", client.channel().counters().waits);
}

fn call_tenon(way: Waiting, at: &str, time: Duration) {
    let client = client(way, at);
    let told = measure_calls(time, || {
        client.onc().call(0, |_| Ok(()), |_| Ok(())).unwrap()
    });
    println!("{told} {:?}", client.channel().counters().waits);
}

/// The two directions of a bare socket.
enum Raw {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
    /// Receives from everybody and answers who has sent last.
    Open(UdpSocket, Option<SocketAddr>),
}

impl Raw {
    fn spin(&self, way: Waiting) {
        let spins = way == Waiting::Spin;
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(spins).unwrap(),
            Self::Unix(stream) => stream.set_nonblocking(spins).unwrap(),
            Self::Udp(socket) | Self::Open(socket, _) => socket.set_nonblocking(spins).unwrap(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).unwrap(),
            Self::Unix(stream) => stream.write_all(bytes).unwrap(),
            Self::Udp(socket) => assert_eq!(socket.send(bytes).unwrap(), bytes.len()),
            Self::Open(socket, peer) => {
                let sent = socket.send_to(bytes, peer.unwrap()).unwrap();
                assert_eq!(sent, bytes.len());
            }
        }
    }

    fn receive(&mut self, room: &mut [u8]) -> usize {
        loop {
            let received = match self {
                Self::Tcp(stream) => stream.read(room),
                Self::Unix(stream) => stream.read(room),
                Self::Udp(socket) => socket.recv(room),
                Self::Open(socket, peer) => socket.recv_from(room).map(|(length, from)| {
                    *peer = Some(from);
                    length
                }),
            };
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                done => return done.unwrap_or(0),
            }
        }
    }
}

fn serve_raw(way: Waiting, transport: &str) {
    let (mut room, reply) = ([0; 4096], [0; REPLY]);
    let mut raw = match transport {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            println!("tcp://{}", listener.local_addr().unwrap());
            let stream = listener.accept().unwrap().0;
            stream.set_nodelay(true).unwrap();
            Raw::Tcp(stream)
        }
        "unix" => {
            let path = fresh_path();
            let listener = UnixListener::bind(&path).unwrap();
            println!("unix://{path}");
            Raw::Unix(listener.accept().unwrap().0)
        }
        _ => {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            println!("udp://{}", socket.local_addr().unwrap());
            Raw::Open(socket, None)
        }
    };
    raw.spin(way);
    while raw.receive(&mut room) > 0 {
        raw.send(&reply);
    }
}

fn call_raw(way: Waiting, at: &str, time: Duration) {
    let (scheme, place) = at.split_once("://").unwrap();
    let mut raw = match scheme {
        "tcp" => {
            let stream = TcpStream::connect(place).unwrap();
            stream.set_nodelay(true).unwrap();
            Raw::Tcp(stream)
        }
        "unix" => Raw::Unix(UnixStream::connect(place).unwrap()),
        _ => {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(place).unwrap();
            Raw::Udp(socket)
        }
    };
    raw.spin(way);
    let (call, mut room) = ([0; CALL], [0; 4096]);
    let told = measure_calls(time, || {
        raw.send(&call);
        assert_eq!(raw.receive(&mut room), REPLY);
    });
    println!("{told}");
}

/// Makes calls, first to warm up, and tells their times.
fn measure_calls(time: Duration, mut call: impl FnMut()) -> String {
    let mut run = |time: Duration| {
        let (begin, mut taken) = (Instant::now(), Vec::new());
        while begin.elapsed() < time {
            let before = Instant::now();
            call();
            taken.push(before.elapsed());
        }
        taken
    };
    run(time / 4);
    let mut taken = run(time);
    taken.sort_unstable();
    let at = |share: usize| taken[taken.len() * share / 100].as_secs_f64() * 1e6;
    let per_second = taken.len() as f64 / time.as_secs_f64();
    format!("{:6.2} {:7.2} {per_second:7.0}", at(50), at(99))
}

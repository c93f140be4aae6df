//! ONC RPC past the kernel at our end, and by libtirpc or plain sockets of UDP at the other, between two networks that the
//! tests make.

use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketType};
use tenon::wire::{BStr, Decoder, Encoder};
use tenon::{
    CallError, CallInfo, ChannelOptions, Client, Refusal, Refused, Server, ServerBuilder,
    ServerCounters, Service,
};
use tenon_interop::compiled::hprpc::{HprpcVersionClient, HprpcVersionService};
use tenon_interop::compiled::torture::{
    self, TortureVersionClient, TortureVersionService, TortureVersionThreeService,
};
use tenon_interop::services::{HprpcService, TortureService};
use tenon_interop::{PeerAddresses, PeerTransport, Process, peer};
use tenon_xdp::{EthernetEndpoint, FrameHeaderTemplate, MacAddress};

use crate::pair::{Pair, ip};
use crate::we_call_peers::{check_hprpc, check_refusals, check_torture};

const PATIENCE: Duration = Duration::from_secs(60);

/// More frames than a test sends whose checksum is, by chance, that of a frame whose checksum is left to hardware, which
/// passes to the kernel: one in 65,536 is.
const BY_CHANCE: u64 = 4;

/// Has the kernel of the network of the calling thread compute the checksums of what it sends (ETHTOOL_STXCSUM).
/// Otherwise it leaves them to hardware that a virtual Ethernet has not, and what a kernel sends passes by our sockets'
/// frames.
const COMPUTE_CHECKSUMS: &str = "
import array, fcntl, socket, struct
off = array.array('B', struct.pack('II', 0x17, 0))
request = struct.pack('16sP', b'tenon0', off.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, request)
";

fn compute_checksums() {
    let mut python = Command::new("python3");
    let done = python.args(["-c", COMPUTE_CHECKSUMS]).status();
    assert!(done.expect("python3").success());
}

/// Two networks whose kernels compute checksums; none where there may not be any.
fn networks(test: &str) -> Option<Pair> {
    let pair = Pair::make(test)?;
    pair.in_client(compute_checksums);
    pair.in_server(compute_checksums);
    Some(pair)
}

/// Datagrams that sockets of UDP in the network of the calling thread have received of their kernel.
fn received_by_kernel() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/net/snmp").expect("counters");
    let mut lines = counters.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next(), lines.next());
    let mut both = (names.expect("names").split(' ')).zip(values.expect("values").split(' '));
    let (_, value) = both.find(|(name, _)| *name == "InDatagrams").expect("one");
    value.parse().expect("a number")
}

fn listening(pair: &Pair) -> ServerBuilder {
    let address = format!("onc+xdp://{}:0", pair.server_at);
    Server::builder().listen(&address).expect("an address")
}

#[test]
fn libtirpc_calls_a_server_past_the_kernel() {
    let Some(pair) = networks("libtirpc_calls_a_server_past_the_kernel") else {
        return;
    };
    let builder = listening(&pair)
        .service(HprpcVersionService(HprpcService))
        .service(TortureVersionService(TortureService))
        .service(TortureVersionThreeService(TortureService));
    let server = pair.in_server(|| builder.start().expect("it starts"));
    let addresses = PeerAddresses::from_urls(server.addresses());
    let url = addresses.url(PeerTransport::Xdp);
    assert!(url.starts_with("onc+xdp://198.18."), "{url}");
    pair.in_client(|| {
        peer("hprpc_client").check(&addresses, PeerTransport::Xdp);
        peer("torture_client").check(&addresses, PeerTransport::Xdp);
    });
    assert!(server.counters().calls > 50);
    // Each call came in a frame.
    assert!(pair.in_server(received_by_kernel) < BY_CHANCE);
}

#[test]
fn libtirpc_calls_a_server_of_tasks_past_the_kernel() {
    let Some(pair) = networks("libtirpc_calls_a_server_of_tasks_past_the_kernel") else {
        return;
    };
    let address = format!("onc+xdp://{}:0", pair.server_at);
    let builder = tenon_tokio::Server::builder().listen(&address);
    let builder = builder
        .expect("an address")
        .sync_service(HprpcVersionService(HprpcService));
    let (runtime, server) = pair.in_server(|| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a run time");
        let server = runtime.block_on(builder.start()).expect("it starts");
        (runtime, server)
    });
    let addresses = PeerAddresses::from_urls(server.addresses());
    pair.in_client(|| {
        peer("hprpc_client").check(&addresses, PeerTransport::Xdp);
        peer("hprpc_client").check(&addresses, PeerTransport::Xdp);
    });
    assert!(server.counters().calls > 10);
    assert!(pair.in_server(received_by_kernel) < BY_CHANCE);
    runtime.block_on(server.shutdown(PATIENCE));
}

/// Starts a server on libtirpc. It ends with the thread that has started it.
fn libtirpc_server(pair: &Pair, name: &str) -> (Process, PeerAddresses) {
    peer(name).serve(&[&format!("onc+xdp={}", pair.server_at)])
}

#[test]
fn we_call_libtirpc_past_the_kernel() {
    let Some(pair) = networks("we_call_libtirpc_past_the_kernel") else {
        return;
    };
    let transport = PeerTransport::Xdp;
    pair.in_server(|| {
        let (_server, hprpc) = libtirpc_server(&pair, "hprpc_server");
        pair.in_client(|| check_hprpc(&hprpc, transport));
        let (_server, torture) = libtirpc_server(&pair, "torture_server");
        pair.in_client(|| {
            check_torture(&torture, transport);
            check_refusals(&torture, transport);
            // A result that takes several frames comes in fragments, which the kernel joins.
            let before = received_by_kernel();
            assert!(before < BY_CHANCE, "{before}");
            let client = TortureVersionClient::connect(&torture.url(transport)).expect("a server");
            assert_eq!(client.produce(7001).expect("bytes").len(), 7001);
            assert!(received_by_kernel() > before);
        });
    });
}

#[test]
fn tasks_call_libtirpc_past_the_kernel() {
    let Some(pair) = networks("tasks_call_libtirpc_past_the_kernel") else {
        return;
    };
    pair.in_server(|| {
        let (_server, addresses) = libtirpc_server(&pair, "torture_server");
        let url = addresses.url(PeerTransport::Xdp);
        pair.in_client(|| {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a run time");
            runtime.block_on(async {
                let (program, version) = (torture::TORTURE_PROGRAM, torture::TORTURE_VERSION);
                let client = tenon_tokio::Client::connect(&url, program, version);
                let client = client.await.expect("a server").with_timeout(PATIENCE);
                for number in 0..100_u32 {
                    let sum = client.onc().call(
                        torture::ADD,
                        |out| {
                            out.put(number);
                            out.put(number + 1);
                            Ok(())
                        },
                        |input| input.get::<u32>(),
                    );
                    assert_eq!(sum.await.expect("a sum"), 2 * number + 1);
                }
            });
        });
    });
    assert!(pair.in_client(received_by_kernel) < BY_CHANCE);
}

/// Counts the calls that it carries out; the result is their number.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

const COUNTER: u32 = 0x2000_0042;

impl Service for Counter {
    fn program(&self) -> u32 {
        COUNTER
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        out: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        out.put(self.0.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A call of procedure 1 of [`COUNTER`], without credentials.
fn call(xid: u32) -> Vec<u8> {
    words(&[xid, 0, 2, COUNTER, 1, 1, 0, 0, 0, 0])
}

/// The reply with one word.
fn reply(xid: u32, result: u32) -> Vec<u8> {
    words(&[xid, 1, 0, 0, 0, 0, result])
}

/// Where a server is, as a socket of UDP has it.
fn place(server: &Server) -> SocketAddrV4 {
    let address = server.addresses()[0].to_string();
    let (_, place) = address.split_once("://").expect("a scheme");
    place.parse().expect("a host and a port")
}

/// A socket of the kernel's in the network of clients.
fn plain_client(pair: &Pair, server: SocketAddrV4) -> UdpSocket {
    pair.in_client(|| {
        let socket = UdpSocket::bind((pair.client_at, 0)).expect("a socket");
        socket.connect(server).expect("an address");
        socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
        socket
    })
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut room = [0; 2000];
    let length = socket.recv(&mut room).expect("a datagram");
    room[..length].to_vec()
}

#[test]
fn a_call_that_is_repeated_is_carried_out_once() {
    let Some(pair) = networks("a_call_that_is_repeated_is_carried_out_once") else {
        return;
    };
    let counter = Counter::default();
    let builder = listening(&pair).service(counter.clone());
    let server = pair.in_server(|| builder.start().expect("it starts"));
    let client = plain_client(&pair, place(&server));
    for _ in 0..3 {
        client.send(&call(7)).expect("it is sent");
        assert_eq!(receive(&client), reply(7, 1));
    }
    client.send(&call(8)).expect("it is sent");
    assert_eq!(receive(&client), reply(8, 2));
    assert_eq!(counter.0.load(Ordering::Relaxed), 2);
    let counters = server.counters();
    assert_eq!((counters.calls, counters.duplicates_answered), (2, 2));
}

#[test]
fn a_call_that_is_not_answered_is_sent_again() {
    let Some(pair) = networks("a_call_that_is_not_answered_is_sent_again") else {
        return;
    };
    let socket = pair.in_server(|| UdpSocket::bind((pair.server_at, 0)).expect("a socket"));
    socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let at = socket.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let mut room = [0; 2000];
        let mut came: Vec<(Vec<u8>, SocketAddr)> = Vec::new();
        for _ in 0..3 {
            let (length, from) = socket.recv_from(&mut room).expect("a call");
            came.push((room[..length].to_vec(), from));
        }
        let (first, from) = &came[0];
        assert!(came.iter().all(|again| again == &came[0]), "{came:?}");
        let xid = u32::from_be_bytes([first[0], first[1], first[2], first[3]]);
        assert_eq!(*first, call(xid));
        socket.send_to(&reply(xid, 42), from).expect("it is sent");
    });
    let options = ChannelOptions::default();
    let options = options.retransmission(Duration::from_millis(50), Duration::from_millis(50));
    let url = format!("onc+xdp://{at}");
    let connect = || Client::connect_with(&url, COUNTER, 1, options);
    let client = pair.in_client(connect).expect("a client");
    let client = client.with_timeout(PATIENCE);
    let result = client.onc().call(1, |_| Ok(()), |input| input.get::<u32>());
    assert_eq!(result.expect("a result"), 42);
    server.join().expect("every call was the same");
    assert!(client.channel().counters().calls.retransmissions >= 2);
}

#[test]
fn a_port_is_called_by_either_protocol() {
    let Some(pair) = networks("a_port_is_called_by_either_protocol") else {
        return;
    };
    let builder = listening(&pair).service(HprpcVersionService(HprpcService));
    let server = pair.in_server(|| builder.start().expect("it starts"));
    let at = place(&server);
    let all: Vec<i32> = (1..=10_000).collect();
    for scheme in ["onc+xdp", "xdp", "udp", "lean+udp"] {
        let url = format!("{scheme}://{at}");
        let client = pair
            .in_client(|| HprpcVersionClient::connect(&url))
            .expect("a client");
        let greeting = client.say_hello(BStr::new("World"));
        assert_eq!(greeting.expect("a greeting"), "Hello World", "{scheme}");
        let mean = client.average(&all);
        match scheme {
            "onc+xdp" => {
                let error = mean.expect_err("it fits into no frame");
                assert!(
                    matches!(error, CallError::TooLarge { limit: 1472, .. }),
                    "{error}"
                );
            }
            _ => assert_eq!(mean.expect("a mean"), 5000.5, "{scheme}"),
        }
    }
}

#[test]
fn an_address_of_the_lean_protocol_takes_no_onc_rpc() {
    let Some(pair) = networks("an_address_of_the_lean_protocol_takes_no_onc_rpc") else {
        return;
    };
    let address = format!("xdp://{}:0", pair.server_at);
    let counter = Counter::default();
    let builder = Server::builder().listen(&address).expect("an address");
    let builder = builder.service(counter.clone());
    let server = pair.in_server(|| builder.start().expect("it starts"));
    let client = plain_client(&pair, place(&server));
    client.send(&call(7)).expect("it is sent");
    eventually(&server, |counters| counters.datagrams_dropped == 1);
    assert_eq!(counter.0.load(Ordering::Relaxed), 0);
}

fn eventually(server: &Server, is_so: impl Fn(&ServerCounters) -> bool) {
    for _ in 0..PATIENCE.as_millis() {
        if is_so(&server.counters()) {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{:?}", server.counters());
}

/// Packets of IP for a server, as if they came from a socket.
struct Forger {
    raw: OwnedFd,
    prototype: FrameHeaderTemplate,
    to: SocketAddrV4,
}

impl Forger {
    fn new(pair: &Pair, from: &UdpSocket, to: SocketAddrV4) -> Self {
        let SocketAddr::V4(from) = from.local_addr().expect("an address") else {
            unreachable!("it was bound to an address of IPv4");
        };
        let end = |at| EthernetEndpoint {
            mac: MacAddress([2; 6]),
            at,
        };
        let protocol = Some(rustix::net::ipproto::RAW);
        let open = || rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol);
        Self {
            raw: pair.in_client(open).expect("a raw socket"),
            prototype: FrameHeaderTemplate::new(end(from)).toward(end(to)),
            to,
        }
    }

    fn send(&self, data: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = vec![0; data.len() + 42];
        let written = self.prototype.write(data, &mut frame);
        assert_eq!(written, Some(frame.len()));
        let mut packet = frame.split_off(14);
        change(&mut packet);
        let to = SocketAddrV4::new(*self.to.ip(), 0);
        let sent = rustix::net::sendto(&self.raw, &packet, SendFlags::empty(), &to);
        assert_eq!(sent.expect("it is sent"), packet.len());
    }
}

#[test]
fn what_is_not_sound_is_never_carried_out() {
    let Some(pair) = networks("what_is_not_sound_is_never_carried_out") else {
        return;
    };
    let counter = Counter::default();
    let builder = listening(&pair).service(counter.clone());
    let server = pair.in_server(|| builder.start().expect("it starts"));
    let client = plain_client(&pair, place(&server));
    let forger = Forger::new(&pair, &client, place(&server));
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 7] = [
        ("no checksum", |packet| packet[26..28].fill(0)),
        ("a wrong checksum", |packet| packet[27] ^= 1),
        ("another procedure", |packet| packet[28 + 23] ^= 2),
        ("UDP longer than the packet", |packet| packet[25] += 1),
        ("UDP shorter than its header", |packet| packet[25] = 7),
        ("an end that is missing", |packet| packet.truncate(60)),
        ("a first fragment alone", |packet| packet[6] = 0x20),
    ];
    for (number, (what, change)) in (0_u32..).zip(changes) {
        forger.send(&call(100 + number), change);
        // One that is sound, behind it.
        forger.send(&call(200 + number), |_| {});
        assert_eq!(receive(&client), reply(200 + number, number + 1), "{what}");
    }
    assert_eq!(counter.0.load(Ordering::Relaxed), 7);
}

#[test]
fn the_interface_says_how_large_a_message_may_be() {
    let Some(pair) = networks("the_interface_says_how_large_a_message_may_be") else {
        return;
    };
    for (mtu, limit) in [(1400, 1372), (9000, 1750)] {
        let set = || ip(&format!("link set tenon0 mtu {mtu}"));
        pair.in_client(set);
        pair.in_server(set);
        let builder = listening(&pair).service(HprpcVersionService(HprpcService));
        let server = pair.in_server(|| builder.start().expect("it starts"));
        let url = server.addresses()[0].to_string();
        let connect = || HprpcVersionClient::connect(&url);
        let client = pair.in_client(connect).expect("a client");
        // Behind 40 bytes of header, 24 of a reply, and the number of numbers.
        let most = (limit - 44) / 4;
        let numbers = vec![1; most + 1];
        assert_eq!(client.average(&numbers[1..]).expect("a mean"), 1.0);
        let error = client.average(&numbers).expect_err("it is too large");
        let size = 44 + 4 * (most + 1);
        let told = format!("a call of {size} bytes is over the limit of {limit}");
        assert!(error.to_string().contains(&told), "{error}");
        let most = ((limit - 28) / 4) as u32;
        let numbers = client.get_rand_nums(most).expect("numbers");
        assert_eq!(numbers.len(), most as usize);
        let error = client.get_rand_nums(most + 1).expect_err("it is too large");
        assert!(
            matches!(error, CallError::Refused(Refused::SystemError)),
            "{error}"
        );
        assert_eq!(server.counters().replies_too_large, 1);
    }
}

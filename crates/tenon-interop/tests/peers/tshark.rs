//! tshark, whose dissectors are nobody's we know, finds nothing malformed in what we send: over
//! TCP with many fragments, over UDP, with arguments and results of many shapes and with refusals.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tenon::Client;
use tenon::wire::BStr;
use tenon_interop::compiled::hprpc::HprpcVersionClient;
use tenon_interop::compiled::torture::{self, TortureVersionClient};
use tenon_interop::services::serve;
use tenon_interop::{PeerAddresses, PeerTransport, Process, in_private_network, run, socket_path};

#[test]
fn tshark_finds_nothing_malformed() {
    in_private_network("tshark::tshark_finds_nothing_malformed", || {
        let file = std::env::temp_dir().join(format!("tenon-{}.pcap", std::process::id()));
        capture_all(&file);
        let found = |filter: &str| matching(&file, filter);
        assert_eq!(found("_ws.malformed"), Vec::<String>::new());
        assert!(
            !found("rpc.state_accept == 3").is_empty(),
            "no PROC_UNAVAIL"
        );
        std::fs::remove_file(&file).expect("the capture is there");
    });
}

/// Makes calls while everything on loopback is written to `file`; again, as long as the kernel had
/// no room for some of it because tshark did not get to run.
fn capture_all(file: &Path) {
    const ATTEMPTS: usize = 4;
    for _ in 0..ATTEMPTS {
        let calls = capture(file, || {
            let (_server, addresses) = serve(&socket_path("tshark"));
            let transports = [PeerTransport::Tcp, PeerTransport::Udp];
            transports
                .map(|transport| traffic(&addresses, transport))
                .iter()
                .sum()
        });
        let captured = |kind: &str| matching(file, kind).len();
        if captured(CALLS) >= calls && captured(REPLIES) >= calls {
            return;
        }
    }
    panic!("calls or replies are missing, however often they are captured");
}

/// The filters for the two kinds of message.
const CALLS: &str = "rpc.msgtyp == 0";
const REPLIES: &str = "rpc.msgtyp == 1";

/// Makes calls and returns how many.
fn traffic(addresses: &PeerAddresses, transport: PeerTransport) -> usize {
    let url = addresses.url(transport);
    let client = HprpcVersionClient::connect(&url).expect("our server");
    client.null_call().expect("nothing");
    client.say_hello(BStr::new("tshark")).expect("a greeting");
    client.average(&[1, 2, 3]).expect("a mean");
    client.max_result().expect("a packet");
    let torture = TortureVersionClient::connect(&url).expect("our server");
    let large = if transport == PeerTransport::Udp {
        9000
    } else {
        1 << 20
    };
    torture.produce(large).expect("bytes");
    torture
        .echo_words(&["some".into(), "words".into()])
        .expect("words");
    let unknown = Client::connect(&url, torture::TORTURE_PROGRAM, 1).expect("our server");
    unknown
        .onc()
        .call(9999, |_| Ok(()), |_| Ok(()))
        .expect_err("a refusal");
    7
}

/// Runs `body` while everything on loopback is written to `file`.
fn capture<T>(file: &Path, body: impl FnOnce() -> T) -> T {
    let mut command = Command::new("tshark");
    // The kernel keeps so many MiB for tshark while that does not get to run.
    command.args(["-q", "-i", "lo", "-B", "64", "-w"]).arg(file);
    let tshark = Process::background(command);
    wait_for(|| written(file) > 0, "tshark does not start");
    // The header is written before the first packet is listened for.
    let header = written(file);
    wait_for(
        || {
            knock();
            written(file) > header
        },
        "tshark does not listen",
    );
    let result = body();
    let mut before = 0;
    wait_for(
        || {
            thread::sleep(Duration::from_millis(500));
            let settled = written(file) == before;
            before = written(file);
            settled
        },
        "the capture does not settle",
    );
    run(interrupt(&tshark));
    wait_for(|| tshark_has_ended(&tshark), "tshark does not end");
    result
}

/// Sends a packet that means nothing, to a port at which nobody listens.
fn knock() {
    const DISCARD: &str = "127.0.0.1:9";
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    // It is refused now and then, as the one before was not wanted.
    let _ = socket.send_to(&[], DISCARD);
}

fn written(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |data| data.len())
}

fn interrupt(process: &Process) -> Command {
    let mut command = Command::new("kill");
    command.args(["-INT", &process.id().to_string()]);
    command
}

/// A process that ended and was not yet waited for has no memory.
fn tshark_has_ended(process: &Process) -> bool {
    let maps = PathBuf::from(format!("/proc/{}/maps", process.id()));
    std::fs::read_to_string(maps).map_or(true, |maps| maps.is_empty())
}

fn wait_for(mut condition: impl FnMut() -> bool, otherwise: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{otherwise}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The packets of `file` that match a display filter, one line each. Programs that tshark does not
/// know are dissected as RPC all the same.
fn matching(file: &Path, filter: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    command
        .args(["-o", "rpc.dissect_unknown_programs:TRUE", "-r"])
        .arg(file)
        .args(["-Y", filter]);
    run(command).lines().map(str::to_owned).collect()
}

//! Our clients call servers that are not ours, and get right answers: results of one byte and of a
//! megabyte, every type, refusals.

use tenon::wire::{BStr, Decoder, Marshal};
use tenon::{CallError, Channel, Client, Refused};
use tenon_exec::random::Random;
use tenon_exec::{Interface, Procedure, Value};
use tenon_interop::compiled::hprpc::{self, HprpcVersionClient, LargeData};
use tenon_interop::compiled::torture::{self, TortureVersionClient, TortureVersionThreeClient};
use tenon_interop::services::{rand_nums, serve};
use tenon_interop::{PeerAddresses, PeerTransport, peer, python_script, root, socket_path};

/// Numbers in a large message; UDP carries what libtirpc and rpc.py can take, and past the kernel it is one frame.
fn many(transport: PeerTransport) -> u32 {
    match transport {
        PeerTransport::Udp => 1900,
        PeerTransport::Xdp => 350,
        PeerTransport::Tcp | PeerTransport::Unix => 262_144,
    }
}

fn large_data() -> LargeData {
    let words = (0..128_u32).map(|at| at.wrapping_mul(16_777_619));
    let bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
    LargeData::decode(&mut Decoder::new(&bytes)).expect("128 words")
}

/// Calls every operation of `hprpc.x`.
pub fn check_hprpc(addresses: &PeerAddresses, transport: PeerTransport) {
    let client = HprpcVersionClient::connect(&addresses.url(transport)).expect("a server");
    let hello = |name: &str| client.say_hello(BStr::new(name)).expect("a greeting");
    let many = many(transport);
    let all: Vec<i32> = (1..=many as i32).collect();
    client.null_call().expect("nothing");
    assert_eq!(hello("World"), "Hello World");
    assert_eq!(hello(""), "Hello ");
    assert_eq!(client.average(&Vec::new()).expect("a mean"), 0.0);
    let mean = client.average(&all).expect("a mean");
    assert_eq!(mean, f64::from(many + 1) / 2.0);
    assert!(client.get_rand_nums(0).expect("numbers").is_empty());
    let numbers = client.get_rand_nums(many).expect("numbers");
    assert!(numbers == rand_nums(many), "the numbers differ");
    let data = large_data();
    assert_eq!(client.send_rcv_large_data(&data).expect("data"), data);
    let packet = client.max_result().expect("a packet");
    assert!((0..hprpc::MAX_RESULT_BYTES as usize).all(|at| packet[at] == at as u8));
}

/// Sends random values of every type through its echo procedure.
fn check_echoes(addresses: &PeerAddresses, transport: PeerTransport) {
    let parsed = tenon_idl::parse_file(
        &root().join("interfaces/torture.x"),
        &tenon_idl::Options::default(),
    );
    let schema = parsed.schema.expect("a good interface");
    let interface = Interface::new(schema).expect("plans");
    let client = Client::connect(
        &addresses.url(transport),
        torture::TORTURE_PROGRAM,
        torture::TORTURE_VERSION,
    )
    .expect("a server");
    let mut random = Random::new(7);
    let mut echoes = 0;
    for procedure in interface.procedures() {
        if !procedure.name().starts_with("ECHO_") {
            continue;
        }
        echoes += 1;
        for _ in 0..20 {
            let sent = random.arguments(interface.schema(), procedure.parameters(), 20);
            let answer = call(&client, procedure, &sent).expect("an answer");
            assert_eq!(Value::Struct(vec![answer]), sent, "{}", procedure.name());
        }
    }
    assert!(echoes >= 38, "only {echoes} types were sent");
}

/// Calls a procedure by the interpreter.
fn call(client: &Client, procedure: Procedure<'_>, sent: &Value) -> Result<Value, CallError> {
    client.onc().call(
        procedure.number(),
        |out| procedure.encode_arguments(sent, out),
        |input| procedure.decode_result(input),
    )
}

/// Calls what `torture.x` has beside echoes, by compiled stubs.
pub fn check_torture(addresses: &PeerAddresses, transport: PeerTransport) {
    let url = addresses.url(transport);
    let client = TortureVersionClient::connect(&url).expect("a server");
    client.torture_null().expect("nothing");
    assert_eq!(client.answer().expect("42"), 42);
    client.swallow(-1).expect("nothing");
    assert_eq!(client.add(40, -50).expect("a sum"), -10);
    let line = torture::Line {
        from: torture::Point { x: 1, y: 2 },
        to: torture::Point { x: 3, y: 4 },
    };
    let drawing = client
        .assemble("title", [7, 8, 9], torture::Color::Blue, &line)
        .expect("a drawing");
    assert_eq!(drawing.title, "title");
    assert_eq!(drawing.pixels, [7, 8, 9]);
    assert_eq!((&drawing.first, &drawing.second), (&line, &line));
    let large = match transport {
        PeerTransport::Udp => 7001,
        PeerTransport::Xdp => 1401,
        PeerTransport::Tcp | PeerTransport::Unix => 1_048_573,
    };
    let blob = client.produce(large).expect("bytes");
    let expected: Vec<u8> = (0..large).map(|at| (at % 251) as u8).collect();
    assert!(blob == expected, "a result of {large} bytes differs");
    let three = TortureVersionThreeClient::connect(&url).expect("a server");
    assert_eq!(three.answer_three().expect("42"), 42);
}

/// The exact refusals; the connection goes on after each.
pub fn check_refusals(addresses: &PeerAddresses, transport: PeerTransport) {
    let channel = Channel::connect(&addresses.url(transport)).expect("a server");
    let refusal = |program, version, procedure| {
        let client = Client::over(channel.clone(), program, version);
        match client.onc().call(procedure, |_| Ok(()), |_| Ok(())) {
            Err(CallError::Refused(refused)) => refused,
            other => panic!("no refusal: {other:?}"),
        }
    };
    let program = torture::TORTURE_PROGRAM;
    assert_eq!(refusal(program, 1, 9999), Refused::ProcedureUnavailable);
    assert_eq!(
        refusal(program, 2, 0),
        Refused::ProgramMismatch { low: 1, high: 3 }
    );
    assert_eq!(refusal(program + 1, 1, 0), Refused::ProgramUnavailable);
    // libtirpc reads on behind the end of a datagram, and takes what it finds for arguments.
    if let PeerTransport::Tcp | PeerTransport::Unix = transport {
        let garbage = refusal(program, 1, torture::ECHO_HYPER);
        assert_eq!(garbage, Refused::GarbageArguments);
    }
    let client = Client::over(channel.clone(), program, 1);
    client
        .onc()
        .call(0, |_| Ok(()), |_| Ok(()))
        .expect("nothing");
}

#[test]
fn we_call_hprpc_on_libtirpc() {
    let path = socket_path("we-hprpc");
    let unix = format!("unix={}", path.display());
    let (_server, addresses) = peer("hprpc_server").serve(&["tcp", "udp", &unix]);
    for transport in PeerTransport::ALL {
        check_hprpc(&addresses, transport);
    }
}

#[test]
fn we_call_torture_on_libtirpc() {
    let path = socket_path("we-torture");
    let unix = format!("unix={}", path.display());
    let (_server, addresses) = peer("torture_server").serve(&["tcp", "udp", &unix]);
    for transport in PeerTransport::ALL {
        check_torture(&addresses, transport);
        check_echoes(&addresses, transport);
        check_refusals(&addresses, transport);
    }
}

#[test]
fn we_call_hprpc_on_python() {
    for transport in [PeerTransport::Tcp, PeerTransport::Udp] {
        let (_server, addresses) = python_script("hprpc_server.py").serve(&[transport.word()]);
        check_hprpc(&addresses, transport);
    }
}

/// The same checks against our own server, so that a failure above points at a difference.
#[test]
fn we_call_ourselves() {
    let (_server, addresses) = serve(&socket_path("we-us"));
    for transport in PeerTransport::ALL {
        check_hprpc(&addresses, transport);
        check_torture(&addresses, transport);
        check_echoes(&addresses, transport);
        check_refusals(&addresses, transport);
    }
}

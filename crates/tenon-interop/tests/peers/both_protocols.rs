//! Our clients and our services, generated and dynamic, by ONC RPC and by the lean protocol at one
//! port: every operation, and random values of every type.

use std::sync::Arc;

use tenon::wire::BStr;
use tenon::{CallError, Client, LeanInput, Protocol};
use tenon_exec::random::Random;
use tenon_exec::{Interface, Procedure, Value};
use tenon_interop::compiled::changed_hprpc;
use tenon_interop::compiled::hprpc::{self, HprpcVersionClient, LargeData};
use tenon_interop::compiled::torture::{
    self, TORTURE_VERSION_INTERFACE, TortureVersionClient, TortureVersionThreeClient,
};
use tenon_interop::services::{rand_nums, serve};
use tenon_interop::{PeerAddresses, PeerTransport, root, socket_path};
use tenon_plan::Representation;

/// Every address, of streams those by the lean protocol, too.
fn urls(addresses: &PeerAddresses) -> Vec<String> {
    let urls = PeerTransport::ALL.map(|transport| addresses.url(transport));
    let lean = urls.iter().filter(|url| !url.starts_with("udp"));
    let lean: Vec<_> = lean.map(|url| format!("lean+{url}")).collect();
    urls.into_iter().chain(lean).collect()
}

/// Bytes that are large for the transport.
fn many(url: &str) -> u32 {
    match url.starts_with("udp") {
        true => 7001,
        false => 1_048_573,
    }
}

#[test]
fn generated_clients_call_every_operation() {
    let (_server, addresses) = serve(&socket_path("both-generated"));
    for url in urls(&addresses) {
        let client = HprpcVersionClient::connect(&url).expect("a server");
        client.null_call().expect("nothing");
        let hello = client.say_hello(BStr::new("World"));
        assert_eq!(hello.expect("a greeting"), "Hello World");
        assert_eq!(client.average(&[1, 2, 6]).expect("a mean"), 3.0);
        assert!(client.get_rand_nums(0).expect("numbers").is_empty());
        let count = many(&url) / 4;
        let numbers = client.get_rand_nums(count).expect("numbers");
        assert!(numbers == rand_nums(count), "{url}: the numbers differ");
        let data = LargeData {
            member1: i32::MIN,
            member128: -7,
            ..LargeData::default()
        };
        assert_eq!(client.send_rcv_large_data(&data).expect("data"), data);
        let packet = client.max_result().expect("a packet");
        assert!((0..hprpc::MAX_RESULT_BYTES as usize).all(|at| packet[at] == at as u8));
    }
}

#[test]
fn generated_clients_call_what_takes_several_arguments_or_returns_nothing() {
    let (_server, addresses) = serve(&socket_path("both-several"));
    for url in urls(&addresses) {
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
        let blob = client.produce(many(&url)).expect("bytes");
        let expected = (0..many(&url)).map(|at| (at % 251) as u8);
        assert!(blob.into_iter().eq(expected), "{url}: the result differs");
        let three = TortureVersionThreeClient::over(client.0.channel().clone());
        assert_eq!(three.answer_three().expect("42"), 42);
    }
}

fn torture_in(representation: Representation) -> Interface {
    let path = root().join("interfaces/torture.x");
    let parsed = tenon_idl::parse_file(&path, &tenon_idl::Options::default());
    let schema = parsed.schema.expect("a good interface");
    Interface::with_representation(schema, representation).expect("plans")
}

/// Calls a procedure by the interpreter.
fn call(client: &Client, procedure: Procedure<'_>, sent: &Value) -> Result<Value, CallError> {
    match client.protocol() {
        Protocol::Onc => client.onc().call(
            procedure.number(),
            |out| procedure.encode_arguments(sent, out),
            |input| procedure.decode_result(input),
        ),
        Protocol::Lean => client.lean().call(
            procedure.number(),
            |out| procedure.encode_arguments(sent, out),
            |input| match input {
                LeanInput::Native(input) => procedure.decode_result(input),
                LeanInput::Swapped(input) => procedure.decode_result(input),
            },
        ),
    }
}

#[test]
fn values_of_every_type_travel_between_dynamic_clients_and_generated_services() {
    let (_server, addresses) = serve(&socket_path("both-echo"));
    let (xdr, lean) = (
        torture_in(Representation::XDR),
        torture_in(Representation::LEAN),
    );
    for url in urls(&addresses) {
        let client = Client::connect(&url, torture::TORTURE_PROGRAM, torture::TORTURE_VERSION);
        let client = client.expect("a server");
        let interface = match client.protocol() {
            Protocol::Onc => &xdr,
            Protocol::Lean => &lean,
        };
        let client = client.with_interface(TORTURE_VERSION_INTERFACE.shared());
        let mut random = Random::new(7);
        let mut echoes = 0;
        let procedures = interface.procedures();
        for procedure in procedures.filter(|of| of.name().starts_with("ECHO_")) {
            echoes += 1;
            for _ in 0..20 {
                let sent = random.arguments(interface.schema(), procedure.parameters(), 20);
                let answer = call(&client, procedure, &sent).expect("an answer");
                assert_eq!(Value::Struct(vec![answer]), sent, "{}", procedure.name());
            }
        }
        assert!(echoes >= 38, "only {echoes} types were sent");
    }
}

#[test]
fn a_client_of_a_changed_interface_calls_what_is_unchanged_and_is_told_what_is_not() {
    let (_server, addresses) = serve(&socket_path("both-changed"));
    for url in urls(&addresses) {
        let changed = changed_hprpc::HprpcVersionClient::connect(&url).expect("a server");
        assert_eq!(changed.average(&[1, 3]).expect("a mean"), 2.0, "{url}");
        let data = changed_hprpc::LargeData::default();
        match (changed.0.protocol(), changed.send_rcv_large_data(&data)) {
            // ONC RPC finds out by a call that goes wrong, or not at all.
            (Protocol::Onc, _) => {}
            (Protocol::Lean, Err(error @ CallError::Unbound(_))) => {
                assert!(!error.may_have_executed(), "{url}");
                let error = error.to_string();
                let differs = ": procedure SEND_RCV_LARGE_DATA differs, LargeData differs";
                assert!(error.contains(differs), "{error}");
            }
            (_, other) => panic!("{url}: {other:?}"),
        }
        // Others on the same channel are not concerned.
        let unchanged = HprpcVersionClient::over(changed.0.channel().clone());
        let data = LargeData::default();
        assert_eq!(unchanged.send_rcv_large_data(&data).expect("data"), data);
    }
}

#[test]
fn clients_share_what_they_were_built_from() {
    let shared = TORTURE_VERSION_INTERFACE.shared();
    assert!(Arc::ptr_eq(&shared, &TORTURE_VERSION_INTERFACE.shared()));
    assert_ne!(shared.fingerprint, 0);
    assert!(shared.parts.len() > 40, "{:?}", shared.parts);
}

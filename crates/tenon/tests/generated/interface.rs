//! Generated clients and services: one of each speaks both protocols, as the address says, and with
//! ends of either order of bytes.

use std::sync::Arc;

use crate::common::caller::listening;
use crate::common::lean_caller::LeanCaller;
use crate::common::lean_peer::{LeanLine, LeanPeer};
use crate::demo;
use crate::demo::{
    DEMO_V1_INTERFACE, DemoV1, DemoV1Client, DemoV1Service, Entry, Found, LOOK_UP, Name, Numbers,
};
use crate::directions;
use crate::directions::{
    FilesReadResult, FilesStateResult, FilesV1, FilesV1Client, FilesV1Service, Position,
};
use crate::service;
use crate::service::{STORE_V2_INTERFACE, StoreV2, StoreV2Client, StoreV2Service};
use tenon::lean::{ByteOrder, Extras, Interface, Preamble, Status};
use tenon::wire::{BStr, BString, Buffer, EncodeError, Encoder, Lean, Swapped};
use tenon::{CallError, CallInfo, ChannelOptions, Protocol, Refusal, Refused, Server, Waiting};

/// Answers, unless it is asked by somebody who is called Nobody.
struct Demo;

impl DemoV1 for Demo {
    fn say_hello(&self, _: &CallInfo<'_>, name: Name) -> Result<BString, Refusal> {
        match name.as_slice() {
            b"Nobody" => Err(Refusal::SystemError("as the test asked".to_owned())),
            name => Ok([b"Hello, ", name].concat().into()),
        }
    }

    fn average(&self, _: &CallInfo<'_>, numbers: Numbers) -> Result<f64, Refusal> {
        let sum: f64 = numbers.iter().map(|number| f64::from(*number)).sum();
        Ok(sum / numbers.len().max(1) as f64)
    }

    fn count_to(&self, _: &CallInfo<'_>, last: i32) -> Result<Numbers, Refusal> {
        Ok((1..=last).collect())
    }

    fn look_up(&self, _: &CallInfo<'_>, name: Name) -> Result<Found, Refusal> {
        Ok(match name.as_slice() {
            b"Ada" => Some(Entry::Person(42)),
            b"printer" => Some(Entry::Machine([2, 0, 0x5e, 0x10, 0, 1])),
            _ => None,
        })
    }
}

struct Store;

impl StoreV2 for Store {
    fn get(&self, _: &CallInfo<'_>, name: BString) -> Result<BString, Refusal> {
        Ok(name)
    }

    fn count(&self, _: &CallInfo<'_>) -> Result<i64, Refusal> {
        Ok(-1)
    }

    fn far(&self, _: &CallInfo<'_>, number: i32) -> Result<i32, Refusal> {
        Ok(number + 1)
    }
}

/// A file of a thousand bytes.
struct Files;

impl FilesV1 for Files {
    fn read(
        &self,
        _: &CallInfo<'_>,
        count: u32,
        where_: Position,
    ) -> Result<FilesReadResult, Refusal> {
        let end = (where_.at + u64::from(count)).min(1000);
        Ok(FilesReadResult {
            result: end == 1000,
            bytes: (where_.at..end).map(|at| at as u8).collect(),
            where_: Position { at: end },
        })
    }

    fn write(
        &self,
        _: &CallInfo<'_>,
        bytes: directions::Data,
        where_: Position,
    ) -> Result<Position, Refusal> {
        let at = where_.at + bytes.len() as u64;
        Ok(Position { at })
    }

    fn state(&self, _: &CallInfo<'_>) -> Result<FilesStateResult, Refusal> {
        Ok(FilesStateResult {
            size: 1000,
            name: "thousand".into(),
        })
    }
}

fn server() -> Server {
    let builder = listening().service(DemoV1Service(Demo));
    let builder = builder.service(FilesV1Service(Files));
    builder.service(StoreV2Service(Store)).start().unwrap()
}

/// Every address of a server, of streams those by the lean protocol, too.
fn addresses(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    let both = addresses.flat_map(|address| match address.starts_with("udp") {
        true => vec![address],
        false => vec![format!("lean+{address}"), address],
    });
    both.collect()
}

fn other_order() -> ByteOrder {
    match ByteOrder::NATIVE {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    }
}

#[test]
fn a_client_and_a_service_speak_what_the_address_says() {
    let server = server();
    let mut protocols = Vec::new();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        protocols.push(client.0.protocol());
        client.ping().unwrap();
        client.demo_null().unwrap();
        assert_eq!(client.say_hello("Ada").unwrap(), "Hello, Ada");
        assert_eq!(client.average(&[1, 2, 6]).unwrap(), 3.0);
        let counted = client.count_to(2000).unwrap();
        assert!(counted.into_iter().eq(1..=2000), "{address}");
        let machine = Entry::Machine([2, 0, 0x5e, 0x10, 0, 1]);
        assert_eq!(client.look_up("printer").unwrap(), Some(machine));
        assert_eq!(client.look_up("nobody").unwrap(), None);
    }
    protocols.sort_by_key(|protocol| *protocol == Protocol::Lean);
    let (onc, lean) = (Protocol::Onc, Protocol::Lean);
    assert_eq!(protocols, [onc, onc, onc, lean, lean]);
}

#[test]
fn a_client_connects_with_the_options_that_it_is_given() {
    let server = server();
    for address in addresses(&server) {
        let options = ChannelOptions::default().waiting(Waiting::Block);
        let client = DemoV1Client::connect_with(&address, options.clone()).unwrap();
        client.demo_null().unwrap();
        let channel = client.0.channel();
        let granted = format!("{:?}", channel.options());
        assert_eq!(granted, format!("{options:?}"), "{address}");
        assert!(channel.counters().waits.blocks > 0, "{address}");
    }
}

#[test]
fn calls_are_started_by_either_protocol() {
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        let first = client.start_say_hello("Ada").unwrap();
        let second = client.start_count_to(3).unwrap();
        let null = client.start_demo_null().unwrap();
        assert_eq!(second.wait().unwrap(), [1, 2, 3]);
        null.wait().unwrap();
        assert_eq!(first.wait().unwrap(), "Hello, Ada");
    }
}

#[test]
fn what_goes_both_ways_comes_back_with_the_result() {
    let server = server();
    for address in addresses(&server) {
        let client = FilesV1Client::connect(&address).unwrap();
        let read = client.read(4, &Position { at: 990 }).unwrap();
        assert_eq!((read.result, read.where_.at), (false, 994));
        assert_eq!(read.bytes, [222, 223, 224, 225]);
        let rest = client.read(100, &read.where_).unwrap();
        assert_eq!((rest.result, rest.where_.at), (true, 1000));
        let written = client.write([1, 2, 3], &rest.where_).unwrap();
        assert_eq!(written.at, 1003);
        let state = client.state().unwrap();
        assert_eq!((state.size, state.name), (1000, "thousand".into()));
    }
}

#[test]
fn clients_of_several_versions_share_a_channel() {
    let server = server();
    for address in addresses(&server) {
        let demo = DemoV1Client::connect(&address).unwrap();
        let store = StoreV2Client::over(demo.0.channel().clone());
        assert_eq!(store.count().unwrap(), -1);
        assert_eq!(demo.average(&[7]).unwrap(), 7.0);
        assert_eq!(store.get(BStr::new("x")).unwrap(), "x");
    }
}

#[test]
fn a_bound_of_the_interface_is_kept_by_either_protocol() {
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        let error = client.say_hello([b'x'; 65]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the arguments cannot be sent: SAY_HELLO.arg1: length 65 is over the bound 64"
        );
        client.demo_null().unwrap();
    }
}

#[test]
fn a_procedure_beyond_the_lean_numbers_is_called_by_onc_rpc_alone() {
    let server = server();
    for address in addresses(&server) {
        let client = StoreV2Client::connect(&address).unwrap();
        match (client.0.protocol(), client.far(1), client.start_far(1)) {
            (Protocol::Onc, Ok(2), Ok(started)) => assert_eq!(started.wait().unwrap(), 2),
            (
                Protocol::Lean,
                Err(CallError::NoLeanNumber { procedure: 65536 }),
                Err(CallError::NoLeanNumber { procedure: 65536 }),
            ) => {}
            (_, called, started) => panic!("{address}: {called:?} {started:?}"),
        }
        assert_eq!(client.count().unwrap(), -1);
    }
}

#[test]
fn a_refusal_arrives_as_what_it_is() {
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        match (client.0.protocol(), client.say_hello("Nobody")) {
            (Protocol::Onc, Err(CallError::Refused(Refused::SystemError))) => {}
            (Protocol::Lean, Err(CallError::Exception(exception))) => {
                assert_eq!(exception.status, Status::FAILED);
            }
            (_, other) => panic!("{address}: {other:?}"),
        }
        client.demo_null().unwrap();
    }
}

/// An interface whose `kind` is another one.
fn with_another_kind() -> Arc<Interface> {
    let mut interface = Interface::clone(&DEMO_V1_INTERFACE.shared());
    interface.fingerprint ^= 1;
    for part in &mut interface.parts {
        if part.name == "kind" || part.procedure == LOOK_UP {
            part.fingerprint ^= 1;
            part.layout ^= 1;
        }
    }
    interface.into()
}

#[test]
fn an_interface_that_differs_names_the_type_to_calls_that_use_it() {
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        let other = DemoV1Client(client.0.with_interface(with_another_kind()));
        assert_eq!(other.say_hello("Ada").unwrap(), "Hello, Ada", "{address}");
        match (client.0.protocol(), other.look_up("Ada")) {
            // ONC RPC knows of no interfaces.
            (Protocol::Onc, Ok(_)) => {}
            (Protocol::Lean, Err(error)) => assert_eq!(
                error.to_string(),
                "the service cannot be called: the server was built from another interface: \
                 procedure LOOK_UP differs, kind differs"
            ),
            (_, other) => panic!("{address}: {other:?}"),
        }
        client.demo_null().unwrap();
    }
}

fn swapped(
    encode: impl FnOnce(&mut Encoder<'_, Lean<Swapped>>) -> Result<(), EncodeError>,
) -> Vec<u8> {
    let mut buffer = Buffer::default();
    encode(&mut Encoder::over(&mut buffer)).unwrap();
    buffer.as_slice().to_vec()
}

#[test]
fn a_server_of_the_other_order_is_understood() {
    let preamble = Preamble {
        order: other_order(),
        ..Preamble::server(1 << 20, 16)
    };
    let peer = LeanPeer::start(move |listener| {
        let mut line = LeanLine::accept_for(listener, &preamble, DEMO_V1_INTERFACE.shared());
        for _ in 0..2 {
            let call = line.call();
            let numbers = swapped(|out| demo::encode_numbers(&vec![1, -2], out));
            line.reply(&call, &numbers);
        }
        let call = line.call();
        let found = Some(Entry::Person(0x0102_0304));
        line.reply(&call, &swapped(|out| demo::encode_found_lean(&found, out)));
    });
    let client = DemoV1Client::connect(&peer.address).unwrap();
    assert_eq!(client.count_to(2).unwrap(), [1, -2]);
    let started = client.start_count_to(2).unwrap();
    assert_eq!(started.wait().unwrap(), [1, -2]);
    let found = client.look_up("Ada").unwrap();
    assert_eq!(found, Some(Entry::Person(0x0102_0304)));
    peer.join();
}

#[test]
fn a_client_of_the_other_order_is_served() {
    let server = server();
    let preamble = Preamble {
        order: other_order(),
        ..Preamble::client(1 << 20)
    };
    for address in server.addresses() {
        let address = address.to_string();
        if address.starts_with("udp") {
            continue;
        }
        let mut caller = LeanCaller::connect_as(&address, &preamble);
        let mut call = |interface: &Arc<Interface>, procedure: u32, arguments: &[u8]| {
            let procedure = procedure as u16;
            caller.call_of(interface, procedure, arguments, &Extras::default())
        };
        let name = swapped(|out| demo::encode_name(&"Ada".into(), out));
        let answer = call(&DEMO_V1_INTERFACE.shared(), LOOK_UP, &name);
        let mut expected = Buffer::default();
        let out = &mut Encoder::<Lean>::over(&mut expected);
        demo::encode_found_lean(&Some(Entry::Person(42)), out).unwrap();
        let expected = format!(": {}", expected.as_slice().escape_ascii());
        assert!(answer.ends_with(&expected), "{answer}");
        let answer = call(&STORE_V2_INTERFACE.shared(), service::STOREPROC_COUNT, &[]);
        let minus_one = format!(": {}", [0xff; 8].escape_ascii());
        assert!(answer.ends_with(&minus_one), "{answer}");
        let garbage = call(&DEMO_V1_INTERFACE.shared(), LOOK_UP, &[0; 3]);
        assert!(garbage.contains("arguments"), "{garbage}");
    }
}

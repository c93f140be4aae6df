//! Servers that tell of their interfaces: to clients that may know, and with what a hostile one would send.

use std::path::Path;

use expect_test::expect_file;
use tenon::wire::{Decoder, Encoder};
use tenon::{CallErrorKind, CallInfo, Layered, Refusal, Server, Service};
use tenon_descriptor::{Descriptor, DescriptorIdentity};
use tenon_gen::rust::{self, Form};
use tenon_middleware::Authorization;
use tenon_plan::{Pass, Plans, Representation};
use tenon_reflection::{
    DescribeError, REFLECTION, REFLECTION_V1, Reflection, ReflectionClient, ReflectionError,
};
use tenon_schema::Schema;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn parse(interface: &str) -> Schema {
    let path = root().join("interfaces").join(interface);
    let parsed = tenon_idl::parse_file(&path, &tenon_idl::Options::default());
    parsed.schema.expect("the interface is right")
}

fn described(interface: &str) -> Descriptor {
    Descriptor::new(&parse(interface)).expect("it has a descriptor")
}

fn serve(service: impl Service) -> (Server, [String; 3]) {
    let server = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .and_then(|builder| builder.listen("udp://127.0.0.1:0"))
        .expect("the addresses are right")
        .service(service)
        .start()
        .expect("ports are free");
    let [tcp, udp] = [0, 1].map(|at| server.addresses()[at].to_string());
    let lean = format!("lean+{tcp}");
    (server, [tcp, udp, lean])
}

fn connect(address: &str) -> ReflectionClient {
    ReflectionClient::connect(address).expect("it is there")
}

#[test]
fn the_stubs_are_up_to_date() {
    let schema = parse("reflection.x");
    let plans = [Representation::XDR, Representation::LEAN].map(|representation| {
        Plans::new(&schema, representation, Pass::ALL).expect("it has plans")
    });
    let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
    let options = rust::Options {
        source: "reflection.x".to_owned(),
        ..rust::Options::default()
    };
    let stubs = rust::generate(&schema, &forms, &options).expect("it has stubs");
    expect_file!["../src/generated.rs"].assert_eq(&stubs);
}

#[test]
fn interfaces_come_from_servers_as_they_are() {
    let (nfs, demo) = (described("nfs3.x"), described("demo.x"));
    assert!(nfs.bytes().len() > 8192, "it comes in several pieces");
    let reflection = Reflection::new()
        .with_descriptor(nfs.bytes())
        .and_then(|it| it.with(demo.clone()))
        .and_then(|it| it.with(nfs.clone()))
        .expect("they have other programs");
    let (_server, addresses) = serve(reflection.service());
    for address in addresses {
        let client = connect(&address);
        let versions = client.versions().expect("they are told");
        assert_eq!(versions, reflection.versions(), "{address}");
        let numbers: Vec<_> = versions.iter().map(|it| (it.program, it.version)).collect();
        assert!(
            numbers.is_sorted() && numbers.contains(&(100_003, 3)),
            "{numbers:?}"
        );
        for descriptor in [&nfs, &demo] {
            let got = client
                .descriptor(descriptor.identity())
                .expect("it is told");
            assert_eq!(&got, descriptor, "{address}");
        }
        let unknown = client.descriptor(DescriptorIdentity([7; 32]));
        match unknown.expect_err("there is none") {
            ReflectionError::NoDescriptor(identity) if address.starts_with("lean") => {
                assert_eq!(identity.0, [7; 32]);
            }
            // ONC RPC says no more than that the procedure failed.
            ReflectionError::Call(error) => assert!(!address.starts_with("lean"), "{error}"),
            other => panic!("{address}: {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_tasks_tell_of_many_versions() {
    let mut reflection = Reflection::new();
    for program in 0..100 {
        let text =
            format!("program P{program} {{ version V {{ void N(void) = 0; }} = 1; }} = {program};");
        let parsed = tenon_idl::parse_text("it.x", &text, &tenon_idl::Options::default());
        let descriptor = Descriptor::new(&parsed.schema.expect("it is right"));
        reflection = reflection
            .with(descriptor.expect("it has one"))
            .expect("another program");
    }
    let builder = tenon_tokio::Server::builder().listen("udp://127.0.0.1:0");
    let builder = builder.expect("the address is right");
    let server = builder.sync_service(reflection.service()).start();
    let server = server.await.expect("a port is free");
    let address = server.addresses()[0].to_string();
    let asked = tokio::task::spawn_blocking(move || connect(&address).versions());
    let versions = asked.await.expect("no panic").expect("they are told");
    assert_eq!(versions, reflection.versions());
    assert_eq!(versions.len(), 100);
}

#[test]
fn a_version_is_described_once() {
    let reflection = Reflection::new()
        .with(described("demo.x"))
        .expect("the first");
    let mut other = parse("demo.x");
    other.programs[0].name = "OTHER".to_owned();
    let other = Descriptor::new(&other).expect("it has one");
    let error = reflection.with(other).expect_err("the second");
    let program = parse("demo.x").programs[0].number;
    assert_eq!(
        error,
        DescribeError::Twice {
            program,
            version: 1
        }
    );
    let error = Reflection::new().with_descriptor(b"no descriptor");
    assert!(matches!(error, Err(DescribeError::Descriptor(_))));
}

#[test]
fn those_who_may_not_know_are_not_told() {
    let reflection = Reflection::new()
        .with(described("demo.x"))
        .expect("it is one");
    let rules = "allow REFLECTION_V1.* key:tools".parse::<Authorization>();
    let checked = Layered::new(reflection.service(), rules.expect("the rules are right"));
    let (_server, [tcp, _, lean]) = serve(checked);
    for address in [&tcp, &lean] {
        match connect(address).versions().expect_err("nothing is told") {
            ReflectionError::Call(error) => assert_eq!(error.kind(), CallErrorKind::Denied),
            other => panic!("{other}"),
        }
    }
    let mut metadata = tenon::Metadata::new();
    metadata.append("key", b"tools").expect("it fits");
    let client = tenon::Client::connect(&lean, REFLECTION, REFLECTION_V1).expect("it is there");
    let client = client.with_metadata(&metadata).expect("it fits");
    assert_eq!(
        ReflectionClient::over(client)
            .versions()
            .expect("told")
            .len(),
        1
    );

    let (_server, [silent, ..]) = serve(NoReflection);
    match connect(&silent).versions().expect_err("nothing is told") {
        ReflectionError::Call(error) => assert_eq!(error.kind(), CallErrorKind::NoService),
        other => panic!("{other}"),
    }
}

/// A service of another program.
struct NoReflection;

impl Service for NoReflection {
    fn program(&self) -> u32 {
        0x2000_0001
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        _arguments: &mut Decoder<'_>,
        _result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

/// Answers questions with something else than the truth.
struct Liar {
    /// How many versions there are, it says.
    versions: u32,
    /// How many bytes there are, it says.
    total: u32,
    /// The bytes that it sends as the next piece, always.
    piece: Vec<u8>,
}

impl Service for Liar {
    fn program(&self) -> u32 {
        REFLECTION
    }

    fn version(&self) -> u32 {
        REFLECTION_V1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        arguments.rest();
        match call.procedure() {
            1 => {
                result.put(self.versions);
                // None of them is here.
                result.put(0_u32);
            }
            _ => {
                result.put(self.total);
                result.put_opaque(&self.piece, u32::MAX).expect("it fits");
            }
        }
        Ok(())
    }
}

#[test]
fn what_servers_send_is_checked() {
    let demo = described("demo.x");
    let length = demo.bytes().len() as u32;
    let mut spoiled = demo.bytes().to_vec();
    spoiled[100] ^= 0xff;
    let liar = |versions, total, piece: &[u8]| Liar {
        versions,
        total,
        piece: piece.to_vec(),
    };
    for (liar, said) in [
        (liar(1, length + 1, &[]), "parts that do not fit together"),
        (
            liar(u32::MAX, u32::MAX, &[0; 8192]),
            "parts that do not fit together",
        ),
        (liar(2, 1, &[0; 8]), "parts that do not fit together"),
        (liar(9, 8, &[0; 8]), "cannot be used"),
        (liar(9, length, &spoiled), "the server sent"),
        (liar(9, length, demo.bytes()), "in place of 0707"),
    ] {
        let (_server, [address, ..]) = serve(liar);
        let client = connect(&address);
        let told = client.versions().expect_err("there are none").to_string();
        assert!(told.contains("parts that do not fit together"), "{told}");
        let told = client.descriptor(DescriptorIdentity([7; 32]));
        let told = told.expect_err("it is none").to_string();
        assert!(told.contains(said), "{said}: {told}");
    }
}

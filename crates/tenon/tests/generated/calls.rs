//! One program against the generated trait of calls: its calls go over a connection, to a server in the same process, or
//! to a mock, and it cannot tell which. Options of some calls hold for these and no others.

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use crate::borrowed;
use crate::borrowed::{BorrowedV1, BorrowedV1Calls, BorrowedV1InProcess, Found as Other, Reading};
use crate::common::caller;
use crate::common::caller::listening;
use crate::demo;
use crate::demo::{
    DEMO_PROGRAM, DEMO_V1, DemoV1, DemoV1AverageError, DemoV1Calls, DemoV1Client,
    DemoV1CountToError, DemoV1DemoNullError, DemoV1InProcess, DemoV1LookUpError,
    DemoV1SayHelloError, DemoV1Service, Entry, Found, Name, Numbers,
};
use crate::mount3::MountV3Client;
use tenon::wire::{BStr, BString, Cow, DecodeError, Decoder, EncodeError, Encoder, Representation};
use tenon::{
    AuthStat, CallCodec, CallError, CallInfo, CallOptions, CallTarget, CalledProcedure, Credential,
    MakeCalls, Metadata, PendingCall, ProcedureCall, ProcedureError, Protocol, Refusal, Refused,
    Server,
};

/// Refuses calls as the name asks, and otherwise tells what it knows of its caller.
struct Demo;

impl DemoV1 for Demo {
    fn say_hello(&self, call: &CallInfo<'_>, name: Name) -> Result<BString, Refusal> {
        match name.as_slice() {
            b"unavailable" => Err(Refusal::ProcedureUnavailable),
            b"garbage" => Err(Refusal::GarbageArguments(
                tenon::wire::Decoder::<tenon::wire::Xdr>::new(&[])
                    .get::<u32>()
                    .unwrap_err(),
            )),
            b"invalid" => Err(Refusal::InvalidArguments("no such name".to_owned())),
            b"failed" => Err(Refusal::SystemError("a secret of the server".to_owned())),
            b"forbidden" => Err(Refusal::Authentication(AuthStat::TOO_WEAK)),
            b"raised" => Err(Refusal::raise(0, "there is no room", &Entry::Person(7))),
            b"who" => Ok(told(call).into()),
            b"sleeper" => {
                thread::sleep(Duration::from_secs(1));
                Ok(name)
            }
            b"deadline" => Ok(call.deadline().is_some().to_string().into()),
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
        Ok((name.as_slice() == b"Ada").then_some(Entry::Person(42)))
    }
}

/// What a handler knows of its caller.
fn told(call: &CallInfo<'_>) -> String {
    let is_anonymous = call.peer().credential == Credential::None;
    let (transport, peer) = (call.transport(), call.peer().address);
    format!("{transport:?} {peer:?} {is_anonymous} {}", call.procedure())
}

/// What a test hands a program in place of a client: it answers from the test, and keeps what it was asked.
#[derive(Default)]
struct Mock {
    asked: RefCell<Vec<String>>,
}

impl DemoV1Calls for Mock {
    fn demo_null(&self) -> Result<(), DemoV1DemoNullError> {
        Ok(())
    }

    fn say_hello(&self, args: &[u8]) -> Result<BString, DemoV1SayHelloError> {
        let name = String::from_utf8_lossy(args);
        self.asked.borrow_mut().push(name.to_string());
        Ok(format!("Hello, {name}").into())
    }

    fn average(&self, args: &[i32]) -> Result<f64, DemoV1AverageError> {
        self.asked.borrow_mut().push(format!("{args:?}"));
        Ok(2.0)
    }

    fn count_to(&self, _: i32) -> Result<Numbers, DemoV1CountToError> {
        Err(CallError::Refused(Refused::SystemError))
    }

    fn look_up(&self, _: &[u8]) -> Result<Found, DemoV1LookUpError> {
        Ok(None)
    }
}

fn server() -> Server {
    let builder = listening().service(DemoV1Service(Demo));
    builder.start().unwrap()
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

/// A program that is handed what it calls: it greets all, and says how many letters they have on average.
fn greet_all(calls: &dyn DemoV1Calls, names: &[&str]) -> Result<(Vec<BString>, f64), CallError> {
    calls.demo_null()?;
    let greetings = names.iter().map(|name| calls.say_hello(name.as_bytes()));
    let greetings = greetings.collect::<Result<_, _>>()?;
    let lengths: Vec<_> = names.iter().map(|name| name.len() as i32).collect();
    Ok((greetings, calls.average(&lengths)?))
}

#[test]
fn a_client_a_server_in_the_process_and_a_mock_are_called_alike() {
    let expected = (vec!["Hello, a".into(), "Hello, bcd".into()], 2.0);
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        assert_eq!(
            greet_all(&client, &["a", "bcd"]).unwrap(),
            expected,
            "{address}"
        );
        let patient = client.with_options(CallOptions::new().timeout(caller::PATIENCE));
        assert_eq!(
            greet_all(&patient, &["a", "bcd"]).unwrap(),
            expected,
            "{address}"
        );
    }
    let inside = DemoV1InProcess(Demo);
    assert_eq!(greet_all(&inside, &["a", "bcd"]).unwrap(), expected);
    assert_eq!(inside.look_up(b"Ada").unwrap(), Some(Entry::Person(42)));
    let mock = Mock::default();
    assert_eq!(greet_all(&mock, &["a", "bcd"]).unwrap(), expected);
    assert_eq!(mock.asked.take(), ["a", "bcd", "[1, 3]"]);
    assert!(!mock.count_to(3).unwrap_err().to_string().is_empty());
}

#[test]
fn refusals_in_the_process_are_those_of_a_connection() {
    let server = server();
    let address = addresses(&server)
        .into_iter()
        .find(|address| address.starts_with("lean"));
    let client = DemoV1Client::connect(&address.unwrap()).unwrap();
    let inside = DemoV1InProcess(Demo);
    for name in [
        "unavailable",
        "garbage",
        "invalid",
        "failed",
        "forbidden",
        "raised",
    ] {
        let [near, far] = [
            inside.say_hello(name.as_bytes()).unwrap_err(),
            client.say_hello(name).unwrap_err(),
        ];
        assert_eq!(format!("{near:?}"), format!("{far:?}"), "{name}");
        assert_eq!(near.may_have_executed(), far.may_have_executed(), "{name}");
        let CallError::Exception(exception) = &near else {
            panic!("{near:?} is no exception");
        };
        if name == "raised" {
            assert_eq!(exception.raised_as::<Entry>().unwrap(), Entry::Person(7));
        }
    }
}

#[test]
fn handlers_know_that_the_caller_is_in_their_process() {
    let inside = DemoV1InProcess(Demo);
    let told = inside.say_hello(b"who").unwrap();
    assert_eq!(told, "None None true 1");
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        let told = client.say_hello("who").unwrap().to_string();
        assert!(told.starts_with("Some("), "{told}");
    }
}

#[test]
fn options_hold_for_the_calls_that_they_are_given_for() {
    let server = server();
    let hurried = CallOptions::new().timeout(Duration::from_millis(50));
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap();
        let view = client.with_options(hurried);
        let called = view.say_hello("sleeper");
        let started = client.with_options(hurried).start_say_hello("sleeper");
        for error in [called, started.unwrap().wait()].map(Result::unwrap_err) {
            let limit = Duration::from_millis(50);
            assert!(
                matches!(&error, CallError::TimedOut { limit: is, .. } if *is == limit),
                "{address}: {error:?}"
            );
        }
        assert_eq!(client.say_hello("sleeper").unwrap(), "sleeper", "{address}");
        // A server of the lean protocol is told of the time.
        let patient = client.with_options(CallOptions::new().timeout(caller::PATIENCE));
        let is_lean = client.0.protocol() == Protocol::Lean;
        let is_told = patient.say_hello("deadline").unwrap();
        assert_eq!(is_told, is_lean.to_string(), "{address}");
        assert_eq!(client.say_hello("deadline").unwrap(), "false", "{address}");
    }
}

/// What a program may put around a client: it counts the calls.
struct Counting<C> {
    inner: C,
    calls: RefCell<Vec<u32>>,
}

impl<C: MakeCalls> MakeCalls for Counting<C> {
    type Pending<T, E: ProcedureError> = C::Pending<T, E>;

    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        self.calls.borrow_mut().push(P::PROCEDURE);
        self.inner.call_with(call, options)
    }

    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<C::Pending<P::Result, P::Error>, P::Error> {
        self.calls.borrow_mut().push(P::PROCEDURE);
        self.inner.start_with(call, options)
    }

    fn target(&self) -> CallTarget<'_> {
        self.inner.target()
    }
}

#[test]
fn a_generated_client_calls_through_what_is_put_around_a_client() {
    let server = server();
    let address = server.addresses()[0].to_string();
    let client = tenon::Client::connect(&address, DEMO_PROGRAM, DEMO_V1).unwrap();
    let client = DemoV1Client(Counting {
        inner: client,
        calls: RefCell::default(),
    });
    assert_eq!(client.average(&[1, 2]).unwrap(), 1.5);
    let counting: PendingCall<Numbers> = client.start_count_to(3).unwrap();
    assert_eq!(counting.wait().unwrap(), [1, 2, 3]);
    // Options of some calls go through it, too.
    let mut metadata = Metadata::new();
    metadata.append("key", "value").unwrap();
    let options = CallOptions::new().metadata(&metadata);
    let error = client.with_options(options).average(&[1, 2]).unwrap_err();
    assert!(matches!(error, CallError::OncMetadata), "{error:?}");
    assert_eq!(*client.0.calls.borrow(), [2, 3, 2]);
}

/// An error of a program, made by hand.
#[derive(Debug, PartialEq)]
enum Refusing {
    Full(i32),
    Other,
}

impl From<CallError> for Refusing {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Exception(exception) => match exception.raised_as::<Entry>() {
                Ok(Entry::Person(room)) => Self::Full(room),
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

impl ProcedureError for Refusing {
    fn call_error(&self) -> Option<&CallError> {
        None
    }
}

/// A call of procedure 1 by hand, whose error is typed.
struct Greeting;

impl CalledProcedure for Greeting {
    const PROCEDURE: u32 = demo::SAY_HELLO;

    type Result = BString;
    type Error = Refusing;
}

impl<R: Representation> CallCodec<R> for Greeting {
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        out.put_opaque(b"raised", 64)
    }

    fn decode(input: &mut Decoder<'_, R>) -> Result<BString, DecodeError> {
        input.get_string(64)
    }
}

#[test]
fn a_call_may_have_an_error_of_its_own() {
    let server = server();
    for address in addresses(&server) {
        let client = DemoV1Client::connect(&address).unwrap().0;
        let expected = if client.protocol() == Protocol::Lean {
            Refusing::Full(7)
        } else {
            Refusing::Other
        };
        assert_eq!(client.call(&Greeting).unwrap_err(), expected, "{address}");
        let started = client.start(&Greeting).unwrap();
        assert_eq!(started.wait().unwrap_err(), expected, "{address}");
    }
}

#[test]
fn an_interface_of_onc_rpc_alone_is_not_called_by_the_lean_protocol() {
    let server = server();
    let address = addresses(&server)
        .into_iter()
        .find(|address| address.starts_with("lean"));
    let client = MountV3Client::connect(&address.unwrap()).unwrap();
    let started = client.start_dump().map(drop);
    for refused in [client.dump().map(drop), started] {
        let error = refused.unwrap_err();
        let spoken = Protocol::Lean;
        assert!(
            matches!(error, CallError::OtherProtocol { spoken: is } if is == spoken),
            "{error:?}"
        );
        assert!(!error.may_have_executed());
    }
}

/// Looks at views.
struct Meter;

impl BorrowedV1 for Meter {
    fn length(&self, _: &CallInfo<'_>, text: &BStr) -> Result<u32, Refusal> {
        Ok(text.len() as u32)
    }

    fn sum(&self, _: &CallInfo<'_>, bytes: &[u8]) -> Result<u32, Refusal> {
        Ok(bytes.iter().map(|byte| u32::from(*byte)).sum())
    }

    fn mean(&self, _: &CallInfo<'_>, values: Cow<'_, [f64]>) -> Result<f64, Refusal> {
        Ok(values.iter().sum::<f64>() / values.len() as f64)
    }

    fn mean_of(
        &self,
        _: &CallInfo<'_>,
        of: borrowed::ReadingView<'_>,
        at_least: i32,
        other: borrowed::FoundView<'_>,
    ) -> Result<f64, Refusal> {
        let other = matches!(other, borrowed::FoundView::It(_));
        let sum: f64 = of.values.iter().sum();
        Ok(sum.max(at_least.into()) + f64::from(u8::from(other)))
    }

    fn plus(&self, _: &CallInfo<'_>, left: i32, right: i32) -> Result<i32, Refusal> {
        left.checked_add(right)
            .ok_or_else(|| Refusal::InvalidArguments("too large".to_owned()))
    }

    fn echo(&self, _: &CallInfo<'_>, text: &BStr) -> Result<BString, Refusal> {
        Ok(text.to_owned())
    }
}

#[test]
fn a_server_in_the_process_is_handed_views() {
    let meter = BorrowedV1InProcess(Meter);
    assert_eq!(meter.length(b"four").unwrap(), 4);
    assert_eq!(meter.sum(&[1, 2, 3]).unwrap(), 6);
    assert_eq!(meter.mean(&[1.0, 2.0]).unwrap(), 1.5);
    assert_eq!(meter.echo(b"back").unwrap(), "back");
    assert_eq!(meter.plus(2, 3).unwrap(), 5);
    assert!(meter.plus(i32::MAX, 1).is_err());
    let mut reading = Reading {
        values: vec![1.0, 2.0],
        ..Reading::default()
    };
    let other = Other::It(reading.clone());
    assert_eq!(meter.mean_of(&reading, 1, &other).unwrap(), 4.0);
    assert_eq!(meter.mean_of(&reading, 7, &Other::Void).unwrap(), 7.0);
    // The bounds of the interface hold where arguments are encoded.
    reading.sensor = vec![b'x'; 33].into();
    let error = meter.mean_of(&reading, 1, &Other::Void).unwrap_err();
    assert!(matches!(error, CallError::Arguments(_)), "{error:?}");
}

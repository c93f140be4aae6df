//! What becomes of a handler's reasons: the caller is told why its arguments are invalid, and the log of the server has
//! why a procedure failed, with its name.

use std::sync::Arc;

use crate::common::log::Log;
use tenon::lean::{Interface, Part, Status};
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallError, CallErrorKind, CallInfo, LeanInput, LeanService, Refusal, Service};
use tenon_tokio::{Answer, AsyncService, Call, Protocol};

const PROGRAM: u32 = 0x2000_0d17;
const HALVE: u32 = 1;
const STORE: u32 = 2;

fn interface() -> Arc<Interface> {
    let part = |name: &str, procedure| Part {
        name: name.into(),
        fingerprint: 7,
        layout: 0,
        procedure,
    };
    Arc::new(Interface {
        fingerprint: 7,
        parts: vec![
            part("procedure HALVE", HALVE),
            part("procedure STORE", STORE),
        ],
        ..Interface::unknown(PROGRAM, 1)
    })
}

fn refusal(procedure: u32) -> Refusal {
    match procedure {
        HALVE => Refusal::InvalidArguments("a is even".to_owned()),
        STORE => Refusal::SystemError("the disk is full".to_owned()),
        _ => Refusal::ProcedureUnavailable,
    }
}

/// Refuses every call.
struct Refusing;

impl Service for Refusing {
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
        Err(refusal(call.procedure()))
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Refusing {
    fn interface(&self) -> Arc<Interface> {
        interface()
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(refusal(call.procedure()))
    }
}

impl AsyncService for Refusing {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(interface())
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        Err(refusal(call.procedure()))
    }
}

/// Calls both procedures by both protocols at the server that listens at `address`.
fn call_all(address: &str, log: &Log) {
    for address in [address.to_owned(), format!("lean+{address}")] {
        let client = tenon::Client::connect(&address, PROGRAM, 1).unwrap();
        let call = |procedure| match client.protocol() {
            Protocol::Onc => client.onc().call(procedure, |_| Ok(()), |_| Ok(())),
            Protocol::Lean => client.lean().call(procedure, |_| Ok(()), |_| Ok(())),
        };
        client.ping().unwrap();
        let error = call(HALVE).unwrap_err();
        assert!(!error.may_have_executed());
        assert_eq!(error.kind(), CallErrorKind::InvalidArguments);
        assert_eq!(call(9).unwrap_err().kind(), CallErrorKind::NoProcedure);
        let other = tenon::Client::over(client.channel().clone(), PROGRAM, 2);
        assert_eq!(other.ping().unwrap_err().kind(), CallErrorKind::NoService);
        let text = error.to_string();
        match error {
            CallError::Exception(exception) => {
                assert_eq!(exception.status, Status::INVALID_ARGUMENTS);
                assert_eq!(
                    text,
                    "the peer refused the call: invalid arguments: a is even"
                );
            }
            _ => assert!(
                text.ends_with("the arguments, or does not take them"),
                "{text}"
            ),
        }
        assert!(log.take().is_empty());
        let error = call(STORE).unwrap_err();
        assert!(error.may_have_executed());
        assert_eq!(error.kind(), CallErrorKind::Failed);
        let lines = log.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [
            "WARN",
            "procedure=\"STORE\"",
            "reason=\"the disk is full\"",
            "program=536874263",
        ] {
            assert!(lines[0].contains(part), "{lines:?}");
        }
    }
}

pub fn a_caller_learns_of_its_arguments_and_the_log_of_the_failure() {
    let log = Log::install();
    let builder = tenon::Server::builder()
        .listen("tcp://127.0.0.1:0")
        .unwrap();
    let server = builder.service(Refusing).start().unwrap();
    call_all(&server.addresses()[0].to_string(), &log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for is_sync in [true, false] {
        let builder = tenon_tokio::Server::builder()
            .listen("tcp://127.0.0.1:0")
            .unwrap();
        let builder = if is_sync {
            builder.sync_service(Refusing)
        } else {
            builder.service(Refusing)
        };
        let server = runtime.block_on(builder.start()).unwrap();
        call_all(&server.addresses()[0].to_string(), &log);
    }
}

//! A result that does not fit into a datagram: its caller is told of a failure, and the log of the server why.

use std::sync::Arc;

use crate::common::log::Log;
use tenon::lean::{Interface, Part};
use tenon::wire::{Decoder, EncodeError, Encoder, Lean};
use tenon::{CallErrorKind, CallInfo, LeanInput, LeanService, Refusal, Service};
use tenon_tokio::{Answer, AsyncService, Call};

const PROGRAM: u32 = 0x2000_0d18;
/// Two procedures, of which the interface names one.
const FETCH: u32 = 1;
const UNNAMED: u32 = 2;

/// Bytes of the results that just fit, and of the reply around them.
const FITS: usize = 65_507 - 24;
const HEADER: usize = 24;

fn interface() -> Arc<Interface> {
    Arc::new(Interface {
        fingerprint: 7,
        parts: vec![Part {
            name: "procedure FETCH".into(),
            fingerprint: 7,
            layout: 0,
            procedure: FETCH,
        }],
        ..Interface::unknown(PROGRAM, 1)
    })
}

/// Returns as many bytes as it is asked for.
struct Storing;

impl Service for Storing {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let bytes = arguments.get::<u32>()? as usize;
        result.room(bytes).fill(7);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Storing {
    fn interface(&self) -> Arc<Interface> {
        interface()
    }

    fn call_lean(
        &self,
        _: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

impl AsyncService for Storing {
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
        let bytes = call.decode(|input| input.get::<u32>())? as usize;
        call.answer(|out| {
            out.room(bytes).fill(7);
            Ok::<_, EncodeError>(())
        })
    }
}

/// Calls the server that listens at `address`, a UDP socket.
fn call_all(address: &str, log: &Log) {
    let client = tenon::Client::connect(address, PROGRAM, 1).unwrap();
    let fetch = |procedure, bytes: usize| {
        let put = |out: &mut Encoder<'_>| {
            out.put(bytes as u32);
            Ok(())
        };
        client
            .onc()
            .call(procedure, put, |result| Ok(result.rest().len()))
    };
    assert_eq!(fetch(FETCH, FITS).unwrap(), FITS);
    assert_eq!(log.take(), [""; 0]);
    for (procedure, name) in [(FETCH, "FETCH"), (UNNAMED, "2")] {
        let error = fetch(procedure, FITS + 4).unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Failed);
        let lines = log.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let parts = [
            "WARN".to_owned(),
            format!("procedure=\"{name}\""),
            format!("program={PROGRAM} version=1 "),
            format!("size={} ", HEADER + FITS + 4),
            "limit=65507 ".to_owned(),
            "too large for a datagram".to_owned(),
        ];
        for part in parts {
            assert!(lines[0].contains(&part), "{part} is not in {lines:?}");
        }
    }
}

pub fn the_log_says_which_procedure_had_a_result_too_large_for_a_datagram() {
    let log = Log::install();
    let builder = tenon::Server::builder()
        .listen("udp://127.0.0.1:0")
        .unwrap();
    let server = builder.service(Storing).start().unwrap();
    call_all(&server.addresses()[0].to_string(), &log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for is_sync in [true, false] {
        let builder = tenon_tokio::Server::builder()
            .listen("udp://127.0.0.1:0")
            .unwrap();
        let builder = if is_sync {
            builder.sync_service(Storing)
        } else {
            builder.service(Storing)
        };
        let server = runtime.block_on(builder.start()).unwrap();
        call_all(&server.addresses()[0].to_string(), &log);
    }
}

//! Copies of a result by a server of tasks, counted in front of the C library: a result that is returned is copied into the
//! reply, and one that is written where it is sent from is not.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)]

#[path = "../../../tenon/tests/copies/counter.rs"]
mod counter;
#[path = "../../../tenon/tests/common/place.rs"]
mod place;

use std::path::Path;
use std::sync::Arc;
use std::{env, fs, thread};

use tenon::lean::Interface;
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Representation, boxed_array};
use tenon::{Client, LeanInput, Protocol, Refusal, ServerLimits};
use tenon_tokio::{Answer, AsyncService, Call, RequestCodec, RequestedProcedure, Server};
use tokio::task::yield_now;

const PROGRAM: u32 = 0x2000_0c0d;
const RETURNED: u32 = 1;
const RESERVED: u32 = 2;

/// Bytes of a result.
const BYTES: usize = 1 << 20;

/// Says to [`child`] by which protocol it calls, as the prefix of the address says it.
const PREFIX: &str = "TENON_COPIES_PREFIX";
/// Says which procedure it calls.
const PROCEDURE: &str = "TENON_COPIES_PROCEDURE";
/// Says how many calls it makes.
const CALLS: &str = "TENON_COPIES_CALLS";

/// Its handler returns the result.
struct ReturnedRequest;

impl RequestedProcedure for ReturnedRequest {
    type Result = Box<[u8; BYTES]>;
}

impl<R: Representation> RequestCodec<R> for ReturnedRequest {
    fn decode(_: &mut Decoder<'_, R>) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn encode(result: &Self::Result, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        out.blit(&**result);
        Ok(())
    }
}

/// Its handler has room for the result.
struct ReservedRequest;

impl RequestedProcedure for ReservedRequest {
    type Result = [u8; BYTES];
}

impl<R: Representation> RequestCodec<R> for ReservedRequest {
    const RESULT_IS_BLITTED: bool = true;

    fn decode(_: &mut Decoder<'_, R>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

/// Makes large results.
struct Large;

impl AsyncService for Large {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(Arc::new(Interface::unknown(PROGRAM, 1)))
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        match call.procedure() {
            RETURNED => {
                call.read::<ReturnedRequest>()?;
                let result = boxed_array(|| 7);
                yield_now().await;
                call.respond::<ReturnedRequest>(Ok(result))
            }
            RESERVED => {
                call.read::<ReservedRequest>()?;
                let mut reply = call.reserve::<ReservedRequest>();
                reply.fill(7);
                yield_now().await;
                call.respond_reserved(reply, Ok(()))
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// Makes calls, if the process is told to.
#[test]
fn child() {
    let variables = [PREFIX, PROCEDURE, CALLS].map(env::var);
    let [Ok(prefix), Ok(procedure), Ok(calls)] = variables else {
        return;
    };
    let run_time = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let limits = ServerLimits {
        message_bytes: 2 * BYTES,
        ..ServerLimits::default()
    };
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.limits(limits).service(Large);
    let server = run_time.block_on(builder.start()).unwrap();
    let address = format!("{prefix}{}", server.addresses()[0]);
    let caller = thread::Builder::new().name("client".to_owned());
    let [procedure, calls] = [procedure, calls].map(|number| number.parse().unwrap());
    let made = caller.spawn(move || call(&address, procedure, calls));
    made.unwrap().join().unwrap();
}

fn call(address: &str, procedure: u32, calls: u32) {
    let client = Client::connect(address, PROGRAM, 1).unwrap();
    for _ in 0..calls {
        let found = if client.protocol() == Protocol::Lean {
            (client.lean()).call(
                procedure,
                |_| Ok(()),
                |input| match input {
                    LeanInput::Native(input) => taken(input),
                    LeanInput::Swapped(input) => taken(input),
                },
            )
        } else {
            client.onc().call(procedure, |_| Ok(()), taken)
        };
        assert!(found.unwrap().iter().all(|byte| *byte == 7));
    }
}

fn taken<R: Representation>(input: &mut Decoder<'_, R>) -> Result<Vec<u8>, DecodeError> {
    Ok(input.take(BYTES)?.to_vec())
}

/// Returns how often the server copies a byte of a result, in hundredths.
fn copies(counter: &Path, prefix: &str, procedure: u32) -> usize {
    let procedure = procedure.to_string();
    let [few, many] = ["4", "24"].map(|calls| {
        let variables = [(PREFIX, prefix), (PROCEDURE, &procedure), (CALLS, calls)];
        counter::run_child(counter, &variables).1
    });
    (many - few) * 100 / (20 * BYTES)
}

#[test]
fn a_result_that_is_written_where_it_is_sent_from_is_not_copied() {
    let counter = counter::build();
    for prefix in ["", "lean+"] {
        let [returned, reserved] =
            [RETURNED, RESERVED].map(|procedure| copies(&counter, prefix, procedure));
        println!("{prefix}: {returned} and {reserved} copies in a hundred calls");
        assert!((100..=110).contains(&returned), "{prefix}: {returned}");
        assert!(reserved <= 10, "{prefix}: {reserved}");
    }
    fs::remove_file(counter).unwrap();
}

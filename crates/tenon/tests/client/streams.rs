//! Calls with streams, over every transport that carries them: all items arrive in order, ends are told, and a stream that
//! one end gives up ends at the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tenon::lean::{CallStreams, Interface};
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean, Representation};
use tenon::{
    CallCodec, CallError, CallErrorKind, CallInfo, CallOptions, CalledProcedure, Client,
    ItemReader, ItemWriter, LeanInput, LeanService, OpenStreams, Refusal, ServedStreams, Server,
    ServerLimits, Service,
};

use crate::common::place::fresh_path;

const PROGRAM: u32 = 0x2000_0077;

/// Counts up to a number.
const COUNT: u32 = 1;
/// Adds up what it is sent.
const SUM: u32 = 2;
/// Sends everything back.
const ECHO: u32 = 3;
/// Sends items until its caller wants no more.
const ENDLESS: u32 = 4;
/// Fails behind some items.
const FAIL: u32 = 5;
/// Reads one item and answers.
const FIRST: u32 = 6;

/// A call with one number as its argument.
struct Call<const PROCEDURE: u32>(u32);

impl<const PROCEDURE: u32> CalledProcedure for Call<PROCEDURE> {
    const PROCEDURE: u32 = PROCEDURE;
    type Result = ();
    type Error = CallError;
}

impl<R: Representation, const PROCEDURE: u32> CallCodec<R> for Call<PROCEDURE> {
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError> {
        Ok(out.put(self.0))
    }

    fn decode(_input: &mut Decoder<'_, R>) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// A call that returns a number.
struct Sum;

impl CalledProcedure for Sum {
    const PROCEDURE: u32 = SUM;
    type Result = u64;
    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for Sum {
    fn decode(input: &mut Decoder<'_, R>) -> Result<u64, DecodeError> {
        input.get()
    }
}

/// A call that returns a number behind the first item.
struct First;

impl CalledProcedure for First {
    const PROCEDURE: u32 = FIRST;
    type Result = u64;
    type Error = CallError;
}

impl<R: Representation> CallCodec<R> for First {
    fn decode(input: &mut Decoder<'_, R>) -> Result<u64, DecodeError> {
        input.get()
    }
}

fn put_bytes(item: &Vec<u8>, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    out.put(item.len() as u32);
    for byte in item {
        out.put(u32::from(*byte));
    }
    Ok(())
}

fn get_bytes(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    let mut number = || match &mut *input {
        LeanInput::Native(input) => input.get::<u32>(),
        LeanInput::Swapped(input) => input.get::<u32>(),
    };
    let length = number()?;
    (0..length).map(|_| Ok(number()? as u8)).collect()
}

fn put_number(item: &u32, out: &mut Encoder<'_, Lean>) -> Result<(), EncodeError> {
    Ok(out.put(*item))
}

fn get_number(input: &mut LeanInput<'_>) -> Result<u32, DecodeError> {
    match input {
        LeanInput::Native(input) => input.get(),
        LeanInput::Swapped(input) => input.get(),
    }
}

/// Has procedures with streams.
#[derive(Default)]
struct Streaming {
    /// Handlers that have ended because their callers wanted no more.
    ended: Arc<AtomicUsize>,
}

impl Service for Streaming {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Streaming {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        _: &CallInfo<'_>,
        _: LeanInput<'_>,
        _: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(Refusal::InvalidArguments(
            "every procedure has streams".into(),
        ))
    }

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let numbers = || ItemReader::of_handler(streams, get_number);
        match call.procedure() {
            COUNT => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                for number in 0..get_number(&mut arguments)? {
                    out.feed(&number)?;
                }
                out.flush()?;
            }
            SUM => {
                let sum: Result<Vec<u32>, CallError> = numbers().collect();
                result.put(sum?.into_iter().map(u64::from).sum::<u64>());
            }
            ECHO => {
                streams.expect(CallStreams {
                    argument: true,
                    result: true,
                })?;
                let mut out = ItemWriter::of_handler(streams, put_bytes);
                for item in ItemReader::of_handler(streams, get_bytes) {
                    out.send(&item?)?;
                }
            }
            ENDLESS => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                let end = loop {
                    if let Err(error) = out.send(&7) {
                        break error;
                    }
                };
                assert!(call.is_cancelled(), "{end}");
                self.ended.fetch_add(1, Ordering::SeqCst);
                return Err(end.into());
            }
            FAIL => {
                let mut out = ItemWriter::of_handler(streams, put_number);
                out.send_all(&[1, 2, 3])?;
                return Err(Refusal::Denied("no more for you".into()));
            }
            FIRST => {
                let first = numbers().next().ok_or(Refusal::ProcedureUnavailable)??;
                result.put(u64::from(first));
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        Ok(())
    }
}

/// A server at an address of its own of each kind, a client of it, and the handlers that have ended.
fn each(test: impl Fn(&Client, &AtomicUsize)) {
    let path = || fresh_path().display().to_string();
    for (listen, protocol) in [
        ("tcp://127.0.0.1:0".to_owned(), "lean+"),
        (format!("unix://{}", path()), "lean+"),
        (format!("shm://{}", path()), ""),
    ] {
        let service = Streaming::default();
        let ended = Arc::clone(&service.ended);
        let builder = Server::builder().listen(&listen).unwrap();
        let server = builder.service(service).start().unwrap();
        let address = format!("{protocol}{}", server.addresses()[0]);
        let client = Client::connect(&address, PROGRAM, 1).unwrap();
        eprintln!("{address}");
        test(&client, &ended);
        drop(client);
        server.shutdown(Duration::from_secs(5));
    }
}

#[test]
fn all_items_of_a_result_arrive_in_their_order() {
    each(|client, _| {
        for count in [0, 1, 1000, 300_000] {
            let options = CallOptions::new();
            let numbers = client.open_result(&Call::<COUNT>(count), get_number, options);
            let numbers: Result<Vec<u32>, CallError> = numbers.unwrap().collect();
            assert!(numbers.unwrap().into_iter().eq(0..count), "{count}");
        }
    });
}

#[test]
fn all_items_of_an_argument_arrive_before_the_result() {
    each(|client, _| {
        for count in [0, 1, 1000, 300_000_u32] {
            let options = CallOptions::new();
            let mut numbers = client.open_argument(&Sum, put_number, options).unwrap();
            let items: Vec<u32> = (0..count).collect();
            numbers.send_all(&items).unwrap();
            let expected = u64::from(count) * u64::from(count.saturating_sub(1)) / 2;
            assert_eq!(numbers.finish().unwrap(), expected, "{count}");
        }
    });
}

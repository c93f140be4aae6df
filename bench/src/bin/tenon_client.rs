//! Calls one operation of the section `rpc` by Tenon, again and again; several calls in flight are
//! started by one thread, half of them in a batch, which takes the answers in order.
//!
//! With `lean+metadata` each call carries three pairs of metadata, and its reply, but for procedure 0, as many. With
//! `lean+middleware` five middlewares stand around the client.
//!
//! usage: `tenon_client onc|lean|lean+metadata|lean+middleware block|spin|adaptive PROCEDURE N CALLS_IN_FLIGHT ADDRESS...`

use std::error::Error;
use std::sync::Arc;

use tenon::wire::{Decoder, Marshal};
use tenon::{
    CallError, CallOptions, Channel, ChannelOptions, Layered, Metadata, PendingCall, ReplyMetadata,
    Waiting,
};
use tenon_bench::stubs::{BenchVersionClient, Text};
use tenon_bench_common::measure::{serve_pipelined, serve_rounds};
use tenon_bench_common::operation::{
    NAME, Operation, greeting, large_data, max_result, one_to, rand_nums,
};
use tenon_bench_common::protocol::Protocol;
use tenon_bench_common::task::{Task, check};
use tenon_middleware::{AccessLog, ConcurrencyLimit, Metrics, RateLimit, Retry};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, protocol, waiting, task @ ..] = &arguments[..] else {
        return Err("usage: tenon_client PROTOCOL WAITING PROCEDURE N IN_FLIGHT ADDRESS".into());
    };
    let task = Task::from_arguments(task)?.over_one_connection()?;
    if let Some(protocol) = protocol.strip_suffix("+metadata") {
        return measure_metadata(protocol, waiting, &task);
    }
    if let Some(protocol) = protocol.strip_suffix("+middleware") {
        return measure_middleware(protocol, waiting, &task);
    }
    let client = connect(protocol, waiting, &task)?;
    match (task.operation, task.in_flight) {
        (Operation::Null, 1) => serve_rounds(|| Ok(client.null_call()?)),
        (Operation::MaxResult, 1) => {
            let expected = max_result();
            serve_rounds(|| Ok(check(client.max_result()? == expected)?))
        }
        (Operation::SayHello, 1) => {
            let (name, expected) = (Text::from(NAME), greeting(NAME));
            serve_rounds(|| Ok(check(client.say_hello(&name)? == expected)?))
        }
        (Operation::Average(count), 1) => measure_average(&client, count),
        (Operation::GetRandNums(count), 1) => measure_get_rand_nums(&client, count),
        (Operation::Large(n @ 128), 1) => measure_echo(n, |data| client.large128(data)),
        (Operation::Large(n @ 1024), 1) => measure_echo(n, |data| client.large1024(data)),
        (Operation::Large(n @ 4096), 1) => measure_echo(n, |data| client.large4096(data)),
        (Operation::Large(n), 1) => measure_echo(n, |data| client.large8192(data)),
        (Operation::Null, many) => pipeline(&client, many, || client.start_null_call(), |()| true),
        (Operation::MaxResult, many) => {
            let expected = max_result();
            pipeline(
                &client,
                many,
                || client.start_max_result(),
                |result| result == expected,
            )
        }
        (Operation::SayHello, many) => {
            let (name, expected) = (Text::from(NAME), greeting(NAME));
            pipeline(
                &client,
                many,
                || client.start_say_hello(&name),
                |result| result == expected,
            )
        }
        (other, _) => Err(format!("no calls of {other} in flight").into()),
    }
}

fn connect(
    protocol: &str,
    waiting: &str,
    task: &Task,
) -> Result<BenchVersionClient, Box<dyn Error>> {
    let url = protocol.parse::<Protocol>()?.url(&task.address);
    let options = ChannelOptions::default().waiting(waiting.parse::<Waiting>()?);
    let channel = Channel::connect_with(&url.parse()?, options)?;
    Ok(BenchVersionClient::over(channel))
}

/// Makes calls by a client with middleware.
fn measure_middleware(protocol: &str, waiting: &str, task: &Task) -> Outcome {
    let client = connect(protocol, waiting, task)?;
    let around = Layered::new(client.0, AccessLog::new())
        .with(Metrics::new())
        .with(ConcurrencyLimit::new(1000))
        .with(RateLimit::per_second(1e8, 1_000_000))
        .with(Retry::new(3));
    let client = BenchVersionClient(around);
    match task.operation {
        Operation::Null => serve_rounds(|| Ok(client.null_call()?)),
        Operation::SayHello => {
            let (name, expected) = (Text::from(NAME), greeting(NAME));
            serve_rounds(|| Ok(check(client.say_hello(&name)? == expected)?))
        }
        other => Err(format!("no calls of {other} with middleware").into()),
    }
}

/// Makes calls that carry metadata, and looks at that of their replies.
fn measure_metadata(protocol: &str, waiting: &str, task: &Task) -> Outcome {
    let client = connect(protocol, waiting, task)?;
    let mut metadata = Metadata::new();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    metadata.append("traceparent", trace)?;
    metadata.append("request-id", "7f3a0b4c")?;
    metadata.append("tenant", "blue")?;
    let client = BenchVersionClient(client.0.with_metadata(&metadata)?);
    let reply = Arc::new(ReplyMetadata::new());
    let client = client.with_options(CallOptions::new().reply_metadata(&reply));
    match task.operation {
        Operation::Null => serve_rounds(|| Ok(client.null_call()?)),
        Operation::SayHello => {
            let (name, expected) = (Text::from(NAME), greeting(NAME));
            serve_rounds(|| {
                let greeted = client.say_hello(&name)? == expected;
                Ok(check(greeted && reply.get() == metadata)?)
            })
        }
        other => Err(format!("no calls of {other} with metadata").into()),
    }
}

fn pipeline<T>(
    client: &BenchVersionClient,
    in_flight: usize,
    start: impl FnMut() -> Result<PendingCall<T>, CallError>,
    is_right: impl Fn(T) -> bool,
) -> Outcome {
    let mut start = start;
    let channel = client.0.channel();
    serve_pipelined(
        in_flight,
        || channel.batch(),
        || Ok(start()?),
        |pending| Ok(check(is_right(pending.wait()?))?),
    )
}

fn measure_average(client: &BenchVersionClient, count: u32) -> Outcome {
    let numbers = one_to(count);
    let expected = f64::from(count + 1) / 2.0;
    serve_rounds(|| Ok(check(client.average(&numbers)? == expected)?))
}

fn measure_get_rand_nums(client: &BenchVersionClient, count: u32) -> Outcome {
    let expected = rand_nums(count);
    check(client.get_rand_nums(count)? == expected)?;
    serve_rounds(|| {
        let numbers = client.get_rand_nums(count)?;
        Ok(check(
            numbers.len() == expected.len() && numbers.last() == expected.last(),
        )?)
    })
}

/// Sends a record and compares what comes back.
fn measure_echo<T: Marshal + PartialEq>(
    members: u32,
    call: impl Fn(&T) -> Result<T, CallError>,
) -> Outcome {
    let expected: Vec<u8> = large_data(members)
        .into_iter()
        .flat_map(i32::to_be_bytes)
        .collect();
    let sent = T::decode(&mut Decoder::new(&expected))?;
    // Compared where it is: 32 KiB are not moved for nothing.
    serve_rounds(|| {
        let answer = call(&sent);
        let is_right = matches!(&answer, Ok(answer) if *answer == sent);
        match answer {
            Ok(_) => Ok(check(is_right)?),
            Err(error) => Err(error.into()),
        }
    })
}

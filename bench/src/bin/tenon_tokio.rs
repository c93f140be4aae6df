//! Calls and serves the operations of the section `rpc` by Tenon on tokio: one thread at each end.
//!
//! usage: `tenon_tokio server block|spin|adaptive tcp|udp|unix=PATH|shm=PATH|TRANSPORT=HOST:PORT`, or
//! `tenon_tokio client block|spin|adaptive PROCEDURE N CALLS_IN_FLIGHT ADDRESS...`

use std::future::pending;

use tenon::wire::{Buffer, Decoder, Encoder, Marshal};
use tenon::{ChannelOptions, Waiting};
use tenon_bench::operations::{Operations, as_arguments, listen_url};
use tenon_bench::stubs::{BenchVersionAsyncClient, BenchVersionService, Packet, Text};
use tenon_bench_asynchronous::peer::{Answer, Peer};
use tenon_bench_asynchronous::{Outcome, block_on, run, run_client};
use tenon_bench_common::measure::serve_rounds_async;
use tenon_bench_common::operation::large_data;
use tenon_bench_common::protocol::Protocol;
use tenon_bench_common::task::check;
use tenon_tokio::{Channel, Server};

struct Client(BenchVersionAsyncClient);

fn main() -> Outcome {
    run(serve, call)
}

fn serve(arguments: &[String]) -> Outcome {
    let [waiting, transport] = arguments else {
        return Err("usage: tenon_tokio server WAITING TRANSPORT".into());
    };
    let builder = Server::builder()
        .listen(&listen_url(transport))?
        .sync_service(BenchVersionService(Operations))
        .waiting(waiting.parse::<Waiting>()?);
    block_on(async {
        let server = builder.start().await?;
        let address = server.addresses()[0].to_string();
        println!("{}\nready", as_arguments(&address));
        pending().await
    })
}

fn call(arguments: &[String]) -> Outcome {
    let [waiting, task @ ..] = arguments else {
        return Err("usage: tenon_tokio client WAITING PROCEDURE N IN_FLIGHT ADDRESS".into());
    };
    let options = ChannelOptions::default().waiting(waiting.parse::<Waiting>()?);
    run_client(task, async |address| {
        let url = Protocol::Lean.url(&address).parse()?;
        let channel = Channel::connect_with(&url, options.clone()).await?;
        Ok(Client(BenchVersionAsyncClient::over(channel)))
    })
}

impl Peer for Client {
    async fn null(&self) -> Answer<()> {
        Ok(self.0.null_call().await?)
    }

    async fn max_result(&self) -> Answer<impl AsRef<[u8]>> {
        let packet: Packet = self.0.max_result().await?;
        Ok(packet)
    }

    async fn say_hello(&self, name: &str) -> Answer<impl AsRef<str>> {
        let greeting = self.0.say_hello(&Text::from(name)).await?;
        Ok(String::from_utf8(greeting.into())?)
    }

    async fn average(&self, numbers: &[i32]) -> Answer<f64> {
        Ok(self.0.average(numbers).await?)
    }

    async fn get_rand_nums(&self, count: u32) -> Answer<Vec<i32>> {
        Ok(self.0.get_rand_nums(count).await?)
    }

    async fn measure_large(&self, members: u32, in_flight: usize) -> Answer<()> {
        let client = &self.0;
        match members {
            128 => echo(members, in_flight, async |data| client.large128(data).await).await,
            1024 => {
                echo(members, in_flight, async |data| {
                    client.large1024(data).await
                })
                .await
            }
            4096 => {
                echo(members, in_flight, async |data| {
                    client.large4096(data).await
                })
                .await
            }
            _ => {
                echo(members, in_flight, async |data| {
                    client.large8192(data).await
                })
                .await
            }
        }
    }
}

/// Sends a record and compares what comes back as a block of memory.
async fn echo<T: Marshal>(
    members: u32,
    in_flight: usize,
    call: impl AsyncFn(&T) -> Result<T, tenon::CallError>,
) -> Answer<()> {
    let values = large_data(members).into_iter();
    let expected: Vec<u8> = values.flat_map(i32::to_be_bytes).collect();
    let sent = T::decode(&mut Decoder::new(&expected))?;
    serve_rounds_async(in_flight, async || {
        let mut received = Buffer::default();
        call(&sent)
            .await?
            .encode(&mut Encoder::new(&mut received))?;
        Ok(check(received.as_slice() == expected)?)
    })
    .await
}

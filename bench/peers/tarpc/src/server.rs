//! The operations of the section `rpc`, served by tarpc.

use futures_util::StreamExt;
use serde_bytes::ByteBuf;
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel};
use tenon_bench_asynchronous::operation::{greeting, max_result, rand_nums};
use tenon_bench_asynchronous::{Outcome, run_server};
use tenon_bench_tarpc::{Bench, LargeData128, LargeData1024, transport};

#[derive(Clone)]
struct Operations;

impl Bench for Operations {
    async fn null_call(self, _: Context) {}

    async fn max_result(self, _: Context) -> ByteBuf {
        ByteBuf::from(max_result())
    }

    async fn average(self, _: Context, numbers: Vec<i32>) -> f64 {
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        sum as f64 / numbers.len().max(1) as f64
    }

    async fn get_rand_nums(self, _: Context, count: u32) -> Vec<i32> {
        rand_nums(count)
    }

    async fn say_hello(self, _: Context, name: String) -> String {
        greeting(name)
    }

    async fn large128(self, _: Context, data: Box<LargeData128>) -> Box<LargeData128> {
        data
    }

    async fn large1024(self, _: Context, data: Box<LargeData1024>) -> Box<LargeData1024> {
        data
    }
}

/// Runs the server.
pub fn run(arguments: &[String]) -> Outcome {
    run_server(arguments, async |listener| {
        loop {
            let channel = BaseChannel::with_defaults(transport(listener.accept().await?));
            let calls = channel.execute(Operations.serve());
            tokio::spawn(calls.for_each(async |call| {
                tokio::spawn(call);
            }));
        }
    })
}

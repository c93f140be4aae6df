//! The operations of the section `rpc`, served by volo.

use std::sync::Arc;

use pilota::{Bytes, FastStr};
use tenon_bench_asynchronous::operation::{greeting, max_result, rand_nums};
use tenon_bench_asynchronous::{Listener, Outcome, run_server};
use tenon_bench_volo::bench::{Bench, BenchServer, LargeData128};
use volo::net::incoming::DefaultIncoming;
use volo_thrift::ServerError;

type Answer<T> = Result<T, ServerError>;

struct Operations;

impl Bench for Operations {
    async fn null_call(&self) -> Answer<()> {
        Ok(())
    }

    async fn max_result(&self) -> Answer<Bytes> {
        Ok(Bytes::copy_from_slice(&max_result()))
    }

    async fn average(&self, numbers: Vec<i32>) -> Answer<f64> {
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        Ok(sum as f64 / numbers.len().max(1) as f64)
    }

    async fn get_rand_nums(&self, count: i32) -> Answer<Vec<i32>> {
        Ok(rand_nums(count.unsigned_abs()))
    }

    async fn say_hello(&self, name: FastStr) -> Answer<FastStr> {
        Ok(greeting(name).into())
    }

    async fn large128(&self, data: Arc<LargeData128>) -> Answer<Arc<LargeData128>> {
        Ok(data)
    }
}

/// Runs the server.
pub fn run(arguments: &[String]) -> Outcome {
    run_server(arguments, async |listener| {
        let incoming = match listener {
            Listener::Tcp(listener) => DefaultIncoming::from(listener),
            Listener::Unix(listener) => DefaultIncoming::from(listener),
        };
        let outcome = BenchServer::new(Operations).run(incoming).await;
        outcome.map_err(|error| error.to_string().into())
    })
}

//! The operations of the section `rpc`, served by volo.

use std::sync::Arc;

use pilota::{Bytes, FastStr};
use tenon_bench_asynchronous::operation::{greeting, max_result, rand_nums};
use tenon_bench_asynchronous::{Listener, Outcome, block_on, run_server};
use tenon_bench_volo::bench::{Bench, BenchServer, LargeData128};
use volo::net::incoming::DefaultIncoming;
use volo::net::shmipc;
use volo_thrift::ServerError;

use crate::memory_at;

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
    match arguments {
        [listen] if listen.starts_with("shm=") => {
            block_on(serve_in_memory(&listen["shm=".len()..]))
        }
        _ => serve_sockets(arguments),
    }
}

async fn serve_in_memory(path: &str) -> Outcome {
    let listener = shmipc::Listener::listen(memory_at(path)?, None).await?;
    println!("shm {path}\nready");
    serve(DefaultIncoming::from(listener)).await
}

async fn serve(incoming: DefaultIncoming) -> Outcome {
    let outcome = BenchServer::new(Operations).run(incoming).await;
    outcome.map_err(|error| error.to_string().into())
}

fn serve_sockets(arguments: &[String]) -> Outcome {
    run_server(arguments, async |listener| {
        let incoming = match listener {
            Listener::Tcp(listener) => DefaultIncoming::from(listener),
            Listener::Unix(listener) => DefaultIncoming::from(listener),
        };
        serve(incoming).await
    })
}

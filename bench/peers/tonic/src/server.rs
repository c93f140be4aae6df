//! The operations of the section `rpc`, served by tonic.

use futures_util::stream;
use tenon_bench_asynchronous::operation::{greeting, max_result, rand_nums};
use tenon_bench_asynchronous::{Listener, Outcome, run_server};
use tenon_bench_tonic::accepted::Accepted;
use tenon_bench_tonic::bench_server::{Bench, BenchServer};
use tenon_bench_tonic::{
    Count, LargeData128, LargeData1024, LargeData4096, LargeData8192, Mean, Nothing, Numbers,
    Packet, Text,
};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

struct Operations;

#[tonic::async_trait]
impl Bench for Operations {
    async fn null_call(&self, _: Request<Nothing>) -> Answer<Nothing> {
        Ok(Response::new(Nothing {}))
    }

    async fn max_result(&self, _: Request<Nothing>) -> Answer<Packet> {
        let bytes = max_result().to_vec();
        Ok(Response::new(Packet { bytes }))
    }

    async fn average(&self, all: Request<Numbers>) -> Answer<Mean> {
        let numbers = all.into_inner().numbers;
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        let mean = sum as f64 / numbers.len().max(1) as f64;
        Ok(Response::new(Mean { mean }))
    }

    async fn get_rand_nums(&self, count: Request<Count>) -> Answer<Numbers> {
        let numbers = rand_nums(count.into_inner().count);
        Ok(Response::new(Numbers { numbers }))
    }

    async fn say_hello(&self, name: Request<Text>) -> Answer<Text> {
        let text = greeting(name.into_inner().text);
        Ok(Response::new(Text { text }))
    }

    async fn large128(&self, data: Request<LargeData128>) -> Answer<LargeData128> {
        Ok(Response::new(data.into_inner()))
    }

    async fn large1024(&self, data: Request<LargeData1024>) -> Answer<LargeData1024> {
        Ok(Response::new(data.into_inner()))
    }

    async fn large4096(&self, data: Request<LargeData4096>) -> Answer<LargeData4096> {
        Ok(Response::new(data.into_inner()))
    }

    async fn large8192(&self, data: Request<LargeData8192>) -> Answer<LargeData8192> {
        Ok(Response::new(data.into_inner()))
    }
}

/// Runs the server.
pub fn run(arguments: &[String]) -> Outcome {
    run_server(arguments, async |listener: Listener| {
        let connections = stream::unfold(listener, async |listener| {
            let accepted = listener.accept().await.map(Accepted);
            Some((accepted, listener))
        });
        Server::builder()
            .add_service(BenchServer::new(Operations))
            .serve_with_incoming(connections)
            .await?;
        Ok(())
    })
}

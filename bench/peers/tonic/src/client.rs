//! Calls one operation of the section `rpc` by tonic, again and again.

use std::io;

use hyper_util::rt::TokioIo;
use tenon_bench_asynchronous::peer::{Answer, Peer, measure_echo, record};
use tenon_bench_asynchronous::{Address, Outcome, connect, run_client};
use tenon_bench_tonic::bench_client::BenchClient;
use tenon_bench_tonic::{Count, Nothing, Numbers, Text};
use tonic::transport::{Channel, Endpoint, Uri};

/// A channel, of which each call takes a clone, as tonic has it.
struct Client(BenchClient<Channel>);

/// Runs the client.
pub fn run(arguments: &[String]) -> Outcome {
    run_client(arguments, Client::connect)
}

impl Client {
    async fn connect(address: Address) -> Answer<Client> {
        let connector = tower::service_fn(move |_: Uri| {
            let address = address.clone();
            async move { Ok::<_, io::Error>(TokioIo::new(connect(&address).await?)) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connector).await?;
        Ok(Client(BenchClient::new(channel)))
    }

    fn client(&self) -> BenchClient<Channel> {
        self.0.clone()
    }
}

macro_rules! echo {
    ($client:ident, $members:ident, $in_flight:ident, $($count:literal: $call:ident),*) => {
        match $members {
            $($count => {
                let call = async |data: &_| Ok($client.client().$call(*data).await?.into_inner());
                measure_echo($in_flight, &record::<_, $count>()?, call).await
            })*
            other => Err(format!("no record of {other} members").into()),
        }
    };
}

impl Peer for Client {
    async fn null(&self) -> Answer<()> {
        self.client().null_call(Nothing {}).await?;
        Ok(())
    }

    async fn max_result(&self) -> Answer<impl AsRef<[u8]>> {
        Ok(self
            .client()
            .max_result(Nothing {})
            .await?
            .into_inner()
            .bytes)
    }

    async fn say_hello(&self, name: &str) -> Answer<impl AsRef<str>> {
        let text = name.to_owned();
        Ok(self
            .client()
            .say_hello(Text { text })
            .await?
            .into_inner()
            .text)
    }

    async fn average(&self, numbers: &[i32]) -> Answer<f64> {
        let numbers = numbers.to_vec();
        Ok(self
            .client()
            .average(Numbers { numbers })
            .await?
            .into_inner()
            .mean)
    }

    async fn get_rand_nums(&self, count: u32) -> Answer<Vec<i32>> {
        Ok(self
            .client()
            .get_rand_nums(Count { count })
            .await?
            .into_inner()
            .numbers)
    }

    async fn measure_large(&self, members: u32, in_flight: usize) -> Answer<()> {
        echo!(self, members, in_flight, 128: large128, 1024: large1024, 4096: large4096, 8192: large8192)
    }
}

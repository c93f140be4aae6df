//! Calls one operation of the section `rpc` by tarpc, again and again.

use tarpc::{client, context};
use tenon_bench_asynchronous::peer::{Answer, Peer, measure_echo, record};
use tenon_bench_asynchronous::{Outcome, connect, run_client};
use tenon_bench_tarpc::{BenchClient, transport};

struct Client(BenchClient);

/// Runs the client.
pub fn run(arguments: &[String]) -> Outcome {
    run_client(arguments, async |address| {
        let transport = transport(connect(&address).await?);
        let config = client::Config::default();
        Ok(Client(BenchClient::new(config, transport).spawn()))
    })
}

macro_rules! echo {
    ($peer:ident, $members:ident, $in_flight:ident, $($count:literal: $call:ident),*) => {
        match $members {
            $($count => {
                let sent = Box::new(record::<_, $count>()?);
                let call = async |data: &Box<_>| {
                    Ok($peer.0.$call(context::current(), Box::clone(data)).await?)
                };
                measure_echo($in_flight, &sent, call).await
            })*
            other => Err(format!("no record of {other} members").into()),
        }
    };
}

impl Peer for Client {
    async fn null(&self) -> Answer<()> {
        Ok(self.0.null_call(context::current()).await?)
    }

    async fn max_result(&self) -> Answer<impl AsRef<[u8]>> {
        Ok(self.0.max_result(context::current()).await?)
    }

    async fn say_hello(&self, name: &str) -> Answer<impl AsRef<str>> {
        Ok(self
            .0
            .say_hello(context::current(), name.to_owned())
            .await?)
    }

    async fn average(&self, numbers: &[i32]) -> Answer<f64> {
        Ok(self.0.average(context::current(), numbers.to_vec()).await?)
    }

    async fn get_rand_nums(&self, count: u32) -> Answer<Vec<i32>> {
        Ok(self.0.get_rand_nums(context::current(), count).await?)
    }

    async fn measure_large(&self, members: u32, in_flight: usize) -> Answer<()> {
        echo!(self, members, in_flight, 128: large128, 1024: large1024)
    }
}

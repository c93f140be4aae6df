//! Calls one operation of the section `rpc` by Cap'n Proto, again and again.

use capnp_rpc::RpcSystem;
use capnp_rpc::rpc_twoparty_capnp::Side;
use tenon_bench_asynchronous::peer::{Answer, Peer, measure_echo, record};
use tenon_bench_asynchronous::{Outcome, connect, run_client};
use tenon_bench_capnp::bench_capnp::bench;
use tenon_bench_capnp::{LargeData128, LargeData1024, network};

struct Client(bench::Client);

/// Runs the client.
pub fn run(arguments: &[String]) -> Outcome {
    run_client(arguments, async |address| {
        let network = network(connect(&address).await?, Side::Client);
        let mut system = RpcSystem::new(Box::new(network), None);
        let client = system.bootstrap(Side::Server);
        tokio::task::spawn_local(system);
        Ok(Client(client))
    })
}

macro_rules! echo {
    ($peer:ident, $members:ident, $in_flight:ident, $($count:literal: $record:ident $request:ident),*) => {
        match $members {
            $($count => {
                let call = async |data: &$record| {
                    let mut request = $peer.0.$request();
                    data.write(request.get().init_data());
                    let response = request.send().promise.await?;
                    Ok($record::read(response.get()?.get_data()?))
                };
                measure_echo($in_flight, &record::<$record, $count>()?, call).await
            })*
            other => Err(format!("no record of {other} members").into()),
        }
    };
}

impl Peer for Client {
    async fn null(&self) -> Answer<()> {
        self.0.null_call_request().send().promise.await?;
        Ok(())
    }

    async fn max_result(&self) -> Answer<impl AsRef<[u8]>> {
        let response = self.0.max_result_request().send().promise.await?;
        Ok(response.get()?.get_bytes()?.to_vec())
    }

    async fn say_hello(&self, name: &str) -> Answer<impl AsRef<str>> {
        let mut request = self.0.say_hello_request();
        request.get().set_name(name);
        let response = request.send().promise.await?;
        Ok(response.get()?.get_greeting()?.to_string()?)
    }

    async fn average(&self, numbers: &[i32]) -> Answer<f64> {
        let mut request = self.0.average_request();
        request.get().set_numbers(numbers)?;
        Ok(request.send().promise.await?.get()?.get_mean())
    }

    async fn get_rand_nums(&self, count: u32) -> Answer<Vec<i32>> {
        let mut request = self.0.get_rand_nums_request();
        request.get().set_count(count);
        let response = request.send().promise.await?;
        Ok(response.get()?.get_numbers()?.iter().collect())
    }

    async fn measure_large(&self, members: u32, in_flight: usize) -> Answer<()> {
        echo!(self, members, in_flight,
            128: LargeData128 large128_request,
            1024: LargeData1024 large1024_request)
    }
}

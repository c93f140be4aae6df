//! The operations of the section `rpc`, served by Cap'n Proto.

use std::rc::Rc;

use capnp::Error;
use capnp_rpc::RpcSystem;
use capnp_rpc::rpc_twoparty_capnp::Side;
use tenon_bench_asynchronous::operation::{greeting, max_result, rand_nums};
use tenon_bench_asynchronous::{Outcome, run_server};
use tenon_bench_capnp::bench_capnp::bench;
use tenon_bench_capnp::{LargeData128, LargeData1024, network};

struct Operations;

macro_rules! echo {
    ($call:ident, $params:ident, $results:ident, $record:ident) => {
        async fn $call(
            self: Rc<Self>,
            params: bench::$params,
            mut results: bench::$results,
        ) -> Result<(), Error> {
            let data = $record::read(params.get()?.get_data()?);
            data.write(results.get().init_data());
            Ok(())
        }
    };
}

impl bench::Server for Operations {
    async fn null_call(
        self: Rc<Self>,
        _: bench::NullCallParams,
        _: bench::NullCallResults,
    ) -> Result<(), Error> {
        Ok(())
    }

    async fn max_result(
        self: Rc<Self>,
        _: bench::MaxResultParams,
        mut results: bench::MaxResultResults,
    ) -> Result<(), Error> {
        results.get().set_bytes(&max_result());
        Ok(())
    }

    async fn average(
        self: Rc<Self>,
        params: bench::AverageParams,
        mut results: bench::AverageResults,
    ) -> Result<(), Error> {
        let numbers: Vec<i32> = params.get()?.get_numbers()?.iter().collect();
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        results
            .get()
            .set_mean(sum as f64 / numbers.len().max(1) as f64);
        Ok(())
    }

    async fn get_rand_nums(
        self: Rc<Self>,
        params: bench::GetRandNumsParams,
        mut results: bench::GetRandNumsResults,
    ) -> Result<(), Error> {
        let numbers = rand_nums(params.get()?.get_count());
        results.get().set_numbers(&numbers[..])
    }

    async fn say_hello(
        self: Rc<Self>,
        params: bench::SayHelloParams,
        mut results: bench::SayHelloResults,
    ) -> Result<(), Error> {
        let name = params.get()?.get_name()?.to_str()?;
        results.get().set_greeting(greeting(name).as_str());
        Ok(())
    }

    echo!(large128, Large128Params, Large128Results, LargeData128);
    echo!(large1024, Large1024Params, Large1024Results, LargeData1024);
}

/// Runs the server.
pub fn run(arguments: &[String]) -> Outcome {
    run_server(arguments, async |listener| {
        let client: bench::Client = capnp_rpc::new_client(Operations);
        loop {
            let network = network(listener.accept().await?, Side::Server);
            let system = RpcSystem::new(Box::new(network), Some(client.clone().client));
            tokio::task::spawn_local(system);
        }
    })
}

//! Calls Null by many threads over one channel of Tenon, one call outstanding by each thread.
//!
//! usage: `tenon_threads_client onc|lean block|spin|adaptive THREADS tcp HOST PORT|unix PATH`

use tenon::{Channel, ChannelOptions, Waiting};
use tenon_bench::stubs::BenchVersionClient;
use tenon_bench::threads::{Outcome, serve_rounds_of_threads};
use tenon_bench_common::address::Address;
use tenon_bench_common::protocol::Protocol;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, protocol, waiting, threads, address @ ..] = &arguments[..] else {
        return Err("usage: tenon_threads_client PROTOCOL WAITING THREADS ADDRESS...".into());
    };
    let address = Address::from_arguments(address)?;
    let url = protocol.parse::<Protocol>()?.url(&address);
    let options = ChannelOptions::default().waiting(waiting.parse::<Waiting>()?);
    let client = BenchVersionClient::over(Channel::connect_with(&url.parse()?, options)?);
    let callers = (0..threads.parse()?).map(|_| {
        let client = client.clone();
        move || -> Outcome { Ok(client.null_call()?) }
    });
    serve_rounds_of_threads(callers.collect())
}

//! The operations of the section `rpc` by volo.

mod client;
mod server;

use tenon_bench_asynchronous::Outcome;

fn main() -> Outcome {
    tenon_bench_asynchronous::run(server::run, client::run)
}

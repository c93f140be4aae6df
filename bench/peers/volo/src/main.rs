//! The operations of the section `rpc` by volo.

mod client;
mod server;

use std::io;
use std::os::unix::net::SocketAddr;

use tenon_bench_asynchronous::Outcome;
use volo::net::shmipc::Address;

fn main() -> Outcome {
    tenon_bench_asynchronous::run(server::run, client::run)
}

/// Shared memory that is handed over through the Unix socket at `path`.
fn memory_at(path: &str) -> io::Result<Address> {
    SocketAddr::from_pathname(path).map(Address::from)
}

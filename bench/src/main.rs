//! Runs a section of the benchmarks; `bench/run` builds what it needs and starts it.

mod contestant;
mod report;
mod rpc;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [section] if section == "rpc" => rpc::run(""),
        [section, filter] if section == "rpc" => rpc::run(filter),
        _ => Err("usage: bench/run SECTION [FILTER]".into()),
    }
}

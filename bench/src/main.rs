//! Runs a section of the benchmarks; `bench/run` builds what it needs and starts it.

mod report;
mod rpc;
mod stream;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [section, choice @ ..] if section == "rpc" => {
            rpc::run(&rpc::Choice::from_arguments(choice)?)
        }
        [section, choice @ ..] if section == "stream" => {
            stream::run(&stream::Choice::from_arguments(choice)?)
        }
        _ => Err("usage: bench/run SECTION [--peers NAME,...] [FILTER]".into()),
    }
}

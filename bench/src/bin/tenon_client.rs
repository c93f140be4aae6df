//! Calls one operation of the section `rpc` by Tenon, again and again.
//!
//! usage: `tenon_client PROCEDURE N ADDRESS...`

use std::error::Error;

use tenon::CallError;
use tenon::wire::{Buffer, Decoder, Encoder, Marshal};
use tenon_bench::address::Address;
use tenon_bench::measure::serve_rounds;
use tenon_bench::operation::{Operation, large_data, max_result, one_to, rand_nums};
use tenon_bench::stubs::BenchVersionClient;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, procedure, count, address @ ..] = &arguments[..] else {
        return Err("usage: tenon_client PROCEDURE N ADDRESS...".into());
    };
    let client = BenchVersionClient::connect(&Address::from_arguments(address)?.url())?;
    match Operation::from_arguments(procedure, count)? {
        Operation::Null => serve_rounds(|| Ok(client.null_call()?)),
        Operation::MaxResult => measure_max_result(&client),
        Operation::Average(count) => measure_average(&client, count),
        Operation::GetRandNums(count) => measure_get_rand_nums(&client, count),
        Operation::Large(members @ 128) => measure_echo(members, |data| client.large128(data)),
        Operation::Large(members @ 1024) => measure_echo(members, |data| client.large1024(data)),
        Operation::Large(members @ 4096) => measure_echo(members, |data| client.large4096(data)),
        Operation::Large(members) => measure_echo(members, |data| client.large8192(data)),
    }
}

fn measure_max_result(client: &BenchVersionClient) -> Result<(), Box<dyn Error>> {
    let expected = max_result();
    serve_rounds(|| check(client.max_result()?.last() == expected.last()))
}

fn measure_average(client: &BenchVersionClient, count: u32) -> Result<(), Box<dyn Error>> {
    let numbers = one_to(count);
    let expected = f64::from(count + 1) / 2.0;
    serve_rounds(|| check(client.average(&numbers)? == expected))
}

fn measure_get_rand_nums(client: &BenchVersionClient, count: u32) -> Result<(), Box<dyn Error>> {
    let expected = rand_nums(count);
    check(client.get_rand_nums(count)? == expected)?;
    serve_rounds(|| {
        let numbers = client.get_rand_nums(count)?;
        check(numbers.len() == expected.len() && numbers.last() == expected.last())
    })
}

/// Sends a record and compares what comes back as a block of memory, as the libtirpc client does.
fn measure_echo<T: Marshal>(
    members: u32,
    call: impl Fn(&T) -> Result<T, CallError>,
) -> Result<(), Box<dyn Error>> {
    let expected = large_data(members);
    let sent = T::decode(&mut Decoder::new(&expected))?;
    let mut received = Buffer::default();
    serve_rounds(|| {
        received.clear();
        call(&sent)?.encode(&mut Encoder::new(&mut received))?;
        check(received.as_slice() == expected)
    })
}

fn check(is_right: bool) -> Result<(), Box<dyn Error>> {
    if is_right {
        Ok(())
    } else {
        Err("a wrong answer".into())
    }
}

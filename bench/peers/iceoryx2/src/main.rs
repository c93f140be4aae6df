//! The operations of the section `rpc` by iceoryx2's requests and responses, both ends looking all the time. It
//! moves memory and marshals nothing: arguments and results are the bytes that they are in memory, written
//! and compared where iceoryx2 lends room for them.
//!
//! usage: `peer_iceoryx2 server shm=NAME`, or
//! `peer_iceoryx2 client PROCEDURE N CALLS_IN_FLIGHT shm NAME`

use std::error::Error;
use std::hint::spin_loop;

use iceoryx2::port::client::Client;
use iceoryx2::port::server::Server;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::request_response::PortFactory;
use tenon_bench_common::address::Address;
use tenon_bench_common::measure::serve_rounds;
use tenon_bench_common::operation::{
    NAME, Operation, greeting, large_data, max_result, one_to, rand_nums,
};
use tenon_bench_common::task::{Task, check};

type Outcome = Result<(), Box<dyn Error>>;
type Service = PortFactory<ipc::Service, [u8], (), [u8], ()>;

/// Bytes of a request in front of its arguments: the procedure's number and the count of what is asked for.
const HEADER: usize = 8;

/// Bytes that there is room for at first.
const ROOM: usize = 512 << 10;

const NULL: u32 = 0;
const MAX_RESULT: u32 = 1;
const SAY_HELLO: u32 = 2;
const AVERAGE: u32 = 3;
const GET_RAND_NUMS: u32 = 4;
const LARGE: u32 = 5;

fn main() -> Outcome {
    set_log_level(LogLevel::Error);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, listen] if role == "server" => {
            serve(listen.strip_prefix("shm=").ok_or("shared memory only")?)
        }
        [role, task @ ..] if role == "client" => {
            call(&Task::from_arguments(task)?.over_one_connection()?)
        }
        _ => Err("usage: peer_iceoryx2 server shm=NAME, or client TASK".into()),
    }
}

fn open(node: &Node<ipc::Service>, name: &str) -> Result<Service, Box<dyn Error>> {
    let name = name.try_into()?;
    let builder = node.service_builder(&name);
    Ok(builder.request_response::<[u8], [u8]>().open_or_create()?)
}

fn serve(name: &str) -> Outcome {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = open(&node, name)?;
    let server: Server<ipc::Service, [u8], (), [u8], ()> = service
        .server_builder()
        .initial_max_slice_len(ROOM)
        .allocation_strategy(AllocationStrategy::PowerOfTwo)
        .create()?;
    println!("shm {name}\nready");
    loop {
        let Some(request) = server.receive()? else {
            spin_loop();
            continue;
        };
        let respond = |bytes: &[u8]| -> Outcome {
            let response = request.loan_slice_uninit(bytes.len())?;
            response.write_from_slice(bytes).send()?;
            Ok(())
        };
        let (header, arguments) = request.payload().split_at(HEADER);
        let [procedure, count] = [word(header, 0), word(header, 4)];
        match procedure {
            NULL => respond(&[0])?,
            MAX_RESULT => respond(&max_result())?,
            SAY_HELLO => respond(greeting(std::str::from_utf8(arguments)?).as_bytes())?,
            AVERAGE => respond(&average(arguments).to_ne_bytes())?,
            GET_RAND_NUMS => {
                let numbers = rand_nums(count);
                let response = request.loan_slice_uninit(4 * numbers.len())?;
                let response = response.write_from_fn(|at| numbers[at / 4].to_ne_bytes()[at % 4]);
                response.send()?;
            }
            _ => respond(arguments)?,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn average(numbers: &[u8]) -> f64 {
    let (numbers, _) = numbers.as_chunks();
    let sum: i64 = numbers
        .iter()
        .map(|number| i64::from(i32::from_ne_bytes(*number)))
        .sum();
    sum as f64 / numbers.len().max(1) as f64
}

fn call(task: &Task) -> Outcome {
    let Address::Shm(name) = &task.address else {
        return Err("shared memory only".into());
    };
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = open(&node, name)?;
    let client: Client<ipc::Service, [u8], (), [u8], ()> = service
        .client_builder()
        .initial_max_slice_len(ROOM)
        .allocation_strategy(AllocationStrategy::PowerOfTwo)
        .create()?;
    let (procedure, count, arguments, expected) = exchange(task.operation);
    let mut request = Vec::new();
    request.extend(procedure.to_ne_bytes());
    request.extend(count.to_ne_bytes());
    request.extend(arguments);
    serve_rounds(|| {
        let lent = client.loan_slice_uninit(request.len())?;
        let pending = lent.write_from_slice(&request).send()?;
        let response = loop {
            match pending.receive()? {
                Some(response) => break response,
                None => spin_loop(),
            }
        };
        Ok(check(response.payload() == expected)?)
    })
}

/// The number of the procedure, the count, the bytes of the arguments and those of the result.
fn exchange(operation: Operation) -> (u32, u32, Vec<u8>, Vec<u8>) {
    let bytes =
        |numbers: Vec<i32>| -> Vec<u8> { numbers.into_iter().flat_map(i32::to_ne_bytes).collect() };
    match operation {
        Operation::Null => (NULL, 0, Vec::new(), vec![0]),
        Operation::MaxResult => (MAX_RESULT, 0, Vec::new(), max_result().to_vec()),
        Operation::SayHello => {
            let greeting = greeting(NAME).into_bytes();
            (SAY_HELLO, 0, NAME.as_bytes().to_vec(), greeting)
        }
        Operation::Average(count) => {
            let average = f64::from(count + 1) / 2.0;
            let average = average.to_ne_bytes().to_vec();
            (AVERAGE, count, bytes(one_to(count)), average)
        }
        Operation::GetRandNums(count) => {
            (GET_RAND_NUMS, count, Vec::new(), bytes(rand_nums(count)))
        }
        Operation::Large(count) => {
            let data = bytes(large_data(count));
            (LARGE, count, data.clone(), data)
        }
    }
}

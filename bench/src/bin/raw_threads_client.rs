//! The physical limit of many threads that call one server: each has a socket of its own, sends so many bytes, and
//! receives so many.
//!
//! usage: `raw_threads_client THREADS CALL_BYTES REPLY_BYTES tcp HOST PORT|unix PATH`

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use tenon_bench::threads::{Outcome, serve_rounds_of_threads};
use tenon_bench_common::address::Address;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, threads, call_bytes, reply_bytes, address @ ..] = &arguments[..] else {
        return Err("usage: raw_threads_client THREADS CALL_BYTES REPLY_BYTES ADDRESS...".into());
    };
    let address = Address::from_arguments(address)?;
    let (call_bytes, reply_bytes) = (call_bytes.parse()?, reply_bytes.parse()?);
    let callers = (0..threads.parse()?).map(|_| caller(&address, call_bytes, reply_bytes));
    serve_rounds_of_threads(callers.collect::<Outcome<_>>()?)
}

/// What one thread does, again and again.
type Caller = Box<dyn FnMut() -> Outcome + Send>;

fn caller(address: &Address, call_bytes: usize, reply_bytes: usize) -> Outcome<Caller> {
    match address {
        Address::Tcp(at) => {
            let stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            Ok(exchange(stream, call_bytes, reply_bytes))
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            Ok(exchange(stream, call_bytes, reply_bytes))
        }
        Address::Udp(_) | Address::Shm(_) | Address::Xdp(_) => Err("tcp and unix only".into()),
    }
}

fn exchange(
    stream: impl Read + Write + Send + 'static,
    call_bytes: usize,
    reply_bytes: usize,
) -> Caller {
    let mut stream = stream;
    let call = vec![0; call_bytes];
    let mut reply = vec![0; reply_bytes];
    Box::new(move || {
        stream.write_all(&call)?;
        stream.read_exact(&mut reply)?;
        Ok(())
    })
}

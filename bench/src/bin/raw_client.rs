//! The physical limit, client's side: so many bytes sent, so many received, over one socket or through memory
//! that both ends share.
//!
//! usage: `raw_client block|spin CALL_BYTES REPLY_BYTES ADDRESS...`

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use tenon_bench::memory::{Memory, words};
use tenon_bench::spinning::Spinning;
use tenon_bench_common::address::Address;
use tenon_bench_common::measure::serve_rounds;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, call_bytes, reply_bytes, address @ ..] = &arguments[..] else {
        return Err("usage: raw_client block|spin CALL_BYTES REPLY_BYTES ADDRESS...".into());
    };
    let spins = waiting == "spin";
    let call = vec![0; call_bytes.parse()?];
    let mut reply = vec![0; reply_bytes.parse()?];
    match Address::from_arguments(address)? {
        Address::Tcp(at) => {
            let stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            exchange_stream(Spinning::new(stream, spins)?, &call, &mut reply)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            exchange_stream(Spinning::new(stream, spins)?, &call, &mut reply)
        }
        Address::Shm(path) => {
            let (call, mut reply) = (words(call.len()), words(reply.len()));
            let mut memory = Memory::connect(&path)?;
            serve_rounds(|| {
                memory.send(&call);
                Ok(memory.receive(&mut reply)?)
            })
        }
        Address::Udp(at) => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(at)?;
            exchange_datagrams(Spinning::new(socket, spins)?, &call, &mut reply)
        }
        Address::Xdp(_) => Err("nothing raw goes past the kernel".into()),
    }
}

fn exchange_stream(
    mut stream: impl Read + Write,
    call: &[u8],
    reply: &mut [u8],
) -> Result<(), Box<dyn Error>> {
    serve_rounds(|| {
        stream.write_all(call)?;
        stream.read_exact(reply)?;
        Ok(())
    })
}

fn exchange_datagrams(
    mut socket: Spinning<UdpSocket>,
    call: &[u8],
    reply: &mut [u8],
) -> Result<(), Box<dyn Error>> {
    serve_rounds(|| {
        socket.until_done(|socket| socket.send(call))?;
        match socket.until_done(|socket| socket.recv(reply))? == reply.len() {
            true => Ok(()),
            false => Err(io::Error::other("a reply of another length").into()),
        }
    })
}

//! The physical limit, server's side: for so many bytes received, so many sent, over one socket or through
//! memory that both ends share.
//!
//! usage: `raw_server block|spin CALL_BYTES REPLY_BYTES tcp|udp|unix=PATH|shm=PATH`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;

use tenon_bench::memory::{Memory, words};
use tenon_bench::spinning::Spinning;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, call_bytes, reply_bytes, transport] = &arguments[..] else {
        return Err("usage: raw_server block|spin CALL_BYTES REPLY_BYTES TRANSPORT".into());
    };
    let spins = waiting == "spin";
    let mut call = vec![0; call_bytes.parse()?];
    let reply = vec![0; reply_bytes.parse()?];
    match transport.as_str() {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            announce_port("tcp", listener.local_addr()?.port());
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            serve_stream(Spinning::new(stream, spins)?, &mut call, &reply)
        }
        "udp" => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            announce_port("udp", socket.local_addr()?.port());
            serve_datagrams(Spinning::new(socket, spins)?, &mut call, &reply)
        }
        other if other.starts_with("shm=") => {
            let path = &other["shm=".len()..];
            let mut memory = Memory::serve(path, || println!("shm {path}\nready"))?;
            let (mut call, reply) = (words(call.len()), words(reply.len()));
            while memory.receive(&mut call).is_ok() {
                memory.send(&reply);
            }
            Ok(())
        }
        other => {
            let path = other.strip_prefix("unix=").ok_or("no transport")?;
            let listener = UnixListener::bind(path)?;
            println!("unix {path}\nready");
            serve_stream(
                Spinning::new(listener.accept()?.0, spins)?,
                &mut call,
                &reply,
            )
        }
    }
}

fn announce_port(transport: &str, port: u16) {
    println!("{transport} 127.0.0.1 {port}\nready");
}

fn serve_stream(
    mut stream: impl Read + Write,
    call: &mut [u8],
    reply: &[u8],
) -> Result<(), Box<dyn Error>> {
    while stream.read_exact(call).is_ok() {
        stream.write_all(reply)?;
    }
    Ok(())
}

fn serve_datagrams(
    mut socket: Spinning<UdpSocket>,
    call: &mut [u8],
    reply: &[u8],
) -> Result<(), Box<dyn Error>> {
    loop {
        let (_, caller) = socket.until_done(|socket| socket.recv_from(call))?;
        socket.until_done(|socket| socket.send_to(reply, caller))?;
    }
}

//! A peer that answers one call at a time out of fixed buffers: it allocates nothing while it
//! runs, and makes its client the only thing to be counted.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use tenon::{Client, Transport};

use super::place::fresh_path;

/// The procedure without arguments and results.
pub const NULL: u32 = 0;
/// The procedure whose result is [`RESULT`] bytes long.
pub const MAX_RESULT: u32 = 1;
pub const RESULT: usize = 1440;

pub const TRANSPORTS: [Transport; 3] = [Transport::Tcp, Transport::Unix, Transport::Udp];

/// Calls a procedure of the peer and looks at the result.
pub fn call(client: &Client, procedure: u32) {
    let length = client
        .onc()
        .call(
            procedure,
            |_| Ok(()),
            |input| Ok(input.take(input.left())?.len()),
        )
        .unwrap();
    assert_eq!(length, if procedure == NULL { 0 } else { RESULT });
}

/// A peer that serves one client after the other until the process ends.
pub struct Steady {
    pub address: String,
    /// Removed at the end.
    socket_file: Option<PathBuf>,
}

impl Steady {
    pub fn start(transport: Transport) -> Self {
        match transport {
            Transport::Tcp => Self::tcp(),
            Transport::Unix => Self::unix(),
            Transport::Udp => Self::udp(),
            Transport::Shm => unreachable!("ONC RPC does not go there"),
            Transport::Xdp => unreachable!("it needs networks of its own"),
        }
    }

    fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                stream.set_nodelay(true).unwrap();
                serve(stream);
            }
        });
        Self {
            address,
            socket_file: None,
        }
    }

    fn unix() -> Self {
        let path = fresh_path();
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || listener.incoming().map(Result::unwrap).for_each(serve));
        Self {
            address: format!("unix://{}", path.display()),
            socket_file: Some(path),
        }
    }

    fn udp() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = format!("udp://{}", socket.local_addr().unwrap());
        thread::spawn(move || serve_datagrams(&socket));
        Self {
            address,
            socket_file: None,
        }
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        if let Some(path) = &self.socket_file {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// Answers as long as every call comes whole in one read, as it does when there is only one.
fn serve(mut stream: impl Read + Write) {
    let mut call = [0; 4096];
    let mut reply = [0; 4 + 24 + RESULT];
    while stream.read(&mut call).is_ok_and(|length| length > 0) {
        let length = answer(&call[4..], &mut reply[4..]);
        let mark = length as u32 | 1 << 31;
        reply[..4].copy_from_slice(&mark.to_be_bytes());
        if stream.write_all(&reply[..4 + length]).is_err() {
            return;
        }
    }
}

fn serve_datagrams(socket: &UdpSocket) {
    let mut call = [0; 4096];
    let mut reply = [0; 24 + RESULT];
    loop {
        let (_, from) = socket.recv_from(&mut call).unwrap();
        let length = answer(&call, &mut reply);
        socket.send_to(&reply[..length], from).unwrap();
    }
}

/// Writes the reply to `call` and returns its length.
fn answer(call: &[u8], reply: &mut [u8]) -> usize {
    reply[..4].copy_from_slice(&call[..4]);
    reply[7] = 1;
    match call[23] {
        0 => 24,
        _ => 24 + RESULT,
    }
}

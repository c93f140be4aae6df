//! A peer made by hand, byte by byte, so that what the run time sends and understands is held
//! against the RFC and not against itself.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::place::fresh_host;
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder};
use tenon::{CallOptions, Channel, ChannelOptions, Client, PendingCall};

pub const PROGRAM: u32 = 0x2000_0001;
pub const VERSION: u32 = 3;

/// Bounds every wait that is meant to succeed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A call as it arrived.
#[derive(Debug, Clone)]
pub struct Call {
    pub xid: u32,
    pub procedure: u32,
    pub credential: (u32, Vec<u8>),
    pub arguments: Vec<u8>,
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_be_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap())
}

/// Takes a call message apart (RFC 5531 section 9) and checks what is fixed in it.
pub fn parse_call(message: &[u8]) -> Call {
    assert_eq!(word(message, 1), 0, "msg_type CALL");
    assert_eq!(word(message, 2), 2, "rpcvers");
    assert_eq!(word(message, 3), PROGRAM);
    assert_eq!(word(message, 4), VERSION);
    let length = word(message, 7) as usize;
    let behind = 32 + length.next_multiple_of(4);
    assert_eq!(message[behind..behind + 8], [0; 8], "an AUTH_NONE verifier");
    Call {
        xid: word(message, 0),
        procedure: word(message, 5),
        credential: (word(message, 6), message[32..32 + length].to_vec()),
        arguments: message[behind + 8..].to_vec(),
    }
}

/// A reply with results.
pub fn success(xid: u32, results: &[u8]) -> Vec<u8> {
    let mut message = words(&[xid, 1, 0, 0, 0, 0]);
    message.extend(results);
    message
}

/// `message` as a record of one fragment.
pub fn record(message: &[u8]) -> Vec<u8> {
    fragment(message, true)
}

pub fn fragment(bytes: &[u8], is_last: bool) -> Vec<u8> {
    let mark = bytes.len() as u32 | u32::from(is_last) << 31;
    [&mark.to_be_bytes(), bytes].concat()
}

/// Reads one record, however it is cut. None at the end of the stream.
pub fn read_record(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).ok()?;
        let mark = u32::from_be_bytes(mark);
        let mut fragment = vec![0; (mark & 0x7fff_ffff) as usize];
        stream.read_exact(&mut fragment).ok()?;
        message.extend(fragment);
        if mark >> 31 == 1 {
            return Some(message);
        }
    }
}

/// One connection, on the peer's side.
pub struct Line(pub TcpStream);

impl Line {
    pub fn call(&mut self) -> Option<Call> {
        read_record(&mut self.0).map(|message| parse_call(&message))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub fn reply(&mut self, message: &[u8]) {
        self.send(&record(message));
    }

    /// Whether something comes within a moment.
    pub fn has_more(&mut self) -> bool {
        let moment = Some(Duration::from_millis(2));
        self.0.set_read_timeout(moment).unwrap();
        let peeked = self.0.peek(&mut [0]);
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        peeked.is_ok()
    }

    /// The sizes of the fragments of the next record, which is skipped.
    pub fn fragment_sizes(&mut self) -> Vec<usize> {
        let mut sizes = Vec::new();
        loop {
            let mut mark = [0; 4];
            self.0.read_exact(&mut mark).unwrap();
            let mark = u32::from_be_bytes(mark);
            let size = (mark & 0x7fff_ffff) as usize;
            self.0.read_exact(&mut vec![0; size]).unwrap();
            sizes.push(size);
            if mark >> 31 == 1 {
                return sizes;
            }
        }
    }

    /// Answers every call with its own arguments, and sends back what has come of a call before
    /// it reads on. Calls have AUTH_NONE and one fragment.
    pub fn echo_without_reading_ahead(&mut self) {
        const HEADER: usize = 4 + 40;
        let mut header = [0; HEADER];
        while self.0.read_exact(&mut header).is_ok() {
            let mark = word(&header, 0) & 0x7fff_ffff;
            let xid = word(&header, 1);
            let mut left = mark as usize - 40;
            let reply = (left + 24) as u32 | 1 << 31;
            self.send(&words(&[reply, xid, 1, 0, 0, 0, 0]));
            let mut block = vec![0; 1 << 16];
            while left > 0 {
                let size = left.min(block.len());
                self.0.read_exact(&mut block[..size]).unwrap();
                self.send(&block[..size]);
                left -= size;
            }
        }
    }

    /// Answers every call with its own arguments until the client leaves.
    pub fn echo(&mut self) {
        while let Some(call) = self.call() {
            self.reply(&success(call.xid, &call.arguments));
        }
    }
}

/// A peer that follows a script.
pub struct Peer {
    pub address: String,
    script: JoinHandle<()>,
}

impl Peer {
    /// Listens on TCP and runs `script` with the connections as they come.
    pub fn tcp(script: impl FnOnce(&mut dyn FnMut() -> Line) + Send + 'static) -> Self {
        Self::tcp_at(TcpListener::bind((fresh_host(), 0)).unwrap(), script)
    }

    pub fn tcp_at(
        listener: TcpListener,
        script: impl FnOnce(&mut dyn FnMut() -> Line) + Send + 'static,
    ) -> Self {
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let script = thread::spawn(move || script(&mut || accept(&listener)));
        Self { address, script }
    }

    /// Binds a UDP socket and runs `script` with it.
    pub fn udp(script: impl FnOnce(UdpSocket) + Send + 'static) -> Self {
        let socket = UdpSocket::bind((fresh_host(), 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let address = format!("udp://{}", socket.local_addr().unwrap());
        let script = thread::spawn(move || script(socket));
        Self { address, script }
    }

    /// A client whose only connection runs through `script`.
    pub fn with_one_line(script: impl FnOnce(Line) + Send + 'static) -> (Client, Self) {
        let peer = Self::tcp(|accept| script(accept()));
        (peer.client(), peer)
    }

    pub fn client(&self) -> Client {
        self.client_with(ChannelOptions::default())
    }

    pub fn client_with(&self, options: ChannelOptions) -> Client {
        let address = self.address.parse().unwrap();
        let channel = Channel::connect_with(&address, options).unwrap();
        Client::over(channel, PROGRAM, VERSION).with_timeout(PATIENCE)
    }

    /// Waits for the end of the script, and fails if it failed.
    pub fn join(self) {
        self.script.join().unwrap();
    }
}

fn accept(listener: &TcpListener) -> Line {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    Line(stream)
}

/// Receives one call by datagram, and who sent it.
pub fn receive_call(socket: &UdpSocket) -> io::Result<(Call, std::net::SocketAddr)> {
    let mut room = vec![0; 65_536];
    let (length, from) = socket.recv_from(&mut room)?;
    Ok((parse_call(&room[..length]), from))
}

/// Calls `procedure` with opaque words and returns the result as it is.
pub fn call_raw(
    client: &Client,
    procedure: u32,
    arguments: &[u8],
) -> Result<Vec<u8>, tenon::CallError> {
    client
        .onc()
        .call(procedure, |out| put_raw(out, arguments), get_raw)
}

/// Calls as [`call_raw`] does, and waits for a peer that cannot be reached.
pub fn call_raw_when_ready(
    client: &Client,
    procedure: u32,
    arguments: &[u8],
) -> Result<Vec<u8>, tenon::CallError> {
    let client = client.with_options(CallOptions::new().wait_for_ready(true));
    client
        .onc()
        .call(procedure, |out| put_raw(out, arguments), get_raw)
}

pub fn put_raw(out: &mut Encoder<'_>, bytes: &[u8]) -> Result<(), EncodeError> {
    out.room(bytes.len()).copy_from_slice(bytes);
    Ok(())
}

pub fn get_raw(input: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(input.take(input.left())?.to_vec())
}

pub fn get_word(input: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    input.get()
}

/// Fails instead of hanging: runs `test` on a thread of its own and waits for it.
pub fn bounded(test: impl FnOnce() + Send + 'static) {
    bounded_by(2 * PATIENCE, test);
}

/// Fails if `test` takes longer than `limit`, which is to be far more than it needs.
pub fn bounded_by(limit: Duration, test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => running.join().unwrap(),
    }
}

/// Starts a call of procedure `number` whose argument and expected result is `number`.
pub fn start(client: &Client, number: u32) -> PendingCall<u32> {
    let argument = number.to_be_bytes();
    client
        .onc()
        .start(number, |out| put_raw(out, &argument), get_word)
        .unwrap()
}

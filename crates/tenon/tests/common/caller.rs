//! A caller made by hand, byte by byte, and a service that does what a test asks for.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::gate;
pub use super::place::{fresh_host, fresh_path};
use tenon::wire::{DecodeError, Decoder, Encoder};
use tenon::{
    AuthStat, CallInfo, Credential, Refusal, Server, ServerBuilder, ServerLimits, Service,
};
use tenon_proto::onc::reply::CLOSE_NOTICE;

pub const PROGRAM: u32 = 0x2000_0042;
pub const VERSION: u32 = 3;
/// Another version of the same program, so that a mismatch has a range to tell.
pub const VERSION_HIGH: u32 = 7;

pub const ECHO: u32 = 1;
pub const SLEEP: u32 = 2;
pub const PANIC: u32 = 3;
pub const COUNT: u32 = 4;
pub const BIG: u32 = 5;
pub const WHO: u32 = 6;
pub const DENY: u32 = 7;
pub const FAIL: u32 = 8;
/// Returns its argument, a gate, when that is open. Few bits that flip make none of the others this.
pub const HOLD: u32 = 0x5a5a;

/// Bounds every wait that is meant to succeed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Serves what a test asks for, as one version of the program.
pub struct Obliging(pub u32);

static EXECUTED: AtomicU32 = AtomicU32::new(0);

impl Service for Obliging {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        self.0
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        match call.procedure() {
            ECHO => {
                let rest = arguments.rest();
                result.room(rest.len()).copy_from_slice(rest);
            }
            SLEEP => {
                let millis = word(arguments)?;
                thread::sleep(Duration::from_millis(millis.into()));
                put(result, millis);
            }
            HOLD => {
                let gate = word(arguments)?;
                gate::hold(gate);
                put(result, gate);
            }
            PANIC => panic!("as the test asked"),
            COUNT => put(result, EXECUTED.fetch_add(1, Ordering::SeqCst) + 1),
            BIG => {
                let bytes = word(arguments)? as usize;
                result.room(bytes).fill(0x5a);
            }
            WHO => put(result, uid(&call.peer().credential)),
            DENY => return Err(Refusal::Authentication(AuthStat::TOO_WEAK)),
            FAIL => return Err(Refusal::SystemError("as the test asked".to_owned())),
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        Ok(())
    }
}

fn word(arguments: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    arguments.get()
}

fn put(result: &mut Encoder<'_>, word: u32) {
    result.put(word);
}

fn uid(credential: &Credential<'_>) -> u32 {
    match credential {
        Credential::Sys(sys) => sys.uid(),
        Credential::None => u32::MAX,
    }
}

/// A server on all transports whose both versions run inline.
pub fn builder() -> ServerBuilder {
    builder_at(fresh_host())
}

/// The same at this host.
pub fn builder_at(host: Ipv4Addr) -> ServerBuilder {
    listening_at(host)
        .service(Obliging(VERSION))
        .service(Obliging(VERSION_HIGH))
}

/// A server on all transports without a service.
pub fn listening() -> ServerBuilder {
    listening_at(fresh_host())
}

fn listening_at(host: Ipv4Addr) -> ServerBuilder {
    let builder = Server::builder()
        .listen(&format!("tcp://{host}:0"))
        .unwrap();
    // What other systems than Linux do not have.
    #[cfg(not(tenon_portable))]
    let builder = builder
        .listen(&format!("unix://{}", fresh_path().display()))
        .unwrap();
    builder
        .listen(&format!("udp://{host}:0"))
        .unwrap()
        .limits(limited(|_| ()))
}

/// The limits that are usual, but for those that a machine would exceed that is busy with other things: connections are
/// opened long before they are used, and calls may wait for a thread.
pub fn limited(change: impl FnOnce(&mut ServerLimits)) -> ServerLimits {
    let mut limits = ServerLimits {
        first_request_timeout: None,
        queue_timeout: None,
        receive_timeout: Some(PATIENCE),
        send_timeout: Some(PATIENCE),
        ..ServerLimits::default()
    };
    change(&mut limits);
    limits
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// An AUTH_NONE credential or verifier.
pub const NONE: [u32; 2] = [0, 0];

/// A call message with an AUTH_NONE credential.
pub fn call(xid: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    call_as(xid, procedure, &words(&NONE), arguments)
}

/// A call message with `credential`, flavor and length included.
pub fn call_as(xid: u32, procedure: u32, credential: &[u8], arguments: &[u8]) -> Vec<u8> {
    let head = words(&[xid, 0, 2, PROGRAM, VERSION, procedure]);
    [&head, credential, &words(&NONE), arguments].concat()
}

/// A reply with results.
pub fn success(xid: u32, results: &[u8]) -> Vec<u8> {
    [&words(&[xid, 1, 0, 0, 0, 0]), results].concat()
}

/// An accepted call that was not carried out.
pub fn accepted(xid: u32, status: &[u32]) -> Vec<u8> {
    [words(&[xid, 1, 0, 0, 0]), words(status)].concat()
}

/// A call that was denied.
pub fn denied(xid: u32, status: &[u32]) -> Vec<u8> {
    [words(&[xid, 1, 1]), words(status)].concat()
}

/// `message` as a record of one fragment.
pub fn record(message: &[u8]) -> Vec<u8> {
    fragment(message, true)
}

pub fn fragment(bytes: &[u8], is_last: bool) -> Vec<u8> {
    let mark = bytes.len() as u32 | u32::from(is_last) << 31;
    [&mark.to_be_bytes(), bytes].concat()
}

/// One end of a conversation with a server. Nothing in it waits longer than [`PATIENCE`].
pub enum Caller {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
}

impl Caller {
    pub fn connect(address: &str) -> Self {
        let (scheme, place) = address.split_once("://").unwrap();
        match scheme {
            "tcp" => {
                let stream = TcpStream::connect(place).unwrap();
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                Self::Tcp(stream)
            }
            "unix" => {
                let stream = UnixStream::connect(place).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                Self::Unix(stream)
            }
            _ => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(place).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                Self::Udp(socket)
            }
        }
    }

    /// A caller on each transport that is one of sockets.
    pub fn on_all(server: &Server) -> Vec<Self> {
        let addresses = server.addresses().iter().map(ToString::to_string);
        let sockets = addresses.filter(|address| !address.starts_with("shm://"));
        sockets.map(|address| Self::connect(&address)).collect()
    }

    /// A caller on each transport that carries a stream.
    pub fn on_streams(server: &Server) -> Vec<Self> {
        let mut callers = Self::on_all(server);
        callers.retain(|caller| !matches!(caller, Self::Udp(_)));
        callers
    }

    pub fn tcp(server: &Server) -> Self {
        Self::connect(&server.addresses()[0].to_string())
    }

    pub fn udp(server: &Server) -> Self {
        Self::connect(&server.addresses()[2].to_string())
    }

    /// The same end once more, to send with one and receive with the other.
    pub fn twin(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
            Self::Udp(socket) => Self::Udp(socket.try_clone().unwrap()),
        }
    }

    /// Sends a message as this transport carries it.
    pub fn send(&mut self, message: &[u8]) {
        match self {
            Self::Udp(socket) => assert_eq!(socket.send(message).unwrap(), message.len()),
            _ => self.send_raw(&record(message)),
        }
    }

    /// Sends bytes of a stream as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.try_send_raw(bytes).unwrap();
    }

    pub fn try_send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Udp(socket) => socket.send(bytes).map(|_| ()),
        }
    }

    /// Receives a message, however it is cut.
    pub fn receive(&mut self) -> Vec<u8> {
        self.try_receive()
            .unwrap()
            .expect("the server closed the connection")
    }

    /// Receives a message; none when the server has closed the connection.
    pub fn try_receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let reader: &mut dyn Read = match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Udp(socket) => return receive_datagram(socket).map(Some),
        };
        let mut message = Vec::new();
        loop {
            let mut mark = [0; 4];
            match reader.read_exact(&mut mark) {
                Err(error) if is_end(&error) => return Ok(None),
                other => other?,
            }
            let mark = u32::from_be_bytes(mark);
            let mut fragment = vec![0; (mark & 0x7fff_ffff) as usize];
            reader.read_exact(&mut fragment)?;
            message.extend(fragment);
            if mark >> 31 == 1 {
                return Ok(Some(message));
            }
        }
    }

    /// Receives `length` bytes of a stream as they are.
    pub fn receive_raw(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.receive_into(&mut bytes);
        bytes
    }

    /// Fills `room` with bytes of a stream as they are, or with a datagram of this length.
    pub fn receive_into(&mut self, room: &mut [u8]) {
        match self {
            Self::Tcp(stream) => stream.read_exact(room).unwrap(),
            Self::Unix(stream) => stream.read_exact(room).unwrap(),
            Self::Udp(socket) => assert_eq!(socket.recv(room).unwrap(), room.len()),
        }
    }

    /// Sends a call and expects exactly `reply`.
    #[track_caller]
    pub fn expect(&mut self, message: &[u8], reply: &[u8]) {
        self.send(message);
        assert_eq!(self.receive(), reply);
    }

    /// Calls the echo and expects the echo.
    #[track_caller]
    pub fn expect_service(&mut self) {
        let payload = words(&[1, 2, 3, 4]);
        self.expect(&call(77, ECHO, &payload), &success(77, &payload));
    }

    /// Expects that the server closes the connection without a further reply.
    #[track_caller]
    pub fn expect_close(&mut self) {
        assert_eq!(self.try_receive().unwrap(), None);
    }

    /// Expects that the server says that it carries out nothing else, and closes the connection.
    #[track_caller]
    pub fn expect_close_notice(&mut self) {
        assert_eq!(
            self.try_receive().unwrap().as_deref(),
            Some(&CLOSE_NOTICE[..])
        );
        self.expect_close();
    }

    /// Reads whatever comes until the server has closed the connection.
    pub fn drain(&mut self) {
        let mut sink = [0; 4096];
        let mut read = || match self {
            Self::Tcp(stream) => stream.read(&mut sink),
            Self::Unix(stream) => stream.read(&mut sink),
            Self::Udp(_) => panic!("a datagram socket has no end"),
        };
        while matches!(read(), Ok(bytes) if bytes > 0) {}
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// The server has closed the connection already.
    pub fn finish_sending(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            Self::Udp(_) => panic!("a datagram socket has no half"),
        }
    }
}

fn receive_datagram(socket: &UdpSocket) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 65_536];
    let length = socket.recv(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Waits until something becomes true; a server does some things behind the back of its callers.
#[track_caller]
pub fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

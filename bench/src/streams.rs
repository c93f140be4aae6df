//! Stream sockets that do not block, TCP and Unix alike, and how many of them are waited for.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use tenon_bench_common::address::Address;

/// Events that are taken from the kernel at a time.
const EVENTS_MAX: usize = 256;

/// A stream socket that does not block.
#[derive(Debug)]
pub enum Stream {
    /// Without delay of small segments.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects to a server.
    ///
    /// # Errors
    /// The server is not there, or `address` is not one of streams.
    pub fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(at) => Self::over_tcp(TcpStream::connect(at)?),
            Address::Unix(path) => Self::over_unix(UnixStream::connect(path)?),
            Address::Udp(_) | Address::Shm(_) | Address::Xdp(_) => {
                Err(io::Error::new(ErrorKind::Unsupported, "tcp and unix only"))
            }
        }
    }

    fn over_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self::Tcp(stream))
    }

    fn over_unix(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::Unix(stream))
    }

    /// Sends all bytes, which are few enough for the socket's buffer.
    ///
    /// # Errors
    /// The kernel takes fewer, or the connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = match self {
            Self::Tcp(stream) => stream.write(bytes)?,
            Self::Unix(stream) => stream.write(bytes)?,
        };
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "the socket has taken {sent} of {} bytes",
                bytes.len()
            )))
        }
    }

    /// Receives what is there: `None` if that is nothing, 0 at the end of the stream.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let received = match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        };
        match received {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// A listening socket that does not block.
#[derive(Debug)]
pub enum Listener {
    /// On a port of the kernel's choice.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

impl Listener {
    /// Listens where the argument of a server says, `tcp` or `unix=PATH`; prints the address and `ready`.
    ///
    /// # Errors
    /// The argument says something else, or the kernel refuses.
    pub fn bind(transport: &str) -> io::Result<Self> {
        if let Some(path) = transport.strip_prefix("unix=") {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            println!("unix {path}\nready");
            Ok(Self::Unix(listener))
        } else if transport == "tcp" {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            println!("tcp 127.0.0.1 {}\nready", listener.local_addr()?.port());
            Ok(Self::Tcp(listener))
        } else {
            let said = format!("{transport} is neither tcp nor unix=PATH");
            Err(io::Error::new(ErrorKind::InvalidInput, said))
        }
    }

    /// Accepts the next connection, if one waits.
    ///
    /// # Errors
    /// The kernel has no descriptor left, for example.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match self {
            Self::Tcp(listener) => listener.accept().and_then(|(tcp, _)| Stream::over_tcp(tcp)),
            Self::Unix(listener) => listener
                .accept()
                .and_then(|(unix, _)| Stream::over_unix(unix)),
        };
        match accepted {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Waits for many sockets by epoll, edge-triggered.
pub struct Readiness {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Readiness {
    /// Waits for no socket yet.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    /// Waits for a socket, too, which is known by `token` from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn add(&self, socket: &impl AsFd, token: usize) -> io::Result<()> {
        let data = EventData::new_u64(token as u64);
        epoll::add(&self.epoll, socket, data, EventFlags::IN | EventFlags::ET)?;
        Ok(())
    }

    /// Waits until something can be received and leaves the tokens of those sockets in `ready`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sleep(&mut self, ready: &mut Vec<usize>) -> io::Result<()> {
        self.wait(None, ready)
    }

    /// Leaves the tokens of the sockets that have something to receive now in `ready`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn look(&mut self, ready: &mut Vec<usize>) -> io::Result<()> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.wait(Some(&now), ready)
    }

    fn wait(&mut self, limit: Option<&Timespec>, ready: &mut Vec<usize>) -> io::Result<()> {
        self.events.clear();
        ready.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), limit) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ready.extend(self.events.iter().map(|event| {
            let data = event.data;
            data.u64() as usize
        }));
        Ok(())
    }
}

//! Sockets that tests open by themselves, without the libraries under test: the one place that knows what an address of a
//! stream is to the system.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use crate::rows::fresh_path;

/// A connected socket. One of TCP is held by the same type: it is read, written and shut down by the same calls.
pub type PlainStream = UnixStream;

/// Connects to `address`; in shared memory, to the socket that hands it over.
pub fn connect(address: &str) -> io::Result<PlainStream> {
    let (scheme, place) = address.split_once("://").unwrap();
    match scheme {
        "tcp" => Ok(OwnedFd::from(TcpStream::connect(place)?).into()),
        "unix" | "shm" => UnixStream::connect(place),
        other => panic!("no plain stream over {other}"),
    }
}

/// A socket that listens.
pub enum PlainListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Where a [`PlainListener`] is.
pub struct ListenPlace {
    pub address: String,
    /// The file of a Unix socket, to be removed behind the listener.
    pub file: Option<PathBuf>,
}

impl PlainListener {
    /// Listens somewhere, at an address of this scheme.
    pub fn bind(scheme: &str) -> (Self, ListenPlace) {
        match scheme {
            "tcp" => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let address = format!("tcp://{}", listener.local_addr().unwrap());
                let file = None;
                (Self::Tcp(listener), ListenPlace { address, file })
            }
            "unix" | "shm" => {
                let path = fresh_path();
                let listener = UnixListener::bind(&path).unwrap();
                let address = format!("{scheme}://{}", path.display());
                let file = Some(path);
                (Self::Unix(listener), ListenPlace { address, file })
            }
            other => panic!("no plain stream over {other}"),
        }
    }

    /// Waits for a connection.
    pub fn accept(&self) -> io::Result<PlainStream> {
        match self {
            Self::Tcp(listener) => Ok(OwnedFd::from(listener.accept()?.0).into()),
            Self::Unix(listener) => Ok(listener.accept()?.0),
        }
    }
}

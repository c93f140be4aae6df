//! The physical limit of shared memory: so many bytes copied in by one process and out by another that
//! looks all the time, a word that says so, and nothing else.

use std::hint::spin_loop;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenon_shm::{Joined, Sizes};

/// Bytes for what goes one way.
const REGION: usize = 4 << 20;

/// The least that is copied: a line of the caches.
const LEAST: usize = 64;

/// Where the regions begin, in words: in the rings, which nobody uses as such.
const TO_SERVER: usize = 512;
const TO_CLIENT: usize = TO_SERVER + REGION / 8;

/// Which end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Server,
    Client,
}

/// One end of an exchange.
#[derive(Debug)]
pub struct Memory {
    joined: Joined,
    /// The sign that the other end lives.
    socket: UnixStream,
    out: usize,
    into: usize,
    sent: u64,
    received: u64,
}

impl Memory {
    /// The end of a server that waits for its client at a socket that it makes at `path`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn serve(path: &str, ready: impl FnOnce()) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        ready();
        let socket = listener.accept()?.0;
        let sizes = Sizes::new(REGION as u64, REGION as u64).map_err(io::Error::other)?;
        let joined = tenon_shm::invite(socket.as_fd(), sizes)?;
        Self::over(joined, socket, Side::Server)
    }

    /// The end of a client of the server at `path`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn connect(path: &str) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        let soon = Instant::now() + Duration::from_secs(10);
        let joined = tenon_shm::join(socket.as_fd(), soon).map_err(io::Error::other)?;
        Self::over(joined, socket, Side::Client)
    }

    fn over(joined: Joined, socket: UnixStream, side: Side) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (out, into) = match side {
            Side::Server => (TO_CLIENT, TO_SERVER),
            Side::Client => (TO_SERVER, TO_CLIENT),
        };
        Ok(Self {
            joined,
            socket,
            out,
            into,
            sent: 0,
            received: 0,
        })
    }

    /// Copies `bytes` in and says so.
    ///
    /// # Panics
    /// They are more than 4 MiB.
    pub fn send(&mut self, bytes: &[u64]) {
        let memory: &[AtomicU64] = self.joined.end.memory();
        let region = &memory[self.out..self.out + REGION / 8];
        // The word in a line of its own, as those of the bytes are whole lines.
        for (word, value) in region[8..].iter().zip(bytes) {
            word.store(*value, Ordering::Relaxed);
        }
        self.sent += 1;
        region[0].store(self.sent, Ordering::Release);
    }

    /// Looks until the other end has said so, and copies as many bytes out as there is room for.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn receive(&mut self, room: &mut [u64]) -> io::Result<()> {
        let memory: &[AtomicU64] = self.joined.end.memory();
        let region = &memory[self.into..self.into + REGION / 8];
        self.received += 1;
        let mut looks = 0_u32;
        while region[0].load(Ordering::Acquire) != self.received {
            spin_loop();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 20) {
                self.check_life()?;
            }
        }
        for (value, word) in room.iter_mut().zip(&region[8..]) {
            *value = word.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn check_life(&self) -> io::Result<()> {
        use std::io::Read;
        match (&self.socket).read(&mut [0; 64]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Room for so many bytes, or for the least that is copied.
pub fn words(bytes: usize) -> Vec<u64> {
    vec![0; bytes.max(LEAST).div_ceil(8)]
}

//! The physical limit of streams in shared memory: bytes copied by one process into a ring and by another out of it, by
//! words; both look all the time.

use std::hint::spin_loop;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenon_shm::{Joined, Sizes};

/// Words of a ring: as many bytes as a ring of Tenon's has by default.
const WORDS: usize = Sizes::USUAL / 8;

/// Words between what the two ends write, and in front of the content of a ring: two lines of the caches.
const APART: usize = 16;

/// Words of a ring with its two counts in front.
const WHOLE: usize = 2 * APART + WORDS;

/// Where the rings begin, in words, in a segment of rings that nobody uses as such.
const TO_SERVER: usize = 512;
const TO_CLIENT: usize = TO_SERVER + WHOLE;

/// One end of two rings, one for each direction.
#[derive(Debug)]
pub struct RingPair {
    joined: Joined,
    /// The sign that the other end lives.
    socket: UnixStream,
    out: usize,
    into: usize,
    written: u64,
    read: u64,
}

impl RingPair {
    /// The end of a server that waits for its client at a socket that it makes at `path`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn serve(path: &str, ready: impl FnOnce()) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        ready();
        let socket = listener.accept()?.0;
        let joined = tenon_shm::invite(socket.as_fd(), Sizes::near(2 * Sizes::USUAL))?;
        Self::over(joined, socket, TO_CLIENT, TO_SERVER)
    }

    /// The end of a client of the server at `path`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn connect(path: &str) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        let soon = Instant::now() + Duration::from_secs(10);
        let joined = tenon_shm::join(socket.as_fd(), soon).map_err(io::Error::other)?;
        Self::over(joined, socket, TO_SERVER, TO_CLIENT)
    }

    fn over(joined: Joined, socket: UnixStream, out: usize, into: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            joined,
            socket,
            out,
            into,
            written: 0,
            read: 0,
        })
    }

    /// Copies all words in, as there is room for them.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn write_all(&mut self, words: &[u64]) -> io::Result<()> {
        let memory: &[AtomicU64] = self.joined.end.memory();
        let (written, read, content) = parts(memory, self.out);
        let mut rest = words;
        while !rest.is_empty() {
            let free = wait(&self.socket, || {
                WORDS - (self.written - read.load(Ordering::Acquire)) as usize
            })?;
            let at = self.written as usize % WORDS;
            let count = rest.len().min(free).min(WORDS - at);
            let (now, later) = rest.split_at(count);
            for (place, word) in content[at..].iter().zip(now) {
                place.store(*word, Ordering::Relaxed);
            }
            self.written += count as u64;
            written.store(self.written, Ordering::Release);
            rest = later;
        }
        Ok(())
    }

    /// Waits for words, and copies out those that are there and find room; returns how many.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn read(&mut self, room: &mut [u64]) -> io::Result<usize> {
        let memory: &[AtomicU64] = self.joined.end.memory();
        let (written, read, content) = parts(memory, self.into);
        let there = wait(&self.socket, || {
            (written.load(Ordering::Acquire) - self.read) as usize
        })?;
        let at = self.read as usize % WORDS;
        let count = there.min(room.len()).min(WORDS - at);
        for (word, place) in room[..count].iter_mut().zip(&content[at..]) {
            *word = place.load(Ordering::Relaxed);
        }
        self.read += count as u64;
        read.store(self.read, Ordering::Release);
        Ok(count)
    }
}

/// The counts of words written and read, and the content of the ring that begins there.
fn parts(memory: &[AtomicU64], start: usize) -> (&AtomicU64, &AtomicU64, &[AtomicU64]) {
    let ring = &memory[start..start + WHOLE];
    (&ring[0], &ring[APART], &ring[2 * APART..])
}

/// Looks until `count` returns another number than 0.
fn wait(socket: &UnixStream, count: impl Fn() -> usize) -> io::Result<usize> {
    let mut looks = 0_u32;
    loop {
        let counted = count();
        if counted != 0 {
            return Ok(counted);
        }
        spin_loop();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1 << 20) {
            check_life(socket)?;
        }
    }
}

fn check_life(mut socket: &UnixStream) -> io::Result<()> {
    use std::io::Read;
    match socket.read(&mut [0; 64]) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

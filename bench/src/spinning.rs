//! Sockets that ask the kernel again and again instead of sleeping.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

/// What can be told not to sleep.
pub trait Socket {
    /// Has calls return [`ErrorKind::WouldBlock`] where they would sleep.
    ///
    /// # Errors
    /// The kernel refuses.
    fn stay_awake(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn stay_awake(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Socket for UnixStream {
    fn stay_awake(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Socket for UdpSocket {
    fn stay_awake(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// A socket that may never sleep.
#[derive(Debug)]
pub struct Spinning<S>(S);

impl<S: Socket> Spinning<S> {
    /// The socket, asleep when it waits unless it `spins`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(socket: S, spins: bool) -> io::Result<Self> {
        if spins {
            socket.stay_awake()?;
        }
        Ok(Self(socket))
    }

    /// Tries until it is done.
    ///
    /// # Errors
    /// As `attempt`, but for those that say that it would sleep.
    pub fn until_done<T>(
        &mut self,
        mut attempt: impl FnMut(&mut S) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match attempt(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
                done => return done,
            }
        }
    }
}

impl<S: Socket + Read> Read for Spinning<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_done(|socket| socket.read(buffer))
    }
}

impl<S: Socket + Write> Write for Spinning<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(Write::flush)
    }
}

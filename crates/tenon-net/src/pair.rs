//! Two sockets of this process that are connected with each other.

use std::io;

use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};

/// One of a pair of sockets.
#[cfg(unix)]
pub type PairedSocket = std::os::unix::net::UnixStream;
/// One of a pair of sockets.
#[cfg(windows)]
pub type PairedSocket = std::net::TcpStream;

/// Returns two sockets that are connected with each other.
///
/// # Errors
/// The process has too many descriptors.
#[cfg(unix)]
pub fn socket_pair() -> io::Result<(PairedSocket, PairedSocket)> {
    PairedSocket::pair()
}

/// Returns two sockets that are connected with each other, by TCP on the loopback interface.
///
/// # Errors
/// The process has too many sockets.
#[cfg(windows)]
pub fn socket_pair() -> io::Result<(PairedSocket, PairedSocket)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let one = PairedSocket::connect(listener.local_addr()?)?;
    let address = one.local_addr()?;
    loop {
        // Another process may have been quicker.
        let (other, peer) = listener.accept()?;
        if peer == address {
            one.set_nodelay(true)?;
            other.set_nodelay(true)?;
            return Ok((one, other));
        }
    }
}

/// No signal is to come if the connection is closed. Where there is no such flag the socket has been told.
#[cfg(target_os = "linux")]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Sends bytes through one of a pair, without a signal to the process if the other is closed; returns how many were sent.
///
/// # Errors
/// What the system reports.
pub fn send_paired(socket: &PairedSocket, bytes: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| send(socket, bytes, NO_SIGNAL))?)
}

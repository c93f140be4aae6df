//! Two sockets of this process that are connected with each other.

use std::io;

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

//! Networks of the demonstration's own for what goes past the kernel, which only Linux has.

use std::io;

/// Two networks, of which there are none.
pub enum NetworkPair {}

impl NetworkPair {
    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn make() -> io::Result<Self> {
        let message = "xdp:// needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    /// Returns the address at which a server would listen.
    pub fn server_address() -> String {
        "onc+xdp://198.18.0.2:0".to_owned()
    }

    /// Does something where the client is.
    pub fn at_client<T: Send>(&self, _: impl FnOnce() -> T + Send) -> io::Result<T> {
        match *self {}
    }

    /// Does something where the server is.
    pub fn at_server<T: Send>(&self, _: impl FnOnce() -> T + Send) -> io::Result<T> {
        match *self {}
    }
}

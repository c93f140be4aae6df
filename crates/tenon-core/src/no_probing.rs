//! What is there in the place of `probing` where nothing carries datagrams.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use tenon_net::{Address, Carrier};

use crate::options::ChannelOptions;

/// Fails, as nothing leads to `address`.
///
/// # Errors
/// `Unsupported`; `AddrNotAvailable` if there are no peers.
pub(crate) fn connect_answering(
    address: &Address,
    peers: &[SocketAddr],
    _program: Option<(u32, u32)>,
    deadline: Instant,
    _options: &ChannelOptions,
) -> io::Result<(Carrier, SocketAddr)> {
    match peers {
        [peer, ..] => Ok((Carrier::connect_to(address, *peer, deadline)?, *peer)),
        [] => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

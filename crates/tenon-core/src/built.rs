//! What this program was built with: protocols, and what carries them, by the features of this crate.

use std::io;

use tenon_net::{Address, Protocol, Transport};

use crate::error::ConnectError;

/// Checks that a client can speak the protocol of `address` there. Transports that were left out fail when they are
/// connected.
///
/// # Errors
/// [`ConnectError::Unreachable`] with the feature that is lacking.
pub(crate) fn check_client(address: &Address) -> Result<(), ConnectError> {
    let is_datagram = matches!(address.transport(), Transport::Udp | Transport::Xdp);
    let lacking = match address.protocol() {
        Protocol::Onc if !cfg!(feature = "onc") => "onc",
        Protocol::Lean if !cfg!(feature = "lean") => "lean",
        Protocol::Lean if is_datagram && !cfg!(feature = "exchange") => "exchange",
        Protocol::Onc | Protocol::Lean => return Ok(()),
    };
    Err(ConnectError::unreachable(address, needs(lacking)))
}

/// Checks that a protocol can be served at `address`: over a stream both are, as far as they are built.
///
/// # Errors
/// `Unsupported`, with the feature that is lacking.
pub(crate) fn check_server(address: &Address) -> io::Result<()> {
    let has_exchange = cfg!(feature = "exchange");
    let has_onc = cfg!(feature = "onc");
    match (address.transport(), address.protocol()) {
        (Transport::Udp | Transport::Xdp, Protocol::Onc) if !has_exchange && !has_onc => {
            Err(needs("onc"))
        }
        (Transport::Udp | Transport::Xdp, Protocol::Lean) if !has_exchange => {
            Err(needs("exchange"))
        }
        (Transport::Shm, _) if !cfg!(feature = "lean") => Err(needs("lean")),
        _ => Ok(()),
    }
}

/// Returns the protocol of a call, where `protocol` is that of its channel: if only one is built the compiler knows it,
/// and makes nothing of the other.
#[inline(always)]
pub(crate) fn spoken(protocol: Protocol) -> Protocol {
    match (cfg!(feature = "onc"), cfg!(feature = "lean")) {
        (true, false) => Protocol::Onc,
        (false, true) => Protocol::Lean,
        _ => protocol,
    }
}

fn needs(feature: &str) -> io::Error {
    let message = format!("it needs the feature `{feature}`, which this program was built without");
    io::Error::new(io::ErrorKind::Unsupported, message)
}

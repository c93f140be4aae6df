//! What this program was built with: protocols, and what carries them, by the features of this crate.

use std::io;

use tenon_net::{Address, Protocol};

use crate::error::ConnectError;

/// Checks that a client can speak the protocol of `address` there. Transports that were left out fail when they are
/// connected.
///
/// # Errors
/// [`ConnectError::Unreachable`] with the feature that is lacking.
pub(crate) fn check_client(address: &Address) -> Result<(), ConnectError> {
    let is_datagram = address.is_datagram();
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
    if address.is_datagram() {
        return match address.protocol() {
            Protocol::Onc if !has_exchange && !has_onc => Err(needs("onc")),
            Protocol::Lean if !has_exchange => Err(needs("exchange")),
            Protocol::Onc | Protocol::Lean => Ok(()),
        };
    }
    if !address.transport().carries_onc() && !cfg!(feature = "lean") {
        return Err(needs("lean"));
    }
    Ok(())
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

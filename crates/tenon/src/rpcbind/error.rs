//! The error of rpcbind and its client.

use tenon_net::Address;

use super::universal::UniversalAddressError;
use crate::CallError;

/// An error of rpcbind or its client.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RpcbindError {
    /// It cannot be called, or refuses.
    #[error("rpcbind cannot be asked: {0}")]
    Call(#[from] CallError),
    /// It declined to register: another address is registered, or this process may not.
    #[error("rpcbind does not register version {version} of program {program} at {address}")]
    Declined {
        /// The program's number.
        program: u32,
        /// The version's number.
        version: u32,
        /// The address that was to be registered.
        address: Address,
    },
    /// It answered with an address that is none.
    #[error(transparent)]
    Address(#[from] UniversalAddressError),
    /// The version that was asked for does not know this transport.
    #[error("version 2 of rpcbind knows TCP and UDP over IPv4 only")]
    Transport,
}

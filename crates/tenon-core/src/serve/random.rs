//! Numbers that peers cannot foresee. The standard library's hashers have keys from the system's randomness.

use std::hash::{BuildHasher, Hasher, RandomState};

use tenon_proto::endpoint::exchange::server::ServerSecrets;

/// A number that peers cannot foresee.
pub(crate) fn word() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn key() -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&word().to_ne_bytes());
    key[8..].copy_from_slice(&word().to_ne_bytes());
    key
}

/// The secrets of a port of the packet exchange.
pub(super) fn server_secrets() -> ServerSecrets {
    ServerSecrets {
        key: key(),
        incarnation: word() as u32,
        seed: word(),
    }
}

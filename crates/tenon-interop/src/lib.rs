//! What the tests of this crate share: where things lie, how the peers are built, and how their
//! processes are started, bounded and ended. The peers themselves are in `tests/peers`.
//!
//! Everything here is for tests, so it panics where a test would.
#![allow(clippy::unwrap_used)]

pub mod compiled;
pub mod fast;
mod guarded;
mod peers;
mod private_network;
mod process;
mod recoder;
pub mod services;

use std::path::{Path, PathBuf};

pub use guarded::GuardedBuffer;
pub use peers::{PeerAddresses, PeerProgram, PeerTransport, peer, python_script, xdrdump};
pub use private_network::{in_private_network, start_rpcbind, wait_for_port};
pub use process::{Process, run};
pub use recoder::XdrdumpRecoder;

/// Returns the root of the workspace.
///
/// # Panics
/// If this crate is not two folders below it.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

/// Returns a path for a Unix socket that no other test uses.
pub fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tenon-{}-{name}.sock", std::process::id()))
}

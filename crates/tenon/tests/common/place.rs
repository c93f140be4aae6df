//! Places that nobody else uses, neither another test nor another run: paths and hosts.
#![allow(dead_code, reason = "every test file uses its own part of this module")]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest folder below which the path of a Unix socket, which has 107 bytes at most, surely ends.
const FOLDER_MAX: usize = 50;

/// A number of this run. Processes of another container that shares files may have the same identity,
/// and those that died have left theirs behind: so the time is part of it.
fn run() -> u64 {
    static RUN: OnceLock<u64> = OnceLock::new();
    *RUN.get_or_init(|| {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = time.map_or(0, |time| time.as_nanos() as u64);
        (nanos ^ u64::from(process::id()) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// A path at which there is nothing, short enough for a socket.
pub fn fresh_path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir();
    let folder = match folder.as_os_str().len() {
        0..=FOLDER_MAX => folder,
        _ => PathBuf::from("/tmp"),
    };
    folder.join(format!("tenon-{:016x}-{number}", run()))
}

/// A host of the loopback network, which is large. Ports there stay free when they are given back, as
/// nobody else listens there, and as who connects to it does so from 127.0.0.1.
pub fn fresh_host() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// Hosts from 127.64.0.0 to 127.127.255.255.
    const HOSTS: u32 = 1 << 22;
    let number = (run() as u32).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 0).to_bits() + number % HOSTS)
}

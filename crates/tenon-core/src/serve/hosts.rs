//! The number of connections of each host, so that one leaves room for others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_net::Stream;

/// Identity of a host, by which its connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HostKey {
    V4(Ipv4Addr),
    /// The first 64 bits of an address of IPv6, which one host may have all to itself.
    V6(u64),
    /// The user that runs the peer's process, on this machine.
    User(u32),
}

impl HostKey {
    fn of(stream: &Stream) -> Option<Self> {
        if let Some(peer) = stream.peer() {
            return Some(Self::at(peer.ip()));
        }
        stream.user().map(|user| Self::User(user.user))
    }

    fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// The connections of each host.
#[derive(Debug)]
pub struct HostTable {
    open: Mutex<HashMap<HostKey, usize>>,
    limit: usize,
}

impl HostTable {
    /// No connections yet, of which each host may have so many.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            limit,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HostKey, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection to its host; `None` if that has as many as it may.
    pub fn admit(self: &Arc<Self>, stream: &Stream) -> Option<HostShare> {
        let host = HostKey::of(stream);
        if let Some(host) = host {
            let mut open = self.lock();
            let connections = open.entry(host).or_default();
            if *connections >= self.limit.max(1) {
                return None;
            }
            *connections += 1;
        }
        Some(HostShare {
            table: Arc::clone(self),
            host,
        })
    }
}

/// A connection that is counted to its host. Dropping it ends that.
#[derive(Debug)]
pub struct HostShare {
    table: Arc<HostTable>,
    /// `None` if it is not known.
    host: Option<HostKey>,
}

impl Drop for HostShare {
    fn drop(&mut self) {
        let Some(host) = self.host else { return };
        if let Entry::Occupied(mut connections) = self.table.lock().entry(host) {
            *connections.get_mut() -= 1;
            if *connections.get() == 0 {
                connections.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_host() {
        let host = |address: &str| HostKey::at(address.parse().unwrap());
        assert_eq!(host("2001:db8:0:1::1"), host("2001:db8:0:1:ffff::2"));
        assert_ne!(host("2001:db8:0:1::1"), host("2001:db8:0:2::1"));
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
    }
}

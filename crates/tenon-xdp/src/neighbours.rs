//! The Ethernet addresses of peers. The kernel finds that out (ARP), and here is what it said.
//!
//! There is no ARP of our own: the filter leaves it to the kernel, which answers what is asked of it, and which
//! resolves a peer as soon as a datagram goes there by a socket of the kernel's. So that is how the first one goes, and
//! from then on the kernel is asked what it knows. A second table beside the kernel's could only differ from it; and a
//! host that floods the network with forged answers meets the kernel's defences.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::headers::MacAddress;

/// Peers that are known at a time. One that is displaced is asked for again.
const KNOWN: usize = 256;

/// After so many datagrams without an answer it counts how long there is none.
const UNANSWERED: u32 = 4;

/// After so long without an answer the kernel looks again for a peer that may have moved.
const SILENCE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
struct NeighbourEntry {
    peer: Ipv4Addr,
    /// Destination of frames for it.
    next: MacAddress,
    /// Source of its frames: of a peer on this Ethernet where those for it go, of one behind a router where the last
    /// came from, once one has come.
    seen: Option<MacAddress>,
    unanswered: u32,
    silent_since: Option<Instant>,
}

/// The cache of peers' Ethernet addresses, each peer at the slot of its address.
#[derive(Debug)]
pub(crate) struct NeighbourCache(Box<[Option<NeighbourEntry>; KNOWN]>);

impl Default for NeighbourCache {
    fn default() -> Self {
        Self(Box::new([None; KNOWN]))
    }
}

impl NeighbourCache {
    fn place(&mut self, peer: Ipv4Addr) -> &mut Option<NeighbourEntry> {
        let [a, b, c, d] = peer.octets();
        &mut self.0[usize::from(d ^ c.rotate_left(3) ^ b.rotate_left(5) ^ a)]
    }

    /// Returns the Ethernet destination of frames for a peer, if that is known and nothing speaks against it.
    #[inline]
    pub(crate) fn next(&mut self, peer: Ipv4Addr) -> Option<MacAddress> {
        let place = self.place(peer);
        let known = place.as_mut().filter(|known| known.peer == peer)?;
        known.unanswered += 1;
        if known.unanswered > UNANSWERED && known.has_been_silent(Instant::now()) {
            *place = None;
            return None;
        }
        Some(known.next)
    }

    /// The kernel says where frames for a peer go: to the peer itself, if it is on this Ethernet, or to a router.
    pub(crate) fn learn(&mut self, peer: Ipv4Addr, next: MacAddress, is_here: bool) {
        *self.place(peer) = Some(NeighbourEntry {
            peer,
            next,
            seen: is_here.then_some(next),
            unanswered: 0,
            silent_since: None,
        });
    }

    /// A frame of a peer came from there. If that is not where its frames come from, it may have moved: the frame,
    /// which any host may have sent, is not believed, but the kernel sends the next, and is asked again.
    #[inline]
    pub(crate) fn heard(&mut self, peer: Ipv4Addr, from: MacAddress) {
        let place = self.place(peer);
        let Some(known) = place.as_mut().filter(|known| known.peer == peer) else {
            return;
        };
        known.unanswered = 0;
        known.silent_since = None;
        match known.seen {
            None => known.seen = Some(from),
            Some(seen) if seen == from => {}
            Some(_) => *place = None,
        }
    }
}

impl NeighbourEntry {
    fn has_been_silent(&mut self, now: Instant) -> bool {
        let since = *self.silent_since.get_or_insert(now);
        now.saturating_duration_since(since) >= SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn a_peer_is_known_when_the_kernel_knows_it() {
        let mut neighbours = NeighbourCache::default();
        assert_eq!(neighbours.next(PEER), None);
        neighbours.heard(PEER, THERE);
        assert_eq!(neighbours.next(PEER), None, "frames are not believed");
        neighbours.learn(PEER, HERE, true);
        assert_eq!(neighbours.next(PEER), Some(HERE));
    }

    #[test]
    fn a_peer_that_moves_is_asked_for_again() {
        let mut neighbours = NeighbourCache::default();
        neighbours.learn(PEER, HERE, false);
        // A router on the way back may be another than on the way there.
        neighbours.heard(PEER, THERE);
        neighbours.heard(PEER, THERE);
        assert_eq!(neighbours.next(PEER), Some(HERE));
        neighbours.heard(PEER, HERE);
        assert_eq!(neighbours.next(PEER), None);
        // On this Ethernet it is the same.
        neighbours.learn(PEER, HERE, true);
        neighbours.heard(PEER, HERE);
        assert_eq!(neighbours.next(PEER), Some(HERE));
        neighbours.heard(PEER, THERE);
        assert_eq!(neighbours.next(PEER), None);
    }

    #[test]
    fn peers_of_one_place_displace_each_other() {
        let mut neighbours = NeighbourCache::default();
        let other = Ipv4Addr::new(192, 0, 2 ^ 0x20, 2 ^ 1);
        assert_eq!(
            std::ptr::from_mut(neighbours.place(other)),
            std::ptr::from_mut(neighbours.place(PEER))
        );
        neighbours.learn(PEER, HERE, true);
        neighbours.heard(other, THERE);
        assert_eq!(neighbours.next(other), None);
        neighbours.learn(other, THERE, true);
        assert_eq!(neighbours.next(PEER), None);
        assert_eq!(neighbours.next(other), Some(THERE));
    }

    #[test]
    fn silence_makes_the_kernel_look_again() {
        let mut known = NeighbourEntry {
            peer: PEER,
            next: HERE,
            seen: None,
            unanswered: 0,
            silent_since: None,
        };
        let begin = Instant::now();
        assert!(!known.has_been_silent(begin));
        assert!(!known.has_been_silent(begin + SILENCE / 2));
        assert!(known.has_been_silent(begin + SILENCE));
        let mut neighbours = NeighbourCache::default();
        neighbours.learn(PEER, HERE, true);
        for _ in 0..100 {
            assert_eq!(neighbours.next(PEER), Some(HERE), "a burst is no silence");
        }
        let place = neighbours.place(PEER);
        if let Some(known) = place {
            known.silent_since = begin.checked_sub(2 * SILENCE);
        }
        assert_eq!(neighbours.next(PEER), None);
    }
}

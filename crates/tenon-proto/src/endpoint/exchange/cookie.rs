//! Cookies: what proves that a client receives what is sent to its address.
//!
//! The server keeps nothing of those that it gave out. A cookie says when it was given, and carries a
//! code over that and over the address, made with a key that only this run of the server knows: so a
//! cookie of an earlier run, of another address or of long ago is none.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use siphasher::sip::SipHasher24;

/// Bytes of a cookie.
pub(super) const COOKIE: usize = 16;

/// Makes and checks cookies.
#[derive(Debug)]
pub(super) struct AddressValidator {
    key: [u8; 16],
    started: Instant,
    valid: Duration,
}

impl AddressValidator {
    pub(super) fn new(key: [u8; 16], started: Instant, valid: Duration) -> Self {
        Self {
            key,
            started,
            valid,
        }
    }

    /// A cookie for a peer.
    pub(super) fn give(&self, now: Instant, peer: &impl Hash) -> [u8; COOKIE] {
        let at = self.age(now);
        let mut cookie = [0; COOKIE];
        cookie[..8].copy_from_slice(&at.to_be_bytes());
        cookie[8..].copy_from_slice(&self.code(at, peer).to_be_bytes());
        cookie
    }

    /// Returns when a peer's cookie ceases to be one; none if it is none by now.
    pub(super) fn expiry(
        &self,
        now: Instant,
        peer: &impl Hash,
        cookie: &[u8; COOKIE],
    ) -> Option<Instant> {
        let (at, code) = (word(cookie, 0), word(cookie, 8));
        // No peer learns from how long a comparison of two words takes where they differ.
        if code != self.code(at, peer) || at > self.age(now) {
            return None;
        }
        let expiry = self.started + Duration::from_millis(at) + self.valid;
        (now < expiry).then_some(expiry)
    }

    /// Returns whether a cookie that is none of a peer may be one of another address still: without that address this
    /// cannot be told.
    pub(super) fn may_be_of_another(&self, now: Instant, cookie: &[u8; COOKIE]) -> bool {
        let at = word(cookie, 0);
        at <= self.age(now) && now < self.started + Duration::from_millis(at) + self.valid
    }

    /// Milliseconds since the server started.
    fn age(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }

    fn code(&self, at: u64, peer: &impl Hash) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&at.to_be_bytes());
        peer.hash(&mut hasher);
        hasher.finish()
    }
}

fn word(cookie: &[u8; COOKIE], at: usize) -> u64 {
    cookie[at..at + 8]
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

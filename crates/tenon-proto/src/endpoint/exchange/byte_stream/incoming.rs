//! The direction of a stream of bytes that this end receives.

use std::collections::BTreeMap;

use crate::endpoint::exchange::WINDOW;
use crate::endpoint::exchange::packet::DropReason;

use super::outgoing::LIMIT_FIRST;

/// Bytes that a peer may have sent which are not read, if its fragments are full.
const WINDOW_BYTES: usize = 1 << 20;

/// In-order fragments that are acknowledged together.
const ACKNOWLEDGED_TOGETHER: u32 = 8;

/// Bytes that have come, and fragments that have come before others.
#[derive(Debug)]
pub(super) struct IncomingBytes {
    /// All fragments before this one have come.
    below: u64,
    held: BTreeMap<u64, Box<[u8]>>,
    /// The number of the last fragment, once it is known.
    last: Option<u64>,
    reading: ReadyBytes,
    /// What has come while the reader was at other bytes.
    filling: ReadyBytes,
    /// All fragments before this one were read.
    read_below: u64,
    /// Fragments beyond those that were read which the peer may send.
    window: u64,
    /// The peer was told that the fragments before this one are taken.
    limit: u64,
    /// In-order fragments that were not acknowledged.
    silent: u32,
    pub(super) owes_ack: bool,
}

/// Bytes of fragments that are next to each other.
#[derive(Debug, Default)]
struct ReadyBytes {
    bytes: Vec<u8>,
    /// How many of them were read.
    read: usize,
    fragments: u64,
}

impl IncomingBytes {
    /// Nothing has come yet. A fragment has up to `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        let window = (WINDOW_BYTES / room) as u64;
        let window = window.clamp(LIMIT_FIRST, WINDOW.into());
        Self {
            below: 0,
            held: BTreeMap::new(),
            last: None,
            reading: ReadyBytes::default(),
            filling: ReadyBytes::default(),
            read_below: 0,
            window,
            limit: LIMIT_FIRST,
            silent: 0,
            owes_ack: false,
        }
    }

    /// Takes a fragment, given by the lower half of its number.
    pub(super) fn take(
        &mut self,
        fragment: u32,
        is_last: bool,
        data: &[u8],
    ) -> Result<(), DropReason> {
        let ahead = fragment.wrapping_sub(self.below as u32);
        if ahead > u32::MAX / 2 {
            self.owes_ack = true;
            return Err(DropReason::Repeated);
        }
        let number = self.below + u64::from(ahead);
        let is_behind_last = self.last.is_some_and(|last| number > last);
        let contradicts = is_last && self.last.is_some_and(|last| number != last);
        let is_before_held = is_last && self.held.keys().next_back() > Some(&number);
        let is_empty = data.is_empty() && !is_last;
        if is_behind_last || contradicts || is_before_held || is_empty || number >= self.limit {
            return Err(DropReason::Malformed);
        }
        if is_last {
            self.last = Some(number);
        }
        if number > self.below {
            self.owes_ack = true;
            return match self.held.insert(number, data.into()) {
                None => Ok(()),
                Some(_) => Err(DropReason::Repeated),
            };
        }
        let had_holes = !self.held.is_empty();
        self.append(data);
        while let Some(data) = self.held.remove(&self.below) {
            self.append(&data);
        }
        self.silent += 1;
        let is_whole = self.last.is_some_and(|last| last < self.below);
        self.owes_ack |= had_holes || is_whole || self.silent >= ACKNOWLEDGED_TOGETHER;
        Ok(())
    }

    fn append(&mut self, data: &[u8]) {
        self.below += 1;
        let ready = match self.reading.bytes.is_empty() {
            true => &mut self.reading,
            false => &mut self.filling,
        };
        ready.bytes.extend_from_slice(data);
        ready.fragments += 1;
        // An empty fragment leaves nothing to read.
        self.note_read();
    }

    /// Returns bytes that are to be read next.
    pub(super) fn ready(&self) -> &[u8] {
        &self.reading.bytes[self.reading.read..]
    }

    /// So many of the bytes that are ready were read.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.reading.read = (self.reading.read + bytes).min(self.reading.bytes.len());
        self.note_read();
    }

    fn note_read(&mut self) {
        if self.reading.fragments == 0 || self.reading.read < self.reading.bytes.len() {
            return;
        }
        self.read_below += self.reading.fragments;
        self.reading.bytes.clear();
        (self.reading.read, self.reading.fragments) = (0, 0);
        std::mem::swap(&mut self.reading, &mut self.filling);
        // A sender that was told of little room is told of more.
        let left = self.limit - self.below.min(self.limit);
        self.owes_ack |= left <= self.window / 4 && self.read_below + self.window > self.limit;
    }

    /// Returns whether everything was read, and nothing more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.last.is_some_and(|last| last < self.read_below)
    }

    /// Returns the fields of an acknowledgement: the first fragment that is missing, and the first that is not taken.
    pub(super) fn begin_ack(&mut self) -> (u32, u32) {
        self.limit = self.limit.max(self.read_below + self.window);
        (self.silent, self.owes_ack) = (0, false);
        (self.below as u32, self.limit as u32)
    }

    /// Returns the first fragment that is missing, and those that are held behind it.
    pub(super) fn held(&self) -> (u64, impl Iterator<Item = u64>) {
        (self.below, self.held.keys().copied())
    }
}

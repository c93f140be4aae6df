//! Datagrams that were received together, handed out one by one.

use std::io;
use std::ops::Range;
use std::time::Instant;

use tenon_net::{Carrier, ReceivedTrain};
use tenon_proto::config::{ConnectionConfig, Role};
use tenon_proto::endpoint::exchange::{ReassembledMessage, is_one_of_many};

/// Room for the largest datagram there is, or for several that come together, and what of it is filled.
#[derive(Debug)]
pub struct DatagramInput {
    room: Box<[u8]>,
    length: usize,
    received_at: Instant,
    /// Bytes of each datagram but the last.
    size: usize,
    /// The datagram that was handed out last.
    datagram: Range<usize>,
    /// True if there is another behind it.
    has_next: bool,
    /// Memory in which the packet exchange joins an answer of several packets.
    pub whole: ReassembledMessage,
}

impl DatagramInput {
    pub fn new(config: &ConnectionConfig) -> Self {
        Self {
            room: vec![0; Carrier::RECEIVE_MAX].into(),
            length: 0,
            received_at: Instant::now(),
            size: 0,
            datagram: 0..0,
            has_next: false,
            whole: ReassembledMessage::of(config, Role::Client),
        }
    }

    /// Returns the memory to receive into.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Takes in what was received.
    #[inline]
    pub fn handle_received(&mut self, came: io::Result<ReceivedTrain>) -> io::Result<()> {
        let came = came?;
        (self.length, self.size) = (came.length, came.size);
        self.datagram = 0..0;
        self.has_next = true;
        self.received_at = Instant::now();
        Ok(())
    }

    /// Returns when something was received last.
    #[inline]
    pub fn received_at(&self) -> Instant {
        self.received_at
    }

    /// Goes on to the next datagram; returns whether there is one. An empty one is one, too.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if !self.has_next {
            return false;
        }
        self.datagram = self.next_range();
        self.has_next = self.datagram.end < self.length && self.size > 0;
        self.whole.clear();
        true
    }

    #[inline]
    fn next_range(&self) -> Range<usize> {
        let start = self.datagram.end;
        start..self.length.min(start + self.size)
    }

    /// Returns whether datagrams have come that were not handed out.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.has_next
    }

    /// Returns the datagram that was handed out last, and where an answer is joined.
    #[inline]
    pub fn last_datagram(&mut self) -> (&[u8], &mut ReassembledMessage) {
        (&self.room[self.datagram.clone()], &mut self.whole)
    }

    /// Returns the bytes of the datagram that was handed out last, if several of that length are likely to come
    /// together.
    pub fn likely_train(&self) -> Option<usize> {
        let datagram = &self.room[self.datagram.clone()];
        is_one_of_many(datagram).then_some(datagram.len())
    }

    /// Returns the message that an answer was found in last: what was joined, or the datagram.
    #[inline]
    pub fn message(&self) -> &[u8] {
        match self.whole.message() {
            [] => &self.room[self.datagram.clone()],
            joined => joined,
        }
    }
}

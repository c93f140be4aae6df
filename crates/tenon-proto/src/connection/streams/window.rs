//! The bytes of items that this end takes: how many it has granted, and when it grants more.

use crate::codec::lean::{CONNECTION_WINDOW, ITEM_PART, STREAM_WINDOW};

/// Streams that may stand still, each with its window full, before others of the connection have to wait, too.
const STALLED_STREAMS: u32 = CONNECTION_WINDOW / STREAM_WINDOW;

/// The part of the first window that is granted again at once: one in so many. Less than half waits
/// to be granted then, so that the other half is left for a [part](crate::codec::lean::ITEM_PART) of a message.
const FIRST_GRANT: u64 = 3;

/// The part of a larger window that is granted again at once. A credit wakes a thread of the sender: fewer are better, as
/// long as the other half lasts until it comes.
const GRANT: u64 = 2;

/// The part of a window that is much for a round trip. An answer to a ping may come sooner than what a credit is for: the
/// sender has to be scheduled.
const MUCH: u64 = 8;

/// Returns whether so many bytes of a window are to be granted again at once.
fn is_due(unreturned: u64, window: u32) -> bool {
    let part = match window > STREAM_WINDOW {
        true => GRANT,
        false => FIRST_GRANT,
    };
    part * unreturned >= window.into()
}

/// What this end takes of all streams of a connection together, and how far the window of each may grow.
///
/// A window that is smaller than what passes in a round trip holds its sender up. So a ping follows a credit, and the
/// bytes of items that come before its answer are what the connection carries in a round trip: if they are an eighth of
/// a window or more, windows are doubled. They also are where a reader has taken everything, and its sender waits for credit:
/// the items that it has then come behind the answer.
#[derive(Debug)]
pub(super) struct ConnectionWindow {
    /// Bytes of the window of a stream.
    stream: u32,
    stream_max: u32,
    /// Bytes that the peer may still send.
    allowed: u64,
    /// Bytes that may be granted again.
    unreturned: u64,
    /// Bytes received, ever.
    received: u64,
    /// The number of a ping, and the bytes that were received before it was sent.
    probe: Option<(u32, u64)>,
}

/// What this end takes of one stream.
#[derive(Debug)]
pub(super) struct StreamWindow {
    bytes: u32,
    /// Bytes that the peer may still send.
    allowed: u64,
    /// Bytes that may be granted again.
    unreturned: u64,
}

impl ConnectionWindow {
    pub(super) fn new(stream_max: u32) -> Self {
        Self {
            stream: STREAM_WINDOW,
            stream_max: stream_max.clamp(STREAM_WINDOW, i32::MAX as u32 / STALLED_STREAMS),
            allowed: CONNECTION_WINDOW.into(),
            unreturned: 0,
            received: 0,
            probe: None,
        }
    }

    /// Bytes of the window of a stream.
    pub(super) fn of_stream(&self) -> u32 {
        self.stream
    }

    /// Lets the window of a stream grow to so many bytes; one that is larger stays as it is.
    pub(super) fn set_stream_max(&mut self, stream_max: u32) {
        self.stream_max = stream_max.clamp(self.stream, i32::MAX as u32 / STALLED_STREAMS);
    }

    /// Takes in that an item came; returns the bytes that were allowed if it is longer.
    pub(super) fn receive(&mut self, bytes: u64) -> Result<(), u64> {
        self.allowed = self.allowed.checked_sub(bytes).ok_or(self.allowed)?;
        self.received += bytes;
        Ok(())
    }

    /// Notes that the receiver has taken items, so that as much may come again.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.unreturned += bytes;
    }

    /// Returns whether so much may be granted that the peer is to be told without a credit for a stream.
    pub(super) fn is_due(&self) -> bool {
        is_due(self.unreturned, self.stream)
    }

    /// Takes what is granted now.
    pub(super) fn grant(&mut self) -> u32 {
        let bytes = std::mem::take(&mut self.unreturned);
        self.allowed += bytes;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns whether a ping is to find out how much the connection carries in a round trip.
    pub(super) fn wants_probe(&self) -> bool {
        self.probe.is_none() && self.stream < self.stream_max
    }

    /// Notes that the ping of this number was sent.
    pub(super) fn begin_probe(&mut self, number: u32) {
        self.probe = Some((number, self.received));
    }

    /// Takes in the answer to a ping.
    pub(super) fn handle_pong(&mut self, number: u32) {
        let Some((_, before)) = self.probe.take_if(|(probe, _)| *probe == number) else {
            return;
        };
        if MUCH * (self.received - before) >= self.stream.into() {
            self.grow();
        }
    }

    /// Doubles the windows, as far as they may grow.
    pub(super) fn grow(&mut self) {
        let grown = (2 * self.stream).min(self.stream_max);
        self.unreturned += u64::from(STALLED_STREAMS * (grown - self.stream));
        self.stream = grown;
    }
}

impl StreamWindow {
    pub(super) fn new() -> Self {
        Self {
            bytes: STREAM_WINDOW,
            allowed: STREAM_WINDOW.into(),
            unreturned: 0,
        }
    }

    /// As [`ConnectionWindow::receive`].
    pub(super) fn receive(&mut self, bytes: u64) -> Result<(), u64> {
        self.allowed = self.allowed.checked_sub(bytes).ok_or(self.allowed)?;
        Ok(())
    }

    /// As [`ConnectionWindow::give_back`]; returns whether the peer is to be told.
    pub(super) fn give_back(&mut self, bytes: u64) -> bool {
        self.unreturned += bytes;
        is_due(self.unreturned, self.bytes)
    }

    /// Returns whether its reader, which has taken everything, waits for a sender that waits for credit.
    pub(super) fn holds_sender_up(&self) -> bool {
        let is_used_up = self.allowed < ITEM_PART as u64;
        is_used_up && self.allowed + self.unreturned >= self.bytes.into()
    }

    /// Takes what is granted now, with a window as large as those of the connection are.
    pub(super) fn grant(&mut self, connection: &ConnectionWindow) -> u32 {
        let growth = connection.stream - self.bytes;
        self.bytes = connection.stream;
        let bytes = std::mem::take(&mut self.unreturned) + u64::from(growth);
        self.allowed += bytes;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_first_window_is_granted_again_and_half_of_a_larger_one() {
        for (window, part) in [(STREAM_WINDOW, 3), (2 * STREAM_WINDOW, 2), (4 << 20, 2)] {
            let due = u64::from(window.div_ceil(part));
            assert!(is_due(due, window), "{window}");
            assert!(!is_due(due - 1, window), "{window}");
        }
    }
}

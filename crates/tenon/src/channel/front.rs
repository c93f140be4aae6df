//! What the engine itself has to say: it goes in front of the next call, or at once if nobody sends.

use std::io;
use std::sync::Arc;

use tenon_wire::Buffer;

use super::backlog::Backlog;
use super::connection::Connection;
use super::engine::Engine;
use super::sending::Unsent;
use super::state::State;
use super::{Channel, Timer};

/// Bytes that wait for room in front of the next call before the engine keeps what it has to say: so it sees how
/// much that is, and takes a peer that asks on and reads nothing for an attacker.
const FRONT_MAX: usize = 64 << 10;

impl Channel {
    /// Sends what the engine itself has to say, as far as there is room for it and nobody sends a
    /// call. The rest goes in front of the next call; of packets it is returned.
    #[inline]
    pub(super) fn flush(&self, state: &mut State) -> Option<Backlog> {
        match state.engine.has_transmit() {
            true => state.flush(),
            false => None,
        }
    }

    /// Sends what goes in front of the call and the call behind it at once. What is not sent of the
    /// front goes in front of the next call. Says whether there was not room for all at once.
    #[cold]
    pub(super) fn transmit_behind(
        &self,
        connection: &Arc<Connection>,
        call: &[u8],
        timer: &Timer,
    ) -> Result<bool, Unsent> {
        let mut front = self.lock().take_front();
        let length = front.len();
        front.extend(call);
        let sent = self.transmit(connection, front.as_slice(), timer.deadline);
        let mut state = self.lock();
        let sent = sent.map_err(|mut unsent| {
            if let Some(rest) = front.as_slice()[..length].get(unsent.sent..) {
                state.leave_rest(connection, rest);
            }
            unsent.sent = unsent.sent.saturating_sub(length);
            unsent
        });
        state.buffers.put(front);
        drop(state);
        sent
    }
}

impl State {
    /// Has `rest` sent in front of the next call.
    pub(super) fn leave_rest(&mut self, connection: &Arc<Connection>, rest: &[u8]) {
        if let Some(line) = self.line_over(connection) {
            line.front.clear();
            line.front.extend(rest);
        }
    }

    /// What is to be sent in front of the next call.
    #[inline]
    pub(super) fn take_front(&mut self) -> Buffer {
        let line = self.line.as_mut();
        let front = line.map_or_else(Buffer::default, |line| std::mem::take(&mut line.front));
        match self.engine.has_transmit() {
            true => self.add_to_front(front),
            false => front,
        }
    }

    #[cold]
    fn add_to_front(&mut self, mut front: Buffer) -> Buffer {
        if front.is_empty() {
            front = self.buffers.take();
        }
        self.engine.poll_transmit(&mut front);
        front
    }

    /// Sends what goes in front of the next call, as far as there is room for it and nobody sends. Packets that
    /// find none are returned.
    #[cold]
    pub(super) fn flush(&mut self) -> Option<Backlog> {
        match &self.engine {
            Engine::Exchange(_) => self.flush_packets(),
            Engine::Onc(_) | Engine::Lean(_) => {
                self.flush_front();
                None
            }
        }
    }

    /// The same of a stream, or of single datagrams.
    pub(super) fn flush_front(&mut self) {
        let Some(line) = self.line.as_mut().filter(|line| !line.is_sending) else {
            return;
        };
        let connection = Arc::clone(&line.connection);
        let mut front = match line.front.len() > FRONT_MAX {
            true => std::mem::take(&mut line.front),
            false => self.take_front(),
        };
        let left = match connection.try_send(front.as_slice(), 0) {
            Ok(sent) => sent..front.len(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0..front.len(),
            Err(error) => return self.break_line(&connection, &error.into()),
        };
        if !left.is_empty() {
            let length = left.len();
            front.as_mut_slice().copy_within(left, 0);
            front.truncate(length);
            if let Some(line) = &mut self.line {
                line.front = front;
            }
        } else {
            self.buffers.put(front);
        }
    }
}

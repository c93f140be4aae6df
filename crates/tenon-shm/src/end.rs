//! One end of a connection in shared memory: a ring for each direction, which end sleeps, and which has ended.

use std::ops::Deref;

use crate::layout::{ENDED, RECEIVER_SLEEPS, RingLayout, SENDER_SLEEPS, Sizes};
use crate::ring::{RingReceiver, RingSender, RingViolation, wake_receiver, wake_sleeper};
use crate::sync::{AtomicU64, Ordering, fence};

/// Bit of `ENDED`: nothing more is sent.
const SENDS_NOTHING: u64 = 1;
/// Bit of `ENDED`: nothing more is received.
const RECEIVES_NOTHING: u64 = 2;

/// The role of an end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionRole {
    /// The one that listened.
    Server,
    /// The one that connected.
    Client,
}

/// One end of a connection with its bytes in `memory`. Nothing here waits or makes a system call: a peer is woken by
/// the closures of the caller, and an end that is about to sleep [says so](Self::park_receiver) first.
///
/// One thread at a time sends, and one at a time receives. If several do, bytes are mixed up, and that is
/// all.
#[derive(Debug)]
pub struct RingEndpoint<M> {
    memory: M,
    outgoing: RingLayout,
    sender: RingSender,
    receiver: RingReceiver,
}

impl<M: Deref<Target = [AtomicU64]>> RingEndpoint<M> {
    /// Creates the end of `side` of a connection in `memory`, in which everything is zero, and which has as many bytes
    /// as `sizes` say.
    ///
    /// # Panics
    /// The memory is smaller.
    pub fn new(memory: M, sizes: Sizes, side: ConnectionRole) -> Self {
        assert!(
            size_of_val(&*memory) >= sizes.segment() || cfg!(loom),
            "the rings do not fit"
        );
        let (up, down) = (RingLayout::to_server(sizes), RingLayout::to_client(sizes));
        let (outgoing, incoming) = match side {
            ConnectionRole::Server => (down, up),
            ConnectionRole::Client => (up, down),
        };
        Self {
            memory,
            outgoing,
            sender: RingSender::new(outgoing),
            receiver: RingReceiver::new(incoming),
        }
    }

    /// Sends as many of `bytes` as there is room for and returns their number. `wake` wakes the peer's
    /// receiver.
    ///
    /// # Errors
    /// The peer broke the rules.
    #[inline]
    pub fn send(&self, bytes: &[u8], wake: impl Fn()) -> Result<usize, RingViolation> {
        self.sender.send(&self.memory, bytes, wake)
    }

    /// Sends as much of `pieces` as there is room for, one behind the other, and returns the number
    /// of bytes. `wake` wakes the peer's receiver.
    ///
    /// # Errors
    /// The peer broke the rules.
    pub fn send_pieces<P: Deref<Target = [u8]>>(
        &self,
        pieces: &[P],
        wake: impl Fn(),
    ) -> Result<usize, RingViolation> {
        self.sender.send_pieces(&self.memory, pieces, wake)
    }

    /// Receives what is there and fits into `room`, and returns the number of bytes: 0 if nothing
    /// is there. What is behind them in `room` may change, too. `wake` wakes the peer's sender.
    ///
    /// # Errors
    /// The peer broke the rules.
    #[inline]
    pub fn receive(&self, room: &mut [u8], wake: impl Fn()) -> Result<usize, RingViolation> {
        self.receiver.receive(&self.memory, room, wake)
    }

    /// Returns whether the peer sends nothing beyond what it has sent already. Look for bytes again afterwards: some
    /// may have come in between.
    #[inline]
    pub fn peer_sends_nothing(&self) -> bool {
        self.peer_has_ended() & SENDS_NOTHING != 0
    }

    /// Returns whether the peer receives nothing any more.
    #[inline]
    pub fn peer_receives_nothing(&self) -> bool {
        self.peer_has_ended() & RECEIVES_NOTHING != 0
    }

    #[inline]
    fn peer_has_ended(&self) -> u64 {
        // Acquire: what was sent before can be seen.
        self.memory[self.outgoing.receiver + ENDED].load(Ordering::Acquire)
    }

    /// Tells the peer that nothing more is sent. `wake` wakes its receiver.
    pub fn end_sending(&self, wake: impl Fn()) {
        self.end(SENDS_NOTHING);
        wake_receiver(&self.memory, self.outgoing, wake);
    }

    /// Tells the peer that nothing more is sent or received. The closures wake its receiver and its
    /// sender.
    pub fn close(&self, wake_receiver: impl Fn(), wake_sender: impl Fn()) {
        self.end(SENDS_NOTHING | RECEIVES_NOTHING);
        fence(Ordering::SeqCst);
        let peer = self.outgoing.receiver;
        wake_sleeper(&self.memory[peer + RECEIVER_SLEEPS], wake_receiver);
        wake_sleeper(&self.memory[peer + SENDER_SLEEPS], wake_sender);
    }

    fn end(&self, what: u64) {
        // Release: behind what was sent before.
        self.memory[self.outgoing.sender + ENDED].fetch_or(what, Ordering::AcqRel);
    }

    /// Says that this end is going to sleep until something comes: from now on the peer wakes it. Says
    /// whether it may sleep: not if something has come meanwhile, or nothing more ever does.
    pub fn park_receiver(&self) -> bool {
        let may = self.receiver.park(&self.memory) && !self.peer_sends_nothing();
        if !may {
            self.unpark_receiver();
        }
        may
    }

    /// Says that this end does not sleep any more until something comes.
    pub fn unpark_receiver(&self) {
        self.receiver.unpark(&self.memory);
    }

    /// Looks up to so many times whether there is something to receive, and says whether there is. One look
    /// is one read of memory, and a pause.
    #[inline]
    pub fn look(&self, times: u32) -> bool {
        self.receiver.look(&self.memory, times)
    }

    /// Returns whether there is something to receive.
    pub fn has_bytes(&self) -> bool {
        !self.receiver.is_empty(&self.memory)
    }

    /// Says that this end is going to sleep until there is room to send: from now on the peer wakes it.
    /// Says whether it may sleep: not if there is room, or never will be.
    pub fn park_sender(&self) -> bool {
        let may = self.sender.park(&self.memory) && !self.peer_receives_nothing();
        if !may {
            self.unpark_sender();
        }
        may
    }

    /// Looks up to so many times whether there is room to send, as much as a sleeping sender is woken for, and returns
    /// whether there is. One look is one read of memory, and a pause.
    pub fn look_for_room(&self, times: u32) -> bool {
        self.sender.look(&self.memory, times)
    }

    /// Says that this end does not sleep any more until there is room.
    pub fn unpark_sender(&self) {
        self.sender.unpark(&self.memory);
    }

    /// Returns the memory in which the bytes lie.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

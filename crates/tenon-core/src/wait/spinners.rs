//! The limit of the threads that may look for messages at the same time.

use std::sync::atomic::{AtomicBool, Ordering};

use tenon_net::Transport;

use super::processors;

/// Looks between two looks at the clock, where a look is no system call: each is a pause and a read of
/// memory.
pub const LOOKS: u32 = 128;

/// Most threads that look at the same time, however many processors there are.
const SEATS: usize = 64;

/// The threads that look for messages now. There is always room for one; beyond that they leave a
/// processor to all other threads, their peers perhaps, and a thread that does not look at a socket leaves one to
/// a thread that does.
///
/// Each has a seat of its own, and is not only counted: a thread that leaves is in a hurry, and leaves a seat by a
/// plain store.
#[derive(Debug)]
pub struct Spinners([AtomicBool; SEATS]);

/// Permit of a thread to look. Dropping it makes room for another.
#[derive(Debug)]
pub struct SpinPermit<'s>(&'s AtomicBool);

/// Object that a thread looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looking {
    /// A socket: a system call tells what the peer sends.
    AtSocket,
    /// Shared memory, into which the peer, or the kernel, puts what comes.
    IntoMemory,
    /// A flag that another thread of this process sets, which itself may look at a socket and finds room.
    AtFlag,
}

impl Looking {
    /// Returns the object to look at for what comes through `transport`.
    pub fn at(transport: Transport) -> Self {
        match transport {
            Transport::Tcp | Transport::Unix | Transport::Udp => Self::AtSocket,
            Transport::Shm | Transport::Xdp => Self::IntoMemory,
        }
    }

    /// Returns the attempts after which a thread that looks offers its processor to others: some microseconds. A
    /// short reply has come before.
    pub fn attempts_at_a_time(self) -> u64 {
        match self {
            Self::AtSocket | Self::IntoMemory => 16,
            Self::AtFlag => 8,
        }
    }

    /// Returns the most threads that look at the same time where there are so many processors.
    fn most(self, processors: usize) -> usize {
        match self {
            Self::AtSocket | Self::IntoMemory => processors.saturating_sub(1).max(1),
            Self::AtFlag => processors.saturating_sub(2),
        }
    }
}

impl Default for Spinners {
    fn default() -> Self {
        Self::new()
    }
}

impl Spinners {
    /// No threads that look.
    pub const fn new() -> Self {
        Self([const { AtomicBool::new(false) }; SEATS])
    }

    /// Returns those of all channels of the process.
    pub fn of_callers() -> &'static Self {
        static CALLERS: Spinners = Spinners::new();
        &CALLERS
    }

    /// Takes one more, if there is room.
    #[inline]
    pub fn enter(&self, looking: Looking) -> Option<SpinPermit<'_>> {
        self.enter_below(looking.most(processors()))
    }

    #[inline]
    fn enter_below(&self, most: usize) -> Option<SpinPermit<'_>> {
        let seats = &self.0[..most.min(SEATS)];
        let is_mine = |seat: &&AtomicBool| {
            !seat.load(Ordering::Relaxed) && !seat.swap(true, Ordering::Relaxed)
        };
        seats.iter().find(is_mine).map(SpinPermit)
    }
}

impl Drop for SpinPermit<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_left_to_others() {
        let most = |looking: Looking| [0, 1, 2, 3, 16].map(|count| looking.most(count));
        assert_eq!(most(Looking::AtSocket), [1, 1, 1, 2, 15]);
        assert_eq!(most(Looking::IntoMemory), most(Looking::AtSocket));
        assert_eq!(most(Looking::AtFlag), [0, 0, 0, 1, 14]);
    }

    #[test]
    fn a_thread_that_finds_no_room_takes_none() {
        let spinners = Spinners::new();
        let first = spinners.enter_below(2);
        let second = spinners.enter_below(2);
        assert!(first.is_some() && second.is_some());
        assert!(spinners.enter_below(2).is_none());
        assert!(spinners.enter_below(2).is_none());
        drop(first);
        assert!(spinners.enter_below(2).is_some());
    }
}

//! Handlers that wait until their connection takes further items, and that are to be woken as it does.

use std::sync::Arc;

use crate::streams::StreamPipe;

/// Times that waking handlers is put off at most.
const PUT_OFF_MAX: u8 = 4;

/// Handlers that may hand over further items, and are to be woken: once their connection is free, as each then sends
/// itself what it hands over. A handler that is woken before leaves its items to the thread that has the connection. If
/// both have one processor, they take turns on it from then on, for each few messages.
#[derive(Debug, Default)]
pub struct AwaitedWriters {
    pipes: Vec<Arc<StreamPipe>>,
    put_off: u8,
}

impl AwaitedWriters {
    pub(super) fn push(&mut self, pipe: &Arc<StreamPipe>) {
        if !self.pipes.iter().any(|other| Arc::ptr_eq(other, pipe)) {
            self.pipes.push(Arc::clone(pipe));
        }
    }

    /// Returns whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pipes.is_empty()
    }

    /// Puts waking them off, as the connection is not free; returns false if that was done often enough.
    pub fn put_off(&mut self) -> bool {
        self.put_off += 1;
        self.put_off <= PUT_OFF_MAX
    }

    /// Wakes them.
    pub fn wake(self) {
        for pipe in self.pipes {
            pipe.wake_writer();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_is_put_off_for_so_long_only() {
        let mut writers = AwaitedWriters::default();
        let pipe = Arc::default();
        writers.push(&pipe);
        writers.push(&pipe);
        assert_eq!(writers.pipes.len(), 1, "it is woken once");
        let put_off = (0..10).take_while(|_| writers.put_off()).count();
        assert_eq!(put_off, usize::from(PUT_OFF_MAX));
    }
}

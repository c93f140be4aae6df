//! Room for calls that are carried out elsewhere than where they were received: how many they may be, and how much
//! memory they may take. Connections with calls that find none wait for it in their order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenon_core::serve::{CallMemory, MemoryBudget};

use super::lock;
use super::slot::SocketSlot;

/// Room for calls that are carried out elsewhere than where they were received, or take much memory.
///
/// Every call that ends, and every connection that gets its turn and has decided, lets the connection look that has
/// waited longest: so none waits while there is room for its call. One looks at a time, as a second might find room that
/// was made meanwhile, and overtake it.
#[derive(Debug)]
pub(super) struct CallAdmission {
    calls: AtomicUsize,
    calls_max: usize,
    memory: Arc<MemoryBudget>,
    held: Mutex<HeldConnections>,
    /// True if connections wait, or one looks.
    has_held: AtomicBool,
}

/// Connections with a call for which there is no room.
#[derive(Debug, Default)]
struct HeldConnections {
    queue: VecDeque<Arc<SocketSlot>>,
    /// The one that was told to look whether there is room, and has not decided.
    candidate: Option<Arc<SocketSlot>>,
}

impl CallAdmission {
    /// Room for so many calls, and so many bytes of their memory.
    pub(super) fn new(calls_max: usize, bytes_max: usize) -> Self {
        Self {
            calls: AtomicUsize::new(0),
            calls_max: calls_max.max(1),
            memory: MemoryBudget::new(bytes_max),
            held: Mutex::default(),
            has_held: AtomicBool::new(false),
        }
    }

    /// Returns whether there is room for one call more, with so many `bytes` that count. Connections that wait come
    /// before one that wants memory, unless it `is_next`.
    pub(super) fn has(&self, bytes: usize, is_next: bool) -> bool {
        let is_in_turn = bytes == 0 || is_next || !self.has_held.load(Ordering::Relaxed);
        let has_call = self.calls.load(Ordering::Relaxed) < self.calls_max;
        has_call && is_in_turn && self.memory.has_for_call(bytes)
    }

    /// Takes memory for a call. `None` if there is [no room](Self::has) for it.
    pub(super) fn take(&self, bytes: usize, is_next: bool) -> Option<CallMemory> {
        let has_room = self.has(bytes, is_next);
        has_room.then(|| self.memory.take_for_call(bytes))?
    }

    /// A call is handed over.
    pub(super) fn begin_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that was handed over has ended.
    pub(super) fn end_call(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has a connection wait behind the others, or before them if it was next.
    pub(super) fn wait(&self, slot: &Arc<SocketSlot>, is_next: bool) {
        let mut held = lock(&self.held);
        if is_next {
            held.candidate = None;
            held.queue.push_front(Arc::clone(slot));
        } else {
            held.queue.push_back(Arc::clone(slot));
        }
        self.has_held.store(true, Ordering::Relaxed);
    }

    /// Takes the connection that has waited longest, which is the candidate until it [has decided](Self::note_decided), if
    /// there may be room for its call and there is no other candidate. The lock orders this behind what a connection finds that begins to wait.
    pub(super) fn next(&self) -> Option<Arc<SocketSlot>> {
        let mut held = lock(&self.held);
        if held.candidate.is_none() && self.has(0, true) {
            held.candidate = held.queue.pop_front();
            self.note_held(&held);
            return held.candidate.clone();
        }
        None
    }

    /// Notes that a connection has decided, or is over, if it was the one that looks. The next one is to look then.
    pub(super) fn note_decided(&self, slot: &Arc<SocketSlot>) {
        if !self.has_held.load(Ordering::Relaxed) {
            return;
        }
        let mut held = lock(&self.held);
        let candidate = held.candidate.as_ref();
        if candidate.is_some_and(|candidate| Arc::ptr_eq(candidate, slot)) {
            held.candidate = None;
            self.note_held(&held);
        }
    }

    fn note_held(&self, held: &HeldConnections) {
        let has_held = held.candidate.is_some() || !held.queue.is_empty();
        self.has_held.store(has_held, Ordering::Relaxed);
    }
}

//! The latest events of the store, from which watchers are told.

use std::collections::VecDeque;

use crate::store::{Removal, RevisionTooOld, StoreEvent};

/// Keeps the latest events in memory, for all watchers together.
///
/// A watcher is a revision up to which its caller was told. So a slow watcher costs no memory and holds nothing up:
/// when it is so late that the log has dropped what it has not seen, it ends with [`RevisionTooOld`].
#[derive(Debug)]
pub struct EventLog {
    /// Puts and removals, in the order of their revisions.
    events: VecDeque<StoreEvent>,
    events_max: usize,
    /// The latest revision of which the event was dropped, or happened before the server was started.
    dropped: u64,
}

impl EventLog {
    /// Makes an empty log behind revision `dropped`, which keeps so many events.
    pub fn new(dropped: u64, events_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            events_max,
            dropped,
        }
    }

    /// Adds an event, which has a higher revision than those before it.
    pub fn push(&mut self, event: StoreEvent) {
        self.events.push_back(event);
        while self.events.len() > self.events_max {
            if let Some(oldest) = self.events.pop_front() {
                self.dropped = revision_of(&oldest);
            }
        }
    }

    /// Returns the events behind revision `after`, up to `count` of those that are of objects whose names begin with
    /// `prefix`, and the revision up to which that is all.
    ///
    /// # Errors
    /// An event behind that revision was dropped.
    pub fn behind(
        &self,
        after: u64,
        prefix: &str,
        count: usize,
    ) -> Result<(Vec<StoreEvent>, u64), RevisionTooOld> {
        if after < self.dropped {
            return Err(RevisionTooOld {
                oldest: self.dropped,
            });
        }
        let begin = self
            .events
            .partition_point(|event| revision_of(event) <= after);
        let (mut found, mut seen) = (Vec::new(), after);
        for event in self.events.range(begin..) {
            if found.len() == count {
                break;
            }
            seen = revision_of(event);
            if name_of(event).starts_with(prefix) {
                found.push(event.clone());
            }
        }
        Ok((found, seen))
    }
}

/// Returns the revision of an event.
pub fn revision_of(event: &StoreEvent) -> u64 {
    match event {
        StoreEvent::Present(object) | StoreEvent::Put(object) => object.revision,
        StoreEvent::Removed(Removal { revision, .. }) | StoreEvent::UpToDate(revision) => *revision,
    }
}

/// Returns the name of the object of an event.
fn name_of(event: &StoreEvent) -> &str {
    match event {
        StoreEvent::Present(object) | StoreEvent::Put(object) => &object.name,
        StoreEvent::Removed(Removal { name, .. }) => name,
        StoreEvent::UpToDate(_) => "",
    }
}

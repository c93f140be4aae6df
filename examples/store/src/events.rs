//! The latest events of the store, from which watchers are told.

use std::collections::VecDeque;

use crate::store::{Removal, StoreEvent, VersionTooOld};

/// Keeps the latest events in memory, for all watchers together.
///
/// A watcher is a version up to which its caller was told. So a slow watcher costs no memory and holds nothing up: when it
/// is so late that the log has dropped what it has not seen, it ends with [`VersionTooOld`].
#[derive(Debug)]
pub struct EventLog {
    /// Puts and removals, in the order of their versions.
    events: VecDeque<StoreEvent>,
    events_max: usize,
    /// The latest version of which the event was dropped, or happened before the server was started.
    dropped: u64,
}

impl EventLog {
    /// Makes an empty log behind version `dropped`, which keeps so many events.
    pub fn new(dropped: u64, events_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            events_max,
            dropped,
        }
    }

    /// Adds an event, which has a higher version than those before it.
    pub fn push(&mut self, event: StoreEvent) {
        self.events.push_back(event);
        while self.events.len() > self.events_max {
            if let Some(oldest) = self.events.pop_front() {
                self.dropped = version_of(&oldest);
            }
        }
    }

    /// Returns the events behind version `after`, up to `count` of those that are of objects whose names begin with
    /// `prefix`, and the version up to which that is all.
    ///
    /// # Errors
    /// An event behind that version was dropped.
    pub fn behind(
        &self,
        after: u64,
        prefix: &str,
        count: usize,
    ) -> Result<(Vec<StoreEvent>, u64), VersionTooOld> {
        if after < self.dropped {
            return Err(VersionTooOld {
                oldest: self.dropped,
            });
        }
        let begin = self
            .events
            .partition_point(|event| version_of(event) <= after);
        let (mut found, mut seen) = (Vec::new(), after);
        for event in self.events.range(begin..) {
            if found.len() == count {
                break;
            }
            seen = version_of(event);
            if name_of(event).starts_with(prefix) {
                found.push(event.clone());
            }
        }
        Ok((found, seen))
    }
}

/// Returns the version of an event.
pub fn version_of(event: &StoreEvent) -> u64 {
    match event {
        StoreEvent::Present(object) | StoreEvent::Put(object) => object.version,
        StoreEvent::Removed(Removal { version, .. }) | StoreEvent::UpToDate(version) => *version,
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

//! The key-value store behind `kv-server`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon::{CallInfo, Refusal};

use crate::journal::{Journal, JournalError};
use crate::kv::{Change, ChangeResult, Entry, Found, KEY_MAX, Keys, KvV1, PAGE_MAX};

/// A key-value store whose changes are in a journal.
pub struct Store(Mutex<Table>);

struct Table {
    entries: BTreeMap<String, Entry>,
    last: u64,
    journal: Journal,
}

impl Store {
    /// Opens the store whose journal is at `path`. With `sync` every change waits for the disk.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(path: &Path, sync: bool) -> Result<Self, JournalError> {
        let mut entries = BTreeMap::new();
        let mut last = 0;
        let journal = Journal::open(path, sync, |change: Change| {
            last = change.revision;
            apply(&mut entries, change);
        })?;
        Ok(Self(Mutex::new(Table {
            entries,
            last,
            journal,
        })))
    }

    /// Locks the table. A handler that panicked has left it in order: a change is one step.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn revision_of(&self, key: &str) -> u64 {
        self.entries.get(key).map_or(0, |entry| entry.revision)
    }

    /// Sets a key, or removes it, and returns the revision.
    fn change(&mut self, key: String, value: Option<Vec<u8>>) -> Result<u64, JournalError> {
        let change = Change {
            key,
            revision: self.last + 1,
            value,
        };
        self.journal.append(&change)?;
        self.last = change.revision;
        apply(&mut self.entries, change);
        Ok(self.last)
    }
}

fn apply(entries: &mut BTreeMap<String, Entry>, change: Change) {
    let Change {
        key,
        revision,
        value,
    } = change;
    match value {
        Some(value) => {
            let entry = Entry {
                key: key.clone(),
                value,
                revision,
            };
            entries.insert(key, entry);
        }
        None => {
            entries.remove(&key);
        }
    }
}

/// Bounds of lengths are the interface's and are checked before a method is called; what else an argument has to be is
/// checked here.
fn check_key(key: &str) -> Result<(), Refusal> {
    if key.is_empty() {
        return Err(Refusal::InvalidArguments(format!(
            "a key has 1 to {KEY_MAX} bytes, not 0"
        )));
    }
    Ok(())
}

impl KvV1 for Store {
    fn get(&self, _call: &CallInfo<'_>, key: String) -> Result<Found, Refusal> {
        Ok(self.table().entries.get(&key).cloned())
    }

    fn put(&self, _call: &CallInfo<'_>, key: String, value: Vec<u8>) -> Result<u64, Refusal> {
        check_key(&key)?;
        Ok(self.table().change(key, Some(value))?)
    }

    fn put_if(
        &self,
        _call: &CallInfo<'_>,
        key: String,
        value: Vec<u8>,
        expected: u64,
    ) -> Result<ChangeResult, Refusal> {
        check_key(&key)?;
        let mut table = self.table();
        let current = table.revision_of(&key);
        if current != expected {
            return Ok(ChangeResult::Conflict(current));
        }
        Ok(ChangeResult::Changed(table.change(key, Some(value))?))
    }

    fn remove(&self, _call: &CallInfo<'_>, key: String) -> Result<bool, Refusal> {
        let mut table = self.table();
        let is_there = table.entries.contains_key(&key);
        if is_there {
            table.change(key, None)?;
        }
        Ok(is_there)
    }

    fn list(&self, _call: &CallInfo<'_>, after: String) -> Result<Keys, Refusal> {
        let table = self.table();
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let keys = table.entries.range(behind).map(|(key, _)| key.clone());
        Ok(keys.take(PAGE_MAX as usize).collect())
    }
}

//! A directory: names and the files behind them, in an order that survives changes.
//!
//! Each entry gets a *cookie* when it is made, larger than all before it, and keeps it. A reader
//! that goes on behind a cookie therefore sees every entry that stays exactly once, whatever is
//! made and removed meanwhile.

use std::collections::{BTreeMap, HashMap};

use tenon::wire::{BStr, BString};

use super::{FileId, NAME_MAX};

/// The cookie of `.`; `..` follows.
const COOKIE_CURRENT: u64 = 1;
const COOKIE_PARENT: u64 = 2;
/// What an entry costs: two tables with the longest name in each, so that no renaming needs more.
pub(super) const ENTRY_COST: u64 = 2 * NAME_MAX as u64 + 160;

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where to go on behind this entry.
    pub cookie: u64,
    /// The name.
    pub name: &'a BStr,
    /// The file.
    pub id: FileId,
}

/// The entries of a directory. `.` and `..` are not stored.
#[derive(Debug)]
pub(super) struct Directory {
    pub parent: FileId,
    last_cookie: u64,
    cookies: HashMap<BString, u64>,
    entries: BTreeMap<u64, (BString, FileId)>,
}

impl Directory {
    pub fn new(parent: FileId) -> Self {
        Self {
            parent,
            last_cookie: COOKIE_PARENT,
            cookies: HashMap::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Names in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, name: &BStr) -> Option<FileId> {
        let cookie = self.cookies.get(name)?;
        Some(self.entries.get(cookie)?.1)
    }

    /// Adds a name that is not there.
    pub fn insert(&mut self, name: &BStr, id: FileId) {
        debug_assert!(self.get(name).is_none(), "{name} is there already");
        self.last_cookie += 1;
        self.cookies.insert(name.to_owned(), self.last_cookie);
        self.entries.insert(self.last_cookie, (name.to_owned(), id));
    }

    pub fn remove(&mut self, name: &BStr) {
        if let Some(cookie) = self.cookies.remove(name) {
            self.entries.remove(&cookie);
        }
    }

    /// The entries behind `cookie`, in order; 0 is the beginning. `own` is this directory.
    pub fn entries_behind(&self, cookie: u64, own: FileId) -> impl Iterator<Item = Entry<'_>> {
        let dots = [
            entry(COOKIE_CURRENT, BStr::new("."), own),
            entry(COOKIE_PARENT, BStr::new(".."), self.parent),
        ];
        let dots = dots.into_iter().filter(move |dot| dot.cookie > cookie);
        let stored = self.entries.range(cookie.saturating_add(1)..);
        let others = stored.map(|(cookie, (name, id))| entry(*cookie, name.as_ref(), *id));
        dots.chain(others)
    }
}

fn entry(cookie: u64, name: &BStr, id: FileId) -> Entry<'_> {
    Entry { cookie, name, id }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Directory, cookie: u64) -> Vec<String> {
        let entries = directory.entries_behind(cookie, FileId(1));
        entries.map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn cookies_survive_changes() {
        let mut directory = Directory::new(FileId(1));
        for name in ["a", "b", "c"] {
            directory.insert(BStr::new(name), FileId(2));
        }
        assert_eq!(names(&directory, 0), [".", "..", "a", "b", "c"]);
        let behind_a = directory
            .entries_behind(0, FileId(1))
            .nth(2)
            .unwrap()
            .cookie;
        directory.remove(BStr::new("a"));
        directory.remove(BStr::new("b"));
        directory.insert(BStr::new("a"), FileId(3));
        assert_eq!(names(&directory, behind_a), ["c", "a"]);
        assert_eq!(names(&directory, u64::MAX), [""; 0]);
    }
}

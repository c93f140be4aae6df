//! The store itself: objects as files in a folder.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenon::Refusal;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::events::{EventLog, revision_of};
use crate::store::{
    InvalidName, InvalidOffset, NoSuchObject, Object, ObjectPage, ObjectTooLarge, Removal,
    STORE_CHUNK_MAX, STORE_NAME_MAX, STORE_PAGE_MAX, StoreEvent, StoreStopping, StoreV1GetError,
    StoreV1PutError, StoreV1RemoveError, StoreV1WatchError,
};

/// Bytes of a name's length, in front of the name and the bytes of the object.
const LENGTH_BYTES: usize = 4;

/// Events that a watcher is told together.
const EVENTS_TOGETHER: usize = 100;

/// The suffix of the file of the latest removal.
const REMOVED: &str = ".removed";

/// The suffix of the files of puts that are not complete.
const PARTIAL: &str = ".partial";

/// Objects in a folder, each a file that is called as its revision and begins with its name.
///
/// A put writes a file of its own, which is renamed when it is complete: that is when the object is there. The file of
/// an object never changes, so a get reads the same revision to its end whatever happens meanwhile.
#[derive(Debug)]
pub struct ObjectStore {
    folder: PathBuf,
    size_max: u64,
    state: Mutex<State>,
    /// Told of each change, and of the end: threads wait for one, tasks for the other.
    changed: Condvar,
    changed_async: Notify,
    /// Locked for as long as a server uses the folder.
    _lock: File,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<String, Object>,
    /// The revision of the latest change.
    revision: u64,
    /// The revision of the latest removal.
    marker: Option<u64>,
    /// The number of the latest put that was begun.
    puts: u64,
    events: EventLog,
    is_stopping: bool,
}

/// A failure of the store that no caller is to blame for.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read or written.
    #[error("cannot access {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("another server uses {path}")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
}

impl FolderError {
    fn new(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}

impl ObjectStore {
    /// Opens the store in a folder, which is made if it is not there. An object may have up to `size_max` bytes, and
    /// the latest `events_max` events are kept for watchers.
    ///
    /// # Errors
    /// The folder is in use by another server, or cannot be read.
    pub fn open(
        folder: PathBuf,
        size_max: u64,
        events_max: usize,
    ) -> Result<Arc<Self>, FolderError> {
        let failed = |source| FolderError::new(&folder, source);
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse { path: folder }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let Scanned {
            objects,
            revision,
            marker,
        } = scan(&folder)?;
        let state = State {
            objects,
            revision,
            marker,
            puts: 0,
            events: EventLog::new(revision, events_max),
            is_stopping: false,
        };
        Ok(Arc::new(Self {
            folder,
            size_max,
            state: Mutex::new(state),
            changed: Condvar::new(),
            changed_async: Notify::new(),
            _lock: lock,
        }))
    }

    /// Locks the state. A handler that panicked has left it in order: a change is one step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, revision: u64) -> PathBuf {
        self.folder.join(revision.to_string())
    }

    fn marker_of(&self, revision: u64) -> PathBuf {
        self.folder.join(format!("{revision}{REMOVED}"))
    }

    /// Begins to put an object. It is there once it is [committed](PendingObject::commit).
    ///
    /// # Errors
    /// No object can have this name; the file cannot be made.
    pub fn begin_put(
        self: &Arc<Self>,
        name: String,
    ) -> Result<PendingObject, StoreV1PutError<Refusal>> {
        check_name(&name)?;
        let put = {
            let mut state = self.state();
            state.puts += 1;
            state.puts
        };
        let path = self.folder.join(format!("{put}{PARTIAL}"));
        let file = File::create_new(&path).map_err(|source| FolderError::new(&path, source))?;
        let mut pending = PendingObject {
            store: Arc::clone(self),
            name,
            size: 0,
            path,
            file,
        };
        let length = (pending.name.len() as u32).to_be_bytes();
        let header = [&length[..], pending.name.as_bytes()].concat();
        pending.write_bytes(&header)?;
        Ok(pending)
    }

    /// Begins to read an object from `offset` on.
    ///
    /// # Errors
    /// There is no such object, or it is shorter; its file cannot be read.
    pub fn begin_get(
        &self,
        name: String,
        offset: u64,
    ) -> Result<ObjectReader, StoreV1GetError<Refusal>> {
        // Opened under the lock: a file that is open is not replaced or removed for its reader.
        let state = self.state();
        let Some(object) = state.objects.get(&name) else {
            return Err(NoSuchObject { name }.into());
        };
        if offset > object.size {
            return Err(InvalidOffset { size: object.size }.into());
        }
        let path = self.path_of(object.revision);
        let file = File::open(&path).map_err(|source| FolderError::new(&path, source))?;
        let begin = (LENGTH_BYTES + name.len()) as u64;
        Ok(ObjectReader {
            file,
            offset: begin + offset,
            end: begin + object.size,
        })
    }

    /// Returns a page of the objects whose names begin with `prefix`, behind the name `cursor`.
    pub fn list(&self, prefix: &str, cursor: Option<&str>) -> ObjectPage {
        let begin = match cursor {
            Some(cursor) if cursor >= prefix => Bound::Excluded(cursor),
            _ => Bound::Included(prefix),
        };
        let state = self.state();
        let mut found = (state.objects)
            .range::<str, _>((begin, Bound::Unbounded))
            .map(|(_, object)| object)
            .take_while(|object| object.name.starts_with(prefix));
        let objects: Vec<Object> = found
            .by_ref()
            .take(STORE_PAGE_MAX as usize)
            .cloned()
            .collect();
        let has_more = found.next().is_some();
        let next = objects.last().filter(|_| has_more);
        let next = next.map(|object| object.name.clone());
        ObjectPage { objects, next }
    }

    /// Removes an object, and returns the revision of that change.
    ///
    /// # Errors
    /// There is no such object; the folder cannot be changed.
    pub fn remove(&self, name: String) -> Result<u64, StoreV1RemoveError<Refusal>> {
        let mut state = self.state();
        let Some(object) = state.objects.get(&name) else {
            return Err(NoSuchObject { name }.into());
        };
        let removed = object.revision;
        let revision = state.revision + 1;
        // What keeps the revision from being given again after a restart. The latest marker is enough.
        let marker = self.marker_of(revision);
        File::create(&marker).map_err(|source| FolderError::new(&marker, source))?;
        let path = self.path_of(removed);
        fs::remove_file(&path).map_err(|source| FolderError::new(&path, source))?;
        if let Some(older) = state.marker.replace(revision) {
            delete(&self.marker_of(older));
        }
        state.revision = revision;
        state.objects.remove(&name);
        let removal = Removal { name, revision };
        state.events.push(StoreEvent::Removed(removal));
        drop(state);
        self.notify();
        Ok(revision)
    }

    /// Begins to watch the objects whose names begin with `prefix`: behind revision `after`, or with the present state.
    ///
    /// # Errors
    /// The events behind that revision are not kept any more, or there is no such revision yet.
    pub fn watch(
        &self,
        prefix: String,
        after: Option<u64>,
    ) -> Result<Watcher, StoreV1WatchError<Refusal>> {
        let state = self.state();
        let (first, seen) = match after {
            Some(after) if after > state.revision => {
                let reason = format!("the latest revision is {}", state.revision);
                return Err(Refusal::InvalidArguments(reason).into());
            }
            Some(after) => {
                state.events.behind(after, &prefix, 0)?;
                (Vec::new(), after)
            }
            None => {
                let found = state
                    .objects
                    .range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
                let found = found.take_while(|(name, _)| name.starts_with(&*prefix));
                let present = found.map(|(_, object)| StoreEvent::Present(object.clone()));
                (present.collect(), state.revision)
            }
        };
        Ok(Watcher {
            prefix,
            first,
            seen,
            began_at: Some(state.revision),
        })
    }

    /// Returns what a watcher is to be told next; nothing if it has been told everything.
    ///
    /// # Errors
    /// The watcher is so late that events are not kept any more which it was not told; the server stops, and the
    /// watcher has been told everything.
    pub fn next_events(
        &self,
        watcher: &mut Watcher,
    ) -> Result<Vec<StoreEvent>, StoreV1WatchError<Refusal>> {
        if !watcher.first.is_empty() {
            return Ok(std::mem::take(&mut watcher.first));
        }
        let state = self.state();
        if let Some(revision) = watcher.began_at.take_if(|at| *at <= watcher.seen) {
            return Ok(vec![StoreEvent::UpToDate(revision)]);
        }
        let count = EVENTS_TOGETHER;
        let (mut found, seen) = state.events.behind(watcher.seen, &watcher.prefix, count)?;
        watcher.seen = seen;
        if let Some(revision) = watcher.began_at.take_if(|at| *at <= seen) {
            let behind = found.partition_point(|event| revision_of(event) <= revision);
            found.insert(behind, StoreEvent::UpToDate(revision));
        }
        if found.is_empty() && state.is_stopping {
            return Err(StoreStopping { revision: seen }.into());
        }
        Ok(found)
    }

    /// Waits, as a thread, until there are events that a watcher has not been told, or until the store stops; for as
    /// long as `limit`.
    pub fn wait_for_events(&self, watcher: &Watcher, limit: Duration) {
        let is_idle = |state: &mut State| state.revision <= watcher.seen && !state.is_stopping;
        let waited = (self.changed).wait_timeout_while(self.state(), limit, is_idle);
        drop(waited);
    }

    /// Returns a future that ends with the next change behind this call. A task that takes it before it looks for
    /// events misses none.
    pub fn changed(&self) -> Notified<'_> {
        self.changed_async.notified()
    }

    /// Ends all watchers, and those that begin later, so that none delays the shutdown of the server.
    pub fn stop_watchers(&self) {
        self.state().is_stopping = true;
        self.notify();
    }

    fn notify(&self) {
        self.changed.notify_all();
        self.changed_async.notify_waiters();
    }
}

/// Deletes a file that is not needed any more. If that fails, the next start does it.
fn delete(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "cannot delete a file");
    }
}

/// An object that is being put. Dropping it before it is committed leaves nothing of it.
#[derive(Debug)]
pub struct PendingObject {
    store: Arc<ObjectStore>,
    name: String,
    size: u64,
    path: PathBuf,
    file: File,
}

impl PendingObject {
    /// Adds a chunk.
    ///
    /// # Errors
    /// The object is too large now; the file cannot be written.
    pub fn write(&mut self, chunk: &[u8]) -> Result<(), StoreV1PutError<Refusal>> {
        let size = self.size + chunk.len() as u64;
        let size_max = self.store.size_max;
        if size > size_max {
            return Err(ObjectTooLarge { size_max }.into());
        }
        self.write_bytes(chunk)?;
        self.size = size;
        Ok(())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), FolderError> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| FolderError::new(&self.path, source))
    }

    /// Puts the object into the place of the one that had its name.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn commit(self) -> Result<Object, FolderError> {
        let store = &self.store;
        let mut state = store.state();
        let revision = state.revision + 1;
        fs::rename(&self.path, store.path_of(revision))
            .map_err(|source| FolderError::new(&self.path, source))?;
        state.revision = revision;
        let object = Object {
            name: self.name.clone(),
            size: self.size,
            revision,
        };
        let replaced = state.objects.insert(object.name.clone(), object.clone());
        state.events.push(StoreEvent::Put(object.clone()));
        drop(state);
        store.notify();
        if let Some(replaced) = replaced {
            delete(&store.path_of(replaced.revision));
        }
        Ok(object)
    }
}

impl Drop for PendingObject {
    /// Deletes the file, unless it has been renamed. If that fails, the next start does it.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads an object.
#[derive(Debug)]
pub struct ObjectReader {
    file: File,
    offset: u64,
    end: u64,
}

impl ObjectReader {
    /// Reads the next chunk; `None` at the end of the object.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let count = (self.end - self.offset).min(STORE_CHUNK_MAX.into());
        if count == 0 {
            return Ok(None);
        }
        let mut chunk = vec![0; count as usize];
        self.file.read_exact_at(&mut chunk, self.offset)?;
        self.offset += count;
        Ok(Some(chunk))
    }
}

/// The position of a caller that watches.
#[derive(Debug)]
pub struct Watcher {
    prefix: String,
    /// Objects that were there when the watch began.
    first: Vec<StoreEvent>,
    /// The revision up to which the caller was told.
    seen: u64,
    /// The revision at which the watch began, until the caller was told all up to it.
    began_at: Option<u64>,
}

fn check_name(name: &str) -> Result<(), InvalidName> {
    let reason = if name.is_empty() {
        "the name of an object is not empty"
    } else if name.chars().any(char::is_control) {
        "the name of an object has no control characters"
    } else {
        return Ok(());
    };
    Err(InvalidName {
        reason: reason.to_owned(),
    })
}

/// What a folder has when a store is opened.
struct Scanned {
    objects: BTreeMap<String, Object>,
    /// The revision of the latest change.
    revision: u64,
    /// The revision of the latest removal whose marker is there.
    marker: Option<u64>,
}

/// Reads which objects a folder has. What was replaced, or not complete when the last server ended, is deleted.
fn scan(folder: &Path) -> Result<Scanned, FolderError> {
    let failed = |source| FolderError::new(folder, source);
    let mut objects: BTreeMap<String, Object> = BTreeMap::new();
    let (mut latest, mut marker, mut outdated) = (0, None, Vec::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if file_name.ends_with(PARTIAL) {
            outdated.push(path);
        } else if let Some(removed) = file_name.strip_suffix(REMOVED) {
            let removed: Option<u64> = removed.parse().ok();
            let older = marker.min(removed);
            marker = marker.max(removed);
            outdated.extend(older.map(|older| folder.join(format!("{older}{REMOVED}"))));
        } else if let Ok(revision) = file_name.parse() {
            let object = read_header(&path, revision);
            let object = object.map_err(|source| FolderError::new(&path, source))?;
            latest = latest.max(revision);
            let older = match objects.get(&object.name) {
                Some(newer) if newer.revision > revision => Some(object),
                _ => objects.insert(object.name.clone(), object),
            };
            outdated.extend(older.map(|older| folder.join(older.revision.to_string())));
        }
    }
    for path in outdated {
        fs::remove_file(&path).map_err(|source| FolderError::new(&path, source))?;
    }
    Ok(Scanned {
        objects,
        revision: marker.map_or(latest, |removed| removed.max(latest)),
        marker,
    })
}

fn read_header(path: &Path, revision: u64) -> io::Result<Object> {
    let mut file = File::open(path)?;
    let mut length = [0; LENGTH_BYTES];
    file.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length).min(STORE_NAME_MAX) as usize;
    let mut name = vec![0; length];
    file.read_exact(&mut name)?;
    let name = String::from_utf8(name)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let size = file.metadata()?.len() - (LENGTH_BYTES + length) as u64;
    Ok(Object {
        name,
        size,
        revision,
    })
}

//! The files behind `uploads-server`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon::{CallInfo, Refusal};

use crate::journal::{Journal, JournalError};
use crate::uploads::{
    CHUNK_MAX, FilePiece, FoundPiece, UploadEvent, UploadPosition, UploadRecord, UploadsV1,
};

/// A folder with a journal, and a file for each upload, called as its number: names of users are in the journal alone.
///
/// The bytes of an upload are in its file as soon as they are acknowledged, and the length of the file is the offset to
/// go on from. An upload is complete when the journal says so.
pub struct Folder {
    path: PathBuf,
    upload_max: u64,
    sync: bool,
    state: Mutex<State>,
}

struct State {
    /// Uploads that are not complete.
    open: HashMap<u64, Arc<Mutex<Upload>>>,
    /// The complete upload of each name.
    files: HashMap<String, u64>,
    last: u64,
    journal: Journal,
}

/// An upload that is not complete.
struct Upload {
    name: String,
    /// Its file, until the upload is complete.
    file: Option<File>,
    length: u64,
}

/// Why an upload fails that the client is not to blame for.
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
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Folder {
    /// Opens the folder at `path`, which exists. An upload may have up to `upload_max` bytes; with `sync` every change
    /// waits for the disk.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(path: PathBuf, upload_max: u64, sync: bool) -> Result<Self, FolderError> {
        let (mut begun, mut files, mut last) = (HashMap::new(), HashMap::new(), 0);
        let journal = Journal::open(&path.join("journal"), sync, |record: UploadRecord| {
            let UploadRecord { id, event, name } = record;
            last = last.max(id);
            match event {
                UploadEvent::Begun => {
                    begun.insert(id, name);
                }
                UploadEvent::Completed => {
                    begun.remove(&id);
                    files.insert(name, id);
                }
                UploadEvent::Removed => {
                    files.remove(&name);
                }
            }
        })?;
        let mut folder = Self {
            path,
            upload_max,
            sync,
            state: Mutex::new(State {
                open: HashMap::new(),
                files,
                last,
                journal,
            }),
        };
        let open = begun.into_iter().map(|(id, name)| {
            let upload = folder.open_upload(id, name)?;
            Ok((id, Arc::new(Mutex::new(upload))))
        });
        let open = open.collect::<Result<_, FolderError>>()?;
        lock(folder.state.get_mut()).open = open;
        Ok(folder)
    }

    /// Opens the file of an upload that is not complete, or makes it.
    fn open_upload(&self, id: u64, name: String) -> Result<Upload, FolderError> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(self.file_of(id));
        let opened = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|source| self.failed(id, source))?;
        Ok(Upload {
            name,
            file: Some(file),
            length,
        })
    }

    fn file_of(&self, id: u64) -> PathBuf {
        self.path.join(id.to_string())
    }

    fn failed(&self, id: u64, source: io::Error) -> FolderError {
        FolderError::File {
            path: self.file_of(id),
            source,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(&self, id: u64) -> Option<Arc<Mutex<Upload>>> {
        self.state().open.get(&id).cloned()
    }

    /// Adds `chunk` to an upload, if it belongs at its end.
    fn add(
        &self,
        id: u64,
        upload: &mut Upload,
        offset: u64,
        chunk: &[u8],
    ) -> Result<UploadPosition, FolderError> {
        let Some(file) = &upload.file else {
            return Ok(UploadPosition::Unknown);
        };
        if offset != upload.length {
            return Ok(UploadPosition::Offset(upload.length));
        }
        let end = upload.length + chunk.len() as u64;
        if end > self.upload_max {
            return Ok(UploadPosition::Full);
        }
        file.write_all_at(chunk, offset)
            .map_err(|source| self.failed(id, source))?;
        upload.length = end;
        Ok(UploadPosition::Ok(end))
    }

    /// Completes an upload that has `size` bytes. The file that had its name before is removed.
    fn complete(
        &self,
        id: u64,
        upload: &mut Upload,
        size: u64,
    ) -> Result<UploadPosition, FolderError> {
        let Some(file) = &upload.file else {
            return Ok(UploadPosition::Unknown);
        };
        if size != upload.length {
            return Ok(UploadPosition::Offset(upload.length));
        }
        if self.sync {
            let synced = file.sync_all();
            synced.map_err(|source| self.failed(id, source))?;
        }
        let mut state = self.state();
        let name = upload.name.clone();
        state.journal.append(&UploadRecord {
            id,
            event: UploadEvent::Completed,
            name: name.clone(),
        })?;
        upload.file = None;
        state.open.remove(&id);
        if let Some(replaced) = state.files.insert(name, id) {
            self.delete(replaced);
        }
        Ok(UploadPosition::Ok(size))
    }

    /// Deletes the file of an upload that has no name any more. If that fails, it takes room and is never read again.
    fn delete(&self, id: u64) {
        let _ = fs::remove_file(self.file_of(id));
    }

    /// Opens the complete file called `name`, under the lock, so that it is not replaced in between.
    fn open_file(&self, name: &str) -> Result<Option<(u64, File)>, FolderError> {
        let state = self.state();
        let Some(id) = state.files.get(name).copied() else {
            return Ok(None);
        };
        let file = File::open(self.file_of(id)).map_err(|source| self.failed(id, source))?;
        Ok(Some((id, file)))
    }

    fn read_piece(
        &self,
        id: u64,
        file: &File,
        offset: u64,
        count: u32,
    ) -> Result<FilePiece, FolderError> {
        let read = || {
            let size = file.metadata()?.len();
            let count = u64::from(count.min(CHUNK_MAX)).min(size.saturating_sub(offset));
            let mut bytes = vec![0; count as usize];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(FilePiece { size, bytes })
        };
        read().map_err(|source| self.failed(id, source))
    }
}

impl UploadsV1 for Folder {
    fn begin(&self, _call: &CallInfo<'_>, name: String) -> Result<u64, Refusal> {
        if name.is_empty() {
            return Err(Refusal::InvalidArguments("a file has a name".to_owned()));
        }
        let mut state = self.state();
        let id = state.last + 1;
        let upload = self.open_upload(id, name.clone())?;
        state.journal.append(&UploadRecord {
            id,
            event: UploadEvent::Begun,
            name,
        })?;
        state.last = id;
        state.open.insert(id, Arc::new(Mutex::new(upload)));
        Ok(id)
    }

    fn write(
        &self,
        _call: &CallInfo<'_>,
        id: u64,
        offset: u64,
        chunk: Vec<u8>,
    ) -> Result<UploadPosition, Refusal> {
        let Some(upload) = self.upload(id) else {
            return Ok(UploadPosition::Unknown);
        };
        let mut upload = lock(upload.lock());
        Ok(self.add(id, &mut upload, offset, &chunk)?)
    }

    fn position(&self, _call: &CallInfo<'_>, id: u64) -> Result<UploadPosition, Refusal> {
        Ok(match self.upload(id) {
            Some(upload) => UploadPosition::Ok(lock(upload.lock()).length),
            None => UploadPosition::Unknown,
        })
    }

    fn finish(&self, _call: &CallInfo<'_>, id: u64, size: u64) -> Result<UploadPosition, Refusal> {
        let Some(upload) = self.upload(id) else {
            return Ok(UploadPosition::Unknown);
        };
        let mut upload = lock(upload.lock());
        Ok(self.complete(id, &mut upload, size)?)
    }

    fn read(
        &self,
        _call: &CallInfo<'_>,
        name: String,
        offset: u64,
        count: u32,
    ) -> Result<FoundPiece, Refusal> {
        let Some((id, file)) = self.open_file(&name)? else {
            return Ok(None);
        };
        Ok(Some(self.read_piece(id, &file, offset, count)?))
    }

    fn remove(&self, _call: &CallInfo<'_>, name: String) -> Result<bool, Refusal> {
        let mut state = self.state();
        let Some(id) = state.files.get(&name).copied() else {
            return Ok(false);
        };
        state.journal.append(&UploadRecord {
            id,
            event: UploadEvent::Removed,
            name: name.clone(),
        })?;
        state.files.remove(&name);
        self.delete(id);
        Ok(true)
    }
}

/// Returns what a lock guards. A handler that panicked has left it in order: a change is one step.
fn lock<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

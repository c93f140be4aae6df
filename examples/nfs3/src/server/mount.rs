//! The procedures of MOUNT (RFC 1813 appendix I): from a path to the handle of its directory.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon::wire::{BString, ByteSlice};
use tenon::{CallInfo, Refusal};

use super::SharedFs;
use crate::fs::{FileId, FileKind, FileSystem, FsError};
use crate::protocol::mount3::*;

/// Mounts that are remembered, at most: they are for the eyes of an operator, and nothing hangs on
/// them.
const MOUNTS_MAX: usize = 1024;

/// The authentication flavors that NFS accepts: AUTH_SYS and AUTH_NONE.
const FLAVORS: [i32; 2] = [1, 0];

/// One exported directory, the root of the file system, under a path that callers know it by.
/// Directories below it may be mounted too.
#[derive(Debug)]
pub struct Export {
    fs: SharedFs,
    path: BString,
    mounts: Mutex<BTreeSet<Mount>>,
}

/// The path is none under which a directory can be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path to export: it must start with `/` and have at most {MNTPATHLEN} bytes")]
pub struct ExportError(String);

/// Who mounted which path.
type Mount = (String, BString);

impl Export {
    /// Exports the root of `fs` as `path`.
    ///
    /// # Errors
    /// The path does not start with `/` or is too long for the protocol.
    pub fn new(fs: SharedFs, path: &str) -> Result<Self, ExportError> {
        if !path.starts_with('/') || path.len() > MNTPATHLEN as usize {
            return Err(ExportError(path.to_owned()));
        }
        Ok(Self {
            fs,
            path: path.trim_end_matches('/').into(),
            mounts: Mutex::default(),
        })
    }

    /// The directory that callers know as `path`.
    fn find(&self, fs: &FileSystem, path: &[u8]) -> Result<FileId, FsError> {
        let below = path.strip_prefix(self.path.as_slice());
        let below = below.ok_or(FsError::NoEntry)?;
        if !below.is_empty() && !below.starts_with(b"/") {
            return Err(FsError::NoEntry);
        }
        let names = below.split_str("/").filter(|name| !name.is_empty());
        let mut id = fs.root();
        for name in names {
            id = fs.lookup(id, name)?;
        }
        match fs.attributes(id)?.kind {
            FileKind::Directory => Ok(id),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn mounts(&self) -> MutexGuard<'_, BTreeSet<Mount>> {
        self.mounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, mount: Mount) {
        let mut mounts = self.mounts();
        if mounts.len() < MOUNTS_MAX {
            mounts.insert(mount);
        }
    }
}

impl MountV3 for Export {
    fn mnt(&self, call: &CallInfo<'_>, path: Dirpath) -> Result<Mountres3, Refusal> {
        let fs = self.fs.read();
        Ok(match self.find(&fs, &path) {
            Ok(id) => {
                self.remember((host(call), path));
                Mountres3::Ok(Mountres3Ok {
                    fhandle: fs.handle(id).to_bytes().to_vec(),
                    auth_flavors: FLAVORS.to_vec(),
                })
            }
            Err(error) => Mountres3::Default(status(error)),
        })
    }

    fn dump(&self, _: &CallInfo<'_>) -> Result<Mountlist, Refusal> {
        let mounts = self.mounts();
        let bodies = mounts.iter().map(|(host, path)| Mountbody {
            ml_hostname: host.as_str().into(),
            ml_directory: path.clone(),
        });
        Ok(bodies.collect())
    }

    fn umnt(&self, call: &CallInfo<'_>, path: Dirpath) -> Result<(), Refusal> {
        self.mounts().remove(&(host(call), path));
        Ok(())
    }

    fn umntall(&self, call: &CallInfo<'_>) -> Result<(), Refusal> {
        let caller = host(call);
        self.mounts().retain(|(host, _)| *host != caller);
        Ok(())
    }

    fn export(&self, _: &CallInfo<'_>) -> Result<Exports, Refusal> {
        let path = match self.path.is_empty() {
            true => "/".into(),
            false => self.path.clone(),
        };
        Ok(vec![Exportnode {
            ex_dir: path,
            ex_groups: Vec::new(),
        }])
    }
}

/// The caller's host.
fn host(call: &CallInfo<'_>) -> String {
    match call.peer().address {
        Some(peer) => peer.ip().to_string(),
        None => "localhost".to_owned(),
    }
}

fn status(error: FsError) -> Mountstat3 {
    match error {
        FsError::NoEntry => Mountstat3::ErrNoent,
        FsError::NotDirectory => Mountstat3::ErrNotdir,
        FsError::NameTooLong => Mountstat3::ErrNametoolong,
        FsError::BadName => Mountstat3::ErrAcces,
        _ => Mountstat3::ErrServerfault,
    }
}

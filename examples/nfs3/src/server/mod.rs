//! The server: the procedures of NFS and MOUNT, version 3, over one [`FileSystem`].
//!
//! * `nfs`: the procedures of NFS; `listing` fits directories into replies of limited size.
//! * `mount`: the procedures of MOUNT.
//! * `convert`: between the types of the protocol and those of the file system.
//!
//! Any number of readers or one writer are in the file system at a time. Everybody may do
//! everything: an AUTH_SYS credential decides only who owns what its caller makes.

mod convert;
mod listing;
mod mount;
mod nfs;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use mount::{Export, ExportError};
pub use nfs::Nfs;

use crate::fs::FileSystem;

/// The file system that both programs serve.
#[derive(Debug, Clone)]
pub struct SharedFs(Arc<RwLock<FileSystem>>);

impl SharedFs {
    /// Shares `fs` between services and their threads.
    pub fn new(fs: FileSystem) -> Self {
        Self(Arc::new(RwLock::new(fs)))
    }

    // A thread that panicked has lost its own change at most: each operation of the file system
    // checks first and changes afterwards.
    fn read(&self) -> RwLockReadGuard<'_, FileSystem> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, FileSystem> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A file system in memory: files, directories and symbolic links, hard links among them, within a
//! limit of memory. It knows nothing of RPC, of locks or of permissions: a client that may call it may do
//! everything, and modes and owners are only kept.
//!
//! Files are named by [`FileId`]; [`FileSystem::resolve`] makes one out of a handle that came from
//! outside. An id whose file is gone is [`FsError::Stale`] everywhere, and nothing here panics.

mod attributes;
mod contents;
mod directory;
mod error;
mod files;
mod handle;
mod name;
mod node;
mod space;
mod tree;

use std::collections::HashMap;

pub use attributes::{Attributes, FileId, FileKind, MODE_MASK, SetAttributes, SetTime, Time};
pub use contents::FILE_SIZE_MAX;
pub use directory::Entry;
pub use error::FsError;
pub use files::Data;
pub use handle::{HANDLE_BYTES, Handle};
pub use name::{NAME_MAX, Name};
pub use space::Space;
pub use tree::{Create, LINKS_MAX, TARGET_MAX};

use attributes::Inode;
use directory::Directory;
use node::{Body, NODE_COST, Node};

const ROOT: FileId = FileId(1);

/// One file system, from its start to its end.
#[derive(Debug)]
pub struct FileSystem {
    instance: u64,
    space: Space,
    nodes: HashMap<FileId, Node>,
    last_id: FileId,
}

impl FileSystem {
    /// An empty root directory. `instance` tells this file system from its forerunners, whose
    /// handles are stale here; `memory_max` bounds the bytes that all files and names take.
    pub fn new(instance: u64, memory_max: u64) -> Self {
        let root = Node {
            inode: Inode::new(0o755, 2, &SetAttributes::default()),
            body: Body::Directory(Directory::new(ROOT)),
        };
        Self {
            instance,
            space: Space::new(memory_max),
            nodes: HashMap::from([(ROOT, root)]),
            last_id: ROOT,
        }
    }

    /// The directory that everything is in.
    pub fn root(&self) -> FileId {
        ROOT
    }

    /// What tells this file system from others.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// Memory in use and its limit.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Files that there are, and how many more there is room for.
    pub fn file_counts(&self) -> (u64, u64) {
        (self.nodes.len() as u64, self.space.free() / NODE_COST)
    }

    /// What callers may call the file later.
    pub fn handle(&self, id: FileId) -> Handle {
        Handle {
            instance: self.instance,
            id,
        }
    }

    /// The file that a handle names.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::Stale`].
    pub fn resolve(&self, handle: &[u8]) -> Result<FileId, FsError> {
        let handle = Handle::parse(handle)?;
        match handle.instance == self.instance && self.nodes.contains_key(&handle.id) {
            true => Ok(handle.id),
            false => Err(FsError::Stale),
        }
    }

    fn node(&self, id: FileId) -> Result<&Node, FsError> {
        self.nodes.get(&id).ok_or(FsError::Stale)
    }

    fn node_mut(&mut self, id: FileId) -> Result<&mut Node, FsError> {
        self.nodes.get_mut(&id).ok_or(FsError::Stale)
    }
}

#[cfg(test)]
mod tests;

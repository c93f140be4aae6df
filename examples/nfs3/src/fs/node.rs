//! One file of any kind: its stored attributes and what is in it.

use tenon::wire::BString;

use super::{
    Attributes, FileId, FileKind, FsError, attributes::Inode, contents::Contents,
    directory::Directory,
};

/// What a node costs beside what is in it.
pub(super) const NODE_COST: u64 = 256;
/// The size that a directory reports; nobody can use it for anything.
const DIRECTORY_SIZE: u64 = 4096;

#[derive(Debug)]
pub(super) struct Node {
    pub inode: Inode,
    pub body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Regular(Regular),
    Directory(Directory),
    Symlink(BString),
}

#[derive(Debug, Default)]
pub(super) struct Regular {
    pub contents: Contents,
    /// The caller's mark of the exclusive creation that made this file.
    pub verifier: Option<[u8; 8]>,
}

impl Node {
    pub fn attributes(&self, id: FileId) -> Attributes {
        let inode = &self.inode;
        let (kind, size, used) = self.body.measure();
        Attributes {
            id,
            kind,
            mode: inode.mode,
            links: inode.links,
            uid: inode.uid,
            gid: inode.gid,
            size,
            used,
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
        }
    }

    /// Bytes that the node and its contents cost; names in it have their own account.
    pub fn cost(&self) -> u64 {
        NODE_COST + self.body.cost()
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    pub fn directory(&self) -> Result<&Directory, FsError> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub fn directory_mut(&mut self) -> Result<&mut Directory, FsError> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub fn regular(&self) -> Result<&Regular, FsError> {
        match &self.body {
            Body::Regular(regular) => Ok(regular),
            other => Err(other.no_regular_file()),
        }
    }

    pub fn regular_mut(&mut self) -> Result<&mut Regular, FsError> {
        match &mut self.body {
            Body::Regular(regular) => Ok(regular),
            other => Err(other.no_regular_file()),
        }
    }
}

impl Body {
    /// Kind, bytes in it, bytes of memory.
    fn measure(&self) -> (FileKind, u64, u64) {
        match self {
            Self::Regular(file) => {
                let contents = &file.contents;
                (FileKind::Regular, contents.size(), contents.used())
            }
            Self::Directory(_) => (FileKind::Directory, DIRECTORY_SIZE, DIRECTORY_SIZE),
            Self::Symlink(target) => {
                let size = target.len() as u64;
                (FileKind::Symlink, size, size)
            }
        }
    }

    pub fn cost(&self) -> u64 {
        match self {
            Self::Regular(file) => file.contents.cost(),
            Self::Directory(_) => 0,
            Self::Symlink(target) => target.len() as u64,
        }
    }

    fn no_regular_file(&self) -> FsError {
        match self {
            Self::Directory(_) => FsError::IsDirectory,
            _ => FsError::Invalid,
        }
    }
}

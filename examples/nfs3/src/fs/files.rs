//! What concerns one file alone: its attributes and its bytes.

use tenon::wire::BString;

use super::{
    Attributes, FileId, FileSystem, FsError, SetAttributes, Time,
    node::{Body, Node},
    space::Space,
};

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The bytes, as many as were asked for or as there are.
    pub bytes: Vec<u8>,
    /// Whether the file ends behind them.
    pub end: bool,
}

impl FileSystem {
    /// What a file tells about itself.
    ///
    /// # Errors
    /// [`FsError::Stale`].
    pub fn attributes(&self, id: FileId) -> Result<Attributes, FsError> {
        Ok(self.node(id)?.attributes(id))
    }

    /// Sets attributes, all or none; with a `guard` only if the file has not changed since then.
    ///
    /// # Errors
    /// [`FsError::NotInStep`] if it has; [`FsError::IsDirectory`] and [`FsError::Invalid`] if a
    /// size is set and the file is not a regular one, or for a time that is none;
    /// [`FsError::TooLarge`].
    pub fn set_attributes(
        &mut self,
        id: FileId,
        set: &SetAttributes,
        guard: Option<Time>,
    ) -> Result<(), FsError> {
        set.check()?;
        let node = self.nodes.get_mut(&id).ok_or(FsError::Stale)?;
        if guard.is_some_and(|guard| guard != node.inode.changed) {
            return Err(FsError::NotInStep);
        }
        if let Some(size) = set.size {
            resize(node, size, &mut self.space)?;
        }
        node.inode.apply(set);
        Ok(())
    }

    /// At most `count` bytes of a regular file from `offset`.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`]; [`FsError::Invalid`] for a symbolic link.
    pub fn read(&self, id: FileId, offset: u64, count: usize) -> Result<Data, FsError> {
        let contents = &self.node(id)?.regular()?.contents;
        let bytes = contents.read(offset, count);
        let end = offset.saturating_add(bytes.len() as u64) >= contents.size();
        Ok(Data { bytes, end })
    }

    /// Puts `data` into a regular file at `offset`, all or nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`FsError::TooLarge`], [`FsError::NoSpace`].
    pub fn write(&mut self, id: FileId, offset: u64, data: &[u8]) -> Result<(), FsError> {
        let node = self.nodes.get_mut(&id).ok_or(FsError::Stale)?;
        let contents = &mut node.regular_mut()?.contents;
        contents.write(offset, data, &mut self.space)?;
        if !data.is_empty() {
            node.inode.touch();
        }
        Ok(())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`FsError::Invalid`] for any other file.
    pub fn read_link(&self, id: FileId) -> Result<&BString, FsError> {
        match &self.node(id)?.body {
            Body::Symlink(target) => Ok(target),
            _ => Err(FsError::Invalid),
        }
    }
}

fn resize(node: &mut Node, size: u64, space: &mut Space) -> Result<(), FsError> {
    node.regular_mut()?.contents.resize(size, space)?;
    node.inode.touch();
    Ok(())
}

//! What concerns names: looking up, listing, making, linking, renaming and removing.
//!
//! Each operation checks everything first and then changes: it succeeds or leaves all as it was.

use tenon::wire::{BStr, BString};

use super::{
    Entry, FileId, FileSystem, FsError, Name, SetAttributes,
    attributes::Inode,
    directory::{Directory, ENTRY_COST},
    node::{Body, Node, Regular},
};

/// Names that a file may have, at most.
pub const LINKS_MAX: u32 = 65_000;
/// Bytes in the target of a symbolic link, at most.
pub const TARGET_MAX: usize = 4096;

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
const SYMLINK_MODE: u32 = 0o777;

/// How a regular file is made, and what happens if the name is taken (RFC 1813 section 3.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// A regular file of that name is used; only a size is set.
    Unchecked(SetAttributes),
    /// It is an error.
    Guarded(SetAttributes),
    /// It is an error, unless the same verifier made the file: then this is a repetition.
    Exclusive([u8; 8], SetAttributes),
}

impl FileSystem {
    /// The file behind a name.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`], [`FsError::NoEntry`], [`FsError::BadName`],
    /// [`FsError::NameTooLong`].
    pub fn lookup(&self, dir: FileId, name: &[u8]) -> Result<FileId, FsError> {
        let directory = self.node(dir)?.directory()?;
        match Name::parse(name)? {
            Name::Current => Ok(dir),
            Name::Parent => Ok(directory.parent),
            Name::Other(name) => directory.get(name).ok_or(FsError::NoEntry),
        }
    }

    /// The entries behind `cookie`, `.` and `..` first; 0 is the beginning.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`].
    pub fn list(
        &self,
        dir: FileId,
        cookie: u64,
    ) -> Result<impl Iterator<Item = Entry<'_>>, FsError> {
        Ok(self.node(dir)?.directory()?.entries_behind(cookie, dir))
    }

    /// Makes a regular file.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`], [`FsError::TooLarge`], those of
    /// [`lookup`](Self::lookup).
    pub fn create(&mut self, dir: FileId, name: &[u8], how: Create) -> Result<FileId, FsError> {
        match self.lookup(dir, name) {
            Ok(existing) => self.create_again(existing, how),
            Err(FsError::NoEntry) => self.create_new(dir, name, how),
            Err(error) => Err(error),
        }
    }

    fn create_again(&mut self, id: FileId, how: Create) -> Result<FileId, FsError> {
        let file = self.node(id)?.regular().map_err(|_| FsError::Exists)?;
        match how {
            Create::Unchecked(set) if set.size.is_some() => {
                let size = set.size;
                let set = SetAttributes {
                    size,
                    ..Default::default()
                };
                self.set_attributes(id, &set, None)?;
            }
            Create::Unchecked(_) => {}
            Create::Exclusive(verifier, _) if file.verifier == Some(verifier) => {}
            Create::Guarded(_) | Create::Exclusive(..) => return Err(FsError::Exists),
        }
        Ok(id)
    }

    fn create_new(&mut self, dir: FileId, name: &[u8], how: Create) -> Result<FileId, FsError> {
        let (verifier, set) = match how {
            Create::Unchecked(set) | Create::Guarded(set) => (None, set),
            Create::Exclusive(verifier, set) => (Some(verifier), set),
        };
        let mut file = Regular {
            verifier,
            ..Default::default()
        };
        let size = set.size.unwrap_or(0);
        file.contents.resize(size, &mut self.space)?;
        self.make(dir, name, Body::Regular(file), &set)
    }

    /// Makes an empty directory.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`], [`FsError::Invalid`] if a size is set, those of
    /// [`lookup`](Self::lookup).
    pub fn make_directory(
        &mut self,
        dir: FileId,
        name: &[u8],
        set: &SetAttributes,
    ) -> Result<FileId, FsError> {
        self.make(dir, name, Body::Directory(Directory::new(dir)), set)
    }

    /// Makes a symbolic link; its target may be any bytes.
    ///
    /// # Errors
    /// As [`make_directory`](Self::make_directory); [`FsError::Invalid`] for a target that is empty
    /// or holds a zero, [`FsError::NameTooLong`] for one over [`TARGET_MAX`].
    pub fn make_symlink(
        &mut self,
        dir: FileId,
        name: &[u8],
        target: &[u8],
        set: &SetAttributes,
    ) -> Result<FileId, FsError> {
        if target.is_empty() || target.contains(&0) {
            return Err(FsError::Invalid);
        }
        if target.len() > TARGET_MAX {
            return Err(FsError::NameTooLong);
        }
        self.make(dir, name, Body::Symlink(BString::from(target)), set)
    }

    fn make(
        &mut self,
        dir: FileId,
        name: &[u8],
        body: Body,
        set: &SetAttributes,
    ) -> Result<FileId, FsError> {
        let name = self.vacant(dir, name)?;
        set.check()?;
        let node = new_node(body, set)?;
        self.space.take(ENTRY_COST + node.cost())?;
        self.last_id = FileId(self.last_id.0 + 1);
        let id = self.last_id;
        self.nodes.insert(id, node);
        self.attach(dir, name, id)?;
        Ok(id)
    }

    /// Gives a file that is not a directory another name.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`], [`FsError::Exists`], [`FsError::TooManyLinks`],
    /// [`FsError::NoSpace`], those of [`lookup`](Self::lookup).
    pub fn link(&mut self, id: FileId, dir: FileId, name: &[u8]) -> Result<(), FsError> {
        let node = self.node(id)?;
        if node.is_directory() {
            return Err(FsError::IsDirectory);
        }
        if node.inode.links >= LINKS_MAX {
            return Err(FsError::TooManyLinks);
        }
        let name = self.vacant(dir, name)?;
        self.space.take(ENTRY_COST)?;
        self.attach(dir, name, id)?;
        let inode = &mut self.node_mut(id)?.inode;
        inode.links += 1;
        inode.touch_attributes();
        Ok(())
    }

    /// Removes the name of a file that is not a directory, and with its last name the file.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`], those of [`lookup`](Self::lookup).
    pub fn remove(&mut self, dir: FileId, name: &[u8]) -> Result<(), FsError> {
        let (name, id) = self.occupied(dir, name)?;
        if self.node(id)?.is_directory() {
            return Err(FsError::IsDirectory);
        }
        self.unlink(dir, name, id)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`FsError::NotEmpty`], [`FsError::Invalid`] for `.` and `..`, those of
    /// [`lookup`](Self::lookup).
    pub fn remove_directory(&mut self, dir: FileId, name: &[u8]) -> Result<(), FsError> {
        let (name, id) = self.occupied(dir, name)?;
        if self.node(id)?.directory()?.len() > 0 {
            return Err(FsError::NotEmpty);
        }
        self.unlink(dir, name, id)
    }

    /// Moves a name. A file behind the new name goes, if one may replace the other; two names of
    /// one file both stay (RFC 1813 section 3.3.14).
    ///
    /// # Errors
    /// [`FsError::Exists`] if a directory were to replace another kind of file or the reverse;
    /// [`FsError::NotEmpty`]; [`FsError::Invalid`] for `.` and `..` and for a directory that would
    /// come to lie in itself; those of
    /// [`lookup`](Self::lookup).
    pub fn rename(
        &mut self,
        from: FileId,
        from_name: &[u8],
        to: FileId,
        to_name: &[u8],
    ) -> Result<(), FsError> {
        let to_name = Name::to_remove(to_name)?;
        let (from_name, id) = self.occupied(from, from_name)?;
        let replaced = self.node(to)?.directory()?.get(to_name);
        if replaced == Some(id) {
            return Ok(());
        }
        self.check_place(id, to)?;
        if let Some(replaced) = replaced {
            self.check_replace(id, replaced)?;
        }
        if let Some(replaced) = replaced {
            self.unlink(to, to_name, replaced)?;
        }
        self.detach(from, from_name, id)?;
        self.attach(to, to_name, id)?;
        self.node_mut(id)?.inode.touch_attributes();
        Ok(())
    }

    /// A directory may not come to lie in itself.
    fn check_place(&self, id: FileId, mut dir: FileId) -> Result<(), FsError> {
        loop {
            if dir == id {
                return Err(FsError::Invalid);
            }
            let parent = self.node(dir)?.directory()?.parent;
            if parent == dir {
                return Ok(());
            }
            dir = parent;
        }
    }

    fn check_replace(&self, id: FileId, replaced: FileId) -> Result<(), FsError> {
        let replaced = self.node(replaced)?;
        if self.node(id)?.is_directory() != replaced.is_directory() {
            return Err(FsError::Exists);
        }
        match replaced.directory() {
            Ok(directory) if directory.len() > 0 => Err(FsError::NotEmpty),
            _ => Ok(()),
        }
    }

    /// A name that can be made in `dir`.
    fn vacant<'n>(&self, dir: FileId, name: &'n [u8]) -> Result<&'n BStr, FsError> {
        let directory = self.node(dir)?.directory()?;
        let name = Name::to_make(name)?;
        match directory.get(name) {
            None => Ok(name),
            Some(_) => Err(FsError::Exists),
        }
    }

    /// A name that can be taken out of `dir`, and the file behind it.
    fn occupied<'n>(&self, dir: FileId, name: &'n [u8]) -> Result<(&'n BStr, FileId), FsError> {
        let directory = self.node(dir)?.directory()?;
        let name = Name::to_remove(name)?;
        let id = directory.get(name).ok_or(FsError::NoEntry)?;
        Ok((name, id))
    }

    /// Enters a name whose cost is paid.
    fn attach(&mut self, dir: FileId, name: &BStr, id: FileId) -> Result<(), FsError> {
        let moved = self.node_mut(id)?;
        let subdirectory = moved.is_directory();
        if let Body::Directory(directory) = &mut moved.body {
            directory.parent = dir;
        }
        let node = self.node_mut(dir)?;
        node.directory_mut()?.insert(name, id);
        node.inode.links += u32::from(subdirectory);
        node.inode.touch();
        Ok(())
    }

    /// Takes a name out; its cost stays paid and the file stays.
    fn detach(&mut self, dir: FileId, name: &BStr, id: FileId) -> Result<(), FsError> {
        let subdirectory = self.node(id)?.is_directory();
        let node = self.node_mut(dir)?;
        node.directory_mut()?.remove(name);
        node.inode.links -= u32::from(subdirectory);
        node.inode.touch();
        Ok(())
    }

    /// Takes a name out, and with the last one the file.
    fn unlink(&mut self, dir: FileId, name: &BStr, id: FileId) -> Result<(), FsError> {
        self.detach(dir, name, id)?;
        self.space.give_back(ENTRY_COST);
        let node = self.node_mut(id)?;
        node.inode.links -= 1;
        node.inode.touch_attributes();
        if node.inode.links == 0 || node.is_directory() {
            let cost = node.cost();
            self.space.give_back(cost);
            self.nodes.remove(&id);
        }
        Ok(())
    }
}

fn new_node(body: Body, set: &SetAttributes) -> Result<Node, FsError> {
    let (mode, links) = match &body {
        Body::Regular(_) => (FILE_MODE, 1),
        Body::Directory(_) => (DIRECTORY_MODE, 2),
        Body::Symlink(_) => (SYMLINK_MODE, 1),
    };
    if set.size.is_some() && !matches!(body, Body::Regular(_)) {
        return Err(FsError::Invalid);
    }
    let inode = Inode::new(mode, links, set);
    Ok(Node { inode, body })
}

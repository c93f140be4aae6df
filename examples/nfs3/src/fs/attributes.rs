//! What is known about a file beside its contents, and what of it a caller may set.

use std::time::{SystemTime, UNIX_EPOCH};

use super::FsError;

/// Bits that a mode may hold: permissions, set-user-id, set-group-id, sticky.
pub const MODE_MASK: u32 = 0o7777;

/// The number of a file within its file system; never used for a second file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// The kinds of file that this file system holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Bytes.
    Regular,
    /// Names of other files.
    Directory,
    /// A path that the caller follows.
    Symlink,
}

/// A point in time since 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds, until 2106.
    pub seconds: u32,
    /// Below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// The clock's present time.
    pub fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            seconds: since.as_secs().try_into().unwrap_or(u32::MAX),
            nanoseconds: since.subsec_nanos(),
        }
    }
}

/// Everything that a file tells about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// The file itself.
    pub id: FileId,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Names that it has; for a directory 2 and one for each directory in it.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The owner's group.
    pub gid: u32,
    /// Bytes in it.
    pub size: u64,
    /// Bytes of memory that its contents take.
    pub used: u64,
    /// Last access that was set by hand: reading does not move it.
    pub accessed: Time,
    /// Last change of the contents.
    pub modified: Time,
    /// Last change of contents or attributes.
    pub changed: Time,
}

/// How a time is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetTime {
    /// It stays.
    #[default]
    Keep,
    /// The file system's clock.
    Now,
    /// The caller's time.
    To(Time),
}

impl SetTime {
    fn check(self) -> Result<(), FsError> {
        match self {
            Self::To(time) if time.nanoseconds >= 1_000_000_000 => Err(FsError::Invalid),
            _ => Ok(()),
        }
    }

    fn resolve(self, now: Time) -> Option<Time> {
        match self {
            Self::Keep => None,
            Self::Now => Some(now),
            Self::To(time) => Some(time),
        }
    }
}

/// The attributes to set; each on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permission bits; others are ignored.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The owner's group.
    pub gid: Option<u32>,
    /// Bytes in a regular file: it is cut, or grows by zeros.
    pub size: Option<u64>,
    /// Last access.
    pub accessed: SetTime,
    /// Last change of the contents.
    pub modified: SetTime,
}

impl SetAttributes {
    /// Whether the times are times.
    ///
    /// # Errors
    /// [`FsError::Invalid`].
    pub fn check(&self) -> Result<(), FsError> {
        self.accessed.check()?;
        self.modified.check()
    }
}

/// The attributes that a node stores; the others follow from its contents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inode {
    pub mode: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
}

impl Inode {
    pub fn new(mode: u32, links: u32, set: &SetAttributes) -> Self {
        let now = Time::now();
        let mut inode = Self {
            mode,
            links,
            uid: 0,
            gid: 0,
            accessed: now,
            modified: now,
            changed: now,
        };
        inode.apply(set);
        inode
    }

    /// Sets everything but the size, which is the contents' affair.
    pub fn apply(&mut self, set: &SetAttributes) {
        let now = Time::now();
        self.mode = set.mode.map_or(self.mode, |mode| mode & MODE_MASK);
        self.uid = set.uid.unwrap_or(self.uid);
        self.gid = set.gid.unwrap_or(self.gid);
        self.accessed = set.accessed.resolve(now).unwrap_or(self.accessed);
        self.modified = set.modified.resolve(now).unwrap_or(self.modified);
        self.changed = now;
    }

    /// Notes that the contents have changed.
    pub fn touch(&mut self) {
        self.modified = Time::now();
        self.changed = self.modified;
    }

    /// Notes that an attribute has changed.
    pub fn touch_attributes(&mut self) {
        self.changed = Time::now();
    }
}

//! Why the file system does not do what it is asked to.

/// What went wrong, in the words of RFC 1813 section 2.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// There is no such name.
    #[error("no such file or directory")]
    NoEntry,
    /// The name is empty or holds a byte that a name may not hold.
    #[error("the name is not allowed")]
    BadName,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// A directory is needed.
    #[error("not a directory")]
    NotDirectory,
    /// Anything but a directory is needed.
    #[error("is a directory")]
    IsDirectory,
    /// The request makes no sense for this file.
    #[error("the request makes no sense for this file")]
    Invalid,
    /// An offset or a size is over [`FILE_SIZE_MAX`](super::FILE_SIZE_MAX).
    #[error("the file would be too large")]
    TooLarge,
    /// The memory limit is reached.
    #[error("the memory limit is reached")]
    NoSpace,
    /// The file has [`LINKS_MAX`](super::LINKS_MAX) names already.
    #[error("the file has too many links")]
    TooManyLinks,
    /// A name or a link's target is too long.
    #[error("the name is too long")]
    NameTooLong,
    /// The directory is not empty.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The file that the handle names is gone.
    #[error("the file is gone")]
    Stale,
    /// The bytes are no handle.
    #[error("the bytes are no file handle")]
    BadHandle,
    /// The file has changed since the caller looked at it.
    #[error("the file has changed meanwhile")]
    NotInStep,
}

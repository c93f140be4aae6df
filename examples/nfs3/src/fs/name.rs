//! Names in a directory: which bytes may be one (RFC 1813 section 3.2).

use tenon::wire::{BStr, ByteSlice};

use super::FsError;

/// Bytes in a name, at most.
pub const NAME_MAX: usize = 255;

/// A name that a caller sent, checked: one component of a path, and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// `.`: the directory itself.
    Current,
    /// `..`: the directory that holds it.
    Parent,
    /// Any other. The bytes need not be UTF-8.
    Other(&'a BStr),
}

impl<'a> Name<'a> {
    /// Checks `bytes`.
    ///
    /// # Errors
    /// [`FsError::BadName`] if they are empty or hold a `/` or a zero; [`FsError::NameTooLong`]
    /// over [`NAME_MAX`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FsError> {
        match bytes {
            b"" => Err(FsError::BadName),
            b"." => Ok(Self::Current),
            b".." => Ok(Self::Parent),
            _ if bytes.len() > NAME_MAX => Err(FsError::NameTooLong),
            _ if bytes.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(FsError::BadName),
            _ => Ok(Self::Other(bytes.as_bstr())),
        }
    }

    /// The name of an entry to be made: the names of the directories are there already.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and [`FsError::Exists`].
    pub(super) fn to_make(bytes: &'a [u8]) -> Result<&'a BStr, FsError> {
        match Self::parse(bytes)? {
            Self::Other(name) => Ok(name),
            Self::Current | Self::Parent => Err(FsError::Exists),
        }
    }

    /// The name of an entry to be taken away: the names of the directories cannot be.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and [`FsError::Invalid`].
    pub(super) fn to_remove(bytes: &'a [u8]) -> Result<&'a BStr, FsError> {
        match Self::parse(bytes)? {
            Self::Other(name) => Ok(name),
            Self::Current | Self::Parent => Err(FsError::Invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let longest = [b'n'; NAME_MAX];
        let too_long = [b'n'; NAME_MAX + 1];
        for (bytes, expected) in [
            (&b"."[..], Ok(Name::Current)),
            (b"..", Ok(Name::Parent)),
            (b"...", Ok(Name::Other(b"...".as_bstr()))),
            (b"\xff\xfe", Ok(Name::Other(b"\xff\xfe".as_bstr()))),
            (&longest, Ok(Name::Other(longest.as_bstr()))),
            (b"", Err(FsError::BadName)),
            (b"a/b", Err(FsError::BadName)),
            (b"a\0", Err(FsError::BadName)),
            (&too_long, Err(FsError::NameTooLong)),
        ] {
            assert_eq!(Name::parse(bytes), expected, "{}", bytes.as_bstr());
        }
    }
}

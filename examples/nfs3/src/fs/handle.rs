//! File handles: how callers name a file without its path.
//!
//! A handle holds the instance of the file system and the file's number in it. A handle of another
//! instance, or of a file that is gone, is *stale*; bytes that were never a handle are *malformed*.
//! A handle is no secret: a client that reaches the server can make one up.

use super::{FileId, FsError};

/// Bytes in a handle.
pub const HANDLE_BYTES: usize = 20;

const MAGIC: [u8; 4] = *b"TnFs";

/// A file of one instance of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// The file system, from its start to its end.
    pub instance: u64,
    /// The file in it.
    pub id: FileId,
}

impl Handle {
    /// The bytes that callers keep.
    pub fn to_bytes(self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.instance.to_be_bytes());
        bytes[12..].copy_from_slice(&self.id.0.to_be_bytes());
        bytes
    }

    /// Understands what a caller sent.
    ///
    /// # Errors
    /// [`FsError::BadHandle`] for bytes that [`to_bytes`](Self::to_bytes) never makes.
    pub fn parse(bytes: &[u8]) -> Result<Self, FsError> {
        let bytes: &[u8; HANDLE_BYTES] = bytes.try_into().map_err(|_| FsError::BadHandle)?;
        let (magic, numbers) = bytes.split_at(4);
        let (instance, id) = numbers.split_at(8);
        if magic != MAGIC {
            return Err(FsError::BadHandle);
        }
        Ok(Self {
            instance: number(instance)?,
            id: FileId(number(id)?),
        })
    }
}

fn number(bytes: &[u8]) -> Result<u64, FsError> {
    let bytes = bytes.try_into().map_err(|_| FsError::BadHandle)?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_its_bytes() {
        let handle = Handle {
            instance: 0x0102_0304_0506_0708,
            id: FileId(99),
        };
        assert_eq!(Handle::parse(&handle.to_bytes()), Ok(handle));
    }

    #[test]
    fn anything_else_is_malformed() {
        let good = Handle {
            instance: 1,
            id: FileId(2),
        }
        .to_bytes();
        let mut other_magic = good;
        other_magic[0] ^= 1;
        let longer = [&good[..], &[0]].concat();
        for bytes in [&[][..], &good[..19], &longer, &other_magic] {
            assert_eq!(Handle::parse(bytes), Err(FsError::BadHandle), "{bytes:?}");
        }
    }
}

//! The memory account: what everything in the file system takes, held against a limit.

use super::FsError;

/// Bytes in use and the limit of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Most bytes that may be in use.
    pub limit: u64,
    /// Bytes in use.
    pub used: u64,
}

impl Space {
    /// An empty account.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        self.limit - self.used
    }

    /// Takes `bytes`, all or none.
    ///
    /// # Errors
    /// [`FsError::NoSpace`].
    pub fn take(&mut self, bytes: u64) -> Result<(), FsError> {
        if bytes > self.free() {
            return Err(FsError::NoSpace);
        }
        self.used += bytes;
        Ok(())
    }

    /// Gives back `bytes` that were taken.
    pub fn give_back(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "more is given back than was taken");
        self.used = self.used.saturating_sub(bytes);
    }
}

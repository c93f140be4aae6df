//! Memory that large messages leave behind, for the next one: each has it anew otherwise, or each lane
//! keeps it.

use tenon_wire::Buffer;

use crate::storage::Storage;

/// Bytes that are kept by whoever has sent or received a message; what is larger is spared for others.
const KEPT_MAX: usize = 64 << 10;

/// Bytes that are spared.
const SPARED_MAX: usize = 4 << 20;

/// One buffer for what is sent and one for what is received, of an end.
#[derive(Debug)]
pub(super) struct Spare {
    message: Buffer,
    storage: Storage,
}

impl Spare {
    /// Nothing is spared; storage will be as `storage` is, which is empty.
    pub(super) fn new(storage: Storage) -> Self {
        Self {
            message: Buffer::default(),
            storage,
        }
    }

    /// Takes the memory of a message that is forgotten, unless it is little.
    #[inline]
    pub(super) fn take_message(&mut self, message: &mut Buffer) {
        if message.capacity() > KEPT_MAX && message.is_empty() {
            self.exchange(message);
        }
    }

    #[cold]
    fn exchange(&mut self, message: &mut Buffer) {
        if message.capacity() > self.message.capacity() {
            std::mem::swap(message, &mut self.message);
        }
        message.shrink_to(KEPT_MAX);
        self.message.shrink_to(SPARED_MAX);
    }

    /// Gives an empty buffer the memory that is spared, if that is more.
    #[inline]
    pub(super) fn lend_message(&mut self, message: &mut Buffer) {
        if message.is_empty() && self.message.capacity() > message.capacity() {
            std::mem::swap(message, &mut self.message);
        }
    }

    /// Takes the memory of storage that is forgotten.
    pub(super) fn take_storage(&mut self, storage: &mut Storage) {
        storage.truncate(storage.base());
        if storage.capacity() > self.storage.capacity() && storage.capacity() <= SPARED_MAX {
            std::mem::swap(storage, &mut self.storage);
        }
        storage.release();
    }

    /// Gives storage that has no memory yet what is spared.
    pub(super) fn lend_storage(&mut self, storage: &mut Storage) {
        if storage.capacity() == 0 {
            std::mem::swap(storage, &mut self.storage);
        }
    }
}

//! Memory that large messages leave behind, for the next one: each has it anew otherwise, or each lane
//! keeps it.

use tenon_wire::Buffer;

use crate::connection::framing::ReceiveBuffer;

/// Bytes that are kept by each lane of a client that has sent a message; what is larger is spared for others.
pub(super) const KEPT_BY_CLIENT: usize = 64 << 10;

/// The same of a server, which has many lanes, and memory that others use. So little is not counted.
pub(super) const KEPT_BY_SERVER: usize = 4 << 10;

/// Bytes that are spared.
const SPARED_MAX: usize = 4 << 20;

/// One buffer for what is sent and one for what is received, of an end.
#[derive(Debug)]
pub(super) struct SpareBuffers {
    message: Buffer,
    storage: ReceiveBuffer,
    /// Bytes that lanes keep.
    kept_max: usize,
}

impl SpareBuffers {
    /// Nothing is spared; storage will be as `storage` is, which is empty. Lanes keep `kept_max` bytes each.
    pub(super) fn new(storage: ReceiveBuffer, kept_max: usize) -> Self {
        Self {
            message: Buffer::default(),
            storage,
            kept_max,
        }
    }

    /// Takes the memory of a message that is forgotten, unless it is little.
    #[inline]
    pub(super) fn take_message(&mut self, message: &mut Buffer) {
        if message.capacity() > self.kept_max && message.is_empty() {
            self.exchange(message);
        }
    }

    #[cold]
    fn exchange(&mut self, message: &mut Buffer) {
        if message.capacity() > self.message.capacity() {
            std::mem::swap(message, &mut self.message);
        }
        message.shrink_to(self.kept_max);
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
    pub(super) fn take_storage(&mut self, storage: &mut ReceiveBuffer) {
        storage.truncate(storage.base());
        if storage.capacity() > self.storage.capacity() && storage.capacity() <= SPARED_MAX {
            std::mem::swap(storage, &mut self.storage);
        }
        storage.release();
    }

    /// Gives storage that has no memory yet what is spared, unless a message of so many bytes would leave most
    /// of it empty.
    pub(super) fn lend_storage(&mut self, storage: &mut ReceiveBuffer, bytes: usize) {
        if storage.capacity() == 0 && self.storage.capacity() / 2 <= bytes {
            std::mem::swap(storage, &mut self.storage);
        }
    }
}

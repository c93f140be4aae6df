//! Buffers that are used again.

use tenon_wire::Buffer;

/// Buffers to be used again.
#[derive(Debug, Default)]
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    /// Most buffers kept.
    const COUNT_MAX: usize = 64;
    /// Most bytes that a buffer keeps.
    const SIZE_MAX: usize = 1 << 20;

    /// An empty buffer.
    pub fn take(&mut self) -> Buffer {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a buffer for later, if there are not many.
    pub fn put(&mut self, mut buffer: Buffer) {
        if self.0.len() < Self::COUNT_MAX {
            buffer.clear();
            buffer.shrink_to(Self::SIZE_MAX);
            self.0.push(buffer);
        }
    }
}

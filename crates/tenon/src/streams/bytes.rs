//! Streams of opaque data as bytes.

use std::error::Error;
use std::io::{self, BufRead, Read, Write};

use tenon_core::error::CallError;
use tenon_core::streams::{declared_max, io_error};

use super::argument::ArgumentWriter;
use super::reader::ItemReader;
use super::writer::ItemWriter;

impl<E> ItemReader<Vec<u8>, E> {
    /// Declares that items are `opaque<max>`, so that their bytes can be read. Generated code has done so.
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.opaque_max = Some(max);
        self
    }
}

impl<E> ItemWriter<Vec<u8>, E> {
    /// Declares that items are `opaque<max>`, so that bytes can be written. Generated code has done so.
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.opaque_max = Some(max);
        self
    }
}

impl<R, E> ArgumentWriter<Vec<u8>, R, E> {
    /// As [`ItemWriter::with_opaque_items`].
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.items.opaque_max = Some(max);
        self
    }
}

impl<E> Read for ItemReader<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    /// Waits for an item, unless bytes are left of the last one, and reads as many of them as there is room for.
    ///
    /// # Errors
    /// Why the stream has ended before its end, as an error that wraps an `E`. Behind it there are no bytes, but
    /// [`CallError::StreamClosed`].
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if room.is_empty() {
            return Ok(0);
        }
        let bytes = self.fill_buf()?;
        let length = bytes.len().min(room.len());
        room[..length].copy_from_slice(&bytes[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<E> BufRead for ItemReader<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let max = declared_max(self.opaque_max)?;
        self.fill_bytes(max).map_err(io_error::<E>)
    }

    fn consume(&mut self, bytes: usize) {
        self.consume_bytes(bytes);
    }
}

impl<E> Write for ItemWriter<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    /// Takes bytes, as many as go in one item, and sends them with others.
    ///
    /// # Errors
    /// As [`ItemWriter::send`], as an error that wraps an `E`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let max = declared_max(self.opaque_max)?;
        self.feed_bytes(bytes, max).map_err(io_error::<E>)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_items().map_err(io_error::<E>)
    }
}

impl<R, E> Write for ArgumentWriter<Vec<u8>, R, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.items.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.items)
    }
}

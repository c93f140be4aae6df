//! Streams of opaque data as bytes.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tenon_core::error::CallError;
use tenon_core::streams::{BYTES_TOGETHER, declared_max, io_error};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use super::argument::ArgumentSink;
use super::item_sink::ItemSink;
use super::item_stream::ItemStream;

impl<E> ItemStream<Vec<u8>, E> {
    /// Declares that items are `opaque<max>`, so that their bytes can be read. Generated code has done so.
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.opaque_max = Some(max);
        self
    }
}

impl<E> ItemSink<Vec<u8>, E> {
    /// Declares that items are `opaque<max>`, so that bytes can be written. Generated code has done so.
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.opaque_max = Some(max);
        self
    }
}

impl<R, E> ArgumentSink<Vec<u8>, R, E> {
    /// As [`ItemSink::with_opaque_items`].
    #[must_use]
    pub fn with_opaque_items(mut self, max: u32) -> Self {
        self.items.opaque_max = Some(max);
        self
    }
}

impl<E> AsyncRead for ItemStream<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    /// Waits for an item, unless bytes are left of the last one, and reads as many of them as there is room for. The error
    /// wraps an `E`. Behind it there are no bytes, but [`CallError::StreamClosed`].
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if room.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let length = bytes.len().min(room.remaining());
        room.put_slice(&bytes[..length]);
        self.consume(length);
        Poll::Ready(Ok(()))
    }
}

impl<E> AsyncBufRead for ItemStream<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let items = self.get_mut();
        let max = declared_max(items.opaque_max)?;
        ready!(items.poll_bytes(cx, max)).map_err(io_error::<E>)?;
        Poll::Ready(Ok(items.items.unread()))
    }

    fn consume(mut self: Pin<&mut Self>, bytes: usize) {
        self.items.consume(bytes);
    }
}

impl<E> AsyncWrite for ItemSink<Vec<u8>, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    /// Takes bytes, as many as go in one item, and sends them with others. The error wraps an `E`.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let max = declared_max(self.opaque_max)?;
        let together = BYTES_TOGETHER.min(max as usize);
        let item = &bytes[..bytes.len().min(together)];
        if item.is_empty() {
            return Poll::Ready(Ok(0));
        }
        ready!(self.poll_handed_over(cx, false)).map_err(io_error::<E>)?;
        let started = self.start_with(|out| out.put_opaque(item, max));
        started.map_err(io_error::<E>)?;
        Poll::Ready(Ok(item.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_handed_over(cx, true).map_err(io_error::<E>)
    }

    /// Sends what was written, and tells the other end that these are all bytes.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx).map_err(io_error::<E>)
    }
}

impl<R, E> AsyncWrite for ArgumentSink<Vec<u8>, R, E>
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.items).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.items), cx)
    }

    /// Sends what was written, and tells the server that these are all bytes: [`finish`](Self::finish) waits for the
    /// result then.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.items).poll_shutdown(cx)
    }
}

//! One direction of a relayed connection.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at a time.
const ROOM: usize = 8 << 10;

/// Bytes on their way from a reader to a writer.
#[derive(Default)]
pub(crate) struct RelayedBytes {
    room: Vec<u8>,
    unwritten: Range<usize>,
    /// True while the writer may hold bytes back.
    must_flush: bool,
    stage: RelayStage,
}

#[derive(Default)]
enum RelayStage {
    #[default]
    Copying,
    ShuttingDown,
    Over,
}

impl RelayedBytes {
    /// Relays bytes until there are no more or that fails, and then shuts the writer down.
    ///
    /// # Errors
    /// Those of the reader and of the writer, once: the writer is shut down by the next call.
    pub(crate) fn poll(
        &mut self,
        reader: Pin<&mut impl AsyncRead>,
        mut writer: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if matches!(self.stage, RelayStage::Copying) {
            let copied = ready!(self.poll_copy(reader, writer.as_mut(), cx));
            self.stage = RelayStage::ShuttingDown;
            if copied.is_err() {
                cx.waker().wake_by_ref();
                return Poll::Ready(copied);
            }
        }
        if matches!(self.stage, RelayStage::ShuttingDown) {
            // It fails if the connection is closed already, which is the aim.
            let _ = ready!(writer.poll_shutdown(cx));
            self.stage = RelayStage::Over;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_copy(
        &mut self,
        mut reader: Pin<&mut impl AsyncRead>,
        mut writer: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.room.resize(ROOM, 0);
        loop {
            while !self.unwritten.is_empty() {
                let bytes = &self.room[self.unwritten.clone()];
                match ready!(writer.as_mut().poll_write(cx, bytes))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => self.unwritten.start += written,
                }
                self.must_flush = true;
            }
            let mut room = ReadBuf::new(&mut self.room);
            if reader.as_mut().poll_read(cx, &mut room)?.is_pending() {
                // Nothing is held back while nothing more comes.
                if self.must_flush {
                    ready!(writer.as_mut().poll_flush(cx))?;
                    self.must_flush = false;
                }
                return Poll::Pending;
            }
            self.unwritten = 0..room.filled().len();
            if self.unwritten.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

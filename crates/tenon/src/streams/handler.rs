//! The streams of a call as its handler has them.

use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{Readable, ReceivedItems, ServedStreams, Writable};
use tenon_proto::lean::{ByteOrder, ItemDraft};
use tenon_wire::Buffer;

use super::reader::{DecodeItem, ItemReader, ItemSource};
use super::writer::{EncodeItem, ItemSink, ItemWriter};

impl<T> ItemReader<T> {
    /// Reads the items of an argument of a call, in its handler. Generated code calls it.
    #[doc(hidden)]
    pub fn of_handler(streams: &ServedStreams, decode: impl DecodeItem<T>) -> Self {
        let source = HandlerSource(streams.clone());
        Self::new(Box::new(source), decode, Decoding::default())
    }
}

impl<T> ItemWriter<T> {
    /// Writes the items of the result of a call, in its handler. Generated code calls it.
    #[doc(hidden)]
    pub fn of_handler(streams: &ServedStreams, encode: impl EncodeItem<T>) -> Self {
        Self::new(Box::new(HandlerSink(streams.clone())), encode)
    }
}

/// The items of an argument.
struct HandlerSource(ServedStreams);

impl ItemSource for HandlerSource {
    fn wait(&mut self, into: &mut ReceivedItems, taken: u64) -> Result<bool, CallError> {
        self.give_back(taken);
        match self.0.pipe().wait_readable(into, self.0.deadline) {
            Readable::Items => Ok(true),
            Readable::Ended => Ok(false),
            Readable::Over => Err(CallError::CallerGone),
            Readable::Nothing => Err(self.0.timed_out()),
        }
    }

    fn give_back(&mut self, bytes: u64) {
        if bytes > 0 {
            self.0.give_back(bytes);
        }
    }

    fn item_max(&self) -> usize {
        self.0.item_max
    }
}

impl Drop for HandlerSource {
    fn drop(&mut self) {
        self.0.stop_receiving();
    }
}

/// The items of a result.
struct HandlerSink(ServedStreams);

impl ItemSink for HandlerSink {
    fn draft(&self) -> ItemDraft {
        ItemDraft::new(ByteOrder::NATIVE, self.0.number, false)
    }

    fn item_max(&self) -> usize {
        usize::MAX
    }

    fn send(&mut self, messages: &mut Buffer) -> Result<(), CallError> {
        match self.0.pipe().wait_writable(self.0.deadline) {
            Writable::Yes => {
                self.0.send(messages);
                Ok(())
            }
            Writable::Over => Err(CallError::CallerGone),
            Writable::NotNow => Err(self.0.timed_out()),
        }
    }

    fn end(&mut self) -> Result<(), CallError> {
        Ok(())
    }

    fn send_last(&mut self, messages: &mut Buffer) {
        self.0.send(messages);
    }
}

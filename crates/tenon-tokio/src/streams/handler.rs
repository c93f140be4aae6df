//! The streams of a call as its handler has them.

use std::task::{Context, Poll, ready};

use tenon_core::caller::Decoding;
use tenon_core::error::CallError;
use tenon_core::streams::{Readable, ReceivedItems, ServedStreams, Writable};
use tenon_proto::lean::{ByteOrder, ItemDraft};
use tenon_wire::Buffer;
use tokio::task::coop;

use super::item_sink::{ItemSink, ItemTarget};
use super::item_stream::{ItemSource, ItemStream};
use super::{DecodeItem, EncodeItem};

impl<T> ItemStream<T> {
    /// The items of an argument of a call, in its handler. Generated code calls it.
    #[doc(hidden)]
    pub fn of_handler(streams: &ServedStreams, decode: DecodeItem<T>) -> Self {
        let source = HandlerSource(streams.clone());
        Self::new(Box::new(source), decode, Decoding::default())
    }
}

impl<T> ItemSink<T> {
    /// Takes the items of the result of a call, in its handler. Generated code calls it.
    #[doc(hidden)]
    pub fn of_handler(streams: &ServedStreams, encode: EncodeItem<T>) -> Self {
        Self::new(Box::new(HandlerTarget(streams.clone())), encode)
    }
}

/// The items of an argument. The time of the call is kept by the task that carries it out.
struct HandlerSource(ServedStreams);

impl ItemSource for HandlerSource {
    fn poll_items(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReceivedItems,
        taken: u64,
    ) -> Poll<Result<bool, CallError>> {
        self.give_back(taken);
        let coop = ready!(coop::poll_proceed(cx));
        let readable = ready!(self.0.pipe().poll_readable(cx, into));
        coop.made_progress();
        Poll::Ready(match readable {
            Readable::Items => Ok(true),
            Readable::Ended => Ok(false),
            Readable::Over | Readable::Nothing => Err(CallError::CallerGone),
        })
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
struct HandlerTarget(ServedStreams);

impl ItemTarget for HandlerTarget {
    fn draft(&self) -> ItemDraft {
        ItemDraft::new(ByteOrder::NATIVE, self.0.number, false)
    }

    fn item_max(&self) -> usize {
        usize::MAX
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        messages: &mut Buffer,
    ) -> Poll<Result<(), CallError>> {
        let coop = ready!(coop::poll_proceed(cx));
        let writable = ready!(self.0.pipe().poll_writable(cx));
        coop.made_progress();
        Poll::Ready(match writable {
            Writable::Yes => {
                self.0.send(messages);
                Ok(())
            }
            Writable::Over | Writable::NotNow => Err(CallError::CallerGone),
        })
    }

    fn end(&mut self) {}

    fn send_last(&mut self, message: &mut Buffer) {
        self.0.send(message);
    }
}

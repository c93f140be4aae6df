//! Opening calls with streams.

use std::sync::Arc;

use tenon_core::client::RepeatableCall;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{ProcedureCall, decode_in_order};
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::CallStreams;
use tenon_wire::Buffer;

use super::handle::{Client, ClientView};
use super::streaming::{ArgumentTarget, ResultSource, StreamedReply, StreamingCall};
use crate::streams::{
    ArgumentSink, DecodeItem, EncodeItem, ItemSink, ItemStream, OpenAsyncStreams,
};

impl OpenAsyncStreams for Client {
    async fn open_result<C: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &C,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemStream<T, C::Error>, C::Error> {
        let streams = CallStreams {
            argument: false,
            result: true,
        };
        let view = self.with_options(options);
        let (call, again) = view.open(call, streams).await?;
        Ok(view.items(&Arc::new(call), again, decode))
    }

    async fn open_argument<C: ProcedureCall + Sync, T>(
        &self,
        call: &C,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentSink<T, C::Result, C::Error>, C::Error> {
        let streams = CallStreams {
            argument: true,
            result: false,
        };
        let view = self.with_options(options);
        let call = Arc::new(view.open(call, streams).await?.0);
        Ok(ArgumentSink::new(
            ItemSink::new(Box::new(ArgumentTarget::new(&call)), encode),
            Box::new(StreamedReply(call)),
            decode_in_order::<C>,
            view.caller().decoding(),
        ))
    }

    async fn open_both<C: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &C,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<(ItemSink<A, C::Error>, ItemStream<T, C::Error>), C::Error> {
        let streams = CallStreams {
            argument: true,
            result: true,
        };
        let view = self.with_options(options);
        let call = Arc::new(view.open(call, streams).await?.0);
        let sink = ItemSink::new(Box::new(ArgumentTarget::new(&call)), encode);
        Ok((sink, view.items(&call, None, decode)))
    }
}

impl ClientView<'_> {
    fn items<T, E: From<CallError>>(
        &self,
        call: &Arc<StreamingCall>,
        again: Option<RepeatableCall>,
        decode: DecodeItem<T>,
    ) -> ItemStream<T, E> {
        let source = Box::new(ResultSource::new(call, again));
        ItemStream::new(source, decode, self.caller().decoding())
    }

    /// Sends a call with streams; returns it, and the same as it is made again, if it may be.
    async fn open<C: ProcedureCall>(
        &self,
        call: &C,
        streams: CallStreams,
    ) -> Result<(StreamingCall, Option<RepeatableCall>), CallError> {
        let (caller, options) = (self.caller(), self.options());
        let written = self.written_with(|message: &mut Buffer| {
            let (encoded, draft) = caller.write(message, call, options, false)?;
            encoded?;
            match draft {
                CallDraft::Lean(mut call) => {
                    call.draft = call.draft.with_streams(message, streams);
                    Ok(CallDraft::Lean(call))
                }
                CallDraft::Onc => {
                    let reason = "ONC RPC has none; connect to lean+tcp:// or another lean address";
                    Err(CallError::NoStreams { reason })
                }
            }
        })?;
        let channel = self.channel().for_streams()?;
        let (limit, timeout) = (caller.limit(options), caller.stream_limit(options));
        let again = RepeatableCall::of(&written.0, &written.1, (limit, timeout), options);
        let place = options.get_reply_metadata();
        let call = channel.open(written, limit, timeout, place).await?;
        Ok((call, again))
    }
}

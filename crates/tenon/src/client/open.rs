//! Opening calls with streams.

use std::sync::Arc;

use tenon_core::LeanInput;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{ProcedureCall, decode_in_order};
use tenon_net::Transport;
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::CallStreams;
use tenon_wire::{Buffer, DecodeError, EncodeError, Encoder, Lean};

use super::handle::{Client, ClientView};
use super::streaming::{ArgumentSink, ResultSource, StreamedReply, StreamingCall};
use crate::streams::{ArgumentWriter, ItemReader, ItemWriter, OpenStreams, StreamPair};

/// Appends an item.
type EncodeItem<T> = fn(&T, &mut Encoder<'_, Lean>) -> Result<(), EncodeError>;

/// Reads an item.
type DecodeItem<T> = fn(&mut LeanInput<'_>) -> Result<T, DecodeError>;

impl OpenStreams for Client {
    fn open_result<C: ProcedureCall<Result = ()>, T>(
        &self,
        call: &C,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemReader<T, C::Error>, C::Error> {
        let streams = CallStreams {
            argument: false,
            result: true,
        };
        let view = self.with_options(options);
        let call = Arc::new(view.open(call, streams)?);
        Ok(view.reader(&call, decode))
    }

    fn open_argument<C: ProcedureCall, T>(
        &self,
        call: &C,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentWriter<T, C::Result, C::Error>, C::Error> {
        let streams = CallStreams {
            argument: true,
            result: false,
        };
        let view = self.with_options(options);
        let call = Arc::new(view.open(call, streams)?);
        Ok(ArgumentWriter::new(
            ItemWriter::new(Box::new(ArgumentSink::new(&call)), encode),
            Box::new(StreamedReply(call)),
            decode_in_order::<C>,
            view.caller().decoding(),
        ))
    }

    fn open_both<C: ProcedureCall<Result = ()>, A, T>(
        &self,
        call: &C,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, C::Error>, C::Error> {
        let streams = CallStreams {
            argument: true,
            result: true,
        };
        let view = self.with_options(options);
        let call = Arc::new(view.open(call, streams)?);
        let writer = ItemWriter::new(Box::new(ArgumentSink::new(&call)), encode);
        Ok((writer, view.reader(&call, decode)))
    }
}

impl ClientView<'_> {
    fn reader<T, E: From<CallError>>(
        &self,
        call: &Arc<StreamingCall>,
        decode: DecodeItem<T>,
    ) -> ItemReader<T, E> {
        let source = Box::new(ResultSource::new(call));
        ItemReader::new(source, decode, self.caller().decoding())
    }

    /// Sends a call with streams.
    fn open<C: ProcedureCall>(
        &self,
        call: &C,
        streams: CallStreams,
    ) -> Result<StreamingCall, CallError> {
        let channel = self.client().channel();
        let (caller, options) = (self.caller(), self.options());
        if let Transport::Udp | Transport::Xdp = channel.address().transport() {
            let reason = "datagrams carry none; connect to lean+tcp://, lean+unix:// or shm://";
            return Err(CallError::NoStreams { reason });
        }
        let mut message = Buffer::default();
        let (encoded, draft) = caller.write(&mut message, call, options, false)?;
        encoded?;
        let draft = match draft {
            CallDraft::Lean(mut call) => {
                call.draft = call.draft.with_streams(&mut message, streams);
                CallDraft::Lean(call)
            }
            CallDraft::Onc => {
                let reason = "ONC RPC has none; connect to lean+tcp:// or another lean address";
                return Err(CallError::NoStreams { reason });
            }
        };
        let (limit, timeout) = (caller.limit(options), caller.stream_limit(options));
        let place = options.get_reply_metadata();
        channel.open(message, &draft, limit, timeout, place)
    }
}

//! Opening calls with streams.

use std::sync::Arc;

use tenon_core::LeanInput;
use tenon_core::client::RepeatableCall;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{ProcedureCall, decode_in_order};
use tenon_proto::connection::CallDraft;
use tenon_proto::lean::CallStreams;
use tenon_wire::{Buffer, DecodeError, EncodeError, Encoder, Lean};

use super::handle::{Client, ClientView, LeanCalls};
use super::streaming::{ArgumentSink, ResultSource, StreamedReply, StreamingCall};
use crate::streams::{
    ArgumentWriter, DecodeItem, EncodeItem, ItemReader, ItemWriter, OpenStreams, StreamPair,
};

const ARGUMENT: CallStreams = CallStreams {
    argument: true,
    result: false,
};

const RESULT: CallStreams = CallStreams {
    argument: false,
    result: true,
};

const BOTH: CallStreams = CallStreams {
    argument: true,
    result: true,
};

impl OpenStreams for Client {
    fn open_result<C: ProcedureCall<Result = ()>, T>(
        &self,
        call: &C,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemReader<T, C::Error>, C::Error> {
        let view = self.with_options(options);
        let (call, again) = view.open_call(call, RESULT)?;
        Ok(view.reader(&call, again, decode))
    }

    fn open_argument<C: ProcedureCall, T>(
        &self,
        call: &C,
        encode: impl EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentWriter<T, C::Result, C::Error>, C::Error>
    where
        C::Result: 'static,
    {
        let view = self.with_options(options);
        let (call, _) = view.open_call(call, ARGUMENT)?;
        let decode: fn(&mut LeanInput<'_>) -> Result<C::Result, DecodeError> = decode_in_order::<C>;
        Ok(view.argument_writer(call, encode, decode))
    }

    fn open_both<C: ProcedureCall<Result = ()>, A, T>(
        &self,
        call: &C,
        encode: impl EncodeItem<A>,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, C::Error>, C::Error> {
        let view = self.with_options(options);
        let (call, _) = view.open_call(call, BOTH)?;
        Ok((writer(&call, encode), view.reader(&call, None, decode)))
    }
}

impl LeanCalls<'_> {
    /// Makes a call of which the result is a stream, whose items `decode` reads, with arguments that are moved by hand.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    pub fn open_result<T>(
        self,
        procedure: u32,
        arguments: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: impl DecodeItem<T>,
    ) -> Result<ItemReader<T>, CallError> {
        let call = self.open_by_hand(procedure, RESULT, arguments)?;
        Ok(self.view().reader(&call, None, decode))
    }

    /// Makes a call of which the last argument is a stream, whose items `encode` appends, as
    /// [`open_result`](Self::open_result) does; `decode` reads its result.
    ///
    /// # Errors
    /// As there.
    pub fn open_argument<T, R>(
        self,
        procedure: u32,
        arguments: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        encode: impl EncodeItem<T>,
        decode: impl DecodeItem<R>,
    ) -> Result<ArgumentWriter<T, R>, CallError> {
        let call = self.open_by_hand(procedure, ARGUMENT, arguments)?;
        Ok(self.view().argument_writer(call, encode, decode))
    }

    /// Makes a call of which the last argument and the result are streams, as [`open_result`](Self::open_result) does.
    ///
    /// # Errors
    /// As there.
    pub fn open_both<A, T>(
        self,
        procedure: u32,
        arguments: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        encode: impl EncodeItem<A>,
        decode: impl DecodeItem<T>,
    ) -> Result<StreamPair<A, T>, CallError> {
        let call = self.open_by_hand(procedure, BOTH, arguments)?;
        Ok((
            writer(&call, encode),
            self.view().reader(&call, None, decode),
        ))
    }

    fn open_by_hand(
        &self,
        procedure: u32,
        streams: CallStreams,
        arguments: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<Arc<StreamingCall>, CallError> {
        let view = self.view();
        let opened = view.open_written(streams, |message| {
            let call = (view.caller()).begin_lean(message, procedure, view.options(), false)?;
            arguments(&mut Encoder::over(message))?;
            Ok(CallDraft::Lean(call))
        });
        Ok(opened?.0)
    }
}

fn writer<T, E: From<CallError>>(
    call: &Arc<StreamingCall>,
    encode: impl EncodeItem<T>,
) -> ItemWriter<T, E> {
    ItemWriter::new(Box::new(ArgumentSink::new(call)), encode)
}

impl<'c> ClientView<'c> {
    fn reader<T, E: From<CallError>>(
        &self,
        call: &Arc<StreamingCall>,
        again: Option<RepeatableCall>,
        decode: impl DecodeItem<T>,
    ) -> ItemReader<T, E> {
        let source = Box::new(ResultSource::new(call, again));
        ItemReader::new(source, decode, self.caller().decoding())
    }

    fn argument_writer<T, R, E: From<CallError>>(
        &self,
        call: Arc<StreamingCall>,
        encode: impl EncodeItem<T>,
        decode: impl DecodeItem<R>,
    ) -> ArgumentWriter<T, R, E> {
        let writer = writer(&call, encode);
        let reply = Box::new(StreamedReply(call));
        ArgumentWriter::new(writer, reply, decode, self.caller().decoding())
    }

    fn open_call<C: ProcedureCall>(
        &self,
        call: &C,
        streams: CallStreams,
    ) -> Result<(Arc<StreamingCall>, Option<RepeatableCall>), CallError> {
        self.open_written(streams, |message| {
            let (caller, options) = (self.caller(), self.options());
            let (encoded, draft) = caller.write(message, call, options, false)?;
            encoded?;
            Ok(draft)
        })
    }

    /// Sends the call with streams that `write` writes into an empty buffer; returns it, and the same as it is made
    /// again, if it may be.
    pub(super) fn open_written(
        &self,
        streams: CallStreams,
        write: impl FnOnce(&mut Buffer) -> Result<CallDraft<'c>, CallError>,
    ) -> Result<(Arc<StreamingCall>, Option<RepeatableCall>), CallError> {
        let (caller, options) = (self.caller(), self.options());
        let mut message = Buffer::default();
        let draft = match write(&mut message)? {
            CallDraft::Lean(mut call) => {
                call.draft = call.draft.with_streams(&mut message, streams);
                CallDraft::Lean(call)
            }
            CallDraft::Onc => {
                let reason = "ONC RPC has none; connect to lean+tcp:// or another lean address";
                return Err(CallError::NoStreams { reason });
            }
        };
        let channel = self.client().channel().for_streams()?;
        let (limit, timeout) = (caller.limit(options), caller.stream_limit(options));
        let again = RepeatableCall::of(&message, &draft, (limit, timeout), options);
        let place = options.get_reply_metadata();
        let call = channel.open(message, &draft, limit, timeout, place)?;
        Ok((Arc::new(call), again))
    }
}

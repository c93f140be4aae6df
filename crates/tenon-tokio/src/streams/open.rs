//! The trait that generated clients of tasks open calls with streams through.

use tenon_core::WithOptions;
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;

use super::argument::ArgumentSink;
use super::item_sink::ItemSink;
use super::item_stream::ItemStream;
use super::{DecodeItem, EncodeItem};
use tenon_core::LeanInput;
use tenon_wire::{DecodeError, EncodeError, Encoder, Lean};

/// Makes calls with streams: the [`OpenStreams`](tenon::OpenStreams) of tasks. Such a call has no end in time unless its
/// [options](CallOptions::timeout) or its client say so.
#[expect(
    clippy::type_complexity,
    reason = "functions of items, a sink and a stream"
)]
pub trait OpenAsyncStreams: Sync {
    /// Makes a call of which the result is a stream, whose items `decode` reads.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`](tenon::CallError).
    fn open_result<C: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &C,
        decode: fn(&mut LeanInput<'_>) -> Result<T, DecodeError>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<ItemStream<T, C::Error>, C::Error>> + Send;

    /// Makes a call of which the last argument is a stream, whose items `encode` appends.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_argument<C: ProcedureCall + Sync, T>(
        &self,
        call: &C,
        encode: fn(&T, &mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<ArgumentSink<T, C::Result, C::Error>, C::Error>> + Send;

    /// Makes a call of which the last argument and the result are streams, whose items `encode` appends and `decode`
    /// reads. Two tasks may use them.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_both<C: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &C,
        encode: fn(&A, &mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
        decode: fn(&mut LeanInput<'_>) -> Result<T, DecodeError>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<(ItemSink<A, C::Error>, ItemStream<T, C::Error>), C::Error>> + Send;
}

impl<O: OpenAsyncStreams> OpenAsyncStreams for WithOptions<'_, O> {
    async fn open_result<C: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &C,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemStream<T, C::Error>, C::Error> {
        let options = self.options(options);
        self.client().open_result(call, decode, options).await
    }

    async fn open_argument<C: ProcedureCall + Sync, T>(
        &self,
        call: &C,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentSink<T, C::Result, C::Error>, C::Error> {
        let options = self.options(options);
        self.client().open_argument(call, encode, options).await
    }

    async fn open_both<C: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &C,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<(ItemSink<A, C::Error>, ItemStream<T, C::Error>), C::Error> {
        let options = self.options(options);
        self.client().open_both(call, encode, decode, options).await
    }
}

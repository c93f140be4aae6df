//! The trait that generated clients of tasks open calls with streams through.

use tenon_core::WithOptions;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;

use super::argument::ArgumentSink;
use super::item_sink::ItemSink;
use super::item_stream::ItemStream;
use super::{DecodeItem, EncodeItem};

/// The sink of the items of an argument, and the stream of those of the result. Two tasks may use them.
pub type AsyncStreamPair<A, T, E = CallError> = (ItemSink<A, E>, ItemStream<T, E>);

/// Makes calls with streams: the [`OpenStreams`](tenon::OpenStreams) of tasks. Such a call has no end in time unless its
/// [options](CallOptions::timeout) or its client say so.
pub trait OpenAsyncStreams: Sync {
    /// Makes a call of which the result is a stream of items that `decode` reads.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    fn open_result<C: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &C,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<ItemStream<T, C::Error>, C::Error>> + Send;

    /// Makes a call of which the last argument is a stream of items that `encode` appends.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_argument<C: ProcedureCall + Sync, T>(
        &self,
        call: &C,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<ArgumentSink<T, C::Result, C::Error>, C::Error>> + Send;

    /// Makes a call of which the last argument and the result are streams, whose items `encode` appends and `decode`
    /// reads.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_both<C: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &C,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> impl Future<Output = Result<AsyncStreamPair<A, T, C::Error>, C::Error>> + Send;
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
    ) -> Result<AsyncStreamPair<A, T, C::Error>, C::Error> {
        let options = self.options(options);
        self.client().open_both(call, encode, decode, options).await
    }
}

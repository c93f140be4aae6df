//! The trait that generated clients open calls with streams through.

use tenon_core::WithOptions;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;

use super::argument::ArgumentWriter;
use super::reader::{DecodeItem, ItemReader};
use super::writer::{EncodeItem, ItemWriter};

/// The writer of the items of an argument, and the reader of those of the result. Two threads may use them.
pub type StreamPair<A, T, E = CallError> = (ItemWriter<A, E>, ItemReader<T, E>);

/// Makes calls with streams. Such a call has no end in time unless its
/// [options](CallOptions::timeout) or its client say so.
pub trait OpenStreams {
    /// Makes a call of which the result is a stream, whose items `decode` reads.
    ///
    /// # Errors
    /// The call cannot be sent; see [`CallError`].
    fn open_result<C: ProcedureCall<Result = ()>, T>(
        &self,
        call: &C,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemReader<T, C::Error>, C::Error>;

    /// Makes a call of which the last argument is a stream, whose items `encode` appends.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_argument<C: ProcedureCall, T>(
        &self,
        call: &C,
        encode: impl EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentWriter<T, C::Result, C::Error>, C::Error>
    where
        C::Result: 'static;

    /// Makes a call of which the last argument and the result are streams, whose items `encode` appends and `decode`
    /// reads.
    ///
    /// # Errors
    /// As [`open_result`](Self::open_result).
    fn open_both<C: ProcedureCall<Result = ()>, A, T>(
        &self,
        call: &C,
        encode: impl EncodeItem<A>,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, C::Error>, C::Error>;
}

impl<O: OpenStreams> OpenStreams for WithOptions<'_, O> {
    fn open_result<C: ProcedureCall<Result = ()>, T>(
        &self,
        call: &C,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemReader<T, C::Error>, C::Error> {
        let options = self.options(options);
        self.client().open_result(call, decode, options)
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
        let options = self.options(options);
        self.client().open_argument(call, encode, options)
    }

    fn open_both<C: ProcedureCall<Result = ()>, A, T>(
        &self,
        call: &C,
        encode: impl EncodeItem<A>,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, C::Error>, C::Error> {
        let options = self.options(options);
        self.client().open_both(call, encode, decode, options)
    }
}

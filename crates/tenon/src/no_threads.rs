//! The channel and client of threads where the feature `threads` is left out: types without values, which generated
//! stubs name.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenon_core::callbacks::PendingCallbackReply;
use tenon_core::error::ConnectError;
use tenon_core::options::{CallOptions, ChannelOptions};
use tenon_core::procedure::{ProcedureCall, ProcedureError};
use tenon_core::{CallTarget, MakeCalls};
use tenon_proto::lean::Interface;
use tenon_proto::onc::auth::Credential;

use crate::streams::{ArgumentWriter, DecodeItem, EncodeItem, ItemReader, OpenStreams, StreamPair};

/// A channel of threads, which this program was built without.
#[derive(Debug, Clone)]
pub struct Channel(Infallible);

/// A client of threads, which this program was built without.
#[derive(Debug, Clone)]
pub struct Client(Infallible);

impl Client {
    /// Fails.
    ///
    /// # Errors
    /// Always: the program needs the feature `threads`.
    pub fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::connect_with(address, program, version, ChannelOptions::default())
    }

    /// Fails.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        address: &str,
        _program: u32,
        _version: u32,
        _options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let message =
            "a client of threads needs the feature `threads`, which this program was built without";
        let error = io::Error::new(io::ErrorKind::Unsupported, message);
        Err(ConnectError::unreachable(&address.parse()?, error))
    }

    /// Returns the client of a channel, which there cannot be.
    pub fn over(channel: Channel, _program: u32, _version: u32) -> Self {
        Self(channel.0)
    }

    /// Returns the same client with `timeout` for each call.
    #[must_use]
    pub fn with_timeout(&self, _timeout: Duration) -> Self {
        Self(self.0)
    }

    /// Returns the same client with what it was made from.
    #[must_use]
    pub fn with_interface(&self, _interface: Arc<Interface>) -> Self {
        Self(self.0)
    }

    /// Returns the same client with `credential` for each call.
    #[must_use]
    pub fn with_credential(&self, _credential: &Credential<'_>) -> Self {
        Self(self.0)
    }
}

impl MakeCalls for Client {
    type Pending<T, E: ProcedureError> = PendingCallbackReply<T, E>;

    fn call_with<P: ProcedureCall>(
        &self,
        _call: &P,
        _options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        match self.0 {}
    }

    fn start_with<P: ProcedureCall>(
        &self,
        _call: &P,
        _options: CallOptions<'_>,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error> {
        match self.0 {}
    }

    fn target(&self) -> CallTarget<'_> {
        match self.0 {}
    }
}

impl OpenStreams for Client {
    fn open_result<C: ProcedureCall<Result = ()>, T>(
        &self,
        _call: &C,
        _decode: impl DecodeItem<T>,
        _options: CallOptions<'_>,
    ) -> Result<ItemReader<T, C::Error>, C::Error> {
        match self.0 {}
    }

    fn open_argument<C: ProcedureCall, T>(
        &self,
        _call: &C,
        _encode: impl EncodeItem<T>,
        _options: CallOptions<'_>,
    ) -> Result<ArgumentWriter<T, C::Result, C::Error>, C::Error>
    where
        C::Result: 'static,
    {
        match self.0 {}
    }

    fn open_both<C: ProcedureCall<Result = ()>, A, T>(
        &self,
        _call: &C,
        _encode: impl EncodeItem<A>,
        _decode: impl DecodeItem<T>,
        _options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, C::Error>, C::Error> {
        match self.0 {}
    }
}

//! Making a client: finding its server, and connecting to it.

use tenon_core::error::ConnectError;
use tenon_core::options::ChannelOptions;
use tenon_core::resolve::locate;

use super::channel::Channel;
use super::handle::Client;
use crate::rpcbind::DEFAULT_RESOLVER;

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port` or `unix:///path` for
    /// calls by ONC RPC, `lean+tcp://host:port`, `lean+udp://host:port` or `lean+unix:///path` for calls by the lean
    /// protocol. Without a port a [resolver](ChannelOptions::resolver) is asked for it.
    ///
    /// # Errors
    /// The text is no address, the peer cannot be reached, or the resolver does not know the program.
    pub fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::connect_with(address, program, version, ChannelOptions::default())
    }

    /// Connects as [`connect`](Self::connect) does, within the limits of `options`; the resolver has as much time as
    /// the peer.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        address: &str,
        program: u32,
        version: u32,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let resolver = options.resolver.as_deref();
        let resolver = resolver.unwrap_or(DEFAULT_RESOLVER);
        let timeout = options.connect_timeout;
        let address = locate(resolver, address.parse()?, program, version, timeout)?;
        let channel = Channel::connect_with(&address, options)?;
        Ok(Self::over(channel, program, version))
    }
}

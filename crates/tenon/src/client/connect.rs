//! Making a client: finding its server, and connecting to it.

use tenon_core::Destination;
use tenon_core::error::ConnectError;
use tenon_core::options::ChannelOptions;

use super::channel::Channel;
use super::handle::Client;
use crate::default_resolver;

impl Client {
    /// Connects to a version of a program at `address`: `tcp://host:port`, `udp://host:port`, `unix:///path` or
    /// `onc+xdp://host:port` for calls by ONC RPC, `lean+tcp://host:port`, `lean+udp://host:port`, `lean+unix:///path`,
    /// `shm:///path` or `xdp://host:port` for calls by the lean protocol. Without a port a
    /// [resolver](ChannelOptions::resolver) is asked for it, but past the kernel, where the address has to have one.
    ///
    /// # Errors
    /// The text is no address, the peer cannot be reached, or the resolver does not know the program.
    pub fn connect(address: &str, program: u32, version: u32) -> Result<Self, ConnectError> {
        Self::connect_with(address, program, version, ChannelOptions::default())
    }

    /// Connects as [`connect`](Self::connect) does, within the limits of `options`; the resolver and the peer share the
    /// time. Whenever the connection is made again, the resolver is asked again.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        address: &str,
        program: u32,
        version: u32,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let resolver = (options.resolver.clone()).unwrap_or_else(default_resolver);
        let destination = Destination::of_program(address.parse()?, program, version, resolver)?;
        let channel = Channel::connect_to(destination, options)?;
        Ok(Self::over(channel, program, version))
    }
}

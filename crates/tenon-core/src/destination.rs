//! The destination of a channel: what the program has said of it, and connecting to it, which begins anew each time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::{Address, Carrier, Stream, interleave_families};

use crate::built::check_client;
use crate::byte_relay;
use crate::client_socket::ClientSocket;
use crate::error::{CallError, ConnectError};
use crate::options::ChannelOptions;
use crate::probing::connect_answering;
use crate::resolve::{Resolver, find_port};

/// The destination of a channel: an address, and what finds the port that it may lack. Names, and ports that are not
/// said, are asked for whenever a connection is made, as they may have changed.
#[derive(Debug, Clone)]
pub struct Destination {
    address: Address,
    service: Option<TargetProgram>,
    /// Where only packets go, a stream of bytes is connected through them.
    is_relayed: bool,
}

/// Version of a program that is to be reached at a destination, and the resolver that finds its port.
#[derive(Debug, Clone)]
struct TargetProgram {
    program: u32,
    version: u32,
    resolver: Arc<dyn Resolver>,
}

impl Destination {
    /// The destination `address`, whatever is there.
    ///
    /// # Errors
    /// The address lacks a port; its protocol was left out of this program.
    pub fn at(address: Address) -> Result<Self, ConnectError> {
        if address.needs_port() {
            return Err(ConnectError::NoPort(address));
        }
        check_client(&address)?;
        Ok(Self {
            address,
            service: None,
            is_relayed: false,
        })
    }

    /// A version of a program at `address`, to which `resolver` finds the port if it lacks one.
    ///
    /// # Errors
    /// The protocol of the address was left out of this program.
    pub fn of_program(
        address: Address,
        program: u32,
        version: u32,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, ConnectError> {
        check_client(&address)?;
        let service = TargetProgram {
            program,
            version,
            resolver,
        };
        Ok(Self {
            address,
            service: Some(service),
            is_relayed: false,
        })
    }

    /// Returns whether the connections of a channel to `address` carry single datagrams. It is none if the program has
    /// supplied the connection.
    pub fn carries_datagrams(destination: Option<&Self>, address: &Address) -> bool {
        address.is_datagram() && destination.is_none_or(|destination| !destination.is_relayed)
    }

    /// Returns the destination of the channel that carries the calls with streams of a channel to `address`: the same, to
    /// which connections are streams of bytes in packets. `None` if the channel carries them itself.
    ///
    /// # Errors
    /// [`CallError::NoStreams`]: the program has supplied the connection, and it has datagrams.
    pub fn for_streams(
        destination: Option<&Self>,
        address: &Address,
    ) -> Result<Option<Self>, CallError> {
        if !Self::carries_datagrams(destination, address) {
            return Ok(None);
        }
        let reason = "a socket for datagrams that the program has connected has none";
        let destination = destination.ok_or(CallError::NoStreams { reason })?;
        Ok(Some(Self {
            is_relayed: true,
            ..destination.clone()
        }))
    }

    /// Returns the address that the program has said.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Finds where that is now, and connects to it; returns the address with its port, too. May block until `deadline`,
    /// and for as long as the system's resolver of names does.
    ///
    /// # Errors
    /// The resolver fails or does not know the program; [`ConnectError::Unreachable`].
    pub fn connect(
        &self,
        deadline: Instant,
        options: &ChannelOptions,
    ) -> Result<(ClientSocket, Address), ConnectError> {
        let located = self.locate(deadline)?;
        match self.connect_to(&located, deadline, options) {
            Ok(socket) => Ok((socket, located)),
            Err(error) => Err(ConnectError::unreachable(&located, error)),
        }
    }

    fn locate(&self, deadline: Instant) -> Result<Address, ConnectError> {
        if !self.address.needs_port() {
            return Ok(self.address.clone());
        }
        let Some(service) = &self.service else {
            return Err(ConnectError::NoPort(self.address.clone()));
        };
        find_port(
            &*service.resolver,
            &self.address,
            service.program,
            service.version,
            deadline.saturating_duration_since(Instant::now()),
        )
    }

    fn connect_to(
        &self,
        located: &Address,
        deadline: Instant,
        options: &ChannelOptions,
    ) -> io::Result<ClientSocket> {
        match located.host() {
            Some(host) if located.is_datagram() => {
                let peers = interleave_families(host.resolve()?);
                let (carrier, peer) = self.connect_datagrams(located, &peers, deadline, options)?;
                if !self.is_relayed {
                    return Ok(ClientSocket::Datagram(carrier));
                }
                let config = options.connection_config();
                byte_relay::connect(carrier, peer, &config, deadline).map(ClientSocket::Stream)
            }
            _ => {
                let stream = Stream::connect(located, deadline)?;
                stream.set_liveness(options.liveness)?;
                Ok(ClientSocket::Stream(stream))
            }
        }
    }

    /// A socket for datagrams needs no answer to be connected: where there is a choice of addresses, one is asked for.
    fn connect_datagrams(
        &self,
        located: &Address,
        peers: &[SocketAddr],
        deadline: Instant,
        options: &ChannelOptions,
    ) -> io::Result<(Carrier, SocketAddr)> {
        if let [peer] = peers {
            let carrier = Carrier::connect_to(located, *peer, deadline)?;
            return Ok((carrier, *peer));
        }
        let program = self.service.as_ref();
        let program = program.map(|service| (service.program, service.version));
        connect_answering(located, peers, program, deadline, options)
    }
}

//! The binding protocols (RFC 1833): a client of the rpcbind that every host has, in versions 4, 3
//! and 2, and what servers and clients here use it for.
//!
//! A server that is asked to tells the rpcbind of its own host where its programs are; a client that has an address
//! without a port asks the rpcbind of its peer's host.
//!
//! ```no_run
//! use tenon::rpcbind::Rpcbind;
//!
//! let rpcbind = Rpcbind::connect("tcp://fileserver")?;
//! if let Some(nfs) = rpcbind.getaddr(100_003, 3)? {
//!     println!("NFS is at {nfs}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
pub mod generated;
mod registrar;
mod registration;
mod resolver;
mod universal;

use std::time::Duration;

use tenon_net::Address;
use tenon_proto::onc::message::Refused;
use tenon_wire::{BStr, BString};

use crate::{CallError, Channel, ChannelOptions, ConnectError};
use generated::{Mapping, PmapversClient, RPCBIND_PORT, Rpcb, Rpcbvers4Client, RpcbversClient};

pub use error::RpcbindError;
pub use registrar::LocalRpcbind;
pub use registration::Registration;
pub use resolver::HostRpcbind;
#[doc(hidden)]
pub use resolver::default_resolver;
pub use universal::UniversalAddressError;

/// The address at which the rpcbind of this host takes registrations.
const LOCAL: &str = "unix:///run/rpcbind.sock";

/// A version of the binding protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RpcbindVersion {
    /// The port mapper: TCP and UDP over IPv4.
    V2,
    /// The first rpcbind.
    V3,
    /// Today's.
    V4,
}

/// A client of one host's rpcbind. It speaks version 4, 3 or 2, whatever the other side has.
#[derive(Debug, Clone)]
pub struct Rpcbind {
    channel: Channel,
    timeout: Duration,
    newest: RpcbindVersion,
}

impl Rpcbind {
    /// The rpcbind at `address`: `tcp://host`, `udp://host`, with its own port 111 if none is
    /// written, or `unix:///run/rpcbind.sock`.
    ///
    /// # Errors
    /// The text is no address, or no rpcbind is there.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::connect_with(address, ChannelOptions::default())
    }

    /// Does the same by a channel with `options`.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect).
    pub fn connect_with(address: &str, options: ChannelOptions) -> Result<Self, ConnectError> {
        Self::at(address.parse()?, options)
    }

    /// The rpcbind of this host, which takes registrations over its Unix socket alone.
    ///
    /// # Errors
    /// It does not run.
    pub fn local() -> Result<Self, ConnectError> {
        Self::connect(LOCAL)
    }

    fn at(address: Address, options: ChannelOptions) -> Result<Self, ConnectError> {
        let address = match address.needs_port() {
            true => address.with_port(RPCBIND_PORT as u16),
            false => address,
        };
        Ok(Self {
            channel: Channel::connect_with(&address, options)?,
            timeout: Duration::from_secs(10),
            newest: RpcbindVersion::V4,
        })
    }

    /// Returns the same client, beginning with `version` instead of 4; older ones are still tried if the other
    /// side does not have it.
    #[must_use]
    pub fn beginning_with(self, version: RpcbindVersion) -> Self {
        Self {
            newest: version,
            ..self
        }
    }

    /// Returns the same client with `timeout` for every call; 10 seconds by default.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the address of a version of a program, on the transport that leads to this rpcbind. In versions 3
    /// and 2 of the protocol the answer may be where another version is.
    ///
    /// # Errors
    /// See [`RpcbindError`].
    pub fn getaddr(&self, program: u32, version: u32) -> Result<Option<Address>, RpcbindError> {
        let netid = universal::netid(self.channel.address())?;
        let wanted = entry(program, version, netid, "");
        let universal = self.ask(
            || self.v4().getversaddr(&wanted),
            || self.v3().getaddr(&wanted),
        );
        match universal {
            Err(error) if is_too_new(&error) => self.getport(program, version),
            other => address_if_any(netid.into(), other?.as_ref()),
        }
    }

    fn getport(&self, program: u32, version: u32) -> Result<Option<Address>, RpcbindError> {
        let place = self.channel.address();
        let mapping = Mapping {
            prog: program,
            vers: version,
            prot: universal::protocol(place).ok_or(RpcbindError::Transport)?,
            port: 0,
        };
        let port = self.v2().getport(&mapping)?;
        Ok(match universal::port(port)? {
            0 => None,
            port => Some(place.clone().with_port(port)),
        })
    }

    /// Registers that a version of a program is at `address`.
    ///
    /// # Errors
    /// [`RpcbindError::Declined`], and see [`RpcbindError`].
    pub fn set(&self, program: u32, version: u32, address: &Address) -> Result<(), RpcbindError> {
        let universal = universal::universal(address)?;
        let entry = entry(program, version, universal::netid(address)?, &universal);
        let done = self.ask(|| self.v4().set(&entry), || self.v3().set(&entry));
        let is_set = match done {
            Err(error) if is_too_new(&error) => {
                self.v2().set(&mapping(program, version, address)?)?
            }
            other => other?,
        };
        match is_set {
            true => Ok(()),
            false => Err(RpcbindError::Declined {
                program,
                version,
                address: address.clone(),
            }),
        }
    }

    /// Forgets where a version of a program is on the transport of `address`; version 2 of the
    /// protocol forgets it on all transports. Says whether rpcbind complied; it may say so too when
    /// nothing was registered.
    ///
    /// # Errors
    /// See [`RpcbindError`].
    pub fn unset(
        &self,
        program: u32,
        version: u32,
        address: &Address,
    ) -> Result<bool, RpcbindError> {
        let entry = entry(program, version, universal::netid(address)?, "");
        let done = self.ask(|| self.v4().unset(&entry), || self.v3().unset(&entry));
        match done {
            Err(error) if is_too_new(&error) => {
                Ok(self.v2().unset(&mapping(program, version, address)?)?)
            }
            other => Ok(other?),
        }
    }

    /// Everything that is registered.
    ///
    /// # Errors
    /// See [`RpcbindError`].
    pub fn dump(&self) -> Result<Vec<Registration>, RpcbindError> {
        match self.ask(|| self.v4().dump(), || self.v3().dump()) {
            Err(error) if is_too_new(&error) => {
                let list = self.v2().dump()?;
                list.iter()
                    .map(|entry| Registration::from_v2(&entry.map))
                    .collect()
            }
            other => Ok(other?
                .into_iter()
                .map(|entry| Registration::from(entry.rpcb_map))
                .collect()),
        }
    }

    /// Asks in version 4, and in version 3 if the other side does not have that.
    fn ask<T>(
        &self,
        in_v4: impl FnOnce() -> Result<T, CallError>,
        in_v3: impl FnOnce() -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        match self.newest {
            RpcbindVersion::V2 => Err(CallError::Refused(Refused::ProgramUnavailable)),
            RpcbindVersion::V3 => in_v3(),
            RpcbindVersion::V4 => match in_v4() {
                Err(error) if is_too_new(&error) => in_v3(),
                other => other,
            },
        }
    }

    fn v4(&self) -> Rpcbvers4Client {
        Rpcbvers4Client::over(self.channel.clone()).with_timeout(self.timeout)
    }

    fn v3(&self) -> RpcbversClient {
        RpcbversClient::over(self.channel.clone()).with_timeout(self.timeout)
    }

    fn v2(&self) -> PmapversClient {
        PmapversClient::over(self.channel.clone()).with_timeout(self.timeout)
    }
}

/// Returns whether the other side lacks this version of the protocol, or this part of it.
fn is_too_new(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Refused(
            Refused::ProgramMismatch { .. }
                | Refused::ProgramUnavailable
                | Refused::ProcedureUnavailable
        )
    )
}

fn entry(program: u32, version: u32, netid: &str, universal: &str) -> Rpcb {
    Rpcb {
        r_prog: program,
        r_vers: version,
        r_netid: netid.into(),
        r_addr: universal.into(),
        // rpcbind identifies the caller itself.
        r_owner: BString::default(),
    }
}

fn mapping(program: u32, version: u32, address: &Address) -> Result<Mapping, RpcbindError> {
    let port = address.host().and_then(|host| host.port);
    Ok(Mapping {
        prog: program,
        vers: version,
        prot: universal::protocol(address).ok_or(RpcbindError::Transport)?,
        port: port.unwrap_or_default().into(),
    })
}

fn address_if_any(netid: &BStr, universal: &BStr) -> Result<Option<Address>, RpcbindError> {
    match universal.is_empty() {
        true => Ok(None),
        false => Ok(Some(universal::address(netid, universal)?)),
    }
}

//! Finding the port of a program whose address does not say it.

use std::sync::Arc;
use std::time::Duration;

use tenon_net::Address;

use super::{Rpcbind, RpcbindError};
use crate::error::{CallError, ConnectError};
use crate::options::ChannelOptions;

/// Completes an address without a port by asking the host's rpcbind over the same transport, by
/// ONC RPC: a server has one port for both protocols.
pub(crate) fn locate(
    address: Address,
    program: u32,
    version: u32,
    options: &ChannelOptions,
) -> Result<Address, ConnectError> {
    if !address.needs_port() {
        return Ok(address);
    }
    let found = ask(&address, program, version, options.connect_timeout);
    let found = found.map_err(|cause| ConnectError::Rpcbind {
        address: address.clone(),
        cause: Arc::new(cause),
    })?;
    // What rpcbind says of the host may be how it sees itself; the caller knows how to get there.
    match found
        .as_ref()
        .and_then(Address::host)
        .and_then(|host| host.port)
    {
        Some(port) => Ok(address.with_port(port)),
        None => Err(ConnectError::NotRegistered {
            address,
            program,
            version,
        }),
    }
}

fn ask(
    address: &Address,
    program: u32,
    version: u32,
    timeout: Duration,
) -> Result<Option<Address>, RpcbindError> {
    let options = ChannelOptions::default().connect_timeout(timeout);
    let Some(onc) = address.clone().over_onc() else {
        return Ok(None);
    };
    let rpcbind = Rpcbind::at(onc, options).map_err(CallError::from)?;
    let timeout = timeout.min(rpcbind.timeout);
    rpcbind.with_timeout(timeout).getaddr(program, version)
}

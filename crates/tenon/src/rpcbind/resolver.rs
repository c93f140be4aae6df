//! Finding the port of a program whose address does not say it.

use std::error::Error;
use std::time::Duration;

use tenon_core::resolve::Resolver;
use tenon_net::Address;

use super::Rpcbind;
use super::error::RpcbindError;
use crate::{CallError, ChannelOptions};

/// Asks the rpcbind of the host that an address names, over the same transport and by ONC RPC: a server has one port for
/// both protocols.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostRpcbind;

/// Finds the port of a program whose address lacks it, unless another resolver is set.
#[doc(hidden)]
pub const DEFAULT_RESOLVER: &dyn Resolver = &HostRpcbind;

impl Resolver for HostRpcbind {
    fn resolve(
        &self,
        address: &Address,
        program: u32,
        version: u32,
        timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
        Ok(ask(address, program, version, timeout)?)
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

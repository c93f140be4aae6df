//! Finding the port of a program that is given without one.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::options::FOR_EVER;
use tenon_core::resolve::Resolver;
use tenon_net::Address;

use super::Rpcbind;
use super::error::RpcbindError;
use super::universal::netid;
use crate::{CallError, ChannelOptions};

/// Asks the rpcbind of the host that an address names, over the same transport and by ONC RPC: a server has one port for
/// both protocols. Of addresses past the kernel it finds nothing, and sends nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostRpcbind;

/// Returns the resolver that finds the port of a program if its address lacks one, unless another is set.
#[doc(hidden)]
pub fn default_resolver() -> Arc<dyn Resolver> {
    Arc::new(HostRpcbind)
}

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
    let deadline = Instant::now() + timeout.min(FOR_EVER);
    let options = ChannelOptions::default().connect_timeout(timeout);
    let onc = address.clone().over_onc().filter(|at| netid(at).is_ok());
    let Some(onc) = onc else {
        return Ok(None);
    };
    let rpcbind = Rpcbind::at(onc, options).map_err(CallError::from)?;
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = left.min(rpcbind.timeout);
    rpcbind.with_timeout(timeout).getaddr(program, version)
}

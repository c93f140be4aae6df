//! Registration of a server with the rpcbind of its own host: where its programs are, and at its end that they are no
//! more.

use std::error::Error;

use tenon_core::resolve::{Registered, Registrar};
use tenon_net::Address;

use super::universal::netid;
use super::{Rpcbind, RpcbindError};

/// Registers services with the rpcbind of this host, at all addresses of `tcp://`, `udp://` and `unix://`; it knows of no
/// others. What an earlier server left behind on the same transports is replaced, as all RPC servers do it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalRpcbind;

/// The registrations of one server.
#[derive(Debug, Default)]
struct RegistrationGuard(Vec<(u32, u32, Address)>);

impl Registered for RegistrationGuard {}

impl Registrar for LocalRpcbind {
    fn register(
        &self,
        programs: &[(u32, u32)],
        addresses: &[Address],
    ) -> Result<Box<dyn Registered>, Box<dyn Error + Send + Sync>> {
        Ok(Box::new(register(programs, addresses)?))
    }
}

fn register(
    programs: &[(u32, u32)],
    addresses: &[Address],
) -> Result<RegistrationGuard, RpcbindError> {
    let rpcbind = Rpcbind::local().map_err(|error| RpcbindError::Call(error.into()))?;
    let mut registrations = RegistrationGuard::default();
    let is_known = |address: &&Address| netid(address).is_ok();
    for &(program, version) in programs {
        for address in addresses.iter().filter(is_known) {
            rpcbind.unset(program, version, address)?;
            rpcbind.set(program, version, address)?;
            registrations.0.push((program, version, address.clone()));
        }
    }
    Ok(registrations)
}

impl RegistrationGuard {
    fn unregister(&self) -> Result<(), RpcbindError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let rpcbind = Rpcbind::local().map_err(|error| RpcbindError::Call(error.into()))?;
        for (program, version, address) in &self.0 {
            rpcbind.unset(*program, *version, address)?;
        }
        Ok(())
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        if let Err(error) = self.unregister() {
            tracing::warn!(%error, "programs stay registered with rpcbind");
        }
    }
}

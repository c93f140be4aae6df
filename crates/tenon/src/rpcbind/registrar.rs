//! What a server tells the rpcbind of its own host: where its programs are, and at its end that
//! they are no more.

use tenon_net::Address;

use super::{Rpcbind, RpcbindError};

/// The registrations of one server. Dropping it takes them back.
#[derive(Debug, Default)]
pub struct Registrar {
    registered: Vec<(u32, u32, Address)>,
}

impl Registrar {
    /// Registers all `programs`, by number and version, at all `addresses`. What an earlier server
    /// left behind on the same transports is replaced, as all RPC servers do it.
    ///
    /// # Errors
    /// rpcbind does not run or declines; then nothing stays registered.
    pub fn register(programs: &[(u32, u32)], addresses: &[Address]) -> Result<Self, RpcbindError> {
        let rpcbind = Rpcbind::local().map_err(|error| RpcbindError::Call(error.into()))?;
        let mut registrar = Self::default();
        for &(program, version) in programs {
            // Whoever asks rpcbind speaks ONC RPC.
            let speak_onc = |address: &&Address| (*address).clone().over_onc().is_some();
            for address in addresses.iter().filter(speak_onc) {
                rpcbind.unset(program, version, address)?;
                rpcbind.set(program, version, address)?;
                let registered = (program, version, address.clone());
                registrar.registered.push(registered);
            }
        }
        Ok(registrar)
    }

    fn unregister(&self) -> Result<(), RpcbindError> {
        if self.registered.is_empty() {
            return Ok(());
        }
        let rpcbind = Rpcbind::local().map_err(|error| RpcbindError::Call(error.into()))?;
        for (program, version, address) in &self.registered {
            rpcbind.unset(*program, *version, address)?;
        }
        Ok(())
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        if let Err(error) = self.unregister() {
            tracing::warn!(%error, "programs stay registered with rpcbind");
        }
    }
}

//! What is there in the place of `rpcbind` without that feature.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tenon_core::resolve::Resolver;
use tenon_net::Address;

/// Finds no port.
#[derive(Debug)]
struct NoRpcbind;

/// Returns a resolver that says what is lacking.
#[doc(hidden)]
pub fn default_resolver() -> Arc<dyn Resolver> {
    Arc::new(NoRpcbind)
}

impl Resolver for NoRpcbind {
    fn resolve(
        &self,
        address: &Address,
        _program: u32,
        _version: u32,
        _timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
        let message = format!(
            "{address} has no port, and asking rpcbind for it needs the feature `rpcbind`, which this program was \
             built without"
        );
        Err(message.into())
    }
}

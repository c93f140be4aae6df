//! Finding where a version of a program is, and telling others where the services of a server are: rpcbind is one way.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenon_net::Address;

use crate::error::ConnectError;

/// Finds where a version of a program is, for addresses that lack a port.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::GreeterV1Client, start_server};
/// # let (server, address) = start_server();
/// # let server_address: tenon::Address = address.parse()?;
/// use std::error::Error;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tenon::resolve::Resolver;
/// use tenon::{Address, ChannelOptions};
///
/// /// Ports as a program of its own knows them, from a file for example.
/// #[derive(Debug)]
/// struct Known(Address);
///
/// impl Resolver for Known {
///     fn resolve(
///         &self,
///         _address: &Address,
///         program: u32,
///         version: u32,
///         _timeout: Duration,
///     ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
///         Ok((program == 0x2000_1234 && version == 1).then(|| self.0.clone()))
///     }
/// }
///
/// let options = ChannelOptions::default().resolver(Arc::new(Known(server_address)));
/// let greeter = GreeterV1Client::connect_with("tcp://127.0.0.1", options)?;
/// greeter.ping()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Returns where a version of a program is at the host and on the transport of `address`, which lacks a port;
    /// `None` if it is not known there. May block for as long as `timeout`.
    ///
    /// # Errors
    /// It cannot be found out.
    fn resolve(
        &self,
        address: &Address,
        program: u32,
        version: u32,
        timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>>;
}

/// Tells others where the services of a server are.
pub trait Registrar: fmt::Debug + Send + Sync {
    /// Tells that all `programs`, by number and version, are at all `addresses`, until the returned value is dropped.
    /// May block.
    ///
    /// # Errors
    /// It cannot be told; then nothing stays told.
    fn register(
        &self,
        programs: &[(u32, u32)],
        addresses: &[Address],
    ) -> Result<Box<dyn Registered>, Box<dyn Error + Send + Sync>>;
}

/// Registration by a [`Registrar`], which takes it back when this is dropped.
pub trait Registered: fmt::Debug + Send {}

/// Several registrars, told one after the other.
#[derive(Debug)]
pub(crate) struct RegistrarList(pub(crate) Vec<Box<dyn Registrar>>);

impl Registrar for RegistrarList {
    fn register(
        &self,
        programs: &[(u32, u32)],
        addresses: &[Address],
    ) -> Result<Box<dyn Registered>, Box<dyn Error + Send + Sync>> {
        let registrars = self.0.iter();
        // What was told already is taken back if another cannot be told.
        let registered: Result<_, _> = registrars
            .map(|registrar| registrar.register(programs, addresses))
            .collect();
        Ok(Box::new(RegisteredList(registered?)))
    }
}

/// Registrations by several registrars, which are taken back in their order.
#[derive(Debug)]
struct RegisteredList(
    #[expect(dead_code, reason = "is there to be dropped")] Vec<Box<dyn Registered>>,
);

impl Registered for RegisteredList {}

/// Returns `address`, which lacks a port, with the one that `resolver` finds.
///
/// # Errors
/// The resolver fails, or does not know the program.
pub(crate) fn find_port(
    resolver: &dyn Resolver,
    address: &Address,
    program: u32,
    version: u32,
    timeout: Duration,
) -> Result<Address, ConnectError> {
    let found = resolver
        .resolve(address, program, version, timeout)
        .map_err(|cause| ConnectError::Unresolved {
            address: address.clone(),
            cause: Arc::from(cause),
        })?;
    let host = found.as_ref().and_then(Address::host);
    // What a resolver says of the host may be how the host sees itself; the caller knows how to get there.
    match host.and_then(|host| host.port) {
        Some(port) => Ok(address.clone().with_port(port)),
        None => Err(ConnectError::NotRegistered {
            address: address.clone(),
            program,
            version,
        }),
    }
}

//! The defaults that all clients of a connection have in common, whatever they call.

use std::sync::Arc;
use std::time::Duration;

use tenon::lean::Interface;
use tenon::{AuthSys, Channel, Client, Credential, CredentialError};

/// The identity of the caller and the time limit of calls.
#[derive(Debug, Clone, Default)]
pub struct CallDefaults {
    /// The time of every call, if it is said.
    pub timeout: Option<Duration>,
    /// The caller's identity, if it is said.
    pub user: Option<CallerIdentity>,
}

/// The caller's identity, by AUTH_SYS.
#[derive(Debug, Clone)]
pub struct CallerIdentity {
    /// An arbitrary number.
    pub stamp: u32,
    /// The user's machine.
    pub machine: Vec<u8>,
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
    /// Further groups.
    pub gids: Vec<u32>,
}

impl CallDefaults {
    /// A client of `interface` with these defaults.
    ///
    /// # Errors
    /// The credential cannot be sent.
    pub fn client(
        &self,
        channel: &Channel,
        interface: Interface,
    ) -> Result<Client, CredentialError> {
        let mut client = Client::over(channel.clone(), interface.program, interface.version)
            .with_interface(Arc::new(interface));
        if let Some(user) = &self.user {
            client = client.with_credential(&user.credential()?);
        }
        if let Some(timeout) = self.timeout {
            client = client.with_timeout(timeout);
        }
        Ok(client)
    }

    /// Returns a client like `before` with this identity of the caller.
    ///
    /// # Errors
    /// The credential cannot be sent.
    pub fn in_the_place_of(&self, before: &Client) -> Result<Client, CredentialError> {
        let credential = match &self.user {
            Some(user) => user.credential()?,
            None => Credential::None,
        };
        Ok(before.with_credential(&credential))
    }
}

impl CallerIdentity {
    fn credential(&self) -> Result<Credential<'_>, CredentialError> {
        let sys = AuthSys::new(&self.machine, self.uid, self.gid, &self.gids)?;
        Ok(Credential::Sys(sys.with_stamp(self.stamp)))
    }
}

//! Connecting as the command line asks.

use rustix::process::{getgid, getgroups, getuid};
use rustix::system::uname;
use tenon::wire::DecodeMode;
use tenon::{AuthSys, ChannelOptions, Client, Credential};

use crate::args::{Auth, CallOptions};
use crate::failure::Failure;

/// Connects to a version of a program.
pub fn client(
    address: &str,
    options: &CallOptions,
    program: u32,
    version: u32,
) -> Result<Client, Failure> {
    let limits = ChannelOptions::default().connect_timeout(options.timeout);
    let client = Client::connect_with(address, program, version, limits)
        .map_err(Failure::new)?
        .with_timeout(options.timeout);
    let client = match options.strict {
        true => client.with_decode_mode(DecodeMode::Strict),
        false => client,
    };
    match options.auth {
        Auth::None => Ok(client),
        Auth::Sys => with_own_identity(&client),
    }
}

/// AUTH_SYS with who this process is.
fn with_own_identity(client: &Client) -> Result<Client, Failure> {
    let system = uname();
    let machine = system.nodename().to_bytes();
    let groups = getgroups().map_err(std::io::Error::from)?;
    let gids: Vec<u32> = groups
        .iter()
        .map(|gid| gid.as_raw())
        .take(AuthSys::GIDS_MAX)
        .collect();
    let identity =
        AuthSys::new(machine, getuid().as_raw(), getgid().as_raw(), &gids).map_err(Failure::new)?;
    Ok(client.with_credential(&Credential::Sys(identity)))
}

//! Connecting as the command line asks.

use std::io;

#[cfg(unix)]
use rustix::process::{getgid, getgroups, getuid};
#[cfg(unix)]
use rustix::system::uname;
use tenon::lean::BindRefusal;
use tenon::wire::DecodeMode;
use tenon::{
    Address, BindError, CallError, ChannelOptions, Client, ConnectError, Metadata, Misbehavior,
    Protocol, Transport,
};
#[cfg(unix)]
use tenon::{AuthSys, Credential};

use crate::args::{AuthArg, CallOptionArgs};
use crate::failure::CommandFailure;

/// Returns the address on the command line.
pub fn address(text: &str) -> Result<Address, CommandFailure> {
    text.parse()
        .map_err(|error| CommandFailure::usage(ConnectError::Address(error)))
}

/// Connects to a version of a program. Its calls have the time that the command line says.
pub fn client(
    address: &Address,
    options: &CallOptionArgs,
    program: u32,
    version: u32,
) -> Result<Client, CommandFailure> {
    let client = untimed_client(address, options, program, version)?;
    Ok(client.with_timeout(options.timeout))
}

/// Connects to a version of a program. Its calls with streams last as long as they like.
pub fn untimed_client(
    address: &Address,
    options: &CallOptionArgs,
    program: u32,
    version: u32,
) -> Result<Client, CommandFailure> {
    let channel = ChannelOptions::default()
        .connect_timeout(options.timeout)
        .waiting(options.wait.policy())
        .allow_insecure(options.allow_insecure);
    let client = Client::connect_with(&address.to_string(), program, version, channel)
        .map_err(|error| no_connection(&error))?;
    let client = match options.strict {
        true => client.with_decode_mode(DecodeMode::Strict),
        false => client,
    };
    let client = match options.auth {
        AuthArg::None => client,
        AuthArg::Sys => with_own_identity(&client)?,
    };
    let mut metadata = Metadata::new();
    for pair in &options.metadata {
        metadata
            .append(&pair.key, &pair.value)
            .map_err(CommandFailure::usage)?;
    }
    if !metadata.is_empty() && address.protocol() == Protocol::Onc {
        let failure = CommandFailure::usage("a call by ONC RPC carries no metadata");
        let lean = address.clone().over_lean();
        return Err(failure.hint(format!("a server of Tenon takes it at {lean}")));
    }
    client
        .with_metadata(&metadata)
        .map_err(CommandFailure::usage)
}

/// Returns the failure to connect, and what to do about it.
pub fn no_connection(error: &ConnectError) -> CommandFailure {
    let failure = CommandFailure::new(error);
    let (address, cause) = match error {
        ConnectError::Unreachable { address, cause } => (address, cause),
        ConnectError::Unresolved { address, .. } => {
            return failure.hint(format!("if you know the port, say it: {address}:PORT"));
        }
        ConnectError::NotRegistered { .. } => {
            return failure.hint("`rpcinfo -p HOST` shows what is registered");
        }
        _ => return failure,
    };
    match cause.kind() {
        io::ErrorKind::ConnectionRefused => failure.hint(hint_on_refusal(address)),
        io::ErrorKind::NotFound => failure.hint(match address.transport() {
            Transport::Unix | Transport::Shm => "there is no such socket: is the server started?",
            Transport::Tcp | Transport::Udp | Transport::Xdp => "is the host's name right?",
        }),
        io::ErrorKind::TimedOut => failure.hint(
            "nothing answered in time: a firewall may be on the way, or no host there; \
             --timeout says how long to wait",
        ),
        _ => failure,
    }
}

/// Returns what to do about an address that refuses.
fn hint_on_refusal(address: &Address) -> &'static str {
    match address.transport() {
        Transport::Tcp | Transport::Udp => {
            "nothing listens there: is the server started, and is it its port? \
             `rpcinfo -p HOST` shows the ports of what is registered with rpcbind"
        }
        Transport::Xdp => "nothing listens there: is the server started, and is it its port?",
        Transport::Unix | Transport::Shm => {
            "nothing listens there any more, only the socket's file is left: is the server started?"
        }
    }
}

/// Returns whether datagrams met a port at which nothing listens.
fn is_refused(error: &CallError) -> bool {
    let CallError::Disconnected { cause, .. } = error else {
        return false;
    };
    cause.kind() == io::ErrorKind::ConnectionRefused
}

/// Returns the failure of a call to `address` without a result, and what to do about it.
pub fn failure(address: &Address, error: &CallError) -> CommandFailure {
    let failure = CommandFailure::new(error);
    if let CallError::InsecureToken = error {
        return CommandFailure::usage("the token would go over a network without encryption")
            .hint("--allow-insecure sends it all the same; anyone on the way can read it then");
    }
    if is_refused(error) {
        return failure.hint(hint_on_refusal(address));
    }
    match address.protocol() {
        Protocol::Onc => match (address.path(), error) {
            (Some(path), CallError::Misbehaved(Misbehavior::Record(_))) => failure.hint(format!(
                "if it is a server of shared memory that listens there, connect to shm://{}",
                path.display()
            )),
            _ => failure,
        },
        Protocol::Lean => match advice(error) {
            CallAdvice::Nothing => failure,
            CallAdvice::CompareFiles => failure.hint(
                "the interface file here is not the one that the server was built from: \
                 `tenon explain FILE NAME` shows what this one says",
            ),
            CallAdvice::SpeakOnc => match address.clone().over_onc() {
                Some(onc) => failure.hint(format!(
                    "a server may speak ONC RPC only, or serve a program by it alone: try {onc}"
                )),
                None => failure,
            },
        },
    }
}

/// The advice after a lean call without a result.
enum CallAdvice {
    Nothing,
    CompareFiles,
    SpeakOnc,
}

fn advice(error: &CallError) -> CallAdvice {
    match error {
        CallError::Unbound(BindError::Refused(refusal)) => match **refusal {
            BindRefusal::OtherInterface { .. } => CallAdvice::CompareFiles,
            BindRefusal::NoProgram { .. } => CallAdvice::SpeakOnc,
            _ => CallAdvice::Nothing,
        },
        CallError::Misbehaved(Misbehavior::Lean { .. })
        | CallError::Disconnected { .. }
        | CallError::NoLeanNumber { .. }
        | CallError::TimedOut { .. } => CallAdvice::SpeakOnc,
        _ => CallAdvice::Nothing,
    }
}

/// Returns the client with AUTH_SYS credentials of this process.
#[cfg(unix)]
fn with_own_identity(client: &Client) -> Result<Client, CommandFailure> {
    let system = uname();
    let machine = system.nodename().to_bytes();
    let groups = getgroups().map_err(std::io::Error::from)?;
    let gids: Vec<u32> = groups
        .iter()
        .map(|gid| gid.as_raw())
        .take(AuthSys::GIDS_MAX)
        .collect();
    let identity = AuthSys::new(machine, getuid().as_raw(), getgid().as_raw(), &gids)
        .map_err(CommandFailure::new)?;
    Ok(client.with_credential(&Credential::Sys(identity)))
}

#[cfg(windows)]
fn with_own_identity(_: &Client) -> Result<Client, CommandFailure> {
    Err(CommandFailure::usage(
        "a user of Windows has no number for AUTH_SYS: leave --auth out",
    ))
}

//! Connecting as the command line asks.

use std::io;

use rustix::process::{getgid, getgroups, getuid};
use rustix::system::uname;
use tenon::lean::BindRefusal;
use tenon::wire::DecodeMode;
use tenon::{
    Address, AuthSys, BindError, CallError, ChannelOptions, Client, ConnectError, Credential,
    Misbehavior, Protocol, Transport,
};

use crate::args::{Auth, CallOptions};
use crate::failure::Failure;

/// The address on the command line.
pub fn address(text: &str) -> Result<Address, Failure> {
    text.parse()
        .map_err(|error| Failure::usage(ConnectError::Address(error)))
}

/// Connects to a version of a program.
pub fn client(
    address: &Address,
    options: &CallOptions,
    program: u32,
    version: u32,
) -> Result<Client, Failure> {
    let channel = ChannelOptions::default()
        .connect_timeout(options.timeout)
        .waiting(options.wait.policy());
    let client = Client::connect_with(&address.to_string(), program, version, channel)
        .map_err(|error| no_connection(&error))?
        .with_timeout(options.timeout);
    let client = match options.strict {
        true => client.with_decode_mode(DecodeMode::Strict),
        false => client,
    };
    match (options.auth, address.protocol()) {
        (Auth::None, _) => Ok(client),
        (Auth::Sys, Protocol::Onc) => with_own_identity(&client),
        (Auth::Sys, Protocol::Lean) => {
            let failure =
                Failure::usage("the lean protocol does not say who calls: leave --auth out");
            Err(match address.clone().over_onc() {
                Some(onc) => failure.hint(format!("ONC RPC says it: connect to {onc}")),
                None => failure,
            })
        }
    }
}

/// Why there is no connection, and what to do about it.
pub fn no_connection(error: &ConnectError) -> Failure {
    let failure = Failure::new(error);
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
        io::ErrorKind::ConnectionRefused => failure.hint(match address.transport() {
            Transport::Tcp | Transport::Udp => {
                "nobody listens there: is the server started, and is it its port? \
                 `rpcinfo -p HOST` shows the ports of what is registered with rpcbind"
            }
            Transport::Xdp => "nobody listens there: is the server started, and is it its port?",
            Transport::Unix | Transport::Shm => {
                "nobody listens there any more, only the socket's file is left: is the server started?"
            }
        }),
        io::ErrorKind::NotFound => failure.hint(match address.transport() {
            Transport::Unix | Transport::Shm => "there is no such socket: is the server started?",
            Transport::Tcp | Transport::Udp | Transport::Xdp => "is the host's name right?",
        }),
        io::ErrorKind::TimedOut => failure.hint(
            "nothing answered in time: a firewall may be on the way, or nobody there; \
             --timeout says how long to wait",
        ),
        _ => failure,
    }
}

/// Why a call to `address` has no result, and what to do about it.
pub fn failure(address: &Address, error: &CallError) -> Failure {
    let failure = Failure::new(error);
    match address.protocol() {
        Protocol::Onc => match (address.path(), error) {
            (Some(path), CallError::Misbehaved(Misbehavior::Record(_))) => failure.hint(format!(
                "if it is a server of shared memory that listens there, connect to shm://{}",
                path.display()
            )),
            _ => failure,
        },
        Protocol::Lean => match advice(error) {
            Advice::Nothing => failure,
            Advice::CompareFiles => failure.hint(
                "the interface file here is not the one that the server was built from: \
                 `tenon explain FILE NAME` shows what this one says",
            ),
            Advice::SpeakOnc => match address.clone().over_onc() {
                Some(onc) => failure.hint(format!(
                    "a server may speak ONC RPC only, or serve a program by it alone: try {onc}"
                )),
                None => failure,
            },
        },
    }
}

/// What to do about a lean call without a result.
enum Advice {
    Nothing,
    CompareFiles,
    SpeakOnc,
}

fn advice(error: &CallError) -> Advice {
    match error {
        CallError::Unbound(BindError::Refused(refusal)) => match **refusal {
            BindRefusal::OtherInterface { .. } => Advice::CompareFiles,
            BindRefusal::NoProgram { .. } => Advice::SpeakOnc,
            _ => Advice::Nothing,
        },
        CallError::Misbehaved(Misbehavior::Lean { .. })
        | CallError::Disconnected { .. }
        | CallError::NoLeanNumber { .. }
        | CallError::TimedOut { .. } => Advice::SpeakOnc,
        _ => Advice::Nothing,
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

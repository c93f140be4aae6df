//! Why the client does not get what it wants.

use std::io;

use tenon::wire::BString;
use tenon::{CallError, ConnectError, CredentialError};

use crate::protocol::mount3::Mountstat3;
use crate::protocol::nfs3::Nfsstat3;

/// What went wrong, and whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A call has no result.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The caller cannot be described to the server.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The server does not let the export be mounted.
    #[error("cannot mount {export}: {status:?}")]
    Mount {
        /// The path that was asked for.
        export: BString,
        /// The server's reason.
        status: Mountstat3,
    },
    /// The server does not do what it was asked for.
    #[error("{procedure} failed: {status:?}")]
    Refused {
        /// The procedure.
        procedure: &'static str,
        /// The server's reason.
        status: Nfsstat3,
    },
    /// The server's answer makes no sense.
    #[error("the server's answer to {procedure} makes no sense: {why}")]
    Senseless {
        /// The procedure.
        procedure: &'static str,
        /// What is wrong with the answer.
        why: &'static str,
    },
    /// The server lost what was written, again and again.
    #[error("the server restarted in the middle of each of {0} attempts to write")]
    Restarts(u32),
    /// The path names the export itself.
    #[error("{0:?} names no file below the export")]
    NoName(BString),
    /// A local file cannot be read or written.
    #[error("the local file: {0}")]
    Local(#[from] io::Error),
}

/// The server refused `procedure`.
pub(super) fn refused(procedure: &'static str, status: Nfsstat3) -> ClientError {
    ClientError::Refused { procedure, status }
}

/// The server's answer to `procedure` makes no sense.
pub(super) fn senseless(procedure: &'static str, why: &'static str) -> ClientError {
    ClientError::Senseless { procedure, why }
}

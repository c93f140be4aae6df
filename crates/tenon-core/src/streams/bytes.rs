//! Streams of opaque data as readers and writers of bytes have them.

use std::error::Error;
use std::io;

use tenon_proto::lean::{HEADER, ITEM_MAX};

use super::assembly::COUNT;
use crate::error::CallError;
use crate::error_kind::CallErrorKind;

/// Bytes that a writer of bytes puts in one item: as many as go in one message behind its header and their count.
pub const BYTES_TOGETHER: usize = ITEM_MAX - HEADER - COUNT;

/// Returns the bytes that an item may have, if items are declared to be opaque data.
///
/// # Errors
/// They are not.
pub fn declared_max(opaque_max: Option<u32>) -> io::Result<u32> {
    opaque_max.ok_or_else(|| {
        let text = "the items of the stream are not declared to be opaque data";
        io::Error::new(io::ErrorKind::Unsupported, text)
    })
}

/// Returns the error of a stream as readers and writers of bytes return it. It wraps an `E`, the error of the procedure,
/// which [`io::Error::get_ref`] leads to.
#[cold]
pub fn io_error<E>(error: CallError) -> io::Error
where
    E: From<CallError> + Error + Send + Sync + 'static,
{
    io::Error::new(io_kind(&error), E::from(error))
}

fn io_kind(error: &CallError) -> io::ErrorKind {
    match error.kind() {
        CallErrorKind::TimedOut => io::ErrorKind::TimedOut,
        CallErrorKind::Cancelled | CallErrorKind::Stopping => io::ErrorKind::BrokenPipe,
        CallErrorKind::Disconnected => io::ErrorKind::ConnectionReset,
        CallErrorKind::Unreachable => io::ErrorKind::NotConnected,
        CallErrorKind::Denied | CallErrorKind::Unauthenticated => io::ErrorKind::PermissionDenied,
        CallErrorKind::InvalidCall | CallErrorKind::InvalidArguments => io::ErrorKind::InvalidInput,
        CallErrorKind::PeerMisbehaved => io::ErrorKind::InvalidData,
        CallErrorKind::NoService | CallErrorKind::NoProcedure => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    }
}

//! Making a call whole before it is started.

use tenon_net::{Address, Datagram, Transport};
use tenon_proto::connection::CallDraft;
use tenon_proto::onc::record::{self, MARK};
use tenon_wire::Buffer;

use crate::error::CallError;
use crate::options::ChannelOptions;

/// Makes a message whole, but for what it is given when it is started.
///
/// # Errors
/// It is too large.
#[inline]
pub fn seal(
    message: &mut Buffer,
    draft: &CallDraft<'_>,
    address: &Address,
    options: &ChannelOptions,
) -> Result<(), CallError> {
    let is_single_datagram =
        matches!(draft, CallDraft::Onc) && address.transport() == Transport::Udp;
    let size = match draft {
        CallDraft::Onc => message.len() - MARK,
        CallDraft::Lean(call) => call.draft.seal(message),
    };
    let mut limit = options.send_max;
    if is_single_datagram {
        limit = limit.min(Datagram::SIZE_MAX);
    }
    if size > limit {
        return Err(CallError::TooLarge {
            size,
            limit,
            datagram: is_single_datagram,
        });
    }
    if matches!(draft, CallDraft::Onc) && !is_single_datagram {
        record::seal(message, 0, options.fragment_max);
    }
    Ok(())
}

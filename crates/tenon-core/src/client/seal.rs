//! Making a call whole before it is started.

use tenon_net::{Address, DatagramSocket, Transport};
use tenon_proto::connection::CallDraft;
use tenon_proto::onc::record::{self, MARK};
use tenon_wire::Buffer;

use crate::error::CallError;
use crate::options::ChannelOptions;

/// Makes a message whole, but for what it is given when it is started.
///
/// # Errors
/// It is too large.
#[inline(always)]
pub fn seal(
    message: &mut Buffer,
    draft: &CallDraft<'_>,
    address: &Address,
    options: &ChannelOptions,
) -> Result<(), CallError> {
    match draft {
        CallDraft::Lean(call) => {
            let size = call.draft.seal(message);
            check_size(size, options.send_max, false)
        }
        CallDraft::Onc if address.transport() == Transport::Udp => {
            let limit = options.send_max.min(DatagramSocket::SIZE_MAX);
            check_size(message.len() - MARK, limit, true)
        }
        CallDraft::Onc => {
            check_size(message.len() - MARK, options.send_max, false)?;
            record::seal(message, 0, options.fragment_max);
            Ok(())
        }
    }
}

#[inline]
fn check_size(size: usize, limit: usize, datagram: bool) -> Result<(), CallError> {
    if size > limit {
        return Err(CallError::TooLarge {
            size,
            limit,
            datagram,
        });
    }
    Ok(())
}

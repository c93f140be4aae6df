//! Making a call whole before it is started.

use tenon_net::Address;
use tenon_proto::connection::CallDraft;
use tenon_proto::onc::record::{self, MARK};
use tenon_wire::Buffer;

use crate::error::CallError;
use crate::options::ChannelOptions;

/// Makes a message whole, but for what it is given when it is started.
///
/// # Errors
/// It is larger than the channel sends. Whether a message of ONC RPC fits into a datagram is found out when it is started:
/// that depends on the socket.
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
            check_size(size, options.send_max)
        }
        CallDraft::Onc => {
            check_size(message.len() - MARK, options.send_max)?;
            if !address.is_datagram() {
                record::seal(message, 0, options.fragment_max);
            }
            Ok(())
        }
    }
}

#[inline]
fn check_size(size: usize, limit: usize) -> Result<(), CallError> {
    if size > limit {
        return Err(CallError::TooLarge {
            size,
            limit,
            datagram: false,
        });
    }
    Ok(())
}

//! Why there is no descriptor of an interface, or no interface in bytes.

use tenon_plan::LowerError;
use tenon_wire::{DecodeError, EncodeError};

use crate::{BYTES_MAX, FORMAT};

/// Why an interface cannot be described, or bytes are no descriptor.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The bytes do not begin as a descriptor does.
    #[error("this is no descriptor: it does not begin with `tenonIDL`")]
    NotOne,
    /// A descriptor of a later format.
    #[error("this is a descriptor of format {0}, and format {FORMAT} is what can be read here")]
    Format(u32),
    /// More bytes than a descriptor may have.
    #[error("the descriptor has {bytes} bytes, and {BYTES_MAX} are the most")]
    TooLarge {
        /// The number of bytes.
        bytes: usize,
    },
    /// The bytes are not those of the struct.
    #[error("the descriptor cannot be decoded: {0}")]
    Decode(#[source] DecodeError),
    /// The interface has more of something than a descriptor has room for.
    #[error("the interface does not fit into a descriptor: {0}")]
    Encode(#[source] EncodeError),
    /// The parts of the interface do not fit together.
    #[error("{name}: {reason}")]
    Invalid {
        /// The type, constant, program or procedure that is at fault.
        name: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// Values of a type cannot be carried.
    #[error(transparent)]
    Lower(LowerError),
}

//! Constants of the protocol that hold before either end has said anything.

/// The first bytes of a preamble. Read as the mark of an ONC record it is a fragment of 2,138,334,574 bytes; text, HTTP
/// and TLS begin otherwise.
pub const MAGIC: [u8; 8] = *b"\x7ftenon\r\n";

/// The version that this crate speaks.
pub const VERSION: u16 = 1;

/// Bytes of a message, with its header, that every end takes in.
pub const MESSAGE_MIN: u32 = 64 << 10;

/// Calls in flight that every server takes.
pub const CALLS_MIN: u32 = 16;

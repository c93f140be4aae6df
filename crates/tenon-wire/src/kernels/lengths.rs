//! Lengths at which another way to move bytes becomes the better one.

/// Bytes from which on an array is cut into vectors; the widest one there is.
pub(super) const LONG: usize = 64;

/// Bytes up to which the platform's copy is as fast as any kernel. It knows the short lengths best;
/// and of memory that was just allocated the first bytes are soon wanted again, which wide stores
/// hold up.
pub(super) const SHORT: usize = 512;

//! The name of a call in flight.

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(super) lane: u16,
    pub(super) serial: u32,
}

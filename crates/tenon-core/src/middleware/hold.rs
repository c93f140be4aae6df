//! What holds a call back.

use std::pin::Pin;
use std::time::Instant;

/// What holds a call back.
pub(super) enum CallHold {
    None,
    Until(Instant),
    For(Pin<Box<dyn Future<Output = ()> + Send>>),
}

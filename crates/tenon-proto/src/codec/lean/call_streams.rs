//! Which streams a call has.

use super::header::Flags;

/// The streams of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CallStreams {
    /// The last argument is a stream of items, from the caller to the callee.
    pub argument: bool,
    /// The result is a stream of items, from the callee to the caller.
    pub result: bool,
}

impl CallStreams {
    /// A call without streams.
    pub const NONE: Self = Self {
        argument: false,
        result: false,
    };

    /// Returns whether there is one.
    #[inline]
    pub fn any(self) -> bool {
        self.argument || self.result
    }

    #[inline]
    pub(crate) fn of(flags: Flags) -> Self {
        Self {
            argument: flags.has(Flags::ARGUMENT_STREAM),
            result: flags.has(Flags::RESULT_STREAM),
        }
    }

    #[inline]
    pub(super) fn flags(self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.argument, Flags::ARGUMENT_STREAM) | flag(self.result, Flags::RESULT_STREAM)
    }
}

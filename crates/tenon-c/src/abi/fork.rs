//! Detection of forks: a child process must not use what its parent has opened.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::report::ApiError;

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn enter_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The process that something was opened in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForkGeneration(u32);

impl ForkGeneration {
    /// Returns that of this process, and watches forks from now on.
    pub(super) fn now() -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            // SAFETY: the handler only counts. Without memory for it forks are not noticed.
            let _ = unsafe { pthread_atfork(None, None, Some(enter_child)) };
        });
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns whether this process is still the same.
    #[inline]
    pub(super) fn is_current(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }

    /// Refuses what was opened by the parent of this process.
    #[inline]
    pub(super) fn check(self) -> Result<(), ApiError> {
        if self.is_current() {
            return Ok(());
        }
        Err(FORKED)
    }
}

const FORKED: ApiError = ApiError::Caller(
    "it was opened before this process was forked: a child opens channels and starts servers of its own",
);
